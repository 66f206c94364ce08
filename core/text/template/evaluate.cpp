// Expressions: names, operators, calls, filters and tests.
#include <algorithm>

#include "core/text/template/interpreter.hpp"
#include "core/text/template/operators.hpp"

namespace cairn::tmpl {

Value Interpreter::lookup(int name, const FramePtr& frame) {
  for (const Frame* at = frame.get(); at; at = at->parent.get()) {
    if (const Value* value = at->find(name)) return *value;
  }
  auto& [known, value] = context_[static_cast<size_t>(name)];
  const std::string& text = program_.names[static_cast<size_t>(name)];
  if (known == Known::kNotAsked) {
    std::optional<Value> found = lookup_(text);
    if (!found) found = find_global(text);
    known = found ? Known::kPresent : Known::kAbsent;
    if (found) value = std::move(*found);
  }
  if (known == Known::kPresent) return value;
  return Value::undefined(repr_text(text) + " is undefined");
}

Value Interpreter::evaluate(const Expression& node, const FramePtr& frame) {
  budget_.work();
  switch (node.kind) {
    case ExpressionKind::kConstant:
      return node.constant;
    case ExpressionKind::kName:
      return lookup(node.name, frame);
    default:
      break;
  }
  const Budget::Level level(budget_);
  auto child = [&](size_t i) { return evaluate(*node.children[i], frame); };
  switch (node.kind) {
    case ExpressionKind::kConstant:
    case ExpressionKind::kName:
      break;  // done above
    case ExpressionKind::kList:
      return Value::list(evaluate_all(node.children, frame));
    case ExpressionKind::kTuple:
      return Value::tuple(evaluate_all(node.children, frame));
    case ExpressionKind::kDict:
      return evaluate_dict(node, frame);
    case ExpressionKind::kAttribute:
      return get_attribute(child(0), node.text);
    case ExpressionKind::kItem: {
      const Value object = child(0);
      return get_item(object, child(1));
    }
    case ExpressionKind::kSlice:
      return evaluate_slice(node, frame);
    case ExpressionKind::kCall:
      return evaluate_call(node, frame, nullptr);
    case ExpressionKind::kFilter:
      return evaluate_filter(node, frame, nullptr);
    case ExpressionKind::kTest:
      return Value(evaluate_test(node, frame));
    case ExpressionKind::kNot:
      return Value(!child(0).truthy());
    case ExpressionKind::kNegate:
      return negate(child(0));
    case ExpressionKind::kPlus:
      return plus(child(0));
    case ExpressionKind::kBinary: {
      const Value left = child(0);
      return apply(node.binary, left, child(1));
    }
    case ExpressionKind::kCompare:
      return evaluate_compare(node, frame);
    case ExpressionKind::kConcat: {
      std::string text;
      for (const Value& part : evaluate_all(node.children, frame)) {
        const std::string more = to_text(part);
        budget_.work(more.size());
        budget_.check_room(text.size() + more.size());
        text += more;
      }
      return Value(std::move(text));
    }
    case ExpressionKind::kAnd: {
      Value left = child(0);
      return left.truthy() ? child(1) : left;
    }
    case ExpressionKind::kOr: {
      Value left = child(0);
      return left.truthy() ? left : child(1);
    }
    case ExpressionKind::kConditional:
      if (child(1).truthy()) return child(0);
      if (node.children[2]) return child(2);
      line_ = node.line;
      return Value::undefined("the inline if-expression on line " + std::to_string(node.line) +
                              " evaluated to false and no else section was defined.");
  }
  return Value();
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExpressionPtr>& nodes, const FramePtr& frame) {
  std::vector<Value> values;
  values.reserve(nodes.size());
  for (const ExpressionPtr& node : nodes) values.push_back(evaluate(*node, frame));
  return values;
}

Value Interpreter::evaluate_dict(const Expression& node, const FramePtr& frame) {
  auto dict = std::make_shared<Dict>();
  for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
    const Value key = evaluate(*node.children[i], frame);
    dict->set(key, evaluate(*node.children[i + 1], frame));
  }
  return Value(std::move(dict));
}

Value Interpreter::evaluate_slice(const Expression& node, const FramePtr& frame) {
  const Value object = evaluate(*node.children[0], frame);
  auto bound = [&](size_t i) { return node.children[i] ? evaluate(*node.children[i], frame) : Value(); };
  const Value start = bound(1);
  const Value stop = bound(2);
  return get_slice(object, start, stop, bound(3));
}

