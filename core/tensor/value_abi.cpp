// Deep copies of the ABI's maps, bounded in depth, number and bytes: a plugin's answer is not trusted.
#include "core/tensor/value_abi.hpp"

#include <cstring>
#include <string>
#include <unordered_set>

#include "core/base/error.hpp"

namespace cairn {

// Copies into one OwnedMap. Recursion is bounded by kMaxValueDepth.
class MapBuilder {
 public:
  explicit MapBuilder(const char* what) : what_(what) {
    map_.memory_ = std::make_unique<std::pmr::monotonic_buffer_resource>(1024);
  }

  OwnedMap finish(cairn_map view) && {
    map_.view_ = view;
    return std::move(map_);
  }

  cairn_map copy(const cairn_map& source, int depth) {
    check_depth(depth);
    check_count(source.data, source.count);
    if (source.count == 0) return {};
    check_keys(source);
    auto* entries = allocate<cairn_entry>(source.count);
    for (std::uint64_t i = 0; i < source.count; ++i) {
      entries[i] = {copy_text(source.data[i].key), copy(source.data[i].value, depth + 1)};
    }
    return {entries, source.count};
  }

  cairn_map copy(const ValueMap& source, int depth) {
    check_depth(depth);
    check_count(source.data(), source.size());
    if (source.empty()) return {};
    auto* entries = allocate<cairn_entry>(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
      entries[i] = {copy_text({source[i].first.data(), source[i].first.size()}), copy(source[i].second, depth + 1)};
    }
    return {entries, source.size()};
  }

  // Entries of `overlay` replace those of `base` with the same key.
  cairn_map merge(const cairn_map& base, const cairn_map& overlay) {
    const cairn_map over = copy(overlay, 0);
    check_count(base.data, base.count);
    auto* entries = allocate<cairn_entry>(base.count + over.count);
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < base.count; ++i) {
      if (find(over, text(base.data[i].key)) != nullptr) continue;
      entries[count++] = {copy_text(base.data[i].key), copy(base.data[i].value, 1)};
    }
    for (std::uint64_t i = 0; i < over.count; ++i) entries[count++] = over.data[i];
    return {count == 0 ? nullptr : entries, count};
  }

  static const cairn_value* find(const cairn_map& map, std::string_view key) noexcept {
    for (std::uint64_t i = 0; i < map.count; ++i) {
      if (text(map.data[i].key) == key) return &map.data[i].value;
    }
    return nullptr;
  }

 private:
  static std::string_view text(cairn_str text) noexcept {
    return text.data == nullptr ? std::string_view{} : std::string_view(text.data, text.size);
  }

  template <class T>
  T* allocate(std::uint64_t count) {
    return static_cast<T*>(map_.memory_->allocate(static_cast<std::size_t>(count) * sizeof(T), alignof(T)));
  }

  void check_depth(int depth) const {
    if (depth > kMaxValueDepth) {
      throw InvalidArgument(std::string(what_) + " is nested more than " + std::to_string(kMaxValueDepth) + " deep.");
    }
  }
  void check_count(const void* data, std::uint64_t count) {
    if (count > kMaxValueCount - values_) {
      throw InvalidArgument(std::string(what_) + " holds more than " + std::to_string(kMaxValueCount) + " values.");
    }
    if (count > 0 && data == nullptr) throw InvalidArgument(std::string(what_) + " has a count and no data.");
    values_ += static_cast<std::size_t>(count);
  }
  void check_keys(const cairn_map& map) const {
    std::unordered_set<std::string_view> seen;
    for (std::uint64_t i = 0; i < map.count; ++i) {
      if (map.data[i].key.size > 0 && map.data[i].key.data == nullptr) {
        throw InvalidArgument(std::string(what_) + " has a key with a size and no text.");
      }
      if (!seen.insert(text(map.data[i].key)).second) {
        throw InvalidArgument(std::string(what_) + " has the key \"" +
                              std::string(text(map.data[i].key).substr(0, 64)) + "\" twice.");
      }
    }
  }

  const void* copy_memory(const void* data, std::uint64_t size) {
    if (size == 0) return nullptr;
    if (data == nullptr) throw InvalidArgument(std::string(what_) + " has a size and no data.");
    if (size > kMaxValueBytes - bytes_) {
      throw InvalidArgument(std::string(what_) + " holds more than " + std::to_string(kMaxValueBytes) +
                            " bytes of text.");
    }
    bytes_ += static_cast<std::size_t>(size);
    auto* memory = allocate<char>(size);
    std::memcpy(memory, data, static_cast<std::size_t>(size));
    return memory;
  }
  cairn_str copy_text(cairn_str source) {
    return {static_cast<const char*>(copy_memory(source.data, source.size)), source.size};
  }

