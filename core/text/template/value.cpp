// Construction, truth, equality, hashing and iteration of template values.
#include "core/text/template/value.hpp"

#include <cmath>

#include "core/text/template/unicode.hpp"

namespace cairn::tmpl {
namespace {

constexpr size_t kDictIndexFrom = 8;

int checked_depth(int inner) {
  if (inner + 1 > kMaxValueDepth) {
    throw RenderError("lists and dicts are nested deeper than " + std::to_string(kMaxValueDepth) + " levels");
  }
  return inner + 1;
}

}  // namespace

String::String(std::string text_in, bool markup_in)
    : text(std::move(text_in)), ascii(is_ascii(text)), markup(markup_in), charge(sizeof(String) + text.size()) {}

Sequence::Sequence(SequenceKind kind_in, std::vector<Value> items_in)
    : kind(kind_in), items(std::move(items_in)), charge(sizeof(Sequence) + items.size() * sizeof(Value)) {
  int inner = 0;
  for (const Value& item : items) inner = std::max(inner, item.depth());
  depth = checked_depth(inner);
}

Dict::Dict() : charge_(sizeof(Dict)) {}
Dict::~Dict() = default;

size_t Dict::position(const Value& key) const {
  if (items_.size() <= kDictIndexFrom) {
    hash_of(key);
    for (size_t i = 0; i < items_.size(); ++i) {
      if (equal(items_[i].first, key)) return i;
    }
    return items_.size();
  }
  auto [from, to] = index_.equal_range(hash_of(key));
  for (auto it = from; it != to; ++it) {
    if (equal(items_[it->second].first, key)) return it->second;
  }
  return items_.size();
}

void Dict::set(const Value& key, const Value& value) {
  size_t at = position(key);
  depth_ = std::max(depth_, checked_depth(std::max(key.depth(), value.depth())));
  if (at < items_.size()) {
    items_[at].second = value;
    return;
  }
  charge_.add(2 * sizeof(Value) + 4 * sizeof(size_t));
  items_.emplace_back(key, value);
  if (items_.size() == kDictIndexFrom + 1) {
    for (size_t i = 0; i < items_.size(); ++i) index_.emplace(hash_of(items_[i].first), i);
  } else if (items_.size() > kDictIndexFrom) {
    index_.emplace(hash_of(key), at);
  }
}

const Value* Dict::find(const Value& key) const {
  size_t at = position(key);
  return at < items_.size() ? &items_[at].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (items_.size() <= kDictIndexFrom) {
    for (const auto& [name, value] : items_) {
      if (name.is_string() && name.text() == key) return &value;
    }
    return nullptr;
  }
  auto [from, to] = index_.equal_range(std::hash<std::string_view>()(key));
  for (auto it = from; it != to; ++it) {
    const Value& name = items_[it->second].first;
    if (name.is_string() && name.text() == key) return &items_[it->second].second;
  }
  return nullptr;
}

std::optional<Value> Object::attribute(std::string_view) const {
  return std::nullopt;
}

Value Object::call(Interpreter&, CallArgs&) {
  throw RenderError("'" + type_name() + "' object is not callable");
}

Value Value::undefined(std::string message) {
  return Value(UndefinedPtr(std::make_shared<const UndefinedInfo>(UndefinedInfo{std::move(message)})));
}

Value Value::sequence(SequenceKind kind, std::vector<Value> items) {
  return Value(std::make_shared<Sequence>(kind, std::move(items)));
}

Value Value::generator(std::vector<Value> items, std::string function_name) {
  Value value = sequence(SequenceKind::kGenerator, std::move(items));
  value.as_sequence().note = std::move(function_name);
  return value;
}

const void* Value::identity() const {
  return is_sequence() || is_dict() || is_object() ? held_.get() : nullptr;
}

bool Value::truthy() const {
  if (is_bool()) return as_bool();
  if (is_int()) return as_int() != 0;
  if (is_float()) return as_float() != 0.0;
  if (is_string()) return !text().empty();
  if (is_sequence()) return is_generator() || !as_sequence().items.empty();
  if (is_dict()) return dict().size() != 0;
  if (is_object()) return object().length().value_or(1) != 0;
  return false;
}

int Value::depth() const {
  if (is_sequence()) return as_sequence().depth;
  if (is_dict()) return dict().depth();
  if (is_object()) return object().depth;
  return 0;
}

bool equal(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_float() || right.is_float()) {
      if (left.is_float() && right.is_float()) return left.as_float() == right.as_float();
      const double number = left.is_float() ? left.as_float() : right.as_float();
      const int64_t integer = left.is_float() ? right.as_int() : left.as_int();
      // Exact, as in Python: a double outside the range of int64 equals no integer here.
      return number == std::floor(number) && number >= -9223372036854775808.0 && number < 9223372036854775808.0 &&
             static_cast<int64_t>(number) == integer;
    }
    return left.as_int() == right.as_int();
  }
  if (left.is_string() && right.is_string()) return left.text() == right.text();
  if (left.is_none() || left.is_undefined()) {
    return left.is_none() ? right.is_none() : right.is_undefined();
  }
  if (left.is_sequence() && right.is_sequence()) {
    const Sequence& a = left.as_sequence();
    const Sequence& b = right.as_sequence();
    if (&a == &b) return true;
    if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
    if (a.kind == SequenceKind::kGenerator || a.kind == SequenceKind::kDictValues) return false;
    charge_work(a.items.size());
    for (size_t i = 0; i < a.items.size(); ++i) {
      if (!equal(a.items[i], b.items[i])) return false;
    }
    return true;
  }
  if (left.is_dict() && right.is_dict()) {
    if (left.dict().size() != right.dict().size()) return false;
    charge_work(left.dict().size());
    for (const auto& [key, value] : left.dict().items()) {
      const Value* other = right.dict().find(key);
      if (!other || !equal(value, *other)) return false;
    }
    return true;
  }
  return left.is_object() && right.is_object() && left.identity() == right.identity();
}

