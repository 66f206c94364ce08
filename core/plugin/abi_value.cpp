// Copies of cairn::Value in ABI form, in an arena.
#include "core/plugin/abi_value.hpp"

#include <cstring>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"

namespace cairn {

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

}  // namespace cairn
