// Filters over sequences: map, select, sort, groupby, join, first...
#include <algorithm>
#include <unordered_map>

#include "core/text/template/builtins.hpp"
#include "core/text/template/interpreter.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/text_tools.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

Value ignore_case(const Value& value) {
  return value.is_string() ? Value(to_lower(value.text())) : value;
}

// What sorting, grouping and uniqueness compare: an attribute path, in lower case unless case matters.
struct KeyStyle {
  Value path;
  bool case_sensitive = false;
  std::optional<Value> fallback;  // for an attribute that is not there

  Value key(const Value& item) const {
    Value value = follow_path(item, path);
    if (fallback && !fallback->is_none() && value.is_undefined()) value = *fallback;
    return case_sensitive ? value : ignore_case(value);
  }
};

std::vector<std::pair<Value, Value>> with_keys(std::vector<Value> items, const KeyStyle& style) {
  std::vector<std::pair<Value, Value>> keyed;
  check_room(items.size() * 2 * sizeof(Value));
  keyed.reserve(items.size());
  for (Value& item : items) {
    charge_work(1);
    Value key = style.key(item);
    keyed.emplace_back(std::move(key), std::move(item));
  }
  return keyed;
}

void sort_by_key(std::vector<std::pair<Value, Value>>& keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    charge_work(1);
    return reverse ? less(b.first, a.first) : less(a.first, b.first);
  });
}

Value sort(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("sort", args, {"reverse", "case_sensitive", "attribute"});
  KeyStyle style;
  style.case_sensitive = parameters.truth(1, false);
  const Value path = parameters.get(2, Value());
  std::vector<std::pair<Value, Value>> keyed;
  // The key is the list of the values of all attributes named, even when it is one: lists compare their items with ==
  // first, so that items without the attribute are simply equal.
  std::vector<Value> paths;
  if (path.is_string()) {
    for (std::string_view one : split_text(path.text(), ",", -1)) paths.emplace_back(one);
  } else {
    paths.push_back(path);
  }
  for (Value& item : iterate(input)) {
    charge_work(1);
    std::vector<Value> keys;
    for (const Value& one : paths) {
      style.path = one;
      keys.push_back(style.key(item));
    }
    keyed.emplace_back(Value::list(std::move(keys)), std::move(item));
  }
  sort_by_key(keyed, parameters.truth(0, false));
  std::vector<Value> sorted;
  sorted.reserve(keyed.size());
  for (auto& [key, item] : keyed) sorted.push_back(std::move(item));
  return Value::list(std::move(sorted));
}

Value dictsort(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("dictsort", args, {"case_sensitive", "by", "reverse"});
  const std::string by = parameters.has(1) ? to_text(parameters.at(1)) : "key";
  if (by != "key" && by != "value") throw RenderError("You can only sort by either \"key\" or \"value\"");
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is_dict()) throw RenderError("'" + type_name(input) + "' object has no attribute 'items'");
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : input.dict().items()) {
    const Value& chosen = by == "key" ? key : value;
    keyed.emplace_back(parameters.truth(0, false) ? chosen : ignore_case(chosen), Value::tuple({key, value}));
  }
  sort_by_key(keyed, parameters.truth(2, false));
  std::vector<Value> sorted;
  sorted.reserve(keyed.size());
  for (auto& [key, item] : keyed) sorted.push_back(std::move(item));
  return Value::list(std::move(sorted));
}

Value unique(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("unique", args, {"case_sensitive", "attribute"});
  const KeyStyle style{parameters.get(1, Value()), parameters.truth(0, false), std::nullopt};
  Dict seen;
  std::vector<Value> kept;
  for (auto& [key, item] : with_keys(iterate(input), style)) {
    if (seen.find(key)) continue;
    seen.set(key, Value());
    kept.push_back(std::move(item));
  }
  return Value::generator(std::move(kept), "sync_do_unique");
}

Value groupby(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  KeyStyle style{parameters.at(0), parameters.truth(2, false), std::nullopt};
  if (parameters.has(1)) style.fallback = parameters.at(1);
  auto keyed = with_keys(iterate(input), style);
  sort_by_key(keyed, false);
  const KeyStyle shown{style.path, true, style.fallback};
  std::vector<Value> groups;
  for (size_t i = 0; i < keyed.size();) {
    std::vector<Value> members;
    const Value key = keyed[i].first;
    const Value name = shown.key(keyed[i].second);
    for (; i < keyed.size() && equal(keyed[i].first, key); ++i) members.push_back(keyed[i].second);
    if (members.empty()) {  // a key that does not equal itself (NaN) is a group of its own
      members.push_back(keyed[i++].second);
    }
    Value group = Value::tuple({name, Value::list(std::move(members))});
    group.as_sequence().is_group = true;
    groups.push_back(std::move(group));
  }
  return Value::list(std::move(groups));
}

