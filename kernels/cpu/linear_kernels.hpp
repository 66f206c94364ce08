// The matrix kernels, written once on the 16-lane vectors of simd_*.hpp; include one of those first.
//
// Every output has one float accumulator that takes the 32-blocks in increasing k order, whatever the numbers of rows
// and tiles in flight: that is the promise of batch invariance.
#pragma once

#include "kernels/cpu/dispatch.hpp"

namespace cairn::kernels {
namespace {

template <class T>
inline T read(const std::uint8_t* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline const std::uint16_t* halves(const std::uint8_t* p) {
  return reinterpret_cast<const std::uint16_t*>(p);
}

// What a block type must say: bits per code, the log2 of the code offset (-1: none), and its scales. Sums are taken
// over kSub inputs, each with its own scale d and, with kMin, a float m that multiplies the activation sum.
template <int Bits, int OffsetShift>
struct Simple {
  static constexpr int kBits = Bits;
  static constexpr int kShift = OffsetShift;
  static constexpr int kSub = 32;
  static constexpr bool kMin = false;
  static inline void scales(const std::uint8_t* tile, std::int64_t block, int, F& d, F&) {
    d = load_f16(halves(tile + block * 32));
  }
};
template <int Bits>
struct WithMin {
  static constexpr int kBits = Bits;
  static constexpr int kShift = -1;
  static constexpr int kSub = 32;
  static constexpr bool kMin = true;
  static inline void scales(const std::uint8_t* tile, std::int64_t block, int, F& d, F& m) {
    d = load_f16(halves(tile + block * 64));
    m = load_f16(halves(tile + block * 64 + 32));
  }
};
// d * scale and dmin * min are exact in f32: 11 by 6 significant bits.
template <int Bits>
struct SuperMin {
  static constexpr int kBits = Bits;
  static constexpr int kShift = -1;
  static constexpr int kSub = 32;
  static constexpr bool kMin = true;
  static inline void scales(const std::uint8_t* tile, std::int64_t block, int, F& d, F& m) {
    const std::uint8_t* super = tile + (block / 8) * 320;
    const std::uint8_t* sub = super + 64 + (block % 8) * 16;
    d = mul(load_f16(halves(super)), load_u8(sub));
    m = sub_from_zero(mul(load_f16(halves(super + 32)), load_u8(sub + 128)));
  }
  static inline F sub_from_zero(F x) { return sub(zero(), x); }
};
struct Super6 {
  static constexpr int kBits = 6;
  static constexpr int kShift = 5;
  static constexpr int kSub = 16;
  static constexpr bool kMin = false;
  static inline void scales(const std::uint8_t* tile, std::int64_t block, int half, F& d, F&) {
    const std::uint8_t* super = tile + (block / 8) * 288;
    const std::uint8_t* sub = super + 32 + ((block % 8) * 2 + half) * 16;
    d = mul(load_f16(halves(super)), load_i8(reinterpret_cast<const std::int8_t*>(sub)));
  }
};

template <WeightType Type>
struct FormatOf;
template <>
struct FormatOf<WeightType::kQ4_0> : Simple<4, 3> {};
template <>
struct FormatOf<WeightType::kQ4_1> : WithMin<4> {};
template <>
struct FormatOf<WeightType::kQ5_0> : Simple<5, 4> {};
template <>
struct FormatOf<WeightType::kQ5_1> : WithMin<5> {};
template <>
struct FormatOf<WeightType::kQ8_0> : Simple<8, 7> {};
template <>
struct FormatOf<WeightType::kQ4_K> : SuperMin<4> {};
template <>
struct FormatOf<WeightType::kQ5_K> : SuperMin<5> {};
template <>
struct FormatOf<WeightType::kQ6_K> : Super6 {};

// Groups 2 * Pair and 2 * Pair + 1 of a block's codes.
template <int Bits, int Pair>
inline void load_groups(const std::uint8_t* codes, W& even, W& odd) {
  if constexpr (Bits == 8) {
    even = load_w(codes + Pair * 128);
    odd = load_w(codes + Pair * 128 + 64);
  } else {
    const W nibbles = load_w(codes + Pair * 64);
    even = low_nibbles(nibbles);
    odd = high_nibbles(nibbles);
    if constexpr (Bits == 5) {
      const W bits = load_w(codes + 256);
      even = or_bits<2 * Pair, 0x10>(even, bits);
      odd = or_bits<2 * Pair + 1, 0x10>(odd, bits);
    } else if constexpr (Bits == 6) {
      const W bits = load_w(codes + 256 + (Pair / 2) * 64);
      even = or_bits<(Pair % 2) * 4, 0x30>(even, bits);
      odd = or_bits<(Pair % 2) * 4 + 2, 0x30>(odd, bits);
    }
  }
}

template <class Format, int Rows, int Tiles, int Pair>
inline void dot_pair(Dot (&dot)[Rows][Tiles], const std::uint8_t* const (&codes)[Tiles],
                     const ActivationBlock* const (&x)[Rows]) {
  W even[Tiles];
  W odd[Tiles];
#pragma GCC unroll 8
  for (int t = 0; t < Tiles; ++t) load_groups<Format::kBits, Pair>(codes[t], even[t], odd[t]);
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < Tiles; ++t) dot_step(dot[r][t], even[t], x[r]->q, 2 * Pair);
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < Tiles; ++t) dot_step(dot[r][t], odd[t], x[r]->q, 2 * Pair + 1);
  }
}

