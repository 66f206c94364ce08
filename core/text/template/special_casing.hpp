// The characters whose upper or title case is longer than one character. Used by unicode.cpp only.
#pragma once

#include <string_view>

namespace cairn::tmpl {

struct SpecialCase {
  char32_t code;
  std::u32string_view upper;
  std::u32string_view title;
};

const SpecialCase* find_special_case(char32_t code);

}  // namespace cairn::tmpl
