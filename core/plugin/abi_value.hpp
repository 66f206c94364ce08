// cairn::Value to cairn_value (model_kwargs, weights metadata), and reading self-sized ABI structs.
// Used by the weights service, the loader and the conductor's adapter.
#pragma once

#include "cairn/abi.h"
#include "core/base/value.hpp"
#include "core/plugin/arena.hpp"

namespace cairn {

// Copies into the arena, strings included. Throws std::bad_alloc.
cairn_value to_abi_value(const Value& value, Arena& arena);
// The same for a map; a none value gives an empty map. Throws InvalidArgument for any other kind.
cairn_map to_abi_map(const Value& value, Arena& arena);

// How deep lists and maps from a plugin may nest.
inline constexpr int kMaxAbiValueDepth = 64;

// The fields of a self-sized ABI struct that lie inside its struct_size; the rest is zero, which means "not given".
template <class Struct>
Struct read_sized(const Struct* from) noexcept {
  Struct copy{};
  if (from == nullptr) return copy;
  const std::uint64_t size = from->struct_size < sizeof(Struct) ? from->struct_size : sizeof(Struct);
  __builtin_memcpy(static_cast<void*>(&copy), static_cast<const void*>(from), size);
  return copy;
}

}  // namespace cairn
