// Element types of tensors, plain ones and the block-quantised ones of GGUF, with their sizes.
// Used by the weights readers, the kernels' callers and the tensor views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cairn {

// The numbers are ours and stay inside one process; file formats have their own.
enum class DType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kBool,
  kF8E4M3,
  kF8E5M2,
  // Blocks of 32 elements.
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kIQ4_NL,
  kMXFP4,
  // Blocks of 256 elements.
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ8_K,
  kIQ1_S,
  kIQ1_M,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kIQ4_XS,
  kTQ1_0,
  kTQ2_0,
};

inline constexpr std::size_t kDTypeCount = static_cast<std::size_t>(DType::kTQ2_0) + 1;

struct DTypeInfo {
  std::string_view name;      // as GGUF and safetensors spell it: "F32", "Q4_K", "F8_E4M3"
  std::uint32_t block_size;   // elements per block; 1 for plain types
  std::uint32_t block_bytes;  // bytes per block
};

// Never throws for a value of the enumeration.
const DTypeInfo& dtype_info(DType dtype) noexcept;

inline std::string_view dtype_name(DType dtype) noexcept {
  return dtype_info(dtype).name;
}
inline bool is_block_quantised(DType dtype) noexcept {
  return dtype_info(dtype).block_size > 1;
}

// Product of the dimensions; 1 for a scalar (empty shape). No value when a dimension is negative or the product does
// not fit in 63 bits (as if zero dimensions were absent: [2^40, 2^40, 0] has no value either).
std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) noexcept;

// Bytes of a dense row-major tensor. Blocks run along the last dimension, which must be a multiple of the block size.
// No value when the shape does not fit the type or the size does not fit in 63 bits.
std::optional<std::size_t> checked_nbytes(DType dtype, std::span<const std::int64_t> shape) noexcept;

// The same; throws InvalidArgument instead of returning no value.
std::size_t nbytes(DType dtype, std::span<const std::int64_t> shape);

// "[49152, 576]", for messages.
std::string shape_string(std::span<const std::int64_t> shape);

}  // namespace cairn
