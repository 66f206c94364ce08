// Splits a line into chunks of words and white space and fills lines with them.
#include "core/text/template/word_wrap.hpp"

#include <deque>
#include <vector>

#include "core/text/template/budget.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

// textwrap breaks at ASCII white space only.
bool is_break(char32_t code) {
  return (code >= 9 && code <= 13) || code == ' ';
}
bool is_letter(char32_t code) {
  return is_word(code) && !is_digit(code) && code != '_';
}

// Words, runs of white space and, if asked, words cut after hyphens between letters and around dashes.
std::deque<std::u32string> split_chunks(std::u32string_view line, bool on_hyphens) {
  std::deque<std::u32string> chunks;
  std::u32string chunk;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool space = is_break(line[i]);
    if (!chunk.empty() && space != is_break(chunk.back())) {
      chunks.push_back(std::move(chunk));
      chunk.clear();
    }
    chunk += line[i];
    if (!on_hyphens || line[i] != '-' || chunk.size() < 2) continue;
    // "well-known" may break after the hyphen; "-1" and "a--b" follow other rules.
    const bool before = chunk.size() >= 2 && is_letter(chunk[chunk.size() - 2]);
    const bool after = i + 2 < line.size() && is_letter(line[i + 1]) && (is_letter(line[i + 2]) || line[i + 2] == '-');
    if (before && after && chunk.size() >= 3) {
      chunks.push_back(std::move(chunk));
      chunk.clear();
    }
  }
  if (!chunk.empty()) chunks.push_back(std::move(chunk));
  return chunks;
}

std::vector<std::u32string> wrap_line(std::u32string_view line, const WrapStyle& style) {
  const auto width = static_cast<size_t>(style.width);
  std::deque<std::u32string> chunks = split_chunks(line, style.break_on_hyphens);
  std::vector<std::u32string> lines;
  while (!chunks.empty()) {
    charge_work(width);
    if (!lines.empty() && is_break(chunks.front()[0])) chunks.pop_front();
    std::vector<std::u32string> current;
    size_t length = 0;
    while (!chunks.empty() && length + chunks.front().size() <= width) {
      length += chunks.front().size();
      current.push_back(std::move(chunks.front()));
      chunks.pop_front();
    }
    if (!chunks.empty() && chunks.front().size() > width) {
      std::u32string& long_word = chunks.front();
      if (style.break_long_words) {
        size_t room = width - length;
        if (style.break_on_hyphens && long_word.size() > room && room > 0) {
          // Prefer to cut after the last hyphen that fits and does not lead the word.
          const size_t hyphen = long_word.rfind('-', room - 1);
          const bool inside = hyphen != std::u32string::npos && hyphen > 0 && long_word.find_first_not_of('-') < hyphen;
          if (inside) room = hyphen + 1;
        }
        if (room > 0) current.push_back(long_word.substr(0, room));
        long_word.erase(0, room);
        if (long_word.empty()) chunks.pop_front();
      } else if (current.empty()) {
        current.push_back(std::move(long_word));
        chunks.pop_front();
      }
    }
    if (!current.empty() && is_break(current.back()[0])) current.pop_back();
    if (current.empty()) continue;
    std::u32string joined;
    for (const std::u32string& chunk : current) joined += chunk;
    lines.push_back(std::move(joined));
  }
  return lines;
}

}  // namespace

std::string wrap_words(std::string_view text, const WrapStyle& style, std::string_view line_end) {
  if (style.width < 1) throw RenderError("invalid width " + std::to_string(style.width) + " (must be > 0)");
  charge_work(text.size());
  check_room(text.size() * 8);
  std::string out;
  bool first_line = true;
  for (std::string_view line : split_lines(text, false)) {
    if (!first_line) out += line_end;
    first_line = false;
    bool first = true;
    for (const std::u32string& wrapped : wrap_line(decode(line), style)) {
      check_room(out.size() + line_end.size() + 4 * wrapped.size());
      if (!first) out += line_end;
      first = false;
      out += encode(wrapped);
    }
  }
  return out;
}

}  // namespace cairn::tmpl
