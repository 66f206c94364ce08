// The 16-lane vector that every kernel is written against, in plain C++. Included once per *_portable.cpp; the AVX2
// and AVX-512 twins offer the same functions with the same results bit for bit.
//
// Everything is in an unnamed namespace, and the kernels use no inline functions of the standard library: code
// compiled for one instruction set must never be merged by the linker with code for another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/types.hpp"

namespace cairn::kernels {
namespace {

// Register blocking of the matrix kernels.
constexpr int kUnrollRows = 1;
constexpr int kUnrollTiles = 1;

struct F {
  float v[16];
};
struct I {
  std::int32_t v[16];
};
struct M {
  bool v[16];
};

#define CAIRN_LANES for (int i = 0; i < 16; ++i)
// Long functions stay calls: inlining them into every unrolled kernel would only cost minutes of compile time.
#define CAIRN_CALL [[gnu::noinline]] inline

inline F zero() {
  return F{};
}
inline F set1(float a) {
  F r;
  CAIRN_LANES r.v[i] = a;
  return r;
}
inline F load(const float* p) {
  F r;
  CAIRN_LANES r.v[i] = p[i];
  return r;
}
inline void store(float* p, const F& a) {
  CAIRN_LANES p[i] = a.v[i];
}
// The first n lanes (0 <= n <= 16); the others read as zero.
CAIRN_CALL F load_n(const float* p, int n) {
  F r;
  CAIRN_LANES r.v[i] = i < n ? p[i] : 0.0F;
  return r;
}
inline void store_n(float* p, const F& a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}
CAIRN_CALL F load_f16(const std::uint16_t* p) {
  F r;
  CAIRN_LANES r.v[i] = f16_to_f32(p[i]);
  return r;
}
CAIRN_CALL F load_bf16(const std::uint16_t* p) {
  F r;
  CAIRN_LANES r.v[i] = bf16_to_f32(p[i]);
  return r;
}
CAIRN_CALL void store_f16(std::uint16_t* p, const F& a) {
  CAIRN_LANES p[i] = f32_to_f16(a.v[i]);
}
inline F add(const F& a, const F& b) {
  F r;
  CAIRN_LANES r.v[i] = a.v[i] + b.v[i];
  return r;
}
inline F sub(const F& a, const F& b) {
  F r;
  CAIRN_LANES r.v[i] = a.v[i] - b.v[i];
  return r;
}
inline F mul(const F& a, const F& b) {
  F r;
  CAIRN_LANES r.v[i] = a.v[i] * b.v[i];
  return r;
}
CAIRN_CALL F div(const F& a, const F& b) {
  F r;
  CAIRN_LANES r.v[i] = a.v[i] / b.v[i];
  return r;
}
// a * b + c with one rounding.
CAIRN_CALL F fma(const F& a, const F& b, const F& c) {
  F r;
  CAIRN_LANES r.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return r;
}
// The second operand where either is NaN, as the x86 instructions.
inline F max(const F& a, const F& b) {
  F r;
  CAIRN_LANES r.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
  return r;
}
inline F min(const F& a, const F& b) {
  F r;
  CAIRN_LANES r.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
  return r;
}
inline F abs(const F& a) {
  F r;
  CAIRN_LANES r.v[i] = __builtin_fabsf(a.v[i]);
  return r;
}
inline F copysign(const F& magnitude, const F& sign) {
  F r;
  CAIRN_LANES r.v[i] = __builtin_copysignf(magnitude.v[i], sign.v[i]);
  return r;
}
inline M less(const F& a, const F& b) {
  M r;
  CAIRN_LANES r.v[i] = a.v[i] < b.v[i];
  return r;
}
// Lanes [from, to).
inline M lane_range(int from, int to) {
  M r;
  CAIRN_LANES r.v[i] = i >= from && i < to;
  return r;
}
inline F select(const M& m, const F& a, const F& b) {
  F r;
  CAIRN_LANES r.v[i] = m.v[i] ? a.v[i] : b.v[i];
  return r;
}
// Nearest even; NaN and what int32 cannot hold give INT32_MIN.
CAIRN_CALL I to_int(const F& a) {
  I r;
  CAIRN_LANES r.v[i] =
      __builtin_fabsf(a.v[i]) < 2147483648.0F ? static_cast<std::int32_t>(__builtin_rintf(a.v[i])) : INT32_MIN;
  return r;
}
inline F to_float(const I& a) {
  F r;
  CAIRN_LANES r.v[i] = static_cast<float>(a.v[i]);
  return r;
}
// a * 2^n for n in [-252, 254], rounded once even where the result is denormal.
CAIRN_CALL F scale_by_power(const F& a, const I& n) {
  F r;
  CAIRN_LANES r.v[i] = __builtin_scalbnf(a.v[i], n.v[i]);
  return r;
}
// Lane i + lane i + 8, then 4, 2, 1: the one summing tree of all kernels.
CAIRN_CALL float reduce_add(const F& a) {
  float t[8];
  for (int i = 0; i < 8; ++i) t[i] = a.v[i] + a.v[i + 8];
  for (int i = 0; i < 4; ++i) t[i] = t[i] + t[i + 4];
  return (t[0] + t[2]) + (t[1] + t[3]);
}
inline float reduce_max(const F& a) {
  float m = a.v[0];
  for (int i = 1; i < 16; ++i) m = a.v[i] > m ? a.v[i] : m;
  return m;
}
// The largest bit pattern of |x| as an integer: NaN and infinity compare above every number.
inline I abs_bits(const F& a) {
  I r;
  __builtin_memcpy(r.v, a.v, sizeof r.v);
  CAIRN_LANES r.v[i] &= 0x7FFFFFFF;
  return r;
}
inline I max(const I& a, const I& b) {
  I r;
  CAIRN_LANES r.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
  return r;
}
inline std::int32_t reduce_max(const I& a) {
  std::int32_t m = a.v[0];
  for (int i = 1; i < 16; ++i) m = a.v[i] > m ? a.v[i] : m;
  return m;
}
inline std::int32_t reduce_add(const I& a) {
  std::int32_t s = 0;
  CAIRN_LANES s += a.v[i];
  return s;
}
inline I add(const I& a, const I& b) {
  I r;
  CAIRN_LANES r.v[i] = a.v[i] + b.v[i];
  return r;
}
CAIRN_CALL F load_i8(const std::int8_t* p) {
  F r;
  CAIRN_LANES r.v[i] = static_cast<float>(p[i]);
  return r;
}
CAIRN_CALL F load_u8(const std::uint8_t* p) {
  F r;
  CAIRN_LANES r.v[i] = static_cast<float>(p[i]);
  return r;
}

// 64 unsigned bytes: 16 outputs by 4 inputs.
struct W {
  std::uint8_t v[64];
};
inline W load_w(const std::uint8_t* p) {
  W r;
  __builtin_memcpy(r.v, p, 64);
  return r;
}
CAIRN_CALL W low_nibbles(const W& a) {
  W r;
  for (int i = 0; i < 64; ++i) r.v[i] = a.v[i] & 15;
  return r;
}
CAIRN_CALL W high_nibbles(const W& a) {
  W r;
  for (int i = 0; i < 64; ++i) r.v[i] = a.v[i] >> 4;
  return r;
}
// low | ((bits moved so that bit `From` of each byte lands on bit 4) & Mask)
template <int From, int Mask>
CAIRN_CALL W or_bits(const W& low, const W& bits) {
  W r;
  for (int i = 0; i < 64; ++i) {
    const int moved = From <= 4 ? bits.v[i] << (4 - From) : bits.v[i] >> (From - 4);
    r.v[i] = static_cast<std::uint8_t>(low.v[i] | (moved & Mask));
  }
  return r;
}

// Activations of one 32-block as 16-bit integers in k order.
CAIRN_CALL void store_activations(std::uint8_t* q, const I& first, const I& second) {
  std::int16_t t[32];
  CAIRN_LANES t[i] = static_cast<std::int16_t>(first.v[i]);
  CAIRN_LANES t[16 + i] = static_cast<std::int16_t>(second.v[i]);
  __builtin_memcpy(q, t, sizeof t);
}

// Sums of 16 outputs over inputs taken four at a time.
struct Dot {
  I sum;
};
// Starts at -(block_sum << shift): the weights are stored with an offset of 1 << shift.
template <int Shift>
inline Dot dot_start(std::int32_t block_sum) {
  Dot d;
  CAIRN_LANES d.sum.v[i] = Shift < 0 ? 0 : -(block_sum << (Shift < 0 ? 0 : Shift));
  return d;
}
CAIRN_CALL void dot_step(Dot& d, const W& w, const std::uint8_t* q, int group) {
  std::int16_t x[4];
  __builtin_memcpy(x, q + group * 8, sizeof x);
  CAIRN_LANES d.sum.v[i] += w.v[4 * i] * x[0] + w.v[4 * i + 1] * x[1] + w.v[4 * i + 2] * x[2] + w.v[4 * i + 3] * x[3];
}
inline I dot_total(const Dot& d) {
  return d.sum;
}

#undef CAIRN_CALL
#undef CAIRN_LANES

}  // namespace
}  // namespace cairn::kernels
