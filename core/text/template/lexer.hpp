// Splits template source into tokens, with Jinja's white space control (trim_blocks and lstrip_blocks on).
// Used by the parser only.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::tmpl {

enum class TokenType {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenType type;
  size_t offset;     // into the normalized source
  int line;          // from 1
  std::string text;  // data, name, operator as written; string with its escapes resolved
  int64_t integer = 0;
  double number = 0;
};

// What is wrong with a template's source, before the file's name is known.
class SyntaxError : public std::runtime_error {
 public:
  SyntaxError(const std::string& message, size_t offset_in) : std::runtime_error(message), offset(offset_in) {}
  size_t offset;
};

// Line ends become "\n" and one at the very end is dropped, as Jinja does.
std::string normalize_source(std::string_view source);

// The tokens of a normalized source, ended by one kEnd. Throws SyntaxError.
std::vector<Token> tokenize(std::string_view source);

// The value of a string literal's inside (escapes as in Python). Throws SyntaxError at `offset`.
std::string unescape_literal(std::string_view inside, size_t offset);

}  // namespace cairn::tmpl
