// The one tagged value type of the host: model_kwargs, step metadata, plugin configuration, weights metadata. It maps
// one to one to cairn_value in the ABI and to JSON and YAML. Maps keep insertion order and have no duplicate keys. clang-format off: one line per type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cairn {

class Value;
using ValueList = std::vector<Value>;
using ValueMap = std::vector<std::pair<std::string, Value>>;
using ValueBytes = std::vector<std::byte>;

class Value {
 public:
  using Storage = std::variant<std::monostate, bool, std::int64_t, double, std::string, ValueBytes, ValueList, ValueMap>;

  Value() = default;
  Value(bool v) : storage_(v) {}                                        // NOLINT(google-explicit-constructor)
  Value(std::int64_t v) : storage_(v) {}                                // NOLINT(google-explicit-constructor)
  Value(int v) : storage_(static_cast<std::int64_t>(v)) {}              // NOLINT(google-explicit-constructor)
  Value(double v) : storage_(v) {}                                      // NOLINT(google-explicit-constructor)
  Value(std::string v) : storage_(std::move(v)) {}                      // NOLINT(google-explicit-constructor)
  Value(std::string_view v) : storage_(std::string(v)) {}               // NOLINT(google-explicit-constructor)
  Value(const char* v) : storage_(std::string(v)) {}                    // NOLINT(google-explicit-constructor)
  Value(ValueBytes v) : storage_(std::move(v)) {}                       // NOLINT(google-explicit-constructor)
  Value(ValueList v) : storage_(std::move(v)) {}                        // NOLINT(google-explicit-constructor)
  Value(ValueMap v) : storage_(std::move(v)) {}                         // NOLINT(google-explicit-constructor)

  bool is_none() const { return std::holds_alternative<std::monostate>(storage_); }
  template <class T>
  bool is() const { return std::holds_alternative<T>(storage_); }
  template <class T>
  const T* get_if() const { return std::get_if<T>(&storage_); }
  template <class T>
  T* get_if() { return std::get_if<T>(&storage_); }
  const Storage& storage() const { return storage_; }

  // The entry `key` of a map, or nullptr when this is no map or has no such key.
  const Value* find(std::string_view key) const {
    const auto* map = get_if<ValueMap>();
    if (map == nullptr) return nullptr;
    for (const auto& [name, value] : *map) {
      if (name == key) return &value;
    }
    return nullptr;
  }
  // Sets `key`, turning a none value into a map first. Must not be called on any other kind of value.
  void set(std::string_view key, Value value) {
    if (is_none()) storage_ = ValueMap{};
    auto& map = std::get<ValueMap>(storage_);
    for (auto& [name, old] : map) {
      if (name == key) {
        old = std::move(value);
        return;
      }
    }
    map.emplace_back(std::string(key), std::move(value));
  }

  bool operator==(const Value&) const = default;

 private:
  Storage storage_;
};

}  // namespace cairn