// One run of kSub inputs of one block: integer sums, then one float step per output.
template <class Format, int Rows, int Tiles, int Half>
inline void block_step(F (&acc)[Rows][Tiles], const std::uint8_t* const (&tile)[Tiles],
                       const std::uint8_t* const (&codes)[Tiles], const ActivationBlock* const (&x)[Rows],
                       std::int64_t block) {
  Dot dot[Rows][Tiles];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    const std::int32_t sum = Format::kSub == 32 ? x[r]->sum : x[r]->half_sum[Half];
#pragma GCC unroll 8
    for (int t = 0; t < Tiles; ++t) dot[r][t] = dot_start<Format::kShift>(sum);
  }
  if constexpr (Format::kSub == 32) {
    dot_pair<Format, Rows, Tiles, 0>(dot, codes, x);
    dot_pair<Format, Rows, Tiles, 1>(dot, codes, x);
    dot_pair<Format, Rows, Tiles, 2>(dot, codes, x);
    dot_pair<Format, Rows, Tiles, 3>(dot, codes, x);
  } else {
    dot_pair<Format, Rows, Tiles, 2 * Half>(dot, codes, x);
    dot_pair<Format, Rows, Tiles, 2 * Half + 1>(dot, codes, x);
  }
#pragma GCC unroll 8
  for (int t = 0; t < Tiles; ++t) {
    F d;
    F m = zero();
    Format::scales(tile[t], block, Half, d, m);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      acc[r][t] = fma(to_float(dot_total(dot[r][t])), mul(d, set1(x[r]->scale)), acc[r][t]);
      if constexpr (Format::kMin) acc[r][t] = fma(m, set1(x[r]->scaled_sum), acc[r][t]);
    }
  }
}

inline void ask_for(Prefetch& p) {
  for (int i = 0; i < p.per_block; ++i, p.from += 64) __builtin_prefetch(p.from, 0, 2);
}

template <WeightType Type, int Rows, int Tiles>
void quantised_tile(const std::uint8_t* w, std::size_t tile_stride, const std::uint8_t* xs, std::size_t x_stride,
                    std::int64_t k, float* out, std::int64_t out_stride, Prefetch prefetch) {
  using Format = FormatOf<Type>;
  constexpr std::size_t kCodeBytes = code_bytes(Type);
  const std::int64_t blocks = blocks_of(k);
  const std::uint8_t* tile[Tiles];
  const std::uint8_t* codes[Tiles];
  const ActivationBlock* x[Rows];
  F acc[Rows][Tiles];
#pragma GCC unroll 8
  for (int t = 0; t < Tiles; ++t) {
    tile[t] = w + static_cast<std::size_t>(t) * tile_stride;
    codes[t] = tile[t] + scale_section_bytes(Type, blocks);
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    x[r] = reinterpret_cast<const ActivationBlock*>(xs + static_cast<std::size_t>(r) * x_stride);
#pragma GCC unroll 8
    for (int t = 0; t < Tiles; ++t) acc[r][t] = zero();
  }
  for (std::int64_t b = 0; b < blocks; ++b) {
    ask_for(prefetch);
    block_step<Format, Rows, Tiles, 0>(acc, tile, codes, x, b);
    if constexpr (Format::kSub == 16) block_step<Format, Rows, Tiles, 1>(acc, tile, codes, x, b);
#pragma GCC unroll 8
    for (int t = 0; t < Tiles; ++t) codes[t] += kCodeBytes;
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) ++x[r];
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < Tiles; ++t) store(out + r * out_stride + t * kTile, acc[r][t]);
  }
}

template <WeightType Type>
inline F load_weights(const std::uint8_t* p) {
  if constexpr (Type == WeightType::kF32) {
    return load(reinterpret_cast<const float*>(p));
  } else if constexpr (Type == WeightType::kF16) {
    return load_f16(halves(p));
  } else {
    return load_bf16(halves(p));
  }
}

template <WeightType Type, int Rows, int Tiles>
void float_tile(const std::uint8_t* w, std::size_t tile_stride, const std::uint8_t* xs, std::size_t x_stride,
                std::int64_t k, float* out, std::int64_t out_stride, Prefetch prefetch) {
  constexpr std::int64_t kStep = kTile * (Type == WeightType::kF32 ? 4 : 2);
  F acc[Rows][Tiles];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < Tiles; ++t) acc[r][t] = zero();
  }
  for (std::int64_t i = 0; i < k; ++i) {
    if (i % kBlock == 0) ask_for(prefetch);
    F weights[Tiles];
#pragma GCC unroll 8
    for (int t = 0; t < Tiles; ++t) {
      weights[t] = load_weights<Type>(w + static_cast<std::size_t>(t) * tile_stride + i * kStep);
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const F x = set1(reinterpret_cast<const float*>(xs + static_cast<std::size_t>(r) * x_stride)[i]);
#pragma GCC unroll 8
      for (int t = 0; t < Tiles; ++t) acc[r][t] = fma(weights[t], x, acc[r][t]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < Tiles; ++t) store(out + r * out_stride + t * kTile, acc[r][t]);
  }
}

