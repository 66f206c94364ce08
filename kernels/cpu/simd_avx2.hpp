// The AVX2 + FMA + F16C twin of simd_portable.hpp: one 16-lane vector is two registers. Included once per *_avx2.cpp.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace cairn::kernels {
namespace {

// Register blocking of the matrix kernels.
constexpr int kUnrollRows = 2;
constexpr int kUnrollTiles = 1;

struct F {
  __m256 a, b;
};
struct I {
  __m256i a, b;
};
struct M {
  __m256 a, b;
};

inline F zero() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
inline F set1(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline F load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline void store(float* p, const F& x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
inline M lane_range(int from, int to) {
  const __m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i high = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
  const __m256i below = _mm256_set1_epi32(from - 1);
  const __m256i end = _mm256_set1_epi32(to);
  return {_mm256_castsi256_ps(_mm256_and_si256(_mm256_cmpgt_epi32(low, below), _mm256_cmpgt_epi32(end, low))),
          _mm256_castsi256_ps(_mm256_and_si256(_mm256_cmpgt_epi32(high, below), _mm256_cmpgt_epi32(end, high)))};
}
inline F load_n(const float* p, int n) {
  const M m = lane_range(0, n);
  return {_mm256_maskload_ps(p, _mm256_castps_si256(m.a)), _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.b))};
}
inline void store_n(float* p, const F& x, int n) {
  const M m = lane_range(0, n);
  _mm256_maskstore_ps(p, _mm256_castps_si256(m.a), x.a);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.b), x.b);
}
inline F load_f16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
inline F load_bf16(const std::uint16_t* p) {
  const __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))};
}
inline void store_f16(std::uint16_t* p, const F& x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}
inline F add(const F& x, const F& y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
inline F sub(const F& x, const F& y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
inline F mul(const F& x, const F& y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
inline F div(const F& x, const F& y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
inline F fma(const F& x, const F& y, const F& z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline F max(const F& x, const F& y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
inline F min(const F& x, const F& y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
inline F abs(const F& x) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
inline F copysign(const F& magnitude, const F& s) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  return {_mm256_or_ps(_mm256_andnot_ps(sign, magnitude.a), _mm256_and_ps(sign, s.a)),
          _mm256_or_ps(_mm256_andnot_ps(sign, magnitude.b), _mm256_and_ps(sign, s.b))};
}
inline M less(const F& x, const F& y) {
  return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)};
}
inline F select(const M& m, const F& x, const F& y) {
  return {_mm256_blendv_ps(y.a, x.a, m.a), _mm256_blendv_ps(y.b, x.b, m.b)};
}
inline I to_int(const F& x) {
  return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)};
}
inline F to_float(const I& x) {
  return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}
// Two exact-or-final multiplications: the first factor keeps the value normal, so rounding happens once.
inline __m256 scale_half(__m256 x, __m256i n) {
  const __m256i first = _mm256_srai_epi32(n, 1);
  const __m256i second = _mm256_sub_epi32(n, first);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256 f1 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(first, bias), 23));
  const __m256 f2 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(second, bias), 23));
  return _mm256_mul_ps(_mm256_mul_ps(x, f1), f2);
}
inline F scale_by_power(const F& x, const I& n) {
  return {scale_half(x.a, n.a), scale_half(x.b, n.b)};
}
inline float reduce_add(const F& x) {
  const __m256 t = _mm256_add_ps(x.a, x.b);
  const __m128 u = _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));
  const __m128 w = _mm_add_ps(u, _mm_movehl_ps(u, u));
  return _mm_cvtss_f32(_mm_add_ss(w, _mm_shuffle_ps(w, w, 1)));
}
inline float reduce_max(const F& x) {
  const __m256 t = _mm256_max_ps(x.a, x.b);
  const __m128 u = _mm_max_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));
  const __m128 w = _mm_max_ps(u, _mm_movehl_ps(u, u));
  return _mm_cvtss_f32(_mm_max_ss(w, _mm_shuffle_ps(w, w, 1)));
}
inline I abs_bits(const F& x) {
  const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
  return {_mm256_and_si256(_mm256_castps_si256(x.a), mask), _mm256_and_si256(_mm256_castps_si256(x.b), mask)};
}
inline I max(const I& x, const I& y) {
  return {_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)};
}
inline I add(const I& x, const I& y) {
  return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
inline std::int32_t reduce_max(const I& x) {
  const __m256i t = _mm256_max_epi32(x.a, x.b);
  __m128i u = _mm_max_epi32(_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1));
  u = _mm_max_epi32(u, _mm_shuffle_epi32(u, 0x4E));
  u = _mm_max_epi32(u, _mm_shuffle_epi32(u, 0xB1));
  return _mm_cvtsi128_si32(u);
}
inline std::int32_t reduce_add(const I& x) {
  const __m256i t = _mm256_add_epi32(x.a, x.b);
  __m128i u = _mm_add_epi32(_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1));
  u = _mm_add_epi32(u, _mm_shuffle_epi32(u, 0x4E));
  u = _mm_add_epi32(u, _mm_shuffle_epi32(u, 0xB1));
  return _mm_cvtsi128_si32(u);
}
inline F load_i8(const std::int8_t* p) {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(v, 8)))};
}
inline F load_u8(const std::uint8_t* p) {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v)), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(v, 8)))};
}