Value Interpreter::evaluate_compare(const Expression& node, const FramePtr& frame) {
  Value left = evaluate(*node.children[0], frame);
  for (size_t i = 0; i < node.comparisons.size(); ++i) {
    Value right = evaluate(*node.children[i + 1], frame);
    if (!compare(node.comparisons[i], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

CallArgs Interpreter::evaluate_arguments(const Arguments* arguments, const FramePtr& frame) {
  CallArgs args;
  if (!arguments) return args;
  args.positional = evaluate_all(arguments->positional, frame);
  for (const auto& [name, node] : arguments->named) args.named.emplace_back(name, evaluate(*node, frame));
  if (arguments->star) {
    for (Value& value : iterate(evaluate(*arguments->star, frame))) args.positional.push_back(std::move(value));
  }
  if (arguments->double_star) {
    const Value more = evaluate(*arguments->double_star, frame);
    if (!more.is_dict()) throw RenderError("argument after ** must be a mapping, not " + type_name(more));
    for (const auto& [key, value] : more.dict().items()) {
      if (!key.is_string()) throw RenderError("keywords must be strings");
      const bool twice = std::any_of(args.named.begin(), args.named.end(),
                                     [&name = key.text()](const auto& entry) { return entry.first == name; });
      if (twice) throw RenderError("got multiple values for keyword argument " + repr_text(key.text()));
      charge_work(args.named.size());
      args.named.emplace_back(key.text(), value);
    }
  }
  return args;
}

// `caller` is what a call block passes along to the macro.
Value Interpreter::evaluate_call(const Expression& node, const FramePtr& frame, const Value* caller) {
  const Expression& callee = *node.children[0];
  if (callee.kind == ExpressionKind::kAttribute) {
    const Value self = evaluate(*callee.children[0], frame);
    // The common case, without making an object for the bound method.
    if (const MethodFunction method = self.is_object() ? nullptr : find_method(self, callee.text)) {
      CallArgs args = evaluate_arguments(node.call.get(), frame);
      line_ = node.line;
      if (caller) args.named.emplace_back("caller", *caller);
      return method(*this, self, args);
    }
    const Value function = get_attribute(self, callee.text);
    CallArgs args = evaluate_arguments(node.call.get(), frame);
    line_ = node.line;
    if (caller) args.named.emplace_back("caller", *caller);
    return call(function, args);
  }
  const Value function = evaluate(callee, frame);
  CallArgs args = evaluate_arguments(node.call.get(), frame);
  line_ = node.line;
  if (caller) args.named.emplace_back("caller", *caller);
  return call(function, args);
}

Value Interpreter::call(const Value& callee, CallArgs& args) {
  if (callee.is_undefined()) fail_undefined(callee);
  if (!callee.is_callable()) throw RenderError("'" + type_name(callee) + "' object is not callable");
  const Budget::Level level(budget_);
  return callee.object().call(*this, args);
}

Value Interpreter::evaluate_filter(const Expression& node, const FramePtr& frame, const Value* input) {
  // A filter block's chain ends in a filter without an input of its own.
  const Expression* inner = node.children[0].get();
  Value value;
  if (!inner) {
    value = *input;
  } else if (inner->kind == ExpressionKind::kFilter) {
    const Budget::Level level(budget_);
    value = evaluate_filter(*inner, frame, input);
  } else {
    value = evaluate(*inner, frame);
  }
  if (!node.filter) {
    line_ = node.line;
    throw RenderError("No filter named " + repr_text(node.text) + " found.");
  }
  CallArgs args = evaluate_arguments(node.call.get(), frame);
  line_ = node.line;
  budget_.work();
  return node.filter(*this, value, args);
}

bool Interpreter::evaluate_test(const Expression& node, const FramePtr& frame) {
  const Value value = evaluate(*node.children[0], frame);
  if (!node.test) {
    line_ = node.line;
    throw RenderError("No test named " + repr_text(node.text) + " found.");
  }
  CallArgs args = evaluate_arguments(node.call.get(), frame);
  line_ = node.line;
  return node.test(*this, value, args);
}

Value Interpreter::call_filter(std::string_view name, const Value& input, CallArgs& args) {
  const FilterFunction filter = find_filter(name);
  if (!filter) throw RenderError("No filter named " + repr_text(name) + ".");
  budget_.work();
  const Budget::Level level(budget_);
  return filter(*this, input, args);
}

bool Interpreter::call_test(std::string_view name, const Value& input, CallArgs& args) {
  const TestFunction test = find_test(name);
  if (!test) throw RenderError("No test named " + repr_text(name) + ".");
  budget_.work();
  return test(*this, input, args);
}

}  // namespace cairn::tmpl
