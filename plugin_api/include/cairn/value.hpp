// Value: M*'s kwargs, step_metadata and model_kwargs as C++: a tagged value that owns what it holds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cairn/tensor.hpp"

namespace cairn {

class Value;
using ValueList = std::vector<Value>;

// Keys are unique and keep their order of insertion.
class ValueMap {
 public:
  ValueMap() = default;
  ValueMap(std::initializer_list<std::pair<std::string, Value>> entries);
  explicit ValueMap(const cairn_map& map);

  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  const Value* find(std::string_view key) const noexcept;
  Value* find(std::string_view key) noexcept;
  void set(std::string_view key, Value value);
  bool erase(std::string_view key);
  void update(const ValueMap& other);
  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  std::vector<std::pair<std::string, Value>>::const_iterator begin() const noexcept;
  std::vector<std::pair<std::string, Value>>::const_iterator end() const noexcept;
  // Numbers and texts with a default for a key that is absent or of another kind.
  std::int64_t integer(std::string_view key, std::int64_t fallback) const;
  double real(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string string(std::string_view key, std::string_view fallback) const;
  cairn_map in(const Arena& arena) const;

 private:
  std::vector<std::pair<std::string, Value>> entries_;
};

// A plugin's own object; handed back to this plugin only.
struct OpaqueValue {
  void* object = nullptr;
};

class Value {
 public:
  using Bytes = std::vector<std::byte>;
  using Payload = std::variant<std::monostate, bool, std::int64_t, double, std::string, Bytes, Tensor, ValueList,
                               ValueMap, OpaqueValue>;

  Value() = default;
  Value(bool value) : payload_(value) {}
  Value(int value) : payload_(static_cast<std::int64_t>(value)) {}
  Value(std::int64_t value) : payload_(value) {}
  Value(double value) : payload_(value) {}
  Value(const char* value) : payload_(std::string(value)) {}
  Value(std::string value) : payload_(std::move(value)) {}
  Value(Bytes value) : payload_(std::move(value)) {}
  Value(Tensor value) : payload_(std::move(value)) {}
  Value(ValueList value) : payload_(std::move(value)) {}
  Value(ValueMap value) : payload_(std::move(value)) {}
  Value(OpaqueValue value) : payload_(value) {}
  // Unknown kinds read as none.
  explicit Value(const cairn_value& value) {
    switch (value.kind) {
      case CAIRN_VALUE_BOOL:
        payload_ = value.as.integer != 0;
        break;
      case CAIRN_VALUE_INT:
        payload_ = value.as.integer;
        break;
      case CAIRN_VALUE_FLOAT:
        payload_ = value.as.real;
        break;
      case CAIRN_VALUE_STRING:
        payload_ = std::string(text(value.as.string));
        break;
      case CAIRN_VALUE_BYTES: {
        const auto* data = static_cast<const std::byte*>(value.as.bytes.data);
        payload_ = Bytes(data, data + value.as.bytes.size);
        break;
      }
      case CAIRN_VALUE_TENSOR: {
        cairn_tensor_view view{};
        check(services().tensor->view(value.as.tensor, &view));
        view.owner = value.as.tensor;
        payload_ = Tensor::borrow(view);
        break;
      }
      case CAIRN_VALUE_LIST: {
        ValueList list;
        for (std::uint64_t i = 0; i < value.as.list.count; ++i) list.emplace_back(value.as.list.data[i]);
        payload_ = std::move(list);
        break;
      }
      case CAIRN_VALUE_MAP:
        payload_ = ValueMap(value.as.map);
        break;
      case CAIRN_VALUE_OPAQUE:
        payload_ = OpaqueValue{value.as.opaque.object};
        break;
      default:
        break;
    }
  }

  bool is_none() const noexcept { return std::holds_alternative<std::monostate>(payload_); }
  template <class T>
  const T* get_if() const noexcept {
    return std::get_if<T>(&payload_);
  }
  template <class T>
  const T& get() const {
    return std::get<T>(payload_);
  }

