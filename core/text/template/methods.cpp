// Methods of dicts, lists and tuples, binding of methods, and which methods the sandbox refuses.
#include <algorithm>

#include "core/text/template/objects.hpp"
#include "core/text/template/operators.hpp"

namespace cairn::tmpl {
namespace {

Value dict_view(const Value& self, SequenceKind kind) {
  std::vector<Value> items;
  charge_work(self.dict().size());
  items.reserve(self.dict().size());
  for (const auto& [key, value] : self.dict().items()) {
    if (kind == SequenceKind::kDictItems) {
      items.push_back(Value::tuple({key, value}));
    } else {
      items.push_back(kind == SequenceKind::kDictKeys ? key : value);
    }
  }
  return Value::sequence(kind, std::move(items));
}

Value dict_items(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("items", args, {});
  return dict_view(self, SequenceKind::kDictItems);
}

Value dict_keys(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("keys", args, {});
  return dict_view(self, SequenceKind::kDictKeys);
}

Value dict_values(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("values", args, {});
  return dict_view(self, SequenceKind::kDictValues);
}

Value dict_get(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("get", args, {"key", "default"}, 1);
  const Value* found = self.dict().find(parameters.at(0));
  return found ? *found : parameters.get(1, Value());
}

Value same(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("copy", args, {});
  return self;  // values never change, so a copy is the value itself
}

Value sequence_index(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("index", args, {"value", "start", "stop"}, 1);
  const std::vector<Value>& items = self.as_sequence().items;
  const auto size = static_cast<int64_t>(items.size());
  auto bound = [&](size_t i, int64_t fallback) {
    const int64_t number = parameters.integer(i, fallback);
    return std::clamp<int64_t>(number < 0 ? number + size : number, 0, size);
  };
  charge_work(items.size());
  for (int64_t i = bound(1, 0); i < bound(2, size); ++i) {
    if (equal(items[static_cast<size_t>(i)], parameters.at(0))) return Value(i);
  }
  throw RenderError(repr(parameters.at(0)) + " is not in " + type_name(self));
}

Value sequence_count(Interpreter&, const Value& self, CallArgs& args) {
  const Parameters parameters("count", args, {"value"}, 1);
  const std::vector<Value>& items = self.as_sequence().items;
  charge_work(items.size());
  return Value(static_cast<int64_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& item) { return equal(item, parameters.at(0)); })));
}

}  // namespace

MethodFunction find_method(const Value& self, std::string_view name) {
  if (self.is_string()) return find_text_method(name);
  if (self.is_dict()) {
    if (name == "items") return dict_items;
    if (name == "get") return dict_get;
    if (name == "keys") return dict_keys;
    if (name == "values") return dict_values;
    if (name == "copy") return same;
  } else if (self.is_list() || self.is_tuple() || self.is_kind(SequenceKind::kRange)) {
    if (name == "index") return sequence_index;
    if (name == "count") return sequence_count;
    if (name == "copy" && self.is_list()) return same;
  }
  return nullptr;
}

std::optional<Value> bind_method(const Value& self, std::string_view name) {
  const MethodFunction method = find_method(self, name);
  if (!method) return std::nullopt;
  return make_function(
      std::string(name),
      [self, method](Interpreter& interpreter, CallArgs& args) { return method(interpreter, self, args); },
      self.depth());
}

bool is_mutating_method(const Value& self, std::string_view name) {
  static constexpr std::string_view kDictMethods[] = {"clear", "pop", "popitem", "setdefault", "update"};
  static constexpr std::string_view kListMethods[] = {"append", "clear",  "extend",  "insert",
                                                      "pop",    "remove", "reverse", "sort"};
  if (self.is_dict())
    return std::find(std::begin(kDictMethods), std::end(kDictMethods), name) != std::end(kDictMethods);
  return self.is_list() && std::find(std::begin(kListMethods), std::end(kListMethods), name) != std::end(kListMethods);
}

}  // namespace cairn::tmpl
