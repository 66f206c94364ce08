// The type numbers of the GGUF format. Used by its parser and by GgufFile's messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/tensor/dtype.hpp"

namespace cairn {

// Of metadata values; the numbers are the format's.
enum class GgufValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

std::string_view gguf_value_type_name(GgufValueType type);

// Bytes of a number or boolean; 0 for strings and arrays.
std::size_t gguf_scalar_size(GgufValueType type);

// The element type behind a tensor's type number. Numbers that were never published or have been withdrawn have none.
std::optional<DType> gguf_tensor_dtype(std::uint32_t number);

}  // namespace cairn
