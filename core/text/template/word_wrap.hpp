// Line wrapping as Python's textwrap does it, for the wordwrap filter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::tmpl {

struct WrapStyle {
  int64_t width = 79;  // in characters, at least 1
  bool break_long_words = true;
  bool break_on_hyphens = true;
};

// Each line of `text` wrapped on its own; the lines joined by `line_end`.
std::string wrap_words(std::string_view text, const WrapStyle& style, std::string_view line_end);

}  // namespace cairn::tmpl
