// Python's view of text: characters are code points, case mapping and white space follow Unicode.
// Used by the template engine's lexer, string methods and filters. All text is valid UTF-8 on entry.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::tmpl {

bool is_ascii(std::string_view text);
bool is_valid_utf8(std::string_view text);

// The bytes of the first character of a non-empty text.
inline size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return bytes < text.size() ? bytes : text.size();
}
size_t count_characters(std::string_view text);
// The byte offset of character number `index`; text.size() when there are fewer.
size_t byte_offset(std::string_view text, size_t index);

char32_t decode_first(std::string_view text);
std::u32string decode(std::string_view text);
void append_utf8(std::string& out, char32_t code);
std::string encode(std::u32string_view text);

// str.isspace of one character, which is also the \s of Python's regular expressions.
bool is_space(char32_t code);
// Where str.splitlines breaks.
bool is_line_break(char32_t code);
bool is_alpha(char32_t code);
bool is_decimal(char32_t code);
bool is_digit(char32_t code);
bool is_alnum(char32_t code);
bool is_lower(char32_t code);
bool is_upper(char32_t code);
bool is_title(char32_t code);
bool is_printable(char32_t code);
// The \w of Python's regular expressions.
bool is_word(char32_t code);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swap_case(std::string_view text);
std::string case_fold(std::string_view text);

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

}  // namespace cairn::tmpl
