// Runs a Program over variables and gives its text. One Interpreter per render, on one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/template/ast.hpp"
#include "core/text/template/budget.hpp"
#include "core/text/template/value.hpp"

namespace cairn::tmpl {

// The variables of one scope: the template itself, one turn of a loop, a macro's call...
struct Frame {
  std::shared_ptr<Frame> parent;
  std::vector<std::pair<int, Value>> variables;
  bool kept = false;  // a macro holds it: see Interpreter::keep

  void set(int name, Value value);
  const Value* find(int name) const;
};
using FramePtr = std::shared_ptr<Frame>;

class LoopObject;

class Interpreter {
 public:
  // `lookup` gives the value of a variable of the render's context, or nothing; asked at most once per name.
  using Lookup = std::function<std::optional<Value>(const std::string& name)>;

  Interpreter(const Program& program, Budget& budget, Lookup lookup, int64_t now_unix);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Throws RenderError; line() then tells where.
  std::string run();
  int line() const noexcept { return line_; }
  int64_t now_unix() const noexcept { return now_unix_; }
  Budget& budget() noexcept { return budget_; }

  // For filters, tests and objects.
  Value call(const Value& callee, CallArgs& args);
  Value call_filter(std::string_view name, const Value& input, CallArgs& args);
  bool call_test(std::string_view name, const Value& input, CallArgs& args);
  std::string call_macro(const MacroDefinition& macro, const FramePtr& scope, CallArgs& args);
  std::string run_loop(const Statement& loop, const Value& iterable, const FramePtr& scope, int depth0);
  Value evaluate(const Expression& node, const FramePtr& frame);
  void assign(const Target& target, const Value& value, const FramePtr& frame);

  // Frames, namespaces and loops can hold one another in a circle. Those that might are kept here and emptied at the
  // end.
  void keep(const FramePtr& frame);
  void keep(ObjectPtr object, std::function<void()> empty);

 private:
  enum class Flow { kNormal, kBreak, kContinue };

  // interpreter.cpp: statements
  Flow run_body(const Body& body, const FramePtr& frame, std::string& out);
  Flow run_statement(const Statement& statement, const FramePtr& frame, std::string& out);
  Flow run_if(const Statement& statement, const FramePtr& frame, std::string& out);
  void run_for(const Statement& statement, const Value& iterable, const FramePtr& frame, int depth0, std::string& out,
               Flow& else_flow);
  void run_set_block(const Statement& statement, const FramePtr& frame, Flow& flow);
  Flow run_filter_block(const Statement& statement, const FramePtr& frame, std::string& out);
  Flow run_with(const Statement& statement, const FramePtr& frame, std::string& out);
  void run_call_block(const Statement& statement, const FramePtr& frame, std::string& out);
  Value make_macro(const MacroDefinition& macro, const FramePtr& frame);
  void print(const Value& value, std::string& out);
  void append(std::string& out, std::string_view text);

  // evaluate.cpp: expressions
  Value lookup(int name, const FramePtr& frame);
  Value evaluate_call(const Expression& node, const FramePtr& frame, const Value* caller);
  Value evaluate_filter(const Expression& node, const FramePtr& frame, const Value* input);
  Value evaluate_compare(const Expression& node, const FramePtr& frame);
  Value evaluate_slice(const Expression& node, const FramePtr& frame);
  Value evaluate_dict(const Expression& node, const FramePtr& frame);
  bool evaluate_test(const Expression& node, const FramePtr& frame);
  std::vector<Value> evaluate_all(const std::vector<ExpressionPtr>& nodes, const FramePtr& frame);
  CallArgs evaluate_arguments(const Arguments* arguments, const FramePtr& frame);

  const Program& program_;
  Budget& budget_;
  Lookup lookup_;
  int64_t now_unix_;
  int line_ = 1;
  FramePtr root_;
  enum class Known : unsigned char { kNotAsked, kAbsent, kPresent };
  struct ContextVariable {
    Known known = Known::kNotAsked;
    Value value;
  };
  std::vector<ContextVariable> context_;  // per name of the program
  std::vector<FramePtr> kept_frames_;
  std::vector<std::pair<ObjectPtr, std::function<void()>>> kept_objects_;
};

}  // namespace cairn::tmpl
