// Attributes and calls of the objects; the loop variable's arithmetic.
#include "core/text/template/objects.hpp"

#include <algorithm>

namespace cairn::tmpl {
namespace {

int held(int inner) {
  if (inner + 1 > kMaxValueDepth) {
    throw RenderError("values are nested deeper than " + std::to_string(kMaxValueDepth) + " levels");
  }
  return inner + 1;
}

}  // namespace

Value make_function(std::string name, FunctionObject::Body body, int held_depth) {
  return Value(ObjectPtr(std::make_shared<FunctionObject>(std::move(name), std::move(body), held_depth)));
}

FunctionObject::FunctionObject(std::string name, Body body, int held_depth)
    : name_(std::move(name)), body_(std::move(body)) {
  depth = held(held_depth);
}

std::string MacroObject::repr() const {
  return macro_.name.empty() ? "<Macro anonymous>" : "<Macro " + repr_text(macro_.name) + ">";
}

std::optional<Value> MacroObject::attribute(std::string_view name) const {
  if (name == "name") return macro_.name.empty() ? Value() : Value(macro_.name);
  if (name == "arguments") {
    std::vector<Value> names;
    for (const std::string& parameter : macro_.parameter_names) names.emplace_back(parameter);
    return Value::tuple(std::move(names));
  }
  if (name == "caller") return Value(macro_.uses_caller);
  if (name == "catch_kwargs") return Value(macro_.uses_kwargs);
  if (name == "catch_varargs") return Value(macro_.uses_varargs);
  return std::nullopt;
}

Value MacroObject::call(Interpreter& interpreter, CallArgs& args) {
  // The scope is held for the call's time: the macro may replace the variable that holds it.
  const FramePtr scope = scope_;
  return Value(interpreter.call_macro(macro_, scope, args));
}

std::string NamespaceObject::repr() const {
  std::string out = "<Namespace {";
  for (size_t i = 0; i < attributes_.size(); ++i) {
    if (i != 0) out += ", ";
    out += repr_text(attributes_[i].first) + ": " + cairn::tmpl::repr(attributes_[i].second);
  }
  return out + "}>";
}

std::optional<Value> NamespaceObject::attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

void NamespaceObject::set(std::string_view name, const Value& value) {
  for (auto& [key, old] : attributes_) {
    if (key == name) {
      old = value;
      return;
    }
  }
  charge_.add(sizeof(std::string) + sizeof(Value) + name.size());
  charge_work(attributes_.size());
  attributes_.emplace_back(std::string(name), value);
}

LoopObject::LoopObject(Interpreter& interpreter, const Statement& statement, const Value& iterable, FramePtr scope,
                       int depth0)
    : interpreter_(interpreter),
      statement_(statement),
      scope_(std::move(scope)),
      items_(iterate(iterable)),
      filtered_(statement.expressions[1] != nullptr),
      depth0_(depth0) {
  depth = held(iterable.depth());
}

bool LoopObject::passes(const Value& item) {
  auto frame = std::make_shared<Frame>();
  frame->parent = scope_;
  interpreter_.assign(statement_.target, item, frame);
  return interpreter_.evaluate(*statement_.expressions[1], frame).truthy();
}

std::optional<Value> LoopObject::fetch() {
  while (position_ < items_.size()) {
    Value item = items_[position_++];
    if (!filtered_ || passes(item)) return item;
  }
  return std::nullopt;
}

const std::optional<Value>& LoopObject::peek() {
  if (!peeked_) {
    after_ = fetch();
    peeked_ = true;
  }
  return after_;
}

bool LoopObject::advance() {
  std::optional<Value> next = peeked_ ? std::exchange(after_, std::nullopt) : fetch();
  peeked_ = false;
  if (!next) return false;
  ++index0_;
  before_ = std::move(current_);
  current_ = std::move(*next);
  return true;
}

// The number of items altogether. A loop with a condition has to try it on all the items that are left.
size_t LoopObject::total() {
  if (!filtered_) return items_.size();
  std::vector<Value> rest;
  while (position_ < items_.size()) {
    Value item = items_[position_++];
    if (passes(item)) rest.push_back(std::move(item));
  }
  // As if the items before had been exactly those that passed.
  std::vector<Value> all(static_cast<size_t>(index0_ + 1 + (after_ ? 1 : 0)));
  position_ = all.size();
  all.insert(all.end(), rest.begin(), rest.end());
  items_ = std::move(all);
  filtered_ = false;
  return items_.size();
}

std::string LoopObject::repr() const {
  return "<LoopContext " + std::to_string(index0_ + 1) + "/" + std::to_string(*length()) + ">";
}

// Looking at the loop may take items ahead of time, which changes nothing that a reader of the value could see.
std::optional<size_t> LoopObject::length() const {
  return const_cast<LoopObject*>(this)->total();
}

std::optional<Value> LoopObject::attribute(std::string_view name) const {
  auto* self = const_cast<LoopObject*>(this);
  if (name == "index") return Value(index0_ + 1);
  if (name == "index0") return Value(index0_);
  if (name == "first") return Value(index0_ == 0);
  if (name == "last") return Value(!self->peek().has_value());
  if (name == "length") return Value(self->total());
  if (name == "revindex") return Value(static_cast<int64_t>(self->total()) - index0_);
  if (name == "revindex0") return Value(static_cast<int64_t>(self->total()) - index0_ - 1);
  if (name == "depth") return Value(depth0_ + 1);
  if (name == "depth0") return Value(depth0_);
  if (name == "previtem") return index0_ == 0 ? Value::undefined("there is no previous item") : before_;
  if (name == "nextitem") {
    const std::optional<Value>& next = self->peek();
    return next ? *next : Value::undefined("there is no next item");
  }
  if (name == "cycle") {
    const auto index = static_cast<size_t>(index0_);
    return make_function("cycle", [index](Interpreter&, CallArgs& args) {
      if (args.positional.empty()) throw RenderError("no items for cycling given");
      return args.positional[index % args.positional.size()];
    });
  }
  if (name == "changed") {
    return make_function(
        "changed", [loop = self->shared_from_this()](Interpreter&, CallArgs& args) { return loop->changed(args); },
        depth);
  }
  return std::nullopt;
}

Value LoopObject::changed(CallArgs& args) {
  Value value = Value::tuple(std::move(args.positional));
  if (last_changed_ && equal(*last_changed_, value)) return Value(false);
  last_changed_ = std::move(value);
  if (!kept_) {
    kept_ = true;
    interpreter_.keep(shared_from_this(), [this] { last_changed_.reset(); });
  }
  return Value(true);
}

Value LoopObject::call(Interpreter& interpreter, CallArgs& args) {
  if (!statement_.recursive) {
    throw RenderError("The loop must have the 'recursive' marker to be called recursively.");
  }
  const Parameters parameters("loop", args, {"iterable"}, 1);
  return Value(interpreter.run_loop(statement_, parameters.at(0), scope_, depth0_ + 1));
}

CyclerObject::CyclerObject(std::vector<Value> items) {
  int inner = 0;
  for (const Value& item : items) inner = std::max(inner, item.depth());
  depth = held(inner);
  state_->items = std::move(items);
}

std::optional<Value> CyclerObject::attribute(std::string_view name) const {
  if (name == "current") return state_->items[state_->position];
  if (name == "pos") return Value(state_->position);
  if (name == "items") return Value::tuple(state_->items);
  if (name == "next") {
    return make_function(
        "next",
        [state = state_](Interpreter&, CallArgs&) {
          Value item = state->items[state->position];
          state->position = (state->position + 1) % state->items.size();
          return item;
        },
        depth);
  }
  if (name == "reset") {
    return make_function(
        "reset",
        [state = state_](Interpreter&, CallArgs&) {
          state->position = 0;
          return Value();
        },
        depth);
  }
  return std::nullopt;
}

std::optional<Value> JoinerObject::attribute(std::string_view name) const {
  if (name == "sep") return separator_;
  if (name == "used") return Value(used_);
  return std::nullopt;
}

Value JoinerObject::call(Interpreter&, CallArgs&) {
  return std::exchange(used_, true) ? separator_ : Value("");
}

}  // namespace cairn::tmpl
