// The two modes of the lexer: template data up to the next tag, and the inside of a tag.
#include "core/text/template/lexer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

constexpr std::string_view kTwoCharacterOperators[] = {"//", "**", "==", "!=", ">=", "<="};
constexpr std::string_view kOperators = "+-/*%~[](){}><=.:|,;";

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) lex_data();
    add(TokenType::kEnd, at_, {});
    return std::move(tokens_);
  }

 private:
  // Everything up to the next tag, then the tag.
  void lex_data() {
    const size_t start = at_;
    const size_t tag = find_tag(at_);
    if (tag == std::string_view::npos) {
      add(TokenType::kData, start, std::string(source_.substr(start)));
      at_ = source_.size();
      return;
    }
    const char kind = source_[tag + 1];
    size_t inside = tag + 2;
    char sign = 0;
    if (inside < source_.size() && (source_[inside] == '-' || source_[inside] == '+')) sign = source_[inside++];
    add_data(start, tag, sign, kind != '{');
    if (kind == '#') {
      skip_comment(tag, inside);
    } else if (std::optional<size_t> raw = kind == '%' ? match_raw(inside) : std::nullopt) {
      lex_raw(tag, *raw);
    } else {
      add(kind == '%' ? TokenType::kBlockBegin : TokenType::kVariableBegin, tag, {});
      at_ = inside;
      lex_tag(tag, kind == '%');
    }
  }

  size_t find_tag(size_t from) const {
    for (size_t brace = source_.find('{', from); brace != std::string_view::npos;
         brace = source_.find('{', brace + 1)) {
      if (brace + 1 >= source_.size()) break;
      const char next = source_[brace + 1];
      if (next == '%' || next == '{' || next == '#') return brace;
    }
    return std::string_view::npos;
  }

  // The data before a tag, with the white space that the tag's sign or lstrip_blocks takes away.
  void add_data(size_t start, size_t end, char sign, bool may_strip_line) {
    std::string_view text = source_.substr(start, end - start);
    if (sign == '-') {
      text = strip_right(text);
    } else if (sign == 0 && may_strip_line) {
      const size_t newline = text.rfind('\n');
      const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
      const bool at_line_start = line > 0 || start == 0 || source_[start - 1] == '\n';
      if (at_line_start && strip_left(text.substr(line)).empty()) text = text.substr(0, line);
    }
    if (!text.empty()) add(TokenType::kData, start, std::string(text));
  }

  void skip_comment(size_t tag, size_t inside) {
    const size_t close = source_.find("#}", inside);
    if (close == std::string_view::npos) throw SyntaxError("a comment is not closed by '#}'", tag);
    const char sign = close > inside ? source_[close - 1] : '\0';
    at_ = after_tag(close + 2, sign);
  }

  // Where to go on after a closing tag: '-' takes all white space, '+' nothing, else one newline goes (trim_blocks).
  size_t after_tag(size_t at, char sign) const {
    if (sign == '-') return skip_space(at);
    if (sign != '+' && at < source_.size() && source_[at] == '\n') return at + 1;
    return at;
  }

  size_t skip_space(size_t at) const {
    const std::string_view rest = source_.substr(at);
    return at + (rest.size() - strip_left(rest).size());
  }

  // `raw` and the end of its tag: the offset of the raw text.
  std::optional<size_t> match_raw(size_t at) const {
    at = skip_space(at);
    if (!source_.substr(at).starts_with("raw")) return std::nullopt;
    at = skip_space(at + 3);
    if (source_.substr(at).starts_with("-%}")) return skip_space(at + 3);
    if (source_.substr(at).starts_with("%}")) return at + 2;
    return std::nullopt;
  }

  void lex_raw(size_t tag, size_t start) {
    for (size_t open = source_.find("{%", start); open != std::string_view::npos; open = source_.find("{%", open + 1)) {
      size_t at = open + 2;
      char sign = 0;
      if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) sign = source_[at++];
      at = skip_space(at);
      if (!source_.substr(at).starts_with("endraw")) continue;
      at = skip_space(at + 6);
      const std::string_view rest = source_.substr(at);
      const char end_sign = rest.starts_with("-%}") ? '-' : rest.starts_with("+%}") ? '+' : '\0';
      if (end_sign == 0 && !rest.starts_with("%}")) continue;
      add_data(start, open, sign, true);
      at_ = after_tag(at + (end_sign ? 3 : 2), end_sign);
      return;
    }
    throw SyntaxError("a raw block is not closed by 'endraw'", tag);
  }

  // The inside of {% %} or {{ }} up to and including its end.
  void lex_tag(size_t tag, bool block) {
    std::vector<char> open_brackets;
    while (at_ < source_.size()) {
      const std::string_view rest = source_.substr(at_);
      if (open_brackets.empty() && lex_tag_end(rest, block)) return;
      if (is_space(decode_first(rest))) {
        at_ = skip_space(at_);
      } else if (!lex_number(rest) && !lex_name(rest) && !lex_string(rest)) {
        lex_operator(rest, open_brackets);
      }
    }
    throw SyntaxError(block ? "a statement is not closed by '%}'" : "an expression is not closed by '}}'", tag);
  }

  bool lex_tag_end(std::string_view rest, bool block) {
    const std::string_view end = block ? "%}" : "}}";
    char sign = 0;
    if (rest[0] == '-' || (block && rest[0] == '+')) sign = rest[0];
    if (!rest.substr(sign ? 1 : 0).starts_with(end)) return false;
    add(block ? TokenType::kBlockEnd : TokenType::kVariableEnd, at_, {});
    const size_t after = at_ + (sign ? 3 : 2);
    at_ = block ? after_tag(after, sign) : sign == '-' ? skip_space(after) : after;
    return true;
  }

  // The length of digits with single underscores between them.
  static size_t digits(std::string_view text, size_t at) {
    const size_t start = at;
    while (at < text.size() && (is_ascii_digit(text[at]) || (text[at] == '_' && at > start && at + 1 < text.size() &&
                                                             is_ascii_digit(text[at + 1]) && text[at - 1] != '_'))) {
      ++at;
    }
    return at - start;
  }

  bool lex_number(std::string_view rest) {
    if (!is_ascii_digit(rest[0])) return false;
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (!after_dot && lex_float(rest)) return true;
    lex_integer(rest);
    return true;
  }

  bool lex_float(std::string_view rest) {
    size_t end = digits(rest, 0);
    bool is_float = false;
    if (end < rest.size() && rest[end] == '.') {
      if (const size_t fraction = digits(rest, end + 1)) {
        end += 1 + fraction;
        is_float = true;
      }
    }
    if (end < rest.size() && (rest[end] == 'e' || rest[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < rest.size() && (rest[exponent] == '+' || rest[exponent] == '-')) ++exponent;
      if (const size_t count = digits(rest, exponent)) {
        end = exponent + count;
        is_float = true;
      }
    }
    if (!is_float) return false;
    std::string text(rest.substr(0, end));
    std::erase(text, '_');
    double number = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    if (result.ec == std::errc::result_out_of_range) {
      number = text.find_first_of('-') == std::string::npos ? HUGE_VAL : 0.0;
    }
    Token& token = add(TokenType::kFloat, at_, std::move(text));
    token.number = number;
    at_ += end;
    return true;
  }

  void lex_integer(std::string_view rest) {
    int base = 10;
    size_t end = 0;
    if (rest.size() > 1 && rest[0] == '0') {
      const char prefix = static_cast<char>(rest[1] | 0x20);
      base = prefix == 'b' ? 2 : prefix == 'o' ? 8 : prefix == 'x' ? 16 : 10;
    }
    auto is_base_digit = [base](char c) {
      if (base == 16) return is_ascii_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
      return c >= '0' && c < '0' + base;
    };
    if (base != 10) {
      end = 2;
      while (end < rest.size() && (is_base_digit(rest[end]) ||
                                   (rest[end] == '_' && end + 1 < rest.size() && is_base_digit(rest[end + 1])))) {
        ++end;
      }
      if (end == 2) {
        base = 10;
        end = 1;  // a lone zero
      }
    } else if (rest[0] == '0') {
      end = 1;  // zeros only: a number other than zero has no leading zero
      while (end < rest.size() &&
             (rest[end] == '0' || (rest[end] == '_' && end + 1 < rest.size() && rest[end + 1] == '0'))) {
        ++end;
      }
    } else {
      end = digits(rest, 0);
    }
    std::string text(rest.substr(base == 10 ? 0 : 2, base == 10 ? end : end - 2));
    std::erase(text, '_');
    int64_t number = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (result.ec != std::errc()) {
      throw SyntaxError("the integer '" + std::string(rest.substr(0, std::min<size_t>(end, 40))) +
                            "' is outside the range of 64 bits",
                        at_);
    }
    Token& token = add(TokenType::kInteger, at_, std::move(text));
    token.integer = number;
    at_ += end;
  }

  bool lex_name(std::string_view rest) {
    size_t end = 0;
    while (end < rest.size()) {
      const std::string_view tail = rest.substr(end);
      const char32_t code = decode_first(tail);
      if (!is_word(code)) break;
      end += character_bytes(tail);
    }
    if (end == 0) return false;
    add(TokenType::kName, at_, std::string(rest.substr(0, end)));
    at_ += end;
    return true;
  }

  bool lex_string(std::string_view rest) {
    const char quote = rest[0];
    if (quote != '\'' && quote != '"') return false;
    size_t end = 1;
    while (end < rest.size() && rest[end] != quote) end += rest[end] == '\\' ? 2 : 1;
    if (end >= rest.size()) throw SyntaxError("a string is not closed", at_);
    add(TokenType::kString, at_, unescape_literal(rest.substr(1, end - 1), at_));
    at_ += end + 1;
    return true;
  }

  void lex_operator(std::string_view rest, std::vector<char>& open_brackets) {
    std::string_view text = rest.substr(0, 2);
    if (std::find(std::begin(kTwoCharacterOperators), std::end(kTwoCharacterOperators), text) ==
        std::end(kTwoCharacterOperators)) {
      text = rest.substr(0, 1);
      if (kOperators.find(text[0]) == std::string_view::npos) {
        throw SyntaxError("unexpected character '" + std::string(rest.substr(0, character_bytes(rest))) + "'", at_);
      }
    }
    const char c = text[0];
    if (c == '(' || c == '[' || c == '{') open_brackets.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c == ')' || c == ']' || c == '}') {
      if (open_brackets.empty()) throw SyntaxError(std::string("unexpected '") + c + "'", at_);
      if (open_brackets.back() != c) {
        throw SyntaxError(std::string("unexpected '") + c + "', expected '" + open_brackets.back() + "'", at_);
      }
      open_brackets.pop_back();
    }
    add(TokenType::kOperator, at_, std::string(text));
    at_ += text.size();
  }

  Token& add(TokenType type, size_t offset, std::string text) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(counted_),
                                         source_.begin() + static_cast<ptrdiff_t>(offset), '\n'));
    counted_ = offset;
    tokens_.push_back(Token{type, offset, line_, std::move(text)});
    return tokens_.back();
  }

  std::string_view source_;
  size_t at_ = 0;
  size_t counted_ = 0;  // how far newlines have been counted into line_
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalize_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

