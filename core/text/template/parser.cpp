// Statements: everything between {% and %}, and the token helpers.
#include "core/text/template/parser.hpp"

#include <algorithm>

namespace cairn::tmpl {
namespace {

constexpr std::string_view kLoadingTags[] = {"include", "import", "from", "extends"};

bool is_constant_word(std::string_view name) {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" || name == "None";
}

}  // namespace

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (parser_.nesting_ >= kMaxTreeDepth) {
    parser_.fail("statements and expressions are nested deeper than " + std::to_string(kMaxTreeDepth) + " levels");
  }
  ++parser_.nesting_;
}

Parser::Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  program_.loop_name = name_number("loop");
  program_.caller_name = name_number("caller");
  program_.varargs_name = name_number("varargs");
  program_.kwargs_name = name_number("kwargs");
}

Program Parser::parse() {
  program_.body = parse_body({}, {}, 0);
  if (!unknown_names_.empty()) throw SyntaxError(unknown_names_[0].message, unknown_names_[0].offset);
  return std::move(program_);
}

// Data, expressions and statements up to one of `end_tags`, whose name is then the current token.
Body Parser::parse_body(std::initializer_list<std::string_view> end_tags, std::string_view opened, int opened_line) {
  const Nesting nesting(*this);
  Body body;
  while (current().type != TokenType::kEnd) {
    const Token& token = next();
    Statement statement;
    statement.line = token.line;
    if (token.type == TokenType::kData) {
      statement.text = token.text;
    } else if (token.type == TokenType::kVariableBegin) {
      statement.kind = StatementKind::kPrint;
      statement.expressions.push_back(parse_tuple(true));
      expect(TokenType::kVariableEnd, "'}}'");
    } else {
      if (current().type == TokenType::kName &&
          std::find(end_tags.begin(), end_tags.end(), current().text) != end_tags.end()) {
        return body;
      }
      statement = parse_statement();
      expect(TokenType::kBlockEnd, "'%}'");
    }
    body.push_back(std::move(statement));
  }
  if (!opened.empty()) {
    fail("the template ends inside '" + std::string(opened) + "' of line " + std::to_string(opened_line) +
         ", which needs '" + std::string(*(end_tags.end() - 1)) + "'");
  }
  return body;
}

// The body of a statement: the end of its tag, then the body.
Body Parser::parse_block_body(std::initializer_list<std::string_view> end_tags, std::string_view opened,
                              int opened_line) {
  skip_operator(":");
  expect(TokenType::kBlockEnd, "'%}'");
  return parse_body(end_tags, opened, opened_line);
}

Statement Parser::parse_statement() {
  const Token tag = current();
  if (tag.type != TokenType::kName) fail("a statement's name is expected, not " + describe(tag));
  next();
  if (tag.text == "for") return parse_for(tag);
  if (tag.text == "if") return parse_if(tag);
  if (tag.text == "set") return parse_set(tag);
  if (tag.text == "macro") return parse_macro(tag);
  if (tag.text == "call") return parse_call_block(tag);
  if (tag.text == "filter") return parse_filter_block(tag);
  if (tag.text == "with") return parse_with(tag);
  if (tag.text == "block") return parse_block(tag);
  if (tag.text == "print") return parse_print(tag);
  if (tag.text == "break" || tag.text == "continue") return parse_loop_control(tag);
  if (tag.text == "generation") {
    Statement statement;
    statement.kind = StatementKind::kScope;
    statement.line = tag.line;
    const int outer_loops = std::exchange(loop_depth_, 0);
    statement.bodies.push_back(parse_block_body({"endgeneration"}, tag.text, tag.line));
    loop_depth_ = outer_loops;
    next();
    return statement;
  }
  if (std::find(std::begin(kLoadingTags), std::end(kLoadingTags), tag.text) != std::end(kLoadingTags)) {
    fail_at("'" + tag.text + "' is not supported in chat templates: there are no other templates to load", tag);
  }
  if (tag.text == "autoescape") fail_at("'autoescape' is not supported in chat templates", tag);
  fail_at("unknown statement '" + tag.text + "'", tag);
}

Statement Parser::parse_for(const Token& tag) {
  Statement statement;
  statement.kind = StatementKind::kFor;
  statement.line = tag.line;
  statement.target = parse_target(false, "in");
  expect_word("in");
  statement.expressions.push_back(parse_tuple(false, "recursive"));
  statement.expressions.push_back(skip_name("if") ? parse_expression() : nullptr);
  statement.recursive = skip_name("recursive");
  ++loop_depth_;
  statement.bodies.push_back(parse_block_body({"else", "endfor"}, tag.text, tag.line));
  --loop_depth_;
  if (next().text == "else") {
    statement.bodies.push_back(parse_block_body({"endfor"}, tag.text, tag.line));
    next();
  }
  return statement;
}

