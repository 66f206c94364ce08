// Format specifications of Python's format() and the parsing of numbers.
#include "core/text/template/number_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/text/template/text_tools.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

std::string print_float(double number, char letter, int precision, bool alternate) {
  const char format[] = {'%', '#', '.', '*', letter, '\0'};
  const char plain[] = {'%', '.', '*', letter, '\0'};
  char buffer[512 + kMaxFormatPrecision];
  const int bytes = std::snprintf(buffer, sizeof(buffer), alternate ? format : plain, precision, number);
  return std::string(buffer, static_cast<size_t>(bytes));
}

void add_grouping(std::string& text, char separator, size_t group) {
  // Only the integer part's digits are grouped.
  size_t start = 0;
  while (start < text.size() && !(text[start] >= '0' && text[start] <= '9')) ++start;
  size_t end = start;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  for (size_t at = end; at > start + group;) {
    at -= group;
    text.insert(at, 1, separator);
  }
}

struct Specification {
  std::string fill = " ";
  char align = 0;
  NumberStyle number;
  bool sign_given = false;
  bool zero = false;
  int width = 0;
  char grouping = 0;
  char type = 0;
};

int read_number(std::string_view text, size_t& at) {
  int number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = number * 10 + (text[at++] - '0');
    if (number > kMaxFormatWidth) throw RenderError("Too many decimal digits in format string");
  }
  return number;
}

bool is_align(char c) {
  return c == '<' || c == '>' || c == '=' || c == '^';
}

Specification parse_specification(std::string_view text) {
  Specification spec;
  size_t at = 0;
  const size_t first = text.empty() ? 0 : character_bytes(text);
  if (first < text.size() && is_align(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    at = 1;
  }
  auto at_one_of = [&](std::string_view set) {
    return at < text.size() && set.find(text[at]) != std::string_view::npos;
  };
  if (at_one_of("+- ")) {
    spec.number.sign = text[at++];
    spec.sign_given = true;
  }
  if (at_one_of("#")) {
    spec.number.alternate = true;
    ++at;
  }
  if (at_one_of("0")) {
    spec.zero = true;
    if (!spec.align) {
      spec.fill = "0";
      spec.align = '=';
    }
    ++at;
  }
  spec.width = read_number(text, at);
  if (at_one_of(",_")) spec.grouping = text[at++];
  if (at_one_of(".")) {
    ++at;
    if (!at_one_of("0123456789")) throw RenderError("Format specifier missing precision");
    spec.number.precision = read_number(text, at);
  }
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size()) throw RenderError("Invalid format specifier");
  return spec;
}

std::string aligned(const std::string& text, const Specification& spec, char default_align) {
  const char align = spec.align ? spec.align : default_align;
  if (align == '=') {
    const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ') ? 1 : 0;
    return text.substr(0, sign) +
           pad_text(text.substr(sign), spec.width - static_cast<int>(sign), spec.fill, true, false);
  }
  if (align != '^') return pad_text(text, spec.width, spec.fill, align == '>', align == '<');
  // format() puts the odd one out on the right, unlike str.center.
  const auto missing = std::max<int64_t>(0, spec.width - static_cast<int64_t>(count_characters(text)));
  const std::string left = pad_text("", missing / 2, spec.fill, true, false);
  return left + text + pad_text("", missing - missing / 2, spec.fill, true, false);
}

[[noreturn]] void fail_code(char type, const Value& value) {
  throw RenderError(std::string("Unknown format code '") + type + "' for object of type '" + type_name(value) + "'");
}

std::string format_text_value(const Value& value, const Specification& spec) {
  if (spec.type && spec.type != 's') fail_code(spec.type, value);
  if (spec.sign_given) throw RenderError("Sign not allowed in string format specifier");
  if (spec.align == '=' && !spec.zero) throw RenderError("'=' alignment not allowed in string format specifier");
  std::string text = value.text();
  if (spec.number.precision >= 0) text.resize(byte_offset(text, static_cast<size_t>(spec.number.precision)));
  Specification textual = spec;
  if (textual.align == '=') textual.align = '<';
  return aligned(text, textual, '<');
}

std::string format_number(const Value& value, const Specification& spec) {
  const std::string_view float_types = "eEfFgG%";
  std::string text;
  if (value.is_float() || (spec.type && float_types.find(spec.type) != std::string_view::npos)) {
    const double number = value.as_float();
    if (spec.type == '%') {
      text = format_float(number * 100, 'f', spec.number) + "%";
    } else if (spec.type == 0 || spec.type == 'n') {
      if (spec.number.precision >= 0) {
        // Like g, but at least one digit after the point.
        text = format_float(number, 'g', spec.number);
        if (text.find_first_of(".en") == std::string::npos) text += ".0";
      } else {
        text = float_text(number);
        if (spec.number.sign != '-' && number >= 0) text.insert(0, 1, spec.number.sign);
      }
    } else if (float_types.find(spec.type) != std::string_view::npos) {
      text = format_float(number, spec.type, spec.number);
    } else {
      fail_code(spec.type, value);
    }
  } else {
    const char type = spec.type && spec.type != 'n' ? spec.type : 'd';
    if (std::string_view("dboxXc").find(type) == std::string_view::npos) fail_code(type, value);
    if (spec.number.precision >= 0) throw RenderError("Precision not allowed in integer format specifier");
    text = format_integer(value.as_int(), type, spec.number);
  }
  if (spec.grouping)
    add_grouping(text, spec.grouping,
                 spec.grouping == '_' && std::string_view("boxX").find(spec.type) != std::string_view::npos && spec.type
                     ? 4
                     : 3);
  return aligned(text, spec, '>');
}

}  // namespace

