// The objects a template can hold: functions, macros, the loop variable, namespaces, cyclers and joiners.
// Used by the interpreter and the global functions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/text/template/builtins.hpp"
#include "core/text/template/interpreter.hpp"

namespace cairn::tmpl {

// A global function or a method bound to its value.
class FunctionObject : public Object {
 public:
  using Body = std::function<Value(Interpreter&, CallArgs&)>;
  FunctionObject(std::string name, Body body, int held_depth = 0);
  std::string type_name() const override { return "function"; }
  std::string repr() const override { return "<function " + name_ + ">"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, CallArgs& args) override { return body_(interpreter, args); }

 private:
  std::string name_;
  Body body_;
};

class MacroObject : public Object {
 public:
  MacroObject(const MacroDefinition& macro, FramePtr scope) : macro_(macro), scope_(std::move(scope)) {}
  std::string type_name() const override { return "Macro"; }
  std::string full_type_name() const override { return "jinja2.runtime.Macro"; }
  std::string repr() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, CallArgs& args) override;

 private:
  const MacroDefinition& macro_;
  FramePtr scope_;
  Charge charge_{512};  // with the frame it keeps alive
};

class NamespaceObject : public Object {
 public:
  std::string type_name() const override { return "Namespace"; }
  std::string full_type_name() const override { return "jinja2.utils.Namespace"; }
  std::string repr() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  void set(std::string_view name, const Value& value);
  void clear() { attributes_.clear(); }

 private:
  std::vector<std::pair<std::string, Value>> attributes_;
  Charge charge_{256};
};

// The `loop` variable, and what drives the loop: it takes items one by one and applies the loop's `if` just in time,
// since the condition may read what the body changes.
class LoopObject : public Object, public std::enable_shared_from_this<LoopObject> {
 public:
  LoopObject(Interpreter& interpreter, const Statement& statement, const Value& iterable, FramePtr scope, int depth0);
  // Moves on to the next item; false at the end.
  bool advance();
  const Value& current() const { return current_; }

  std::string type_name() const override { return "LoopContext"; }
  std::string full_type_name() const override { return "jinja2.runtime.LoopContext"; }
  std::string repr() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, CallArgs& args) override;
  std::optional<size_t> length() const override;

 private:
  std::optional<Value> fetch();
  bool passes(const Value& item);
  const std::optional<Value>& peek();
  size_t total();
  Value changed(CallArgs& args);

  Interpreter& interpreter_;
  const Statement& statement_;
  FramePtr scope_;
  std::vector<Value> items_;
  size_t position_ = 0;
  bool filtered_;  // the loop has a condition that has not been applied to items_ yet
  int64_t index0_ = -1;
  int depth0_;
  Value before_, current_;
  std::optional<Value> after_;
  bool peeked_ = false;
  std::optional<Value> last_changed_;
  bool kept_ = false;
  Charge charge_{512};
};

class CyclerObject : public Object {
 public:
  explicit CyclerObject(std::vector<Value> items);
  std::string type_name() const override { return "Cycler"; }
  std::string full_type_name() const override { return "jinja2.utils.Cycler"; }
  std::optional<Value> attribute(std::string_view name) const override;

 private:
  struct State {
    std::vector<Value> items;
    size_t position = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class JoinerObject : public Object {
 public:
  explicit JoinerObject(Value separator) : separator_(std::move(separator)) { depth = separator_.depth() + 1; }
  std::string type_name() const override { return "Joiner"; }
  std::string full_type_name() const override { return "jinja2.utils.Joiner"; }
  std::optional<Value> attribute(std::string_view name) const override;
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, CallArgs& args) override;

 private:
  Value separator_;
  bool used_ = false;
};

Value make_function(std::string name, FunctionObject::Body body, int held_depth = 0);

}  // namespace cairn::tmpl
