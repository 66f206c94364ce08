// The two directions between cairn::Value and cairn_value.
#include "core/plugin/abi_value.hpp"

#include <cstring>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"

namespace cairn {

namespace {

Value from_abi(const cairn_value& value, int depth);

ValueMap map_from_abi(const cairn_map& map, int depth) {
  if (map.data == nullptr && map.count != 0) {
    throw InvalidArgument("A map of the plugin has entries but no memory; its data pointer is NULL.");
  }
  Value result{ValueMap{}};
  for (std::uint64_t i = 0; i < map.count; ++i) {
    result.set(from_abi_str(map.data[i].key), from_abi(map.data[i].value, depth + 1));
  }
  return std::move(*result.get_if<ValueMap>());
}

Value from_abi(const cairn_value& value, int depth) {
  if (depth > kMaxAbiValueDepth) throw InvalidArgument("A value of the plugin nests deeper than 64 lists and maps.");
  switch (value.kind) {
    case CAIRN_VALUE_BOOL:
      return Value(value.as.integer != 0);
    case CAIRN_VALUE_INT:
      return Value(value.as.integer);
    case CAIRN_VALUE_FLOAT:
      return Value(value.as.real);
    case CAIRN_VALUE_STRING:
      return Value(from_abi_str(value.as.string));
    case CAIRN_VALUE_BYTES: {
      if (value.as.bytes.data == nullptr && value.as.bytes.size != 0) {
        throw InvalidArgument("Bytes of the plugin have a size but no memory; their data pointer is NULL.");
      }
      const auto* data = static_cast<const std::byte*>(value.as.bytes.data);
      return Value(ValueBytes(data, data + value.as.bytes.size));
    }
    case CAIRN_VALUE_LIST: {
      if (value.as.list.data == nullptr && value.as.list.count != 0) {
        throw InvalidArgument("A list of the plugin has elements but no memory; its data pointer is NULL.");
      }
      ValueList list;
      for (std::uint64_t i = 0; i < value.as.list.count; ++i) {
        list.push_back(from_abi(value.as.list.data[i], depth + 1));
      }
      return Value(std::move(list));
    }
    case CAIRN_VALUE_MAP:
      return Value(map_from_abi(value.as.map, depth));
    case CAIRN_VALUE_TENSOR:
      throw InvalidArgument("A tensor cannot be passed where plain configuration values are expected.");
    case CAIRN_VALUE_OPAQUE:
      throw InvalidArgument("A plugin's opaque object cannot be passed where plain configuration values are expected.");
    default:
      return Value();
  }
}

}  // namespace

cairn_value to_abi_value(const Value& value, Arena& arena) {
  cairn_value out{};
  std::visit(
      [&](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, bool>) {
          out.kind = CAIRN_VALUE_BOOL;
          out.as.integer = held ? 1 : 0;
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          out.kind = CAIRN_VALUE_INT;
          out.as.integer = held;
        } else if constexpr (std::is_same_v<T, double>) {
          out.kind = CAIRN_VALUE_FLOAT;
          out.as.real = held;
        } else if constexpr (std::is_same_v<T, std::string>) {
          out.kind = CAIRN_VALUE_STRING;
          out.as.string = arena.copy(to_abi_str(held));
        } else if constexpr (std::is_same_v<T, ValueBytes>) {
          out.kind = CAIRN_VALUE_BYTES;
          auto* data = arena.array<std::byte>(held.size());
          if (!held.empty()) std::memcpy(data, held.data(), held.size());
          out.as.bytes = {data, held.size()};
        } else if constexpr (std::is_same_v<T, ValueList>) {
          out.kind = CAIRN_VALUE_LIST;
          auto* data = arena.array<cairn_value>(held.size());
          for (std::size_t i = 0; i < held.size(); ++i) data[i] = to_abi_value(held[i], arena);
          out.as.list = {data, held.size()};
        } else if constexpr (std::is_same_v<T, ValueMap>) {
          out.kind = CAIRN_VALUE_MAP;
          out.as.map = to_abi_map(value, arena);
        }
      },
      value.storage());
  return out;
}

cairn_map to_abi_map(const Value& value, Arena& arena) {
  if (value.is_none()) return {nullptr, 0};
  const auto* map = value.get_if<ValueMap>();
  if (map == nullptr) throw InvalidArgument("A map of names and values is expected here, and this is another kind.");
  auto* data = arena.array<cairn_entry>(map->size());
  for (std::size_t i = 0; i < map->size(); ++i) {
    data[i].key = arena.copy(to_abi_str((*map)[i].first));
    data[i].value = to_abi_value((*map)[i].second, arena);
  }
  return {data, map->size()};
}

Value from_abi_value(const cairn_value& value) {
  return from_abi(value, 0);
}

Value from_abi_map(const cairn_map& map) {
  return Value(map_from_abi(map, 0));
}

}  // namespace cairn