template <bool kGreatest>
Value extreme(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters(kGreatest ? "max" : "min", args, {"case_sensitive", "attribute"});
  const KeyStyle style{parameters.get(1, Value()), parameters.truth(0, false), std::nullopt};
  auto keyed = with_keys(iterate(input), style);
  if (keyed.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  size_t best = 0;
  for (size_t i = 1; i < keyed.size(); ++i) {
    const bool better = kGreatest ? less(keyed[best].first, keyed[i].first) : less(keyed[i].first, keyed[best].first);
    if (better) best = i;
  }
  return keyed[best].second;
}

Value join(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("join", args, {"d", "attribute"});
  const std::string separator = parameters.has(0) ? to_text(parameters.at(0)) : "";
  const Value path = parameters.get(1, Value());
  std::string out;
  bool first = true;
  for (const Value& item : iterate(input)) {
    const std::string text = to_text(follow_path(item, path));
    check_room(out.size() + separator.size() + text.size());
    charge_work(separator.size() + text.size());
    if (!first) out += separator;
    first = false;
    out += text;
  }
  return Value(std::move(out));
}

Value first(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("first", args, {});
  if (input.is_generator()) {
    Sequence& generator = input.as_sequence();
    if (generator.taken < generator.items.size()) return generator.items[generator.taken++];
  } else if (input.is_sequence()) {
    if (!input.as_sequence().items.empty()) return input.as_sequence().items[0];
  } else if (input.is_string()) {
    const std::string_view text = input.text();
    if (!text.empty()) return Value(text.substr(0, character_bytes(text)));
  } else {
    std::vector<Value> items = iterate(input);
    if (!items.empty()) return items[0];
  }
  return Value::undefined("No first item, sequence was empty.");
}

// reversed() of Python works on what has an order and a length, not on generators.
std::vector<Value> reversible(const Value& input) {
  if (input.is_undefined()) throw RenderError("'Undefined' object is not reversible");
  if (input.is_generator() || !is_iterable(input)) {
    throw RenderError("'" + type_name(input) + "' object is not reversible");
  }
  return iterate(input);
}

Value last(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("last", args, {});
  if (input.is_undefined()) return Value::undefined("No last item, sequence was empty.");
  if (input.is_sequence() && !input.is_generator()) {
    const std::vector<Value>& items = input.as_sequence().items;
    return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
  }
  const std::vector<Value> items = reversible(input);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value reverse(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("reverse", args, {});
  if (input.is_string()) {
    std::u32string text = decode(input.text());
    charge_work(text.size());
    std::reverse(text.begin(), text.end());
    return Value(encode(text), input.is_markup());
  }
  if (!is_iterable(input)) throw RenderError("argument must be iterable");
  std::vector<Value> items = iterate(input);
  std::reverse(items.begin(), items.end());
  if (input.is_generator()) return Value::list(std::move(items));
  return Value::generator(std::move(items), "reversed");
}

Value list(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("list", args, {});
  return Value::list(iterate(input));
}

Value length(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("length", args, {});
  return Value(length_of(input));
}

Value items(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("items", args, {});
  std::vector<Value> pairs;
  if (!input.is_undefined()) {
    if (!input.is_dict()) throw RenderError("Can only get item pairs from a mapping.");
    for (const auto& [key, value] : input.dict().items()) pairs.push_back(Value::tuple({key, value}));
  }
  return Value::generator(std::move(pairs), "do_items");
}

Value batch(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("batch", args, {"linecount", "fill_with"}, 1);
  const int64_t count = parameters.integer(0, 0);
  const Value fill = parameters.get(1, Value());
  std::vector<Value> batches;
  std::vector<Value> current;
  for (Value& item : iterate(input)) {
    if (static_cast<int64_t>(current.size()) == count) {
      batches.push_back(Value::list(std::move(current)));
      current = {};
    }
    current.push_back(std::move(item));
  }
  if (!current.empty()) {
    if (!fill.is_none() && count > 0) {
      check_room(static_cast<size_t>(count) * sizeof(Value));
      if (current.size() < static_cast<size_t>(count)) current.resize(static_cast<size_t>(count), fill);
    }
    batches.push_back(Value::list(std::move(current)));
  }
  return Value::generator(std::move(batches), "sync_do_batch");
}

Value slice(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("slice", args, {"slices", "fill_with"}, 1);
  const int64_t count = parameters.integer(0, 0);
  const Value fill = parameters.get(1, Value());
  const std::vector<Value> all = iterate(input);
  if (count == 0) throw RenderError("integer division or modulo by zero");
  std::vector<Value> slices;
  if (count > 0) {
    check_room(static_cast<size_t>(count) <= SIZE_MAX / 256 ? static_cast<size_t>(count) * 128 : SIZE_MAX);
    const auto number = static_cast<size_t>(count);
    const size_t each = all.size() / number;
    const size_t with_extra = all.size() % number;
    size_t at = 0;
    for (size_t i = 0; i < number; ++i) {
      charge_work(each);
      const size_t take = each + (i < with_extra ? 1 : 0);
      std::vector<Value> part(all.begin() + static_cast<ptrdiff_t>(at),
                              all.begin() + static_cast<ptrdiff_t>(at + take));
      at += take;
      if (!fill.is_none() && i >= with_extra) part.push_back(fill);
      slices.push_back(Value::list(std::move(part)));
    }
  }
  return Value::generator(std::move(slices), "sync_do_slice");
}

Value sum(Interpreter&, const Value& input, CallArgs& args) {
  const Parameters parameters("sum", args, {"attribute", "start"});
  const Value path = parameters.get(0, Value());
  Value total = parameters.get(1, Value(0));
  if (total.is_string()) throw RenderError("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : iterate(input)) total = apply(BinaryOperator::kAdd, total, follow_path(item, path));
  return total;
}

std::optional<Value> take_named(CallArgs& args, std::string_view name) {
  for (auto it = args.named.begin(); it != args.named.end(); ++it) {
    if (it->first != name) continue;
    Value value = std::move(it->second);
    args.named.erase(it);
    return value;
  }
  return std::nullopt;
}

Value map(Interpreter& interpreter, const Value& input, CallArgs& args) {
  std::vector<Value> mapped;
  if (input.truthy()) {
    std::optional<Value> path = args.positional.empty() ? take_named(args, "attribute") : std::nullopt;
    if (path) {
      const Value fallback = take_named(args, "default").value_or(Value());
      if (!args.named.empty()) throw RenderError("Unexpected keyword argument " + repr_text(args.named[0].first));
      for (const Value& item : iterate(input)) {
        Value value = follow_path(item, *path);
        if (value.is_undefined() && !fallback.is_none()) value = fallback;
        mapped.push_back(std::move(value));
      }
    } else {
      if (args.positional.empty()) throw RenderError("map requires a filter argument");
      const Value filter = args.positional[0];
      if (!filter.is_string()) throw RenderError("map needs a filter's name, not '" + type_name(filter) + "'");
      args.positional.erase(args.positional.begin());
      for (const Value& item : iterate(input)) {
        CallArgs again = args;
        mapped.push_back(interpreter.call_filter(filter.text(), item, again));
      }
    }
  }
  return Value::generator(std::move(mapped), "sync_do_map");
}

// select, reject, selectattr and rejectattr: a test, on the item or on one of its attributes.
template <bool kWanted, bool kAttribute>
Value choose(Interpreter& interpreter, const Value& input, CallArgs& args) {
  std::vector<Value> chosen;
  if (input.truthy()) {
    Value path;
    if (kAttribute) {
      if (args.positional.empty()) throw RenderError("Missing parameter for attribute name");
      path = args.positional[0];
      args.positional.erase(args.positional.begin());
    }
    std::optional<Value> test;
    if (!args.positional.empty()) {
      test = args.positional[0];
      if (!test->is_string()) throw RenderError("a test's name is needed, not '" + type_name(*test) + "'");
      args.positional.erase(args.positional.begin());
    }
    for (Value& item : iterate(input)) {
      charge_work(1);
      const Value value = follow_path(item, path);
      CallArgs again = args;
      const bool passes = test ? interpreter.call_test(test->text(), value, again) : value.truthy();
      if (passes == kWanted) chosen.push_back(std::move(item));
    }
  }
  return Value::generator(std::move(chosen), "select_or_reject");
}

}  // namespace

FilterFunction find_sequence_filter(std::string_view name) {
  static const std::unordered_map<std::string_view, FilterFunction> kFilters = {
      {"sort", sort},
      {"dictsort", dictsort},
      {"unique", unique},
      {"groupby", groupby},
      {"min", extreme<false>},
      {"max", extreme<true>},
      {"join", join},
      {"first", first},
      {"last", last},
      {"reverse", reverse},
      {"list", list},
      {"length", length},
      {"count", length},
      {"items", items},
      {"batch", batch},
      {"slice", slice},
      {"sum", sum},
      {"map", map},
      {"select", choose<true, false>},
      {"reject", choose<false, false>},
      {"selectattr", choose<true, true>},
      {"rejectattr", choose<false, true>},
  };
  const auto found = kFilters.find(name);
  return found == kFilters.end() ? nullptr : found->second;
}

}  // namespace cairn::tmpl