  // The ABI form; texts, lists and maps are copied into the arena. Only a host tensor can travel as a tensor.
  cairn_value in(const Arena& arena) const {
    cairn_value value{};
    if (const bool* flag = get_if<bool>()) {
      value.kind = CAIRN_VALUE_BOOL;
      value.as.integer = *flag ? 1 : 0;
    } else if (const std::int64_t* integer = get_if<std::int64_t>()) {
      value.kind = CAIRN_VALUE_INT;
      value.as.integer = *integer;
    } else if (const double* real = get_if<double>()) {
      value.kind = CAIRN_VALUE_FLOAT;
      value.as.real = *real;
    } else if (const std::string* string = get_if<std::string>()) {
      value.kind = CAIRN_VALUE_STRING;
      value.as.string = arena.copy(*string);
    } else if (const Bytes* bytes = get_if<Bytes>()) {
      value.kind = CAIRN_VALUE_BYTES;
      value.as.bytes = {arena.copy(std::span<const std::byte>(*bytes)).data(), bytes->size()};
    } else if (const Tensor* tensor = get_if<Tensor>()) {
      const cairn_tensor_view view = tensor->in(arena);
      if (view.owner == nullptr) throw std::invalid_argument("a tensor value must be a host tensor (Tensor::create)");
      value.kind = CAIRN_VALUE_TENSOR;
      value.as.tensor = view.owner;
    } else if (const ValueList* list = get_if<ValueList>()) {
      const std::span<cairn_value> made = arena.make<cairn_value>(list->size());
      for (std::size_t i = 0; i < made.size(); ++i) made[i] = (*list)[i].in(arena);
      value.kind = CAIRN_VALUE_LIST;
      value.as.list = {made.data(), made.size()};
    } else if (const ValueMap* map = get_if<ValueMap>()) {
      value.kind = CAIRN_VALUE_MAP;
      value.as.map = map->in(arena);
    } else if (const OpaqueValue* opaque = get_if<OpaqueValue>()) {
      value.kind = CAIRN_VALUE_OPAQUE;
      value.as.opaque = {opaque->object, nullptr};
    }
    return value;
  }

 private:
  Payload payload_;
};

inline ValueMap::ValueMap(std::initializer_list<std::pair<std::string, Value>> entries) {
  for (const auto& [key, value] : entries) set(key, value);
}
inline ValueMap::ValueMap(const cairn_map& map) {
  for (std::uint64_t i = 0; i < map.count; ++i)
    entries_.emplace_back(std::string(text(map.data[i].key)), Value(map.data[i].value));
}
inline const Value* ValueMap::find(std::string_view key) const noexcept {
  for (const auto& [name, value] : entries_) {
    if (name == key) return &value;
  }
  return nullptr;
}
inline Value* ValueMap::find(std::string_view key) noexcept {
  return const_cast<Value*>(static_cast<const ValueMap*>(this)->find(key));
}
inline void ValueMap::set(std::string_view key, Value value) {
  if (Value* held = find(key)) {
    *held = std::move(value);
  } else {
    entries_.emplace_back(std::string(key), std::move(value));
  }
}
inline bool ValueMap::erase(std::string_view key) {
  return std::erase_if(entries_, [key](const auto& entry) { return entry.first == key; }) != 0;
}
inline void ValueMap::update(const ValueMap& other) {
  for (const auto& [key, value] : other.entries_) set(key, value);
}
inline std::size_t ValueMap::size() const noexcept {
  return entries_.size();
}
inline std::vector<std::pair<std::string, Value>>::const_iterator ValueMap::begin() const noexcept {
  return entries_.begin();
}
inline std::vector<std::pair<std::string, Value>>::const_iterator ValueMap::end() const noexcept {
  return entries_.end();
}
inline std::int64_t ValueMap::integer(std::string_view key, std::int64_t fallback) const {
  const Value* value = find(key);
  const std::int64_t* held = value == nullptr ? nullptr : value->get_if<std::int64_t>();
  return held == nullptr ? fallback : *held;
}
inline double ValueMap::real(std::string_view key, double fallback) const {
  const Value* value = find(key);
  if (value == nullptr) return fallback;
  if (const double* held = value->get_if<double>()) return *held;
  const std::int64_t* integer = value->get_if<std::int64_t>();
  return integer == nullptr ? fallback : static_cast<double>(*integer);
}
inline bool ValueMap::boolean(std::string_view key, bool fallback) const {
  const Value* value = find(key);
  const bool* held = value == nullptr ? nullptr : value->get_if<bool>();
  return held == nullptr ? fallback : *held;
}
inline std::string ValueMap::string(std::string_view key, std::string_view fallback) const {
  const Value* value = find(key);
  const std::string* held = value == nullptr ? nullptr : value->get_if<std::string>();
  return held == nullptr ? std::string(fallback) : *held;
}
inline cairn_map ValueMap::in(const Arena& arena) const {
  const std::span<cairn_entry> made = arena.make<cairn_entry>(entries_.size());
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = {arena.copy(entries_[i].first), entries_[i].second.in(arena)};
  return {made.data(), made.size()};
}

}  // namespace cairn