// Runs the largest register blocks of kUnrollRows rows by kUnrollTiles tiles that the instruction set has room for.
template <WeightType Type, int Rows, int Tiles>
inline void run_tile(const std::uint8_t* w, std::size_t tile_stride, const std::uint8_t* x, std::size_t x_stride,
                     std::int64_t k, float* out, std::int64_t out_stride, Prefetch prefetch) {
  if constexpr (weight_is_quantised(Type)) {
    quantised_tile<Type, Rows, Tiles>(w, tile_stride, x, x_stride, k, out, out_stride, prefetch);
  } else {
    float_tile<Type, Rows, Tiles>(w, tile_stride, x, x_stride, k, out, out_stride, prefetch);
  }
}

// Exactly `rows` rows, 1 <= rows <= Rows.
template <WeightType Type, int Rows, int Tiles>
inline void run_rows(int rows, const std::uint8_t* w, std::size_t tile_stride, const std::uint8_t* x,
                     std::size_t x_stride, std::int64_t k, float* out, std::int64_t out_stride, Prefetch prefetch) {
  if constexpr (Rows > 1) {
    if (rows < Rows)
      return run_rows<Type, Rows - 1, Tiles>(rows, w, tile_stride, x, x_stride, k, out, out_stride, prefetch);
  }
  run_tile<Type, Rows, Tiles>(w, tile_stride, x, x_stride, k, out, out_stride, prefetch);
}

template <WeightType Type>
void tile_kernel(const std::uint8_t* w, std::size_t tile_stride, int tiles, const std::uint8_t* x, std::size_t x_stride,
                 int rows, std::int64_t k, float* out, std::int64_t out_stride, Prefetch prefetch) {
  for (; rows > 0; rows -= kUnrollRows, x += kUnrollRows * x_stride, out += kUnrollRows * out_stride) {
    const int now = rows < kUnrollRows ? rows : kUnrollRows;
    int t = 0;
    for (; t + kUnrollTiles <= tiles; t += kUnrollTiles) {
      run_rows<Type, kUnrollRows, kUnrollTiles>(now, w + static_cast<std::size_t>(t) * tile_stride, tile_stride, x,
                                                x_stride, k, out + t * kTile, out_stride, prefetch);
    }
    if constexpr (kUnrollTiles > 1) {
      for (; t < tiles; ++t) {
        run_rows<Type, kUnrollRows, 1>(now, w + static_cast<std::size_t>(t) * tile_stride, tile_stride, x, x_stride, k,
                                       out + t * kTile, out_stride, prefetch);
      }
    }
  }
}

void quantise_row(const float* x, std::int64_t k, ActivationBlock* blocks) {
  const std::int64_t count = blocks_of(k);
  for (std::int64_t b = 0; b < count; ++b, x += kBlock) {
    ActivationBlock& block = blocks[b];
    const std::int64_t left = k - b * kBlock;
    const F first = left >= 16 ? load(x) : load_n(x, static_cast<int>(left));
    const F second = left >= 32 ? load(x + 16) : (left > 16 ? load_n(x + 16, static_cast<int>(left - 16)) : zero());
    const std::int32_t bits = reduce_max(max(abs_bits(first), abs_bits(second)));
    float amax;
    __builtin_memcpy(&amax, &bits, sizeof amax);
    const bool finite = bits < 0x7F800000;
    const bool usable = finite && amax >= kActivationTiny;
    // Zero times a non-finite value would be NaN, so unusable blocks take zeros outright.
    const F factor = set1(usable ? kActivationMax / amax : 0.0F);
    const I a = to_int(usable ? mul(first, factor) : zero());
    const I c = to_int(usable ? mul(second, factor) : zero());
    store_activations(block.q, a, c);
    block.half_sum[0] = reduce_add(a);
    block.half_sum[1] = reduce_add(c);
    block.sum = block.half_sum[0] + block.half_sum[1];
    block.scale = usable ? amax / kActivationMax : (finite ? 0.0F : __builtin_nanf(""));
    block.scaled_sum = block.scale * static_cast<float>(block.sum);
  }
}

const LinearTable kLinearTable = {
    {tile_kernel<WeightType::kF32>, tile_kernel<WeightType::kF16>, tile_kernel<WeightType::kBF16>,
     tile_kernel<WeightType::kQ4_0>, tile_kernel<WeightType::kQ4_1>, tile_kernel<WeightType::kQ5_0>,
     tile_kernel<WeightType::kQ5_1>, tile_kernel<WeightType::kQ8_0>, tile_kernel<WeightType::kQ4_K>,
     tile_kernel<WeightType::kQ5_K>, tile_kernel<WeightType::kQ6_K>},
    quantise_row};

}  // namespace
}  // namespace cairn::kernels
