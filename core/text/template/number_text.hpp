// Numbers to text and back: format specifications, int() and float(). Used by formatting and the int, float and round
// filters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/text/template/value.hpp"

namespace cairn::tmpl {

inline constexpr int kMaxFormatWidth = 1'000'000;
inline constexpr int kMaxFormatPrecision = 1000;

struct NumberStyle {
  char sign = '-';         // '-' only for negatives, '+' always, ' ' a space for positives
  bool alternate = false;  // the # flag
  int precision = -1;      // -1 for the default
};

// `letter` is one of d o x X b c and e E f F g G.
std::string format_integer(int64_t number, char letter, const NumberStyle& style);
std::string format_float(double number, char letter, const NumberStyle& style);
// Zeros between the sign (or 0x) and the digits up to the width.
std::string pad_number(const std::string& text, int width);

// format(value, specification) of Python.
std::string format_value(const Value& value, std::string_view specification);

// int(number): towards zero. Throws RenderError for infinities, NaN and what 64 bits do not hold.
int64_t float_to_integer(double number);
// int(text, base) and float(text); nothing when the text is not a number. An integer too large throws RenderError.
std::optional<int64_t> parse_integer(std::string_view text, int64_t base);
std::optional<double> parse_float(std::string_view text);

}  // namespace cairn::tmpl
