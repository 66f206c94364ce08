// Stripping, splitting, replacing and padding.
#include "core/text/template/text_tools.hpp"

#include <algorithm>

#include "core/text/template/budget.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

void add_piece(std::vector<std::string_view>& pieces, std::string_view piece) {
  // Bounded before it grows: a piece takes 16 bytes here and more once it is a value.
  if (pieces.size() % 4096 == 0) check_room(2 * pieces.size() * sizeof(std::string_view));
  pieces.push_back(piece);
}

}  // namespace

std::string strip_text(std::string_view text, const std::string* characters, bool left, bool right) {
  if (!characters) {
    if (left) text = strip_left(text);
    if (right) text = strip_right(text);
    return std::string(text);
  }
  const std::u32string set = decode(*characters);
  auto in_set = [&](std::string_view at) {
    charge_work(set.size());
    return set.find(decode_first(at)) != std::u32string::npos;
  };
  while (left && !text.empty() && in_set(text)) text.remove_prefix(character_bytes(text));
  while (right && !text.empty() && in_set(text.substr(last_character(text)))) {
    text.remove_suffix(text.size() - last_character(text));
  }
  return std::string(text);
}

std::string replace_text(std::string_view text, std::string_view from, std::string_view to, int64_t limit) {
  std::string out;
  auto add = [&](std::string_view more) {
    check_room(out.size() + more.size());
    charge_work(more.size());
    out += more;
  };
  size_t at = 0;
  if (from.empty()) {
    // Between all characters, and at both ends.
    while (limit != 0) {
      add(to);
      --limit;
      if (at >= text.size()) return out;
      const size_t bytes = character_bytes(text.substr(at));
      add(text.substr(at, bytes));
      at += bytes;
    }
    add(text.substr(at));
    return out;
  }
  for (; limit != 0; --limit) {
    const size_t found = find_text(text, from, at);
    if (found == std::string_view::npos) break;
    add(text.substr(at, found - at));
    add(to);
    at = found + from.size();
  }
  add(text.substr(at));
  return out;
}

std::string pad_text(std::string_view text, int64_t width, std::string_view fill, bool left, bool right) {
  const auto size = static_cast<int64_t>(count_characters(text));
  if (width <= size) return std::string(text);
  const int64_t missing = width - size;
  const int64_t before = !left ? 0 : !right ? missing : missing / 2 + (missing & width & 1);
  std::string out = repeat(fill, before);
  out += text;
  out += repeat(fill, missing - before);
  return out;
}

std::vector<std::string_view> split_space(std::string_view text, int64_t limit) {
  charge_work(text.size());
  std::vector<std::string_view> pieces;
  for (text = strip_left(text); !text.empty(); text = strip_left(text)) {
    if (limit == 0) {
      add_piece(pieces, strip_right(text));
      break;
    }
    size_t end = 0;
    while (end < text.size() && !is_space(decode_first(text.substr(end)))) end += character_bytes(text.substr(end));
    add_piece(pieces, text.substr(0, end));
    text.remove_prefix(end);
    if (limit > 0) --limit;
  }
  return pieces;
}

std::vector<std::string_view> rsplit_space(std::string_view text, int64_t limit) {
  charge_work(text.size());
  std::vector<std::string_view> pieces;
  for (text = strip_right(text); !text.empty(); text = strip_right(text)) {
    if (limit == 0) {
      add_piece(pieces, strip_left(text));
      break;
    }
    size_t start = text.size();
    while (start > 0) {
      const size_t previous = last_character(text.substr(0, start));
      if (is_space(decode_first(text.substr(previous)))) break;
      start = previous;
    }
    add_piece(pieces, text.substr(start));
    text = text.substr(0, start);
    if (limit > 0) --limit;
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

std::vector<std::string_view> split_text(std::string_view text, std::string_view separator, int64_t limit) {
  std::vector<std::string_view> pieces;
  size_t start = 0;
  for (; limit != 0; --limit) {
    const size_t at = find_text(text, separator, start);
    if (at == std::string_view::npos) break;
    add_piece(pieces, text.substr(start, at - start));
    start = at + separator.size();
  }
  add_piece(pieces, text.substr(start));
  return pieces;
}

std::vector<std::string_view> rsplit_text(std::string_view text, std::string_view separator, int64_t limit) {
  // Searched backwards on reversed copies, made once, so that many pieces stay linear.
  const std::string backwards(text.rbegin(), text.rend());
  const std::string wanted(separator.rbegin(), separator.rend());
  std::vector<std::string_view> pieces;
  size_t start = 0;  // from the end of the text
  for (; limit != 0; --limit) {
    const size_t at = find_text(backwards, wanted, start);
    if (at == std::string_view::npos) break;
    add_piece(pieces, text.substr(text.size() - at, at - start));
    start = at + separator.size();
  }
  add_piece(pieces, text.substr(0, text.size() - start));
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace cairn::tmpl