std::string unescape_literal(std::string_view inside, size_t offset) {
  std::string out;
  size_t at = 0;
  // `digits` hexadecimal digits after the escape's letter.
  auto hexadecimal = [&](size_t count) {
    uint32_t code = 0;
    const std::string_view text = inside.substr(std::min(at + 2, inside.size()), count);
    const auto result = std::from_chars(text.data(), text.data() + text.size(), code, 16);
    if (text.size() != count || result.ptr != text.data() + text.size() || code > 0x10FFFF ||
        (code >= 0xD800 && code <= 0xDFFF)) {
      throw SyntaxError("a string has a bad \\x, \\u or \\U escape", offset);
    }
    append_utf8(out, code);
    at += 2 + count;
  };
  while (at < inside.size()) {
    if (inside[at] != '\\' || at + 1 == inside.size()) {
      out += inside[at++];
      continue;
    }
    const char c = inside[at + 1];
    constexpr std::string_view kLetters = "\\'\"abfnrtv\n";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    if (c == 'x' || c == 'u' || c == 'U') {
      hexadecimal(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (c >= '0' && c <= '7') {
      uint32_t code = 0;
      size_t end = at + 1;
      while (end < inside.size() && end < at + 4 && inside[end] >= '0' && inside[end] <= '7') {
        code = code * 8 + static_cast<uint32_t>(inside[end++] - '0');
      }
      append_utf8(out, code);
      at = end;
    } else if (c == 'N') {
      throw SyntaxError("a string has a \\N{name} escape, which is not supported in chat templates", offset);
    } else if (const size_t letter = kLetters.find(c); letter != std::string_view::npos) {
      if (letter < kMeanings.size()) out += kMeanings[letter];  // a backslash before a line end gives nothing
      at += 2;
    } else {
      out += '\\';
      ++at;
    }
  }
  return out;
}

}  // namespace cairn::tmpl
