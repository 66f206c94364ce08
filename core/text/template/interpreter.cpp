// Statements: output, conditions, loops, assignments, macros.
#include "core/text/template/interpreter.hpp"

#include <algorithm>

#include "core/text/template/objects.hpp"

namespace cairn::tmpl {
namespace {

FramePtr inner_frame(const FramePtr& parent) {
  auto frame = std::make_shared<Frame>();
  frame->parent = parent;
  return frame;
}

}  // namespace

void Frame::set(int name, Value value) {
  for (auto& [number, old] : variables) {
    if (number == name) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(name, std::move(value));
}

const Value* Frame::find(int name) const {
  for (const auto& [number, value] : variables) {
    if (number == name) return &value;
  }
  return nullptr;
}

Interpreter::Interpreter(const Program& program, Budget& budget, Lookup lookup, int64_t now_unix)
    : program_(program),
      budget_(budget),
      lookup_(std::move(lookup)),
      now_unix_(now_unix),
      root_(std::make_shared<Frame>()),
      context_(program.names.size()) {}

Interpreter::~Interpreter() {
  // Emptied one after another while all of them are still held, so that no chain of them is destroyed recursively.
  for (const FramePtr& frame : kept_frames_) frame->variables.clear();
  for (const auto& [object, empty] : kept_objects_) empty();
}

void Interpreter::keep(const FramePtr& frame) {
  for (FramePtr at = frame; at && !at->kept; at = at->parent) {
    at->kept = true;
    kept_frames_.push_back(at);
  }
}

void Interpreter::keep(ObjectPtr object, std::function<void()> empty) {
  kept_objects_.emplace_back(std::move(object), std::move(empty));
}

std::string Interpreter::run() {
  std::string out;
  run_body(program_.body, root_, out);
  return out;
}

void Interpreter::append(std::string& out, std::string_view text) {
  budget_.work(text.size());
  budget_.check_output(out.size() + text.size());
  out += text;
}

void Interpreter::print(const Value& value, std::string& out) {
  if (value.is_string()) {
    append(out, value.text());
  } else {
    append(out, to_text(value));
  }
}

Interpreter::Flow Interpreter::run_body(const Body& body, const FramePtr& frame, std::string& out) {
  const Budget::Level level(budget_);
  for (const Statement& statement : body) {
    const Flow flow = run_statement(statement, frame, out);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_statement(const Statement& statement, const FramePtr& frame, std::string& out) {
  line_ = statement.line;
  budget_.work();
  Flow flow = Flow::kNormal;
  switch (statement.kind) {
    case StatementKind::kData:
      append(out, statement.text);
      return flow;
    case StatementKind::kPrint:
      for (const ExpressionPtr& expression : statement.expressions) print(evaluate(*expression, frame), out);
      return flow;
    case StatementKind::kIf:
      return run_if(statement, frame, out);
    case StatementKind::kFor:
      run_for(statement, evaluate(*statement.expressions[0], frame), frame, 0, out, flow);
      return flow;
    case StatementKind::kSet:
      assign(statement.target, evaluate(*statement.expressions[0], frame), frame);
      return flow;
    case StatementKind::kSetBlock:
      run_set_block(statement, frame, flow);
      return flow;
    case StatementKind::kMacro:
      frame->set(statement.target.name, make_macro(*statement.macro, frame));
      return flow;
    case StatementKind::kCallBlock:
      run_call_block(statement, frame, out);
      return flow;
    case StatementKind::kFilterBlock:
      return run_filter_block(statement, frame, out);
    case StatementKind::kWith:
      return run_with(statement, frame, out);
    case StatementKind::kScope:
      return run_body(statement.bodies[0], inner_frame(statement.isolated ? root_ : frame), out);
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return flow;
}

Interpreter::Flow Interpreter::run_if(const Statement& statement, const FramePtr& frame, std::string& out) {
  for (size_t i = 0; i < statement.expressions.size(); ++i) {
    if (evaluate(*statement.expressions[i], frame).truthy()) return run_body(statement.bodies[i], frame, out);
  }
  if (statement.bodies.size() > statement.expressions.size()) return run_body(statement.bodies.back(), frame, out);
  return Flow::kNormal;
}

// `else_flow`: what a break or continue in the else part asks of the loop around this one.
void Interpreter::run_for(const Statement& statement, const Value& iterable, const FramePtr& frame, int depth0,
                          std::string& out, Flow& else_flow) {
  const Budget::Level level(budget_);
  auto loop = std::make_shared<LoopObject>(*this, statement, iterable, frame, depth0);
  bool any = false;
  FramePtr turn;
  while (loop->advance()) {
    any = true;
    if (turn && turn.use_count() == 1) {
      turn->variables.clear();
    } else {
      turn = inner_frame(frame);
    }
    turn->set(program_.loop_name, Value(ObjectPtr(loop)));
    assign(statement.target, loop->current(), turn);
    if (run_body(statement.bodies[0], turn, out) == Flow::kBreak) break;
  }
  if (!any && statement.bodies.size() > 1) else_flow = run_body(statement.bodies[1], inner_frame(frame), out);
}

std::string Interpreter::run_loop(const Statement& loop, const Value& iterable, const FramePtr& scope, int depth0) {
  const int line = line_;
  std::string out;
  Flow flow = Flow::kNormal;
  run_for(loop, iterable, scope, depth0, out, flow);
  line_ = line;
  return out;
}

void Interpreter::run_set_block(const Statement& statement, const FramePtr& frame, Flow& flow) {
  const FramePtr inside = inner_frame(frame);
  std::string text;
  flow = run_body(statement.bodies[0], inside, text);
  if (flow != Flow::kNormal) return;
  Value value(std::move(text));
  if (statement.expressions[0]) value = evaluate_filter(*statement.expressions[0], inside, &value);
  assign(statement.target, value, frame);
}

Interpreter::Flow Interpreter::run_filter_block(const Statement& statement, const FramePtr& frame, std::string& out) {
  const FramePtr inside = inner_frame(frame);
  std::string text;
  const Flow flow = run_body(statement.bodies[0], inside, text);
  if (flow != Flow::kNormal) return flow;
  const Value value(std::move(text));
  print(evaluate_filter(*statement.expressions[0], inside, &value), out);
  return flow;
}

Interpreter::Flow Interpreter::run_with(const Statement& statement, const FramePtr& frame, std::string& out) {
  const FramePtr inside = inner_frame(frame);
  for (size_t i = 0; i < statement.targets.size(); ++i) {
    assign(statement.targets[i], evaluate(*statement.expressions[i], frame), inside);
  }
  return run_body(statement.bodies[0], inside, out);
}

void Interpreter::run_call_block(const Statement& statement, const FramePtr& frame, std::string& out) {
  const Value caller = make_macro(*statement.macro, frame);
  print(evaluate_call(*statement.expressions[0], frame, &caller), out);
}

Value Interpreter::make_macro(const MacroDefinition& macro, const FramePtr& frame) {
  keep(frame);
  return Value(ObjectPtr(std::make_shared<MacroObject>(macro, frame)));
}

std::string Interpreter::call_macro(const MacroDefinition& macro, const FramePtr& scope, CallArgs& args) {
  const Budget::Level level(budget_);
  const int line = line_;
  const std::string quoted = macro.name.empty() ? "None" : repr_text(macro.name);
  const FramePtr frame = inner_frame(scope);
  const size_t count = macro.parameters.size();
  auto take_named = [&](std::string_view name) -> std::optional<Value> {
    for (auto it = args.named.begin(); it != args.named.end(); ++it) {
      if (it->first == name) {
        Value value = std::move(it->second);
        args.named.erase(it);
        return value;
      }
    }
    return std::nullopt;
  };
  std::vector<std::optional<Value>> given(count);
  for (size_t i = 0; i < count; ++i) {
    given[i] =
        i < args.positional.size() ? std::optional<Value>(args.positional[i]) : take_named(macro.parameter_names[i]);
  }
  if (macro.uses_caller) {
    std::optional<Value> caller = take_named("caller");
    if (!caller || caller->is_none()) caller = Value::undefined("No caller defined");
    frame->set(program_.caller_name, std::move(*caller));
  }
  if (macro.uses_kwargs) {
    auto rest = std::make_shared<Dict>();
    for (const auto& [name, value] : args.named) rest->set(Value(name), value);
    frame->set(program_.kwargs_name, Value(std::move(rest)));
  } else if (!args.named.empty()) {
    for (const auto& [name, value] : args.named) {
      if (name != "caller") continue;
      throw RenderError("macro " + quoted +
                        " was invoked with two values for the special caller argument. This is most likely a bug.");
    }
    throw RenderError("macro " + quoted + " takes no keyword argument " + repr_text(args.named[0].first));
  }
  if (macro.uses_varargs) {
    std::vector<Value> rest;
    for (size_t i = count; i < args.positional.size(); ++i) rest.push_back(args.positional[i]);
    frame->set(program_.varargs_name, Value::tuple(std::move(rest)));
  } else if (args.positional.size() > count) {
    throw RenderError("macro " + quoted + " takes not more than " + std::to_string(count) + " argument(s)");
  }
  // Defaults are evaluated for each call, in order, and may read the parameters before them.
  const size_t first_default = count - macro.defaults.size();
  for (size_t i = 0; i < count; ++i) {
    if (!given[i]) {
      given[i] = i >= first_default
                     ? evaluate(*macro.defaults[i - first_default], frame)
                     : Value::undefined("parameter " + repr_text(macro.parameter_names[i]) + " was not provided");
    }
    frame->set(macro.parameters[i], std::move(*given[i]));
  }
  std::string out;
  run_body(macro.body, frame, out);
  line_ = line;
  return out;
}

void Interpreter::assign(const Target& target, const Value& value, const FramePtr& frame) {
  if (target.is_tuple) {
    if (!is_iterable(value)) throw RenderError("cannot unpack non-iterable " + type_name(value) + " object");
    const std::vector<Value> items = iterate(value);
    if (items.size() < target.parts.size()) {
      throw RenderError("not enough values to unpack (expected " + std::to_string(target.parts.size()) + ", got " +
                        std::to_string(items.size()) + ")");
    }
    if (items.size() > target.parts.size()) {
      throw RenderError("too many values to unpack (expected " + std::to_string(target.parts.size()) + ")");
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], frame);
    return;
  }
  if (target.attribute.empty()) {
    frame->set(target.name, value);
    return;
  }
  const Value holder = lookup(target.name, frame);
  auto* space = holder.object_as<NamespaceObject>();
  if (!space) throw RenderError("cannot assign attribute on non-namespace object");
  space->set(target.attribute, value);
}

}  // namespace cairn::tmpl
