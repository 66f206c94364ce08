// Expressions, from the loosest operator (inline if) to the tightest (subscripts and calls).
#include <algorithm>

#include "core/text/template/parser.hpp"

namespace cairn::tmpl {
namespace {

std::vector<ExpressionPtr> one(ExpressionPtr node) {
  std::vector<ExpressionPtr> nodes;
  nodes.push_back(std::move(node));
  return nodes;
}

}  // namespace

void Parser::deepen(Expression& node, const Expression* child) {
  if (!child) return;
  node.depth = std::max(node.depth, child->depth + 1);
  if (node.depth > kMaxTreeDepth) {
    fail("an expression is nested deeper than " + std::to_string(kMaxTreeDepth) + " levels");
  }
}

ExpressionPtr Parser::make(ExpressionKind kind, int line, std::vector<ExpressionPtr> children) {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  node->children = std::move(children);
  for (const ExpressionPtr& child : node->children) deepen(*node, child.get());
  return node;
}

void Parser::set_arguments(Expression& node, std::unique_ptr<Arguments> arguments) {
  for (const ExpressionPtr& argument : arguments->positional) deepen(node, argument.get());
  for (const auto& [name, argument] : arguments->named) deepen(node, argument.get());
  deepen(node, arguments->star.get());
  deepen(node, arguments->double_star.get());
  node.call = std::move(arguments);
}

ExpressionPtr Parser::make_binary(ExpressionKind kind, int line, ExpressionPtr left, ExpressionPtr right) {
  std::vector<ExpressionPtr> children = one(std::move(left));
  children.push_back(std::move(right));
  return make(kind, line, std::move(children));
}

ExpressionPtr Parser::parse_expression(bool with_conditional) {
  const Nesting nesting(*this);
  return with_conditional ? parse_conditional() : parse_or();
}

// One expression, or several with commas between them, which make a tuple.
ExpressionPtr Parser::parse_tuple(bool with_conditional, std::string_view end_word, bool in_brackets) {
  const int line = current().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  auto at_end = [&] {
    return current().type == TokenType::kVariableEnd || current().type == TokenType::kBlockEnd || at_operator(")") ||
           (!end_word.empty() && at_name(end_word));
  };
  while (!at_end()) {
    items.push_back(parse_expression(with_conditional));
    if (!skip_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (!is_tuple && !in_brackets) fail("an expression is expected, not " + describe(current()));
  return make(ExpressionKind::kTuple, line, std::move(items));
}

ExpressionPtr Parser::parse_conditional() {
  const Nesting nesting(*this);
  const int line = current().line;
  const size_t unknown_before = unknown_names_.size();
  ExpressionPtr value = parse_or();
  while (skip_name("if")) {
    ExpressionPtr condition = parse_or();
    ExpressionPtr otherwise = skip_name("else") ? parse_conditional() : nullptr;
    std::vector<ExpressionPtr> children = one(std::move(value));
    children.push_back(std::move(condition));
    children.push_back(std::move(otherwise));
    value = make(ExpressionKind::kConditional, line, std::move(children));
    unknown_names_.resize(unknown_before);
  }
  return value;
}

ExpressionPtr Parser::parse_or() {
  const int line = current().line;
  ExpressionPtr left = parse_and();
  while (skip_name("or")) left = make_binary(ExpressionKind::kOr, line, std::move(left), parse_and());
  return left;
}

ExpressionPtr Parser::parse_and() {
  const int line = current().line;
  ExpressionPtr left = parse_not();
  while (skip_name("and")) left = make_binary(ExpressionKind::kAnd, line, std::move(left), parse_not());
  return left;
}

ExpressionPtr Parser::parse_not() {
  const int line = current().line;
  if (!skip_name("not")) return parse_compare();
  const Nesting nesting(*this);
  return make(ExpressionKind::kNot, line, one(parse_not()));
}

ExpressionPtr Parser::parse_compare() {
  static constexpr std::pair<std::string_view, Comparison> kComparisons[] = {
      {"==", Comparison::kEqual},     {"!=", Comparison::kNotEqual}, {"<", Comparison::kLess},
      {"<=", Comparison::kLessEqual}, {">", Comparison::kGreater},   {">=", Comparison::kGreaterEqual}};
  const int line = current().line;
  std::vector<ExpressionPtr> operands = one(parse_sum());
  std::vector<Comparison> comparisons;
  while (true) {
    const auto* symbol = std::find_if(std::begin(kComparisons), std::end(kComparisons),
                                      [&](const auto& entry) { return at_operator(entry.first); });
    if (symbol != std::end(kComparisons)) {
      next();
      comparisons.push_back(symbol->second);
    } else if (skip_name("in")) {
      comparisons.push_back(Comparison::kIn);
    } else if (at_name("not") && ahead().type == TokenType::kName && ahead().text == "in") {
      next();
      next();
      comparisons.push_back(Comparison::kNotIn);
    } else {
      break;
    }
    operands.push_back(parse_sum());
  }
  if (comparisons.empty()) return std::move(operands[0]);
  ExpressionPtr node = make(ExpressionKind::kCompare, line, std::move(operands));
  node->comparisons = std::move(comparisons);
  return node;
}

ExpressionPtr Parser::parse_sum() {
  const int line = current().line;
  ExpressionPtr left = parse_concat();
  while (at_operator("+") || at_operator("-")) {
    const BinaryOperator op = next().text == "+" ? BinaryOperator::kAdd : BinaryOperator::kSubtract;
    left = make_binary(ExpressionKind::kBinary, line, std::move(left), parse_concat());
    left->binary = op;
  }
  return left;
}

ExpressionPtr Parser::parse_concat() {
  const int line = current().line;
  std::vector<ExpressionPtr> parts = one(parse_product());
  while (skip_operator("~")) parts.push_back(parse_product());
  if (parts.size() == 1) return std::move(parts[0]);
  return make(ExpressionKind::kConcat, line, std::move(parts));
}

ExpressionPtr Parser::parse_product() {
  static constexpr std::pair<std::string_view, BinaryOperator> kProducts[] = {{"*", BinaryOperator::kMultiply},
                                                                              {"/", BinaryOperator::kDivide},
                                                                              {"//", BinaryOperator::kFloorDivide},
                                                                              {"%", BinaryOperator::kModulo}};
  const int line = current().line;
  ExpressionPtr left = parse_power();
  while (true) {
    const auto* symbol = std::find_if(std::begin(kProducts), std::end(kProducts),
                                      [&](const auto& entry) { return at_operator(entry.first); });
    if (symbol == std::end(kProducts)) return left;
    next();
    left = make_binary(ExpressionKind::kBinary, line, std::move(left), parse_power());
    left->binary = symbol->second;
  }
}

ExpressionPtr Parser::parse_power() {
  const int line = current().line;
  ExpressionPtr left = parse_unary(true);
  while (skip_operator("**")) {
    left = make_binary(ExpressionKind::kBinary, line, std::move(left), parse_unary(true));
    left->binary = BinaryOperator::kPower;
  }
  return left;
}

ExpressionPtr Parser::parse_unary(bool with_filter) {
  const Nesting nesting(*this);
  const int line = current().line;
  ExpressionPtr node;
  if (skip_operator("-")) {
    node = make(ExpressionKind::kNegate, line, one(parse_unary(false)));
  } else if (skip_operator("+")) {
    node = make(ExpressionKind::kPlus, line, one(parse_unary(false)));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filter ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

ExpressionPtr Parser::parse_primary() {
  const Token& token = current();
  ExpressionPtr node = make(ExpressionKind::kConstant, token.line);
  switch (token.type) {
    case TokenType::kName:
      next();
      if (token.text == "true" || token.text == "True" || token.text == "false" || token.text == "False") {
        node->constant = Value(token.text == "true" || token.text == "True");
      } else if (token.text != "none" && token.text != "None") {
        node->kind = ExpressionKind::kName;
        node->name = read_name(token.text);
      }
      return node;
    case TokenType::kString: {
      std::string text;
      while (current().type == TokenType::kString) text += next().text;
      node->constant = Value(std::move(text));
      return node;
    }
    case TokenType::kInteger:
      node->constant = Value(next().integer);
      return node;
    case TokenType::kFloat:
      node->constant = Value(next().number);
      return node;
    default:
      break;
  }
  if (skip_operator("(")) {
    node = parse_tuple(true, {}, true);
    expect_operator(")");
    return node;
  }
  if (at_operator("[")) return parse_list();
  if (at_operator("{")) return parse_dict();
  fail("an expression is expected, not " + describe(token));
}

ExpressionPtr Parser::parse_list() {
  const int line = next().line;
  std::vector<ExpressionPtr> items;
  while (!at_operator("]")) {
    if (!items.empty()) {
      expect_operator(",");
      if (at_operator("]")) break;
    }
    items.push_back(parse_expression());
  }
  next();
  return make(ExpressionKind::kList, line, std::move(items));
}

ExpressionPtr Parser::parse_dict() {
  const int line = next().line;
  std::vector<ExpressionPtr> items;
  while (!at_operator("}")) {
    if (!items.empty()) {
      expect_operator(",");
      if (at_operator("}")) break;
    }
    items.push_back(parse_expression());
    expect_operator(":");
    items.push_back(parse_expression());
  }
  next();
  return make(ExpressionKind::kDict, line, std::move(items));
}

ExpressionPtr Parser::parse_postfix(ExpressionPtr node) {
  while (true) {
    if (at_operator(".") || at_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (at_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::parse_filters_and_tests(ExpressionPtr node) {
  while (true) {
    if (at_operator("|")) {
      node = parse_filter_chain(std::move(node));
    } else if (skip_name("is")) {
      node = parse_test(std::move(node));
    } else if (at_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::parse_subscript(ExpressionPtr node) {
  const Token& token = next();
  if (token.text == "[") return parse_index(std::move(node));
  const Token& attribute = next();
  if (attribute.type == TokenType::kName) {
    ExpressionPtr access = make(ExpressionKind::kAttribute, token.line, one(std::move(node)));
    access->text = attribute.text;
    return access;
  }
  if (attribute.type != TokenType::kInteger) fail_at("a name or number is expected after '.'", attribute);
  ExpressionPtr index = make(ExpressionKind::kConstant, attribute.line);
  index->constant = Value(attribute.integer);
  return make_binary(ExpressionKind::kItem, token.line, std::move(node), std::move(index));
}

// What follows '[': an index, several (a tuple), or a slice.
ExpressionPtr Parser::parse_index(ExpressionPtr node) {
  const int line = current().line;
  std::vector<ExpressionPtr> parts = one(std::move(node));
  if (at_operator("]")) fail("an index is expected");
  parts.push_back(at_operator(":") ? nullptr : parse_expression());
  if (at_operator(":")) {
    while (parts.size() < 4) {
      const bool more = skip_operator(":");
      const bool given = more && !at_operator(":") && !at_operator("]") && !at_operator(",");
      parts.push_back(given ? parse_expression() : nullptr);
    }
    expect_operator("]");
    return make(ExpressionKind::kSlice, line, std::move(parts));
  }
  if (at_operator(",")) {
    std::vector<ExpressionPtr> keys = one(std::move(parts[1]));
    while (skip_operator(",")) keys.push_back(parse_expression());
    parts[1] = make(ExpressionKind::kTuple, line, std::move(keys));
  }
  expect_operator("]");
  return make(ExpressionKind::kItem, line, std::move(parts));
}

std::unique_ptr<Arguments> Parser::parse_arguments() {
  const Token& bracket = current();
  expect_operator("(");
  auto arguments = std::make_unique<Arguments>();
  auto ensure = [&](bool good) {
    if (!good) fail_at("the arguments of this call are not in a valid order", bracket);
  };
  for (bool first = true; !at_operator(")"); first = false) {
    if (!first) {
      expect_operator(",");
      if (at_operator(")")) break;
    }
    if (skip_operator("*")) {
      ensure(!arguments->star && !arguments->double_star);
      arguments->star = parse_expression();
    } else if (skip_operator("**")) {
      ensure(!arguments->double_star);
      arguments->double_star = parse_expression();
    } else if (current().type == TokenType::kName && ahead().type == TokenType::kOperator && ahead().text == "=") {
      ensure(!arguments->double_star);
      std::string name = next().text;
      next();
      const bool twice = std::any_of(arguments->named.begin(), arguments->named.end(),
                                     [&](const auto& entry) { return entry.first == name; });
      if (twice) fail_at("the argument '" + name + "' is given twice", bracket);
      arguments->named.emplace_back(std::move(name), parse_expression());
    } else {
      ensure(!arguments->star && !arguments->double_star && arguments->named.empty());
      arguments->positional.push_back(parse_expression());
    }
  }
  expect_operator(")");
  return arguments;
}

ExpressionPtr Parser::parse_call(ExpressionPtr node) {
  const int line = current().line;
  std::unique_ptr<Arguments> arguments = parse_arguments();
  ExpressionPtr call = make(ExpressionKind::kCall, line, one(std::move(node)));
  set_arguments(*call, std::move(arguments));
  return call;
}

std::string Parser::parse_dotted_name() {
  std::string name = expect_name().text;
  while (skip_operator(".")) name += "." + expect_name().text;
  return name;
}

// A filter's name and arguments, after the '|'.
ExpressionPtr Parser::parse_filter(ExpressionPtr node) {
  const Token& token = current();
  ExpressionPtr filter = make(ExpressionKind::kFilter, token.line, one(std::move(node)));
  filter->text = parse_dotted_name();
  filter->filter = find_filter(filter->text);
  if (!filter->filter) unknown_names_.push_back({"there is no filter named '" + filter->text + "'", token.offset});
  if (at_operator("(")) set_arguments(*filter, parse_arguments());
  return filter;
}

ExpressionPtr Parser::parse_filter_chain(ExpressionPtr node) {
  while (skip_operator("|")) node = parse_filter(std::move(node));
  return node;
}

ExpressionPtr Parser::parse_test(ExpressionPtr node) {
  const int line = current().line;
  const bool negated = skip_name("not");
  const Token& token = current();
  ExpressionPtr test = make(ExpressionKind::kTest, line, one(std::move(node)));
  test->text = parse_dotted_name();
  test->test = find_test(test->text);
  if (!test->test) unknown_names_.push_back({"there is no test named '" + test->text + "'", token.offset});
  const bool argument_follows =
      (current().type == TokenType::kName && !at_name("else") && !at_name("or") && !at_name("and")) ||
      current().type == TokenType::kString || current().type == TokenType::kInteger ||
      current().type == TokenType::kFloat || at_operator("[") || at_operator("{");
  if (at_operator("(")) {
    set_arguments(*test, parse_arguments());
  } else if (argument_follows) {
    if (at_name("is")) fail("tests cannot be chained with 'is'");
    auto arguments = std::make_unique<Arguments>();
    arguments->positional.push_back(parse_postfix(parse_primary()));
    set_arguments(*test, std::move(arguments));
  }
  return negated ? make(ExpressionKind::kNot, line, one(std::move(test))) : std::move(test);
}

}  // namespace cairn::tmpl
