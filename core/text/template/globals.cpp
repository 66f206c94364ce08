// The functions every template sees: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
#include <algorithm>

#include "core/text/template/objects.hpp"
#include "core/text/template/strftime.hpp"

namespace cairn::tmpl {
namespace {

constexpr int64_t kMaxRange = 100000;  // jinja2's sandbox has the same bound

int64_t range_number(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_integral()) throw RenderError("'" + type_name(value) + "' object cannot be interpreted as an integer");
  return value.as_int();
}

Value make_range(Interpreter&, CallArgs& args) {
  const size_t count = args.positional.size();
  if (count == 0 || count > 3 || !args.named.empty()) {
    throw RenderError("range expected 1 to 3 arguments, got " + std::to_string(count));
  }
  const int64_t start = count == 1 ? 0 : range_number(args.positional[0]);
  const int64_t stop = range_number(args.positional[count == 1 ? 0 : 1]);
  const int64_t step = count == 3 ? range_number(args.positional[2]) : 1;
  if (step == 0) throw RenderError("range() arg 3 must not be zero");
  std::vector<Value> items;
  const bool empty = step > 0 ? start >= stop : start <= stop;
  if (!empty) {
    // In unsigned arithmetic: the distance of two int64 may not fit an int64.
    const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                       : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
    const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
    const uint64_t length = (distance - 1) / stride + 1;
    if (length > kMaxRange) {
      throw RenderError("Range too big. The sandbox blocks ranges larger than MAX_RANGE (" + std::to_string(kMaxRange) +
                        ").");
    }
    charge_work(length);
    items.reserve(length);
    for (uint64_t i = 0; i < length; ++i) {
      items.emplace_back(static_cast<int64_t>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(step)));
    }
  }
  Value range = Value::sequence(SequenceKind::kRange, std::move(items));
  range.as_sequence().note =
      std::to_string(start) + ", " + std::to_string(stop) + (step == 1 ? "" : ", " + std::to_string(step));
  return range;
}

// dict(mapping or pairs, **more), which is also what namespace() takes.
std::shared_ptr<Dict> build_dict(CallArgs& args) {
  if (args.positional.size() > 1) {
    throw RenderError("dict expected at most 1 argument, got " + std::to_string(args.positional.size()));
  }
  auto dict = std::make_shared<Dict>();
  if (!args.positional.empty()) {
    const Value& source = args.positional[0];
    if (source.is_dict()) {
      for (const auto& [key, value] : source.dict().items()) dict->set(key, value);
    } else {
      for (const Value& pair : iterate(source)) {
        const std::vector<Value> both = iterate(pair);
        if (both.size() != 2) {
          throw RenderError("dictionary update sequence element has length " + std::to_string(both.size()) +
                            "; 2 is required");
        }
        dict->set(both[0], both[1]);
      }
    }
  }
  for (const auto& [name, value] : args.named) dict->set(Value(name), value);
  return dict;
}

Value make_dict(Interpreter&, CallArgs& args) {
  return Value(build_dict(args));
}

Value make_namespace(Interpreter& interpreter, CallArgs& args) {
  const std::shared_ptr<Dict> attributes = build_dict(args);
  auto space = std::make_shared<NamespaceObject>();
  for (const auto& [key, value] : attributes->items()) {
    if (key.is_string()) space->set(key.text(), value);
  }
  interpreter.keep(space, [held = space.get()] { held->clear(); });
  return Value(ObjectPtr(space));
}

Value make_cycler(Interpreter&, CallArgs& args) {
  if (args.positional.empty()) throw RenderError("at least one item has to be provided");
  return Value(ObjectPtr(std::make_shared<CyclerObject>(std::move(args.positional))));
}

Value make_joiner(Interpreter&, CallArgs& args) {
  const Parameters parameters("joiner", args, {"sep"});
  return Value(ObjectPtr(std::make_shared<JoinerObject>(parameters.get(0, Value(", ")))));
}

Value raise_exception(Interpreter&, CallArgs& args) {
  const Parameters parameters("raise_exception", args, {"message"}, 1);
  throw RenderError(to_text(parameters.at(0)), true);
}

Value strftime_now(Interpreter& interpreter, CallArgs& args) {
  const Parameters parameters("strftime_now", args, {"format"}, 1);
  return Value(format_time(parameters.text(0), interpreter.now_unix()));
}

Value refuse_lipsum(Interpreter&, CallArgs&) {
  throw RenderError("'lipsum' gives random text and is not supported in chat templates");
}

}  // namespace

std::optional<Value> find_global(std::string_view name) {
  using Function = Value (*)(Interpreter&, CallArgs&);
  static constexpr std::pair<std::string_view, Function> kFunctions[] = {
      {"range", make_range},     {"dict", make_dict},           {"namespace", make_namespace},
      {"cycler", make_cycler},   {"joiner", make_joiner},       {"raise_exception", raise_exception},
      {"lipsum", refuse_lipsum}, {"strftime_now", strftime_now}};
  for (const auto& [known, function] : kFunctions) {
    if (known == name) return make_function(std::string(name), function);
  }
  return std::nullopt;
}

}  // namespace cairn::tmpl
