// Weight element types with the exact GGUF block layouts, and conversions of half-precision numbers.
// Used by linear, embedding and the weight loaders. All functions are bit-identical on every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::kernels {

enum class WeightType : std::uint8_t { kF32, kF16, kBF16, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ4_K, kQ5_K, kQ6_K };

inline constexpr int kWeightTypeCount = 11;

const char* weight_type_name(WeightType type);
// Elements per block (1 for floats, 32, or 256 for the K types) and bytes per block in the GGUF layout.
int weight_block_size(WeightType type);
int weight_block_bytes(WeightType type);
// Bytes of a row of n elements; a last, partial block counts whole.
std::size_t weight_row_bytes(WeightType type, std::int64_t n);
constexpr bool weight_is_quantised(WeightType type) {
  return type > WeightType::kBF16;
}

// dst[0..n) = the exact f32 values of one row; n need not be a multiple of the block. src needs no alignment.
void dequantize_row(WeightType type, const void* src, std::int64_t n, float* dst);

// Round to nearest even. bf16 keeps NaN a NaN.
float f16_to_f32(std::uint16_t h);
std::uint16_t f32_to_f16(float f);
float bf16_to_f32(std::uint16_t h);
std::uint16_t f32_to_bf16(float f);

}  // namespace cairn::kernels