  cairn_value copy(const cairn_value& source, int depth) {
    check_depth(depth);
    cairn_value copied{};
    copied.kind = source.kind;
    switch (source.kind) {
      case CAIRN_VALUE_BOOL:
        copied.as.integer = source.as.integer != 0 ? 1 : 0;
        break;
      case CAIRN_VALUE_INT:
        copied.as.integer = source.as.integer;
        break;
      case CAIRN_VALUE_FLOAT:
        copied.as.real = source.as.real;
        break;
      case CAIRN_VALUE_STRING:
        copied.as.string = copy_text(source.as.string);
        break;
      case CAIRN_VALUE_BYTES:
        copied.as.bytes = {copy_memory(source.as.bytes.data, source.as.bytes.size), source.as.bytes.size};
        break;
      case CAIRN_VALUE_TENSOR:
        if (source.as.tensor == nullptr) throw InvalidArgument(std::string(what_) + " has a tensor that is NULL.");
        map_.tensors_.push_back(TensorPtr::retain(Tensor::from_handle(source.as.tensor)));
        copied.as.tensor = source.as.tensor;
        break;
      case CAIRN_VALUE_LIST: {
        check_count(source.as.list.data, source.as.list.count);
        auto* items = allocate<cairn_value>(source.as.list.count);
        for (std::uint64_t i = 0; i < source.as.list.count; ++i) items[i] = copy(source.as.list.data[i], depth + 1);
        copied.as.list = {items, source.as.list.count};
        break;
      }
      case CAIRN_VALUE_MAP:
        copied.as.map = copy(source.as.map, depth + 1);
        break;
      case CAIRN_VALUE_OPAQUE:
        throw NotSupported(std::string(what_) + " holds an opaque object, which only request state may hold.");
      default:
        copied.kind = CAIRN_VALUE_NONE;
    }
    return copied;
  }

  cairn_value copy(const Value& source, int depth) {
    check_depth(depth);
    cairn_value copied{};
    if (const auto* boolean = source.get_if<bool>()) {
      copied.kind = CAIRN_VALUE_BOOL;
      copied.as.integer = *boolean ? 1 : 0;
    } else if (const auto* integer = source.get_if<std::int64_t>()) {
      copied.kind = CAIRN_VALUE_INT;
      copied.as.integer = *integer;
    } else if (const auto* real = source.get_if<double>()) {
      copied.kind = CAIRN_VALUE_FLOAT;
      copied.as.real = *real;
    } else if (const auto* string = source.get_if<std::string>()) {
      copied.kind = CAIRN_VALUE_STRING;
      copied.as.string = copy_text({string->data(), string->size()});
    } else if (const auto* bytes = source.get_if<ValueBytes>()) {
      copied.kind = CAIRN_VALUE_BYTES;
      copied.as.bytes = {copy_memory(bytes->data(), bytes->size()), bytes->size()};
    } else if (const auto* list = source.get_if<ValueList>()) {
      check_count(list->data(), list->size());
      auto* items = allocate<cairn_value>(list->size());
      for (std::size_t i = 0; i < list->size(); ++i) items[i] = copy((*list)[i], depth + 1);
      copied.kind = CAIRN_VALUE_LIST;
      copied.as.list = {items, list->size()};
    } else if (const auto* map = source.get_if<ValueMap>()) {
      copied.kind = CAIRN_VALUE_MAP;
      copied.as.map = copy(*map, depth + 1);
    }
    return copied;
  }

  const char* what_;
  OwnedMap map_;
  std::size_t values_ = 0;
  std::size_t bytes_ = 0;
};

OwnedMap OwnedMap::copy_of(const cairn_map& map, const char* what) {
  if (map.count == 0) return {};
  MapBuilder builder(what);
  const cairn_map view = builder.copy(map, 0);
  return std::move(builder).finish(view);
}

OwnedMap OwnedMap::from_value(const Value& value, const char* what) {
  if (value.is_none()) return {};
  const auto* map = value.get_if<ValueMap>();
  if (map == nullptr) throw InvalidArgument(std::string(what) + " is not a map of names to values.");
  MapBuilder builder(what);
  const cairn_map view = builder.copy(*map, 0);
  return std::move(builder).finish(view);
}

OwnedMap OwnedMap::merged(const cairn_map& base, const cairn_map& overlay, const char* what) {
  MapBuilder builder(what);
  const cairn_map view = builder.merge(base, overlay);
  return std::move(builder).finish(view);
}

const cairn_value* OwnedMap::find(std::string_view key) const noexcept {
  return MapBuilder::find(view_, key);
}

}  // namespace cairn