Statement Parser::parse_if(const Token& tag) {
  Statement statement;
  statement.kind = StatementKind::kIf;
  statement.line = tag.line;
  const size_t unknown_before = unknown_names_.size();
  std::string word = "elif";
  while (word == "elif") {
    statement.expressions.push_back(parse_tuple(false));
    statement.bodies.push_back(parse_block_body({"elif", "else", "endif"}, tag.text, tag.line));
    word = next().text;
  }
  if (word == "else") {
    statement.bodies.push_back(parse_block_body({"endif"}, tag.text, tag.line));
    next();
  }
  unknown_names_.resize(unknown_before);
  return statement;
}

Statement Parser::parse_set(const Token& tag) {
  Statement statement;
  statement.line = tag.line;
  statement.target = parse_target(true);
  if (skip_operator("=")) {
    statement.kind = StatementKind::kSet;
    statement.expressions.push_back(parse_tuple(true));
    return statement;
  }
  statement.kind = StatementKind::kSetBlock;
  statement.expressions.push_back(at_operator("|") ? parse_filter_chain(nullptr) : nullptr);
  statement.bodies.push_back(parse_block_body({"endset"}, tag.text, tag.line));
  next();
  return statement;
}

Statement Parser::parse_macro(const Token& tag) {
  Statement statement;
  statement.kind = StatementKind::kMacro;
  statement.line = tag.line;
  const Token& name = expect_name();
  if (is_constant_word(name.text)) fail_at("a macro cannot be named '" + name.text + "'", name);
  statement.macro = std::make_unique<MacroDefinition>();
  statement.macro->name = name.text;
  statement.macro->line = tag.line;
  statement.target.name = name_number(name.text);
  parse_signature(*statement.macro);
  parse_macro_body(*statement.macro, "endmacro", tag.text);
  return statement;
}

Statement Parser::parse_call_block(const Token& tag) {
  Statement statement;
  statement.kind = StatementKind::kCallBlock;
  statement.line = tag.line;
  statement.macro = std::make_unique<MacroDefinition>();
  statement.macro->line = tag.line;
  if (at_operator("(")) parse_signature(*statement.macro);
  ExpressionPtr call = parse_expression();
  if (call->kind != ExpressionKind::kCall) fail_at("'call' needs a call of a macro", tag);
  statement.expressions.push_back(std::move(call));
  parse_macro_body(*statement.macro, "endcall", tag.text);
  return statement;
}

void Parser::parse_signature(MacroDefinition& macro) {
  expect_operator("(");
  while (!at_operator(")")) {
    if (!macro.parameters.empty()) expect_operator(",");
    const Token& name = expect_name();
    if (is_constant_word(name.text)) fail_at("a parameter cannot be named '" + name.text + "'", name);
    if (std::find(macro.parameter_names.begin(), macro.parameter_names.end(), name.text) !=
        macro.parameter_names.end()) {
      fail_at("the parameter '" + name.text + "' is there twice", name);
    }
    macro.parameters.push_back(name_number(name.text));
    macro.parameter_names.push_back(name.text);
    if (skip_operator("=")) {
      macro.defaults.push_back(parse_expression());
    } else if (!macro.defaults.empty()) {
      fail("a parameter without a default follows one with a default");
    }
  }
  expect_operator(")");
}

void Parser::parse_macro_body(MacroDefinition& macro, std::string_view end_tag, std::string_view opened) {
  // Whether the body reads one of the special names decides what the macro accepts, so each is watched on its own.
  const int watched[] = {program_.caller_name, program_.varargs_name, program_.kwargs_name};
  bool before[3];
  for (int i = 0; i < 3; ++i) {
    before[i] = program_.is_read[static_cast<size_t>(watched[i])];
    program_.is_read[static_cast<size_t>(watched[i])] = false;
  }
  const int outer_loops = std::exchange(loop_depth_, 0);
  macro.body = parse_block_body({end_tag}, opened, macro.line);
  next();
  loop_depth_ = outer_loops;
  bool used[3];
  for (int i = 0; i < 3; ++i) {
    const auto number = static_cast<size_t>(watched[i]);
    used[i] = program_.is_read[number] &&
              std::find(macro.parameters.begin(), macro.parameters.end(), watched[i]) == macro.parameters.end();
    program_.is_read[number] = program_.is_read[number] || before[i];
  }
  macro.uses_caller = used[0];
  macro.uses_varargs = used[1];
  macro.uses_kwargs = used[2];
}

Statement Parser::parse_filter_block(const Token& tag) {
  Statement statement;
  statement.kind = StatementKind::kFilterBlock;
  statement.line = tag.line;
  statement.expressions.push_back(parse_filter_chain(parse_filter(nullptr)));
  statement.bodies.push_back(parse_block_body({"endfilter"}, tag.text, tag.line));
  next();
  return statement;
}

Statement Parser::parse_with(const Token& tag) {
  Statement statement;
  statement.kind = StatementKind::kWith;
  statement.line = tag.line;
  while (current().type != TokenType::kBlockEnd) {
    if (!statement.targets.empty()) expect_operator(",");
    statement.targets.push_back(parse_target(false));
    expect_operator("=");
    statement.expressions.push_back(parse_expression());
  }
  statement.bodies.push_back(parse_block_body({"endwith"}, tag.text, tag.line));
  next();
  return statement;
}

