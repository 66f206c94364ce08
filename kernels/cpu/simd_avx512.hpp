// The AVX-512 (F, BW, VL, DQ, VNNI) twin of simd_portable.hpp. Included once per *_avx512.cpp.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace cairn::kernels {
namespace {

// Register blocking of the matrix kernels.
constexpr int kUnrollRows = 4;
constexpr int kUnrollTiles = 2;

using F = __m512;
using M = __mmask16;
struct I {
  __m512i v;
};

inline F zero() {
  return _mm512_setzero_ps();
}
inline F set1(float x) {
  return _mm512_set1_ps(x);
}
inline F load(const float* p) {
  return _mm512_loadu_ps(p);
}
inline void store(float* p, F x) {
  _mm512_storeu_ps(p, x);
}
inline M first_lanes(int n) {
  return static_cast<M>((1U << n) - 1U);
}
inline M lane_range(int from, int to) {
  const int end = to < 0 ? 0 : (to > 16 ? 16 : to);
  const int begin = from < 0 ? 0 : (from > end ? end : from);
  return static_cast<M>(first_lanes(end) & ~first_lanes(begin));
}
inline F load_n(const float* p, int n) {
  return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
inline void store_n(float* p, F x, int n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), x);
}
inline F load_f16(const std::uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline F load_bf16(const std::uint16_t* p) {
  const __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
}
inline void store_f16(std::uint16_t* p, F x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
inline F add(F x, F y) {
  return _mm512_add_ps(x, y);
}
inline F sub(F x, F y) {
  return _mm512_sub_ps(x, y);
}
inline F mul(F x, F y) {
  return _mm512_mul_ps(x, y);
}
inline F div(F x, F y) {
  return _mm512_div_ps(x, y);
}
inline F fma(F x, F y, F z) {
  return _mm512_fmadd_ps(x, y, z);
}
inline F max(F x, F y) {
  return _mm512_max_ps(x, y);
}
inline F min(F x, F y) {
  return _mm512_min_ps(x, y);
}
inline F abs(F x) {
  return _mm512_abs_ps(x);
}
inline F copysign(F magnitude, F sign) {
  const __m512 mask = _mm512_set1_ps(-0.0F);
  return _mm512_or_ps(_mm512_andnot_ps(mask, magnitude), _mm512_and_ps(mask, sign));
}
inline M less(F x, F y) {
  return _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ);
}
inline F select(M m, F x, F y) {
  return _mm512_mask_blend_ps(m, y, x);
}
inline I to_int(F x) {
  return {_mm512_cvtps_epi32(x)};
}
inline F to_float(I x) {
  return _mm512_cvtepi32_ps(x.v);
}
inline F scale_by_power(F x, I n) {
  return _mm512_scalef_ps(x, _mm512_cvtepi32_ps(n.v));
}
inline float reduce_add(F x) {
  const __m256 t = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  const __m128 u = _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));
  const __m128 w = _mm_add_ps(u, _mm_movehl_ps(u, u));
  return _mm_cvtss_f32(_mm_add_ss(w, _mm_shuffle_ps(w, w, 1)));
}
inline float reduce_max(F x) {
  return _mm512_reduce_max_ps(x);
}
inline I abs_bits(F x) {
  return {_mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF))};
}
inline I max(I x, I y) {
  return {_mm512_max_epi32(x.v, y.v)};
}
inline I add(I x, I y) {
  return {_mm512_add_epi32(x.v, y.v)};
}
inline std::int32_t reduce_max(I x) {
  return _mm512_reduce_max_epi32(x.v);
}
inline std::int32_t reduce_add(I x) {
  return _mm512_reduce_add_epi32(x.v);
}
inline F load_i8(const std::int8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline F load_u8(const std::uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

using W = __m512i;
inline W load_w(const std::uint8_t* p) {
  return _mm512_loadu_si512(p);
}
inline W low_nibbles(W x) {
  return _mm512_and_si512(x, _mm512_set1_epi8(15));
}
inline W high_nibbles(W x) {
  return _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15));
}
template <int From, int Mask>
inline W or_bits(W low, W bits) {
  const __m512i mask = _mm512_set1_epi8(Mask);
  const __m512i moved =
      From <= 4 ? _mm512_slli_epi16(bits, From <= 4 ? 4 - From : 0) : _mm512_srli_epi16(bits, From > 4 ? From - 4 : 0);
  return _mm512_ternarylogic_epi64(low, moved, mask, 0xF8);  // low | (moved & mask)
}

// 16-bit integers split into 32 high bytes and 32 low bytes, q = 256 * high + low, both signed: VPDPBUSD then
// multiplies them with unsigned weight bytes, and no weight has to be widened.
inline void store_activations(std::uint8_t* q, I first, I second) {
  const __m512i x =
      _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(first.v)), _mm512_cvtepi32_epi16(second.v), 1);
  const __m512i high = _mm512_srai_epi16(_mm512_add_epi16(x, _mm512_set1_epi16(128)), 8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), _mm512_cvtepi16_epi8(high));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + 32), _mm512_cvtepi16_epi8(x));
}

struct Dot {
  __m512i high, low;
};
template <int Shift>
inline Dot dot_start(std::int32_t block_sum) {
  if constexpr (Shift < 0) {
    (void)block_sum;
    return {_mm512_setzero_si512(), _mm512_setzero_si512()};
  } else {
    return {_mm512_setzero_si512(), _mm512_set1_epi32(-(block_sum << Shift))};
  }
}
inline void dot_step(Dot& d, W w, const std::uint8_t* q, int group) {
  std::int32_t high;
  std::int32_t low;
  __builtin_memcpy(&high, q + group * 4, sizeof high);
  __builtin_memcpy(&low, q + 32 + group * 4, sizeof low);
  d.high = _mm512_dpbusd_epi32(d.high, w, _mm512_set1_epi32(high));
  d.low = _mm512_dpbusd_epi32(d.low, w, _mm512_set1_epi32(low));
}
inline I dot_total(const Dot& d) {
  return {_mm512_add_epi32(_mm512_slli_epi32(d.high, 8), d.low)};
}

}  // namespace
}  // namespace cairn::kernels