std::string format_integer(int64_t number, char letter, const NumberStyle& style) {
  if (letter == 'c') {
    if (number < 0 || number > 0x10FFFF || (number >= 0xD800 && number <= 0xDFFF)) {
      throw RenderError("%c arg not in range(0x110000)");
    }
    std::string text;
    append_utf8(text, static_cast<char32_t>(number));
    return text;
  }
  const int base = letter == 'o' ? 8 : letter == 'x' || letter == 'X' ? 16 : letter == 'b' ? 2 : 10;
  char buffer[72];
  const uint64_t magnitude = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), magnitude, base).ptr;
  std::string digits(buffer, end);
  if (style.precision > kMaxFormatPrecision) throw RenderError("a format's precision is too large");
  if (static_cast<int>(digits.size()) < style.precision) {
    digits.insert(0, static_cast<size_t>(style.precision) - digits.size(), '0');
  }
  if (style.alternate && base != 10) digits.insert(0, std::string("0") + static_cast<char>(letter | 0x20));
  if (letter == 'X')
    std::transform(digits.begin(), digits.end(), digits.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  if (number < 0) return "-" + digits;
  return style.sign == '-' ? digits : style.sign + digits;
}

std::string format_float(double number, char letter, const NumberStyle& style) {
  if (style.precision > kMaxFormatPrecision) throw RenderError("a format's precision is too large");
  std::string text = print_float(number, letter, style.precision < 0 ? 6 : style.precision, style.alternate);
  if (std::isnan(number)) text = letter == 'E' || letter == 'F' || letter == 'G' ? "NAN" : "nan";
  if (!std::signbit(number) || std::isnan(number)) {
    if (style.sign != '-') text.insert(0, 1, style.sign);
  }
  return text;
}

std::string pad_number(const std::string& text, int width) {
  size_t start = !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ') ? 1 : 0;
  if (text.size() > start + 1 && text[start] == '0' &&
      std::string_view("xXobB").find(text[start + 1]) != std::string_view::npos) {
    start += 2;
  }
  return text.substr(0, start) + pad_text(text.substr(start), width - static_cast<int>(start), "0", true, false);
}

std::string format_value(const Value& value, std::string_view specification) {
  if (specification.empty()) return to_text(value);
  const Specification spec = parse_specification(specification);
  if (value.is_string()) return format_text_value(value, spec);
  if (value.is_bool() && !spec.type) {
    // Python formats a bool without a type as the integer it is, except when nothing but width is given.
    return format_number(value, spec);
  }
  if (value.is_number()) return format_number(value, spec);
  throw RenderError("unsupported format string passed to " + type_name(value) + ".__format__");
}

int64_t float_to_integer(double number) {
  if (std::isnan(number)) throw RenderError("cannot convert float NaN to integer");
  if (std::isinf(number)) throw RenderError("cannot convert float infinity to integer");
  if (number >= 9223372036854775808.0 || number < -9223372036854775808.0) {
    throw RenderError("an integer left the range of 64 bits, which this engine's integers have");
  }
  return static_cast<int64_t>(number);
}

std::optional<int64_t> parse_integer(std::string_view text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  text = strip_right(strip_left(text));
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.size() > 2 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    const int64_t prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (prefixed && (base == 0 || base == prefixed)) {
      base = prefixed;
      text.remove_prefix(2);
      if (text.starts_with('_')) text.remove_prefix(1);
    }
  }
  if (base == 0) {
    base = 10;
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
  }
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || i + 1 == text.size() || text[i - 1] == '_') {
      return std::nullopt;
    }
  }
  if (digits.empty() || digits[0] == '-') return std::nullopt;
  if (negative) digits.insert(0, 1, '-');
  int64_t number = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), number, static_cast<int>(base));
  if (result.ptr != digits.data() + digits.size() || result.ec == std::errc::invalid_argument) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range) {
    throw RenderError("an integer left the range of 64 bits, which this engine's integers have");
  }
  return number;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip_right(strip_left(text));
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    auto is_digit_at = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
    if (text[i] == '_') {
      if (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1)) return std::nullopt;
    } else {
      digits += static_cast<char>(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
    }
  }
  std::string_view rest = digits;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  double number = 0;
  if (rest == "inf" || rest == "infinity") {
    number = HUGE_VAL;
  } else if (rest == "nan") {
    number = std::nan("");
  } else {
    if (rest.empty() || rest[0] == '-' || rest[0] == 'i' || rest[0] == 'n') return std::nullopt;
    const auto result = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (result.ptr != rest.data() + rest.size() || result.ec == std::errc::invalid_argument) return std::nullopt;
    if (result.ec == std::errc::result_out_of_range)
      number = rest.find("e-") == std::string_view::npos ? HUGE_VAL : 0.0;
  }
  return negative ? -number : number;
}

}  // namespace cairn::tmpl
