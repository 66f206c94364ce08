// Case mapping and character classes on top of utf8proc.
#include "core/text/template/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "core/text/template/special_casing.hpp"

namespace cairn::tmpl {
namespace {

struct Range {
  char32_t first, last;
};

// Characters outside category Nd that Python's isdigit accepts: superscripts, circled digits and the like.
constexpr Range kOtherDigits[] = {{0xB2, 0xB3},       {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},
                                  {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
                                  {0x2474, 0x247C},   {0x2488, 0x2490},   {0x24EA, 0x24EA},   {0x24F5, 0x24FD},
                                  {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},   {0x278A, 0x2792},
                                  {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

char32_t simple_lower(char32_t code) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

void append_upper(std::u32string& out, char32_t code) {
  if (code >= 0x80) {
    if (const SpecialCase* special = find_special_case(code)) {
      out += special->upper;
      return;
    }
  }
  out += static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code)));
}

void append_title(std::u32string& out, char32_t code) {
  if (code >= 0x80) {
    if (const SpecialCase* special = find_special_case(code)) {
      out += special->title;
      return;
    }
  }
  out += static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code)));
}

bool is_cased(char32_t code) {
  return is_lower(code) || is_upper(code) || is_title(code);
}

bool is_case_ignorable(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return code == '\'' || code == '.' || code == ':' || code == 0xB7 || code == 0x2019 || code == 0x2018;
  }
}

// A capital sigma becomes the final form at the end of a word.
bool is_final_sigma(std::u32string_view text, size_t at) {
  size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append_lower(std::u32string& out, std::u32string_view text, size_t at) {
  if (text[at] == 0x130) {
    out += U"i\U00000307";
  } else if (text[at] == 0x3A3) {
    out += is_final_sigma(text, at) ? char32_t{0x3C2} : char32_t{0x3C3};
  } else {
    out += simple_lower(text[at]);
  }
}

}  // namespace

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_valid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t used = utf8proc_iterate(bytes, left, &code);
    if (used <= 0) return false;
    bytes += used;
    left -= used;
  }
  return true;
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t at = 0;
  while (index > 0 && at < text.size()) {
    at += character_bytes(text.substr(at));
    --index;
  }
  return at;
}

char32_t decode_first(std::string_view text) {
  utf8proc_int32_t code = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &code);
  return static_cast<char32_t>(code);
}

std::u32string decode(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  while (!text.empty()) {
    out += decode_first(text);
    text.remove_prefix(character_bytes(text));
  }
  return out;
}

void append_utf8(std::string& out, char32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

std::string encode(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char32_t code : text) append_utf8(out, code);
  return out;
}

bool is_space(char32_t code) {
  return (code >= 9 && code <= 13) || (code >= 28 && code <= 32) || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

bool is_line_break(char32_t code) {
  return (code >= 10 && code <= 13) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

bool is_alpha(char32_t code) {
  const utf8proc_category_t c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t code) {
  return is_decimal(code) || std::any_of(std::begin(kOtherDigits), std::end(kOtherDigits),
                                         [code](Range r) { return code >= r.first && code <= r.last; });
}

bool is_alnum(char32_t code) {
  const utf8proc_category_t c = category(code);
  return is_alpha(code) || (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO);
}

bool is_lower(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LL || code == 0xAA || code == 0xBA;
}
bool is_upper(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LU;
}
bool is_title(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LT;
}

bool is_printable(char32_t code) {
  if (code == ' ') return true;
  const utf8proc_category_t c = category(code);
  return c != UTF8PROC_CATEGORY_CN && !(c >= UTF8PROC_CATEGORY_ZS && c <= UTF8PROC_CATEGORY_CO);
}

bool is_word(char32_t code) {
  return code == '_' || is_alnum(code);
}

std::string to_upper(std::string_view text) {
  std::u32string out;
  for (char32_t code : decode(text)) append_upper(out, code);
  return encode(out);
}

std::string to_lower(std::string_view text) {
  const std::u32string in = decode(text);
  std::u32string out;
  for (size_t i = 0; i < in.size(); ++i) append_lower(out, in, i);
  return encode(out);
}

std::string to_title(std::string_view text) {
  const std::u32string in = decode(text);
  std::u32string out;
  bool in_word = false;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in_word) {
      append_lower(out, in, i);
    } else {
      append_title(out, in[i]);
    }
    in_word = is_cased(in[i]);
  }
  return encode(out);
}

std::string capitalize(std::string_view text) {
  const std::u32string in = decode(text);
  std::u32string out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (i == 0) {
      append_title(out, in[0]);
    } else {
      append_lower(out, in, i);
    }
  }
  return encode(out);
}

std::string swap_case(std::string_view text) {
  const std::u32string in = decode(text);
  std::u32string out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (is_upper(in[i])) {
      append_lower(out, in, i);
    } else if (is_lower(in[i])) {
      append_upper(out, in[i]);
    } else {
      out += in[i];
    }
  }
  return encode(out);
}

std::string case_fold(std::string_view text) {
  utf8proc_uint8_t* folded = nullptr;
  const utf8proc_ssize_t bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                              static_cast<utf8proc_ssize_t>(text.size()), &folded, UTF8PROC_CASEFOLD);
  if (bytes < 0) return std::string(text);
  std::string out(reinterpret_cast<const char*>(folded), static_cast<size_t>(bytes));
  std::free(folded);
  return out;
}

std::string_view strip_left(std::string_view text) {
  while (!text.empty() && is_space(decode_first(text))) text.remove_prefix(character_bytes(text));
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    if (!is_space(decode_first(text.substr(at)))) break;
    text.remove_suffix(text.size() - at);
  }
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  size_t at = 0;
  while (at < text.size()) {
    const char32_t code = decode_first(text.substr(at));
    const size_t bytes = character_bytes(text.substr(at));
    if (!is_line_break(code)) {
      at += bytes;
      continue;
    }
    size_t end = at + bytes;
    if (code == '\r' && end < text.size() && text[end] == '\n') ++end;
    lines.push_back(text.substr(start, (keep_ends ? end : at) - start));
    start = at = end;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

}  // namespace cairn::tmpl