Statement Parser::parse_block(const Token& tag) {
  Statement statement;
  statement.kind = StatementKind::kScope;
  statement.line = tag.line;
  const std::string name = expect_name().text;
  if (std::find(block_names_.begin(), block_names_.end(), name) != block_names_.end()) {
    fail_at("block '" + name + "' is defined twice", tag);
  }
  block_names_.push_back(name);
  statement.isolated = !skip_name("scoped");
  skip_name("required");
  const int outer_loops = std::exchange(loop_depth_, 0);
  statement.bodies.push_back(parse_block_body({"endblock"}, tag.text, tag.line));
  loop_depth_ = outer_loops;
  next();
  skip_name(name);
  return statement;
}

Statement Parser::parse_print(const Token& tag) {
  Statement statement;
  statement.kind = StatementKind::kPrint;
  statement.line = tag.line;
  while (current().type != TokenType::kBlockEnd) {
    if (!statement.expressions.empty()) expect_operator(",");
    statement.expressions.push_back(parse_expression());
  }
  return statement;
}

Statement Parser::parse_loop_control(const Token& tag) {
  if (loop_depth_ == 0) fail_at("'" + tag.text + "' stands outside of a loop", tag);
  Statement statement;
  statement.kind = tag.text == "break" ? StatementKind::kBreak : StatementKind::kContinue;
  statement.line = tag.line;
  return statement;
}

Target Parser::parse_single_target(bool allow_namespace) {
  const Nesting nesting(*this);
  Target target;
  target.line = current().line;
  if (skip_operator("(")) {
    target = parse_target(allow_namespace);
    expect_operator(")");
    return target;
  }
  const Token& name = current();
  if (name.type != TokenType::kName || is_constant_word(name.text)) {
    fail("only a name can be assigned to, not " + describe(name));
  }
  next();
  if (allow_namespace && skip_operator(".")) {
    target.name = read_name(name.text);
    target.attribute = expect_name().text;
  } else {
    target.name = name_number(name.text);
  }
  return target;
}

Target Parser::parse_target(bool allow_namespace, std::string_view end_word) {
  Target first = parse_single_target(allow_namespace);
  if (!at_operator(",")) return first;
  Target tuple;
  tuple.is_tuple = true;
  tuple.line = first.line;
  tuple.parts.push_back(std::move(first));
  while (skip_operator(",")) {
    if (at_operator(")") || at_operator("=") || current().type == TokenType::kBlockEnd ||
        (!end_word.empty() && at_name(end_word))) {
      break;
    }
    tuple.parts.push_back(parse_single_target(allow_namespace));
  }
  return tuple;
}

const Token& Parser::next() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::at_name(std::string_view text) const {
  return current().type == TokenType::kName && current().text == text;
}

bool Parser::at_operator(std::string_view text) const {
  return current().type == TokenType::kOperator && current().text == text;
}

bool Parser::skip_name(std::string_view text) {
  if (!at_name(text)) return false;
  next();
  return true;
}

bool Parser::skip_operator(std::string_view text) {
  if (!at_operator(text)) return false;
  next();
  return true;
}

const Token& Parser::expect_name() {
  if (current().type != TokenType::kName) fail("a name is expected, not " + describe(current()));
  return next();
}

void Parser::expect_word(std::string_view text) {
  if (!skip_name(text)) fail("'" + std::string(text) + "' is expected, not " + describe(current()));
}

void Parser::expect_operator(std::string_view text) {
  if (!skip_operator(text)) fail("'" + std::string(text) + "' is expected, not " + describe(current()));
}

void Parser::expect(TokenType type, std::string_view what) {
  if (current().type != type) fail(std::string(what) + " is expected, not " + describe(current()));
  next();
}

void Parser::fail(const std::string& message) const {
  fail_at(message, current());
}

void Parser::fail_at(const std::string& message, const Token& token) const {
  throw SyntaxError(message, token.offset);
}

std::string Parser::describe(const Token& token) {
  switch (token.type) {
    case TokenType::kData:
    case TokenType::kVariableBegin:
    case TokenType::kBlockBegin:
      return "template text";
    case TokenType::kVariableEnd:
      return "the end of the expression";
    case TokenType::kBlockEnd:
      return "the end of the statement";
    case TokenType::kEnd:
      return "the end of the template";
    case TokenType::kString:
      return "a string";
    default:
      return "'" + token.text + "'";
  }
}

int Parser::name_number(std::string_view name) {
  const auto found = name_numbers_.find(name);
  if (found != name_numbers_.end()) return found->second;
  const int number = static_cast<int>(program_.names.size());
  program_.names.emplace_back(name);
  program_.is_read.push_back(false);
  name_numbers_.emplace(std::string(name), number);
  return number;
}

int Parser::read_name(std::string_view name) {
  const int number = name_number(name);
  program_.is_read[static_cast<size_t>(number)] = true;
  return number;
}

}  // namespace cairn::tmpl
