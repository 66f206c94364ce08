// Attribute access, subscripts and slices, with Jinja's fall-backs and the sandbox's refusals.
#include <algorithm>

#include "core/text/template/builtins.hpp"
#include "core/text/template/operators.hpp"
#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

// The object in a message about a missing attribute: jinja2 names None itself and the type of everything else.
std::string object_description(const Value& object) {
  if (object.is_none()) return "None";
  if (object.is_object()) return object.object().full_type_name() + " object";
  if (object.is_markup()) return "markupsafe.Markup object";
  return type_name(object) + " object";
}

Value missing_attribute(const Value& object, std::string_view name) {
  return Value::undefined("'" + object_description(object) + "' has no attribute " + repr_text(name));
}

Value unsafe_attribute(const Value& object, std::string_view name) {
  return Value::undefined("access to attribute " + repr_text(name) + " of '" + type_name(object) +
                          "' object is unsafe.");
}

// Python gives every object attributes such as __class__; the sandbox refuses them all.
bool is_dunder_attribute(std::string_view name) {
  return name.size() > 4 && name.starts_with("__") && name.ends_with("__");
}

// Python's index with negatives counted from the end; false when out of range.
bool resolve_index(int64_t index, size_t length, size_t& out) {
  const auto signed_length = static_cast<int64_t>(length);
  if (index < 0) index += signed_length;
  if (index < 0 || index >= signed_length) return false;
  out = static_cast<size_t>(index);
  return true;
}

std::optional<Value> find_item(const Value& object, const Value& key) {
  if (object.is_dict()) {
    if (key.is_list() || key.is_dict()) return std::nullopt;
    const Value* found = object.dict().find(key);
    return found ? std::optional<Value>(*found) : std::nullopt;
  }
  size_t at = 0;
  if (object.is_sequence() && key.is_integral()) {
    const Sequence& sequence = object.as_sequence();
    const bool indexable = sequence.kind == SequenceKind::kList || sequence.kind == SequenceKind::kTuple ||
                           sequence.kind == SequenceKind::kRange;
    if (indexable && resolve_index(key.as_int(), sequence.items.size(), at)) return sequence.items[at];
    return std::nullopt;
  }
  if (object.is_string() && key.is_integral()) {
    const std::string& text = object.text();
    if (!object.string().ascii) charge_work(text.size());
    if (!resolve_index(key.as_int(), length_of(object), at)) return std::nullopt;
    if (object.string().ascii) return Value(std::string(1, text[at]), object.is_markup());
    const std::string_view rest = std::string_view(text).substr(byte_offset(text, at));
    return Value(std::string(rest.substr(0, character_bytes(rest))), object.is_markup());
  }
  return std::nullopt;
}

struct SliceBounds {
  int64_t start, step;
  size_t count;
};

int64_t slice_number(const Value& value, int64_t when_missing) {
  return value.is_none() ? when_missing : value.as_int();
}

bool is_slice_bound(const Value& value) {
  return value.is_none() || value.is_integral();
}

SliceBounds resolve_slice(const Value& start_value, const Value& stop_value, const Value& step_value, size_t length) {
  const auto n = static_cast<int64_t>(length);
  int64_t step = slice_number(step_value, 1);
  if (step == 0) throw RenderError("slice step cannot be zero");
  step = std::max(step, -INT64_MAX);
  auto clamp = [&](int64_t bound) {
    if (bound < 0) bound = std::max<int64_t>(bound, -n - 1) + n;
    return step > 0 ? std::clamp<int64_t>(bound, 0, n) : std::clamp<int64_t>(bound, -1, n - 1);
  };
  const int64_t start = start_value.is_none() ? (step > 0 ? 0 : n - 1) : clamp(slice_number(start_value, 0));
  const int64_t stop = stop_value.is_none() ? (step > 0 ? n : -1) : clamp(slice_number(stop_value, 0));
  size_t count = 0;
  if (step > 0 && start < stop) count = static_cast<size_t>((stop - start - 1) / step + 1);
  if (step < 0 && start > stop) count = static_cast<size_t>((start - stop - 1) / -step + 1);
  return {start, step, count};
}

}  // namespace

std::optional<Value> find_attribute(const Value& object, std::string_view name) {
  if (object.is_object()) return object.object().attribute(name);
  if (object.is_sequence() && object.as_sequence().is_group) {
    if (name == "grouper") return object.as_sequence().items[0];
    if (name == "list") return object.as_sequence().items[1];
  }
  if (is_mutating_method(object, name)) return unsafe_attribute(object, name);
  return bind_method(object, name);
}

Value get_attribute(const Value& object, std::string_view name) {
  if (object.is_undefined() && name != "__class__") fail_undefined(object);
  if (auto found = find_attribute(object, name)) return std::move(*found);
  if (object.is_dict()) {
    if (const Value* item = object.dict().find(name)) return *item;
  }
  if (is_dunder_attribute(name)) return unsafe_attribute(object, name);
  return missing_attribute(object, name);
}

Value get_item(const Value& object, const Value& key) {
  if (object.is_undefined()) fail_undefined(object);
  if (auto found = find_item(object, key)) return std::move(*found);
  if (key.is_string()) {
    if (auto found = find_attribute(object, key.text())) return std::move(*found);
    if (is_dunder_attribute(key.text())) return unsafe_attribute(object, key.text());
    return missing_attribute(object, key.text());
  }
  return Value::undefined(object_description(object) + " has no element " + repr(key));
}

Value get_slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) fail_undefined(object);
  // Jinja takes the TypeError of a bad bound for a missing item.
  if (!is_slice_bound(start) || !is_slice_bound(stop) || !is_slice_bound(step)) {
    return Value::undefined(object_description(object) + " has no element slice");
  }
  if (object.is_string()) {
    const String& string = object.string();
    const SliceBounds bounds = resolve_slice(start, stop, step, length_of(object));
    charge_work(string.text.size());
    std::string out;
    if (string.ascii) {
      if (bounds.step == 1) {
        out = string.text.substr(static_cast<size_t>(bounds.start), bounds.count);
      } else {
        for (size_t i = 0; i < bounds.count; ++i) {
          out += string.text[static_cast<size_t>(bounds.start + static_cast<int64_t>(i) * bounds.step)];
        }
      }
    } else {
      const std::u32string characters = decode(string.text);
      for (size_t i = 0; i < bounds.count; ++i) {
        append_utf8(out, characters[static_cast<size_t>(bounds.start + static_cast<int64_t>(i) * bounds.step)]);
      }
    }
    return Value(std::move(out), string.markup);
  }
  if (object.is_list() || object.is_tuple() || object.is_kind(SequenceKind::kRange)) {
    const Sequence& sequence = object.as_sequence();
    const SliceBounds bounds = resolve_slice(start, stop, step, sequence.items.size());
    charge_work(bounds.count);
    check_room(bounds.count * sizeof(Value));
    std::vector<Value> items;
    items.reserve(bounds.count);
    for (size_t i = 0; i < bounds.count; ++i) {
      items.push_back(sequence.items[static_cast<size_t>(bounds.start + static_cast<int64_t>(i) * bounds.step)]);
    }
    return Value::sequence(object.is_tuple() ? SequenceKind::kTuple : SequenceKind::kList, std::move(items));
  }
  return Value::undefined(object_description(object) + " has no element slice");
}

}  // namespace cairn::tmpl
