// Half-precision conversions and the exact GGUF block decoders; see types.hpp. Portable code only: decoding happens
// at pack time and for embedding rows.
#include "kernels/cpu/types.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cairn::kernels {
namespace {

struct TypeInfo {
  const char* name;
  int block_size;
  int block_bytes;
};

constexpr TypeInfo kTypes[kWeightTypeCount] = {
    {"F32", 1, 4},    {"F16", 1, 2},    {"BF16", 1, 2},     {"Q4_0", 32, 18},   {"Q4_1", 32, 20},  {"Q5_0", 32, 22},
    {"Q5_1", 32, 24}, {"Q8_0", 32, 34}, {"Q4_K", 256, 144}, {"Q5_K", 256, 176}, {"Q6_K", 256, 210}};

std::uint16_t load16(const std::uint8_t* p) {
  std::uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
float load_half(const std::uint8_t* p) {
  return f16_to_f32(load16(p));
}

// The 6-bit scale and minimum number j of the 12 packed bytes of Q4_K and Q5_K.
void scale_min_k(const std::uint8_t* s, int j, int& scale, int& min) {
  if (j < 4) {
    scale = s[j] & 63;
    min = s[j + 4] & 63;
  } else {
    scale = (s[j + 4] & 15) | ((s[j - 4] >> 6) << 4);
    min = (s[j + 4] >> 4) | ((s[j] >> 6) << 4);
  }
}

void decode_q4(const std::uint8_t* block, bool with_min, float* dst) {
  const float d = load_half(block);
  const float m = with_min ? load_half(block + 2) : 0.0F;
  const std::uint8_t* q = block + (with_min ? 4 : 2);
  for (int i = 0; i < 32; ++i) {
    const int v = i < 16 ? q[i] & 15 : q[i - 16] >> 4;
    dst[i] = with_min ? d * static_cast<float>(v) + m : d * static_cast<float>(v - 8);
  }
}

void decode_q5(const std::uint8_t* block, bool with_min, float* dst) {
  const float d = load_half(block);
  const float m = with_min ? load_half(block + 2) : 0.0F;
  const std::uint8_t* high = block + (with_min ? 4 : 2);
  const std::uint8_t* q = high + 4;
  for (int i = 0; i < 32; ++i) {
    const int v = (i < 16 ? q[i] & 15 : q[i - 16] >> 4) | (((high[i / 8] >> (i % 8)) & 1) << 4);
    dst[i] = with_min ? d * static_cast<float>(v) + m : d * static_cast<float>(v - 16);
  }
}

void decode_q8_0(const std::uint8_t* block, float* dst) {
  const float d = load_half(block);
  for (int i = 0; i < 32; ++i) dst[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
}

// Q4_K and Q5_K: 8 sub-blocks of 32, value = d * scale * q - dmin * min.
void decode_q45_k(const std::uint8_t* block, bool five, float* dst) {
  const float d = load_half(block);
  const float dmin = load_half(block + 2);
  const std::uint8_t* high = block + 16;
  const std::uint8_t* q = block + (five ? 48 : 16);
  for (int j = 0; j < 8; ++j) {
    int scale = 0;
    int min = 0;
    scale_min_k(block + 4, j, scale, min);
    const float ds = d * static_cast<float>(scale);
    const float ms = dmin * static_cast<float>(min);
    for (int i = 0; i < 32; ++i) {
      int v = (q[(j / 2) * 32 + i] >> ((j % 2) * 4)) & 15;
      if (five) v |= ((high[i] >> j) & 1) << 4;
      dst[j * 32 + i] = ds * static_cast<float>(v) - ms;
    }
  }
}

// Q6_K: 16 sub-blocks of 16 with signed 8-bit scales, value = d * scale * (q - 32).
void decode_q6_k(const std::uint8_t* block, float* dst) {
  const std::uint8_t* scales = block + 192;
  const float d = load_half(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int quarter = (i % 128) / 32;
    const int l = i % 32;
    const int low = block[half * 64 + (quarter % 2) * 32 + l] >> ((quarter / 2) * 4);
    const int high = block[128 + half * 32 + l] >> (quarter * 2);
    const int v = ((low & 15) | ((high & 3) << 4)) - 32;
    dst[i] = d * static_cast<float>(static_cast<std::int8_t>(scales[i / 16])) * static_cast<float>(v);
  }
}

void decode_block(WeightType type, const std::uint8_t* block, float* dst) {
  switch (type) {
    case WeightType::kF32:
      std::memcpy(dst, block, 4);
      break;
    case WeightType::kF16:
      *dst = load_half(block);
      break;
    case WeightType::kBF16:
      *dst = bf16_to_f32(load16(block));
      break;
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
      decode_q4(block, type == WeightType::kQ4_1, dst);
      break;
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
      decode_q5(block, type == WeightType::kQ5_1, dst);
      break;
    case WeightType::kQ8_0:
      decode_q8_0(block, dst);
      break;
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
      decode_q45_k(block, type == WeightType::kQ5_K, dst);
      break;
    case WeightType::kQ6_K:
      decode_q6_k(block, dst);
      break;
  }
}

}  // namespace

const char* weight_type_name(WeightType type) {
  return kTypes[static_cast<int>(type)].name;
}
int weight_block_size(WeightType type) {
  return kTypes[static_cast<int>(type)].block_size;
}
int weight_block_bytes(WeightType type) {
  return kTypes[static_cast<int>(type)].block_bytes;
}

std::size_t weight_row_bytes(WeightType type, std::int64_t n) {
  const std::int64_t size = weight_block_size(type);
  return static_cast<std::size_t>(n / size + (n % size != 0)) * static_cast<std::size_t>(weight_block_bytes(type));
}

void dequantize_row(WeightType type, const void* src, std::int64_t n, float* dst) {
  const auto* p = static_cast<const std::uint8_t*>(src);
  if (type == WeightType::kF32) {
    std::memcpy(dst, p, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  const int size = weight_block_size(type);
  const int bytes = weight_block_bytes(type);
  std::int64_t i = 0;
  for (; i + size <= n; i += size, p += bytes) decode_block(type, p, dst + i);
  if (i < n) {
    float last[256];
    decode_block(type, p, last);
    std::copy(last, last + (n - i), dst + i);
  }
}

float f16_to_f32(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000U) << 16;
  const std::uint32_t exponent = (h >> 10) & 31U;
  const std::uint32_t mantissa = h & 0x3FFU;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13) | (mantissa != 0 ? 0x400000U : 0U));
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
}

std::uint16_t f32_to_f16(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU));
  if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // rounds to 65536 or more
  if (magnitude < 0x38800000U) {  // below 2^-14: the addition rounds to a multiple of 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
  }
  const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112U << 10)));
}

float bf16_to_f32(std::uint16_t h) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16);
}

std::uint16_t f32_to_bf16(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace cairn::kernels
