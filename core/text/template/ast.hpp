// The compiled form of a template: trees of expressions and statements. Built by the parser, walked by the interpreter,
// never changed afterwards.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/text/template/builtins.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/value.hpp"

namespace cairn::tmpl {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<Statement>;

// Bounds the recursion of everything that walks a tree; see also RenderLimits::depth.
inline constexpr int kMaxTreeDepth = 150;

enum class ExpressionKind {
  kConstant,     // constant
  kName,         // name
  kList,         // children
  kTuple,        // children
  kDict,         // children: key, value, key, value...
  kAttribute,    // children[0].text
  kItem,         // children[0][children[1]]
  kSlice,        // children[0][children[1]:children[2]:children[3]], a bound that is left out is null
  kCall,         // children[0](call)
  kFilter,       // children[0] | filter(call); children[0] is null for the input of a filter block
  kTest,         // children[0] is test(call)
  kNot,          // children[0]
  kNegate,       // children[0]
  kPlus,         // children[0]
  kBinary,       // children[0] binary children[1]
  kCompare,      // children[0] comparisons[0] children[1] comparisons[1] children[2]...
  kConcat,       // all children as text
  kAnd,          // children[0] and children[1]
  kOr,           // children[0] or children[1]
  kConditional,  // children[0] if children[1] else children[2]; children[2] may be null
};

struct Arguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr star;         // *args
  ExpressionPtr double_star;  // **kwargs
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  int line = 0;
  int depth = 1;  // of the tree below, for kMaxTreeDepth
  int name = -1;  // number in Program::names
  Value constant;
  std::string text;  // attribute, filter or test name
  std::vector<ExpressionPtr> children;
  std::vector<Comparison> comparisons;
  BinaryOperator binary = BinaryOperator::kAdd;
  std::unique_ptr<Arguments> call;  // null when there are no brackets
  FilterFunction filter = nullptr;  // null for a filter that does not exist, an error only if it is reached
  TestFunction test = nullptr;
};

// Where an assignment goes: a name, a namespace's attribute, or several targets to unpack into.
struct Target {
  int name = -1;
  std::string attribute;  // of the namespace `name`; empty for a plain name
  std::vector<Target> parts;
  bool is_tuple = false;
  int line = 0;
};

// A macro's or call block's parameters and body.
struct MacroDefinition {
  std::string name;
  std::vector<int> parameters;
  std::vector<std::string> parameter_names;
  std::vector<ExpressionPtr> defaults;  // of the last parameters
  Body body;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  int line = 0;
};

enum class StatementKind {
  kData,         // text
  kPrint,        // expressions, one after another
  kFor,          // target, expressions[0] = iterable, expressions[1] = filter or null, bodies: loop, else
  kIf,           // expressions[i] guards bodies[i]; one body more is the else
  kSet,          // target = expressions[0]
  kSetBlock,     // target = bodies[0], piped through expressions[0] unless that is null
  kMacro,        // target.name = macro
  kCallBlock,    // expressions[0] is the call, macro the caller
  kFilterBlock,  // bodies[0] piped through expressions[0]
  kWith,         // targets[i] = expressions[i] around bodies[0]
  kScope,        // bodies[0] with its own variables: block, generation, autoescape
  kBreak,
  kContinue,
};

struct Statement {
  StatementKind kind = StatementKind::kData;
  int line = 0;
  std::string text;
  Target target;
  std::vector<Target> targets;
  std::vector<ExpressionPtr> expressions;
  std::vector<Body> bodies;
  std::unique_ptr<MacroDefinition> macro;
  bool recursive = false;  // a for loop that may call itself through loop(...)
  bool isolated = false;   // a {% block %} that does not see the variables of loops around it
};

struct Program {
  Body body;
  std::vector<std::string> names;  // every variable the template mentions
  std::vector<bool> is_read;       // per name, whether it is ever read
  int loop_name = -1, caller_name = -1, varargs_name = -1, kwargs_name = -1;
};

}  // namespace cairn::tmpl
