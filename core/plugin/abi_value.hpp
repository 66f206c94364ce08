// cairn::Value to cairn_value and back: model_kwargs, weights metadata, prompt metadata, chat messages.
// Used by the weights and chat template services and by the runtime's adapters.
#pragma once

#include "cairn/abi.h"
#include "core/base/value.hpp"
#include "core/plugin/arena.hpp"

namespace cairn {

// Copies into the arena, strings included. Throws std::bad_alloc.
cairn_value to_abi_value(const Value& value, Arena& arena);
// The same for a map; a none value gives an empty map. Throws InvalidArgument for any other kind.
cairn_map to_abi_map(const Value& value, Arena& arena);

// Copies out. Unknown kinds read as none. Throws InvalidArgument for tensors and opaque values, for nesting deeper than
// kMaxAbiValueDepth, and for null pointers with a count.
Value from_abi_value(const cairn_value& value);
Value from_abi_map(const cairn_map& map);

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