size_t hash_of(const Value& value) {
  if (value.is_string()) return std::hash<std::string_view>()(value.text());
  if (value.is_integral()) return std::hash<int64_t>()(value.as_int());
  if (value.is_float()) {
    const double number = value.as_float();
    if (number == std::floor(number) && std::fabs(number) < 9e18) {
      return std::hash<int64_t>()(static_cast<int64_t>(number));
    }
    return std::hash<double>()(number);
  }
  if (value.is_none() || value.is_undefined()) return value.is_none() ? 0x6e6f6e65 : 0x756e6465;
  if (value.is_tuple() || value.is_kind(SequenceKind::kRange)) {
    size_t hash = 0x7475706c;
    charge_work(value.as_sequence().items.size());
    for (const Value& item : value.as_sequence().items) hash = hash * 1000003 ^ hash_of(item);
    return hash;
  }
  if (value.is_object() || value.is_generator()) return std::hash<const void*>()(value.identity());
  throw RenderError("unhashable type: '" + type_name(value) + "'");
}

void fail_undefined(const Value& value) {
  throw RenderError(value.undefined_info().message);
}

size_t length_of(const Value& value) {
  if (value.is_string()) return value.string().ascii ? value.text().size() : count_characters(value.text());
  if (value.is_sequence() && !value.is_generator()) return value.as_sequence().items.size();
  if (value.is_dict()) return value.dict().size();
  if (value.is_undefined()) return 0;
  if (value.is_object()) {
    if (auto length = value.object().length()) return *length;
  }
  throw RenderError("object of type '" + type_name(value) + "' has no len()");
}

bool is_iterable(const Value& value) {
  return value.is_string() || value.is_sequence() || value.is_dict() || value.is_undefined();
}

std::vector<Value> iterate(const Value& value) {
  if (value.is_sequence()) {
    Sequence& sequence = value.as_sequence();
    charge_work(sequence.items.size());
    check_room(sequence.items.size() * sizeof(Value));
    if (sequence.kind != SequenceKind::kGenerator) return sequence.items;
    std::vector<Value> rest(sequence.items.begin() + static_cast<ptrdiff_t>(sequence.taken), sequence.items.end());
    sequence.taken = sequence.items.size();
    return rest;
  }
  std::vector<Value> items;
  if (value.is_dict()) {
    charge_work(value.dict().size());
    check_room(value.dict().size() * sizeof(Value));
    for (const auto& [key, unused] : value.dict().items()) items.push_back(key);
    return items;
  }
  if (value.is_string()) {
    std::string_view rest = value.text();
    charge_work(rest.size());
    check_room(rest.size() * sizeof(Value));
    while (!rest.empty()) {
      const size_t bytes = character_bytes(rest);
      items.emplace_back(rest.substr(0, bytes));
      rest.remove_prefix(bytes);
    }
    return items;
  }
  if (value.is_undefined()) return items;
  throw RenderError("'" + type_name(value) + "' object is not iterable");
}

}  // namespace cairn::tmpl
