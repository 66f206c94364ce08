// striptags as markupsafe does it, and quoting as urllib.parse does it.
#include "core/text/template/html_text.hpp"

#include <charconv>

#include "core/text/template/budget.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/text_tools.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

// Everything from each `open` to the next `close` removed; what is not closed stays.
std::string without(std::string_view text, std::string_view open, std::string_view close) {
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t start = find_text(text, open, at);
    const size_t end = start == std::string_view::npos ? start : find_text(text, close, start);
    if (end == std::string_view::npos) break;
    out += text.substr(at, start - at);
    at = end + close.size();
  }
  out += text.substr(at);
  return out;
}

// The character that "&name;" stands for, or 0.
char32_t reference(std::string_view name) {
  if (name == "amp") return '&';
  if (name == "lt") return '<';
  if (name == "gt") return '>';
  if (name == "quot") return '"';
  if (name == "apos") return '\'';
  if (name == "nbsp") return 0xA0;
  if (!name.starts_with('#')) return 0;
  name.remove_prefix(1);
  const bool hexadecimal = name.starts_with('x') || name.starts_with('X');
  if (hexadecimal) name.remove_prefix(1);
  uint32_t code = 0;
  const auto result = std::from_chars(name.data(), name.data() + name.size(), code, hexadecimal ? 16 : 10);
  const bool valid = result.ec == std::errc() && result.ptr == name.data() + name.size() && code <= 0x10FFFF &&
                     (code < 0xD800 || code > 0xDFFF);
  return valid ? code : 0;
}

}  // namespace

std::string strip_tags(std::string_view text) {
  const std::string plain = without(without(text, "<!--", "-->"), "<", ">");
  std::string joined;
  for (std::string_view word : split_space(plain)) {
    if (!joined.empty()) joined += ' ';
    joined += word;
  }
  std::string out;
  for (size_t at = 0; at < joined.size(); ++at) {
    if (joined[at] == '&') {
      const size_t end = joined.substr(at, 12).find(';');
      const char32_t code = end == std::string::npos ? 0 : reference(std::string_view(joined).substr(at + 1, end - 1));
      if (code) {
        append_utf8(out, code);
        at += end;
        continue;
      }
    }
    out += joined[at];
  }
  return out;
}

std::string quote_url(std::string_view text, bool in_query) {
  charge_work(3 * text.size());
  check_room(3 * text.size());
  std::string out;
  for (char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                       c == '.' || c == '-' || c == '~' || (c == '/' && !in_query);
    if (plain) {
      out += c;
    } else if (c == ' ' && in_query) {
      out += '+';
    } else {
      constexpr char kDigits[] = "0123456789ABCDEF";
      out += '%';
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[c & 15];
    }
  }
  return out;
}

}  // namespace cairn::tmpl
