// Turns tokens into a Program by recursive descent, with Jinja's grammar and precedence. Used by ChatTemplate.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/template/ast.hpp"
#include "core/text/template/lexer.hpp"

namespace cairn::tmpl {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens);

  // Throws SyntaxError. Call once.
  Program parse();

 private:
  // parser.cpp: statements
  Body parse_body(std::initializer_list<std::string_view> end_tags, std::string_view opened, int opened_line);
  Body parse_block_body(std::initializer_list<std::string_view> end_tags, std::string_view opened, int opened_line);
  Statement parse_statement();
  Statement parse_for(const Token& tag);
  Statement parse_if(const Token& tag);
  Statement parse_set(const Token& tag);
  Statement parse_macro(const Token& tag);
  Statement parse_call_block(const Token& tag);
  Statement parse_filter_block(const Token& tag);
  Statement parse_with(const Token& tag);
  Statement parse_block(const Token& tag);
  Statement parse_print(const Token& tag);
  Statement parse_loop_control(const Token& tag);
  void parse_signature(MacroDefinition& macro);
  void parse_macro_body(MacroDefinition& macro, std::string_view end_tag, std::string_view opened);
  Target parse_target(bool allow_namespace, std::string_view end_word = {});
  Target parse_single_target(bool allow_namespace);

  // parser_expressions.cpp
  ExpressionPtr parse_expression(bool with_conditional = true);
  ExpressionPtr parse_tuple(bool with_conditional, std::string_view end_word = {}, bool in_brackets = false);
  ExpressionPtr parse_conditional();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filter);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr node);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr node);
  ExpressionPtr parse_subscript(ExpressionPtr node);
  ExpressionPtr parse_index(ExpressionPtr node);
  ExpressionPtr parse_call(ExpressionPtr node);
  ExpressionPtr parse_filter(ExpressionPtr node);
  ExpressionPtr parse_filter_chain(ExpressionPtr node);
  ExpressionPtr parse_test(ExpressionPtr node);
  std::unique_ptr<Arguments> parse_arguments();
  std::string parse_dotted_name();

  ExpressionPtr make(ExpressionKind kind, int line, std::vector<ExpressionPtr> children = {});
  ExpressionPtr make_binary(ExpressionKind kind, int line, ExpressionPtr left, ExpressionPtr right);
  void set_arguments(Expression& node, std::unique_ptr<Arguments> arguments);
  void deepen(Expression& node, const Expression* child);

  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& next();
  bool at_name(std::string_view text) const;
  bool at_operator(std::string_view text) const;
  bool skip_name(std::string_view text);
  bool skip_operator(std::string_view text);
  const Token& expect_name();
  void expect_word(std::string_view text);
  void expect_operator(std::string_view text);
  void expect(TokenType type, std::string_view what);
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_at(const std::string& message, const Token& token) const;
  static std::string describe(const Token& token);

  int name_number(std::string_view name);
  int read_name(std::string_view name);

  // Held for one level of nesting in the source, so that hostile nesting cannot exhaust the stack.
  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  struct UnknownName {
    std::string message;
    size_t offset;
  };

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  int loop_depth_ = 0;  // loops that `break` could leave
  Program program_;
  std::map<std::string, int, std::less<>> name_numbers_;
  std::vector<std::string> block_names_;
  // Filters and tests that do not exist. As in Jinja that is an error when the template is loaded, unless the use
  // stands under a condition (the template may be asking which of two names there is).
  std::vector<UnknownName> unknown_names_;
};

}  // namespace cairn::tmpl