struct W {
  __m256i a, b;
};
inline W load_w(const std::uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
inline W low_nibbles(const W& x) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(x.a, mask), _mm256_and_si256(x.b, mask)};
}
inline W high_nibbles(const W& x) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(_mm256_srli_epi16(x.a, 4), mask), _mm256_and_si256(_mm256_srli_epi16(x.b, 4), mask)};
}
template <int From>
inline __m256i move_bits(__m256i x) {
  if constexpr (From <= 4) {
    return _mm256_slli_epi16(x, 4 - From);
  } else {
    return _mm256_srli_epi16(x, From - 4);
  }
}
template <int From, int Mask>
inline W or_bits(const W& low, const W& bits) {
  const __m256i mask = _mm256_set1_epi8(Mask);
  return {_mm256_or_si256(low.a, _mm256_and_si256(move_bits<From>(bits.a), mask)),
          _mm256_or_si256(low.b, _mm256_and_si256(move_bits<From>(bits.b), mask))};
}

// 16-bit integers, each group of four stored as k0 k2 k1 k3: the order in which a 16-bit lane of weights splits.
inline void store_activations(std::uint8_t* q, const I& first, const I& second) {
  const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15,  //
                                         0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
  const __m256i x = _mm256_permute4x64_epi64(_mm256_packs_epi32(first.a, first.b), 0xD8);
  const __m256i y = _mm256_permute4x64_epi64(_mm256_packs_epi32(second.a, second.b), 0xD8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), _mm256_shuffle_epi8(x, order));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + 32), _mm256_shuffle_epi8(y, order));
}

struct Dot {
  __m256i a, b;
};
template <int Shift>
inline Dot dot_start(std::int32_t block_sum) {
  if constexpr (Shift < 0) {
    (void)block_sum;
    return {_mm256_setzero_si256(), _mm256_setzero_si256()};
  } else {
    const __m256i v = _mm256_set1_epi32(-(block_sum << Shift));
    return {v, v};
  }
}
inline __m256i dot_half(__m256i sum, __m256i w, __m256i even_x, __m256i odd_x) {
  const __m256i even = _mm256_and_si256(w, _mm256_set1_epi16(255));
  const __m256i odd = _mm256_srli_epi16(w, 8);
  return _mm256_add_epi32(sum, _mm256_add_epi32(_mm256_madd_epi16(even, even_x), _mm256_madd_epi16(odd, odd_x)));
}
inline void dot_step(Dot& d, const W& w, const std::uint8_t* q, int group) {
  std::int32_t pair[2];
  __builtin_memcpy(pair, q + group * 8, sizeof pair);
  const __m256i even_x = _mm256_set1_epi32(pair[0]);
  const __m256i odd_x = _mm256_set1_epi32(pair[1]);
  d.a = dot_half(d.a, w.a, even_x, odd_x);
  d.b = dot_half(d.b, w.b, even_x, odd_x);
}
inline I dot_total(const Dot& d) {
  return {d.a, d.b};
}

}  // namespace
}  // namespace cairn::kernels
