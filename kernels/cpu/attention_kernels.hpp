// Attention of a tile of queries over one key partition, written once on the 16-lane vectors; include a simd_*.hpp
// first.
//
// Every query runs its own recurrence over the same sequence of 64-key blocks. A block in which a query sees nothing
// leaves its state unchanged bit for bit (correction exp(0) = 1, weights 0), so it does not matter which queries
// share a tile.
#pragma once

#include "kernels/cpu/attention_tile.hpp"
#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace cairn::kernels {
namespace {

constexpr int kGroupsPerBlock = kKeyBlock / kKeyGroup;

template <KvType Type>
struct Element {
  static constexpr std::size_t kBytes = Type == KvType::kF32 ? 4 : 2;
  static inline F load16(const std::uint8_t* p) {
    if constexpr (Type == KvType::kF32) return load(reinterpret_cast<const float*>(p));
    if constexpr (Type == KvType::kF16) return load_f16(reinterpret_cast<const std::uint16_t*>(p));
    if constexpr (Type == KvType::kBF16) return load_bf16(reinterpret_cast<const std::uint16_t*>(p));
  }
};

struct Block {
  const std::uint8_t* k[kGroupsPerBlock];  // [head_dim][16]
  const std::uint8_t* v[kGroupsPerBlock];  // [16][padded head_dim]
};

// Where the block's groups lie; groups past key_end repeat the last one and are masked by the caller.
template <KvType Type>
inline Block locate(const AttentionTile& t, std::int64_t block_begin, std::int64_t padded_dim) {
  Block b;
  const std::int64_t last_group = (t.key_end - 1) / kKeyGroup * kKeyGroup;
  for (int g = 0; g < kGroupsPerBlock; ++g) {
    std::int64_t key = block_begin + g * kKeyGroup;
    if (key > last_group) key = last_group;
    const std::int64_t offset = key % t.page_size;
    const std::uint8_t* page = t.base + static_cast<std::size_t>(t.pages[key / t.page_size]) * t.page_stride;
    b.k[g] = page + t.k_offset + static_cast<std::size_t>(offset * t.head_dim) * Element<Type>::kBytes;
    b.v[g] = page + t.v_offset + static_cast<std::size_t>(offset * padded_dim) * Element<Type>::kBytes;
  }
  return b;
}

template <KvType Type, int Q>
inline void scores(const AttentionTile& t, const Block& b, F (&s)[Q][kGroupsPerBlock]) {
#pragma GCC unroll 8
  for (int i = 0; i < Q; ++i) {
#pragma GCC unroll 8
    for (int g = 0; g < kGroupsPerBlock; ++g) s[i][g] = zero();
  }
  constexpr std::size_t kStep = kKeyGroup * Element<Type>::kBytes;
  for (std::int64_t d = 0; d < t.head_dim; ++d) {
    F k[kGroupsPerBlock];
#pragma GCC unroll 8
    for (int g = 0; g < kGroupsPerBlock; ++g)
      k[g] = Element<Type>::load16(b.k[g] + static_cast<std::size_t>(d) * kStep);
#pragma GCC unroll 8
    for (int i = 0; i < Q; ++i) {
      const F q = set1(t.q[i][d]);
#pragma GCC unroll 8
      for (int g = 0; g < kGroupsPerBlock; ++g) s[i][g] = fma(k[g], q, s[i][g]);
    }
  }
}

inline int clamp_lane(std::int64_t v) {
  return v < 0 ? 0 : (v > kKeyGroup ? kKeyGroup : static_cast<int>(v));
}

// Scales, masks and exponentiates query i's scores; weights go to p. Returns the correction of the earlier state.
inline float soften(const AttentionTile& t, int i, std::int64_t block_begin, F (&s)[kGroupsPerBlock], float* p) {
  const F lowest = set1(-__builtin_inff());
  F top = lowest;
#pragma GCC unroll 8
  for (int g = 0; g < kGroupsPerBlock; ++g) {
    s[g] = mul(s[g], set1(t.sm_scale));
    if (t.softcap > 0.0F) s[g] = mul(set1(t.softcap), tanh(div(s[g], set1(t.softcap))));
    const std::int64_t first = block_begin + g * kKeyGroup;
    const M seen = lane_range(clamp_lane(t.visible_begin[i] - first), clamp_lane(t.visible_end[i] - first));
    s[g] = select(seen, s[g], lowest);
    top = max(s[g], top);
  }
  Partial& state = *t.partial[i];
  const float block_max = reduce_max(top);
  const float new_max = block_max > state.max ? block_max : state.max;
  const float anchor = new_max == -__builtin_inff() ? 0.0F : new_max;
  F e[kGroupsPerBlock];
#pragma GCC unroll 8
  for (int g = 0; g < kGroupsPerBlock; ++g) {
    e[g] = exp(sub(s[g], set1(anchor)));
    store(p + g * kKeyGroup, e[g]);
  }
  float corrections[16];
  store(corrections, exp(set1(state.max - anchor)));
  const float sum = reduce_add(add(add(e[0], e[1]), add(e[2], e[3])));
  state.sum = __builtin_fmaf(state.sum, corrections[0], sum);
  state.max = new_max;
  return corrections[0];
}

// acc[i][c..c + 16 * N) = acc * correction + sum over keys [lo, hi) of the block of p * V.
template <KvType Type, int Q, int N>
inline void weigh(const AttentionTile& t, const Block& b, const float (&p)[Q][kKeyBlock], const float (&correction)[Q],
                  int lo, int hi, std::int64_t padded_dim, std::int64_t c) {
  F acc[Q][N];
#pragma GCC unroll 8
  for (int i = 0; i < Q; ++i) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) acc[i][n] = mul(load(t.acc[i] + c + n * 16), set1(correction[i]));
  }
  for (int key = lo; key < hi; ++key) {
    const std::uint8_t* row =
        b.v[key / kKeyGroup] + static_cast<std::size_t>((key % kKeyGroup) * padded_dim + c) * Element<Type>::kBytes;
    F v[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n)
      v[n] = Element<Type>::load16(row + static_cast<std::size_t>(n) * 16 * Element<Type>::kBytes);
#pragma GCC unroll 8
    for (int i = 0; i < Q; ++i) {
      const F weight = set1(p[i][key]);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) acc[i][n] = fma(weight, v[n], acc[i][n]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Q; ++i) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) store(t.acc[i] + c + n * 16, acc[i][n]);
  }
}

template <KvType Type, int Q>
void attend_queries(const AttentionTile& t) {
  const std::int64_t padded_dim = (t.head_dim + 15) / 16 * 16;
  std::int64_t seen_begin = t.visible_begin[0];
  std::int64_t seen_end = t.visible_end[0];
  for (int i = 0; i < Q; ++i) {
    if (t.visible_begin[i] < seen_begin) seen_begin = t.visible_begin[i];
    if (t.visible_end[i] > seen_end) seen_end = t.visible_end[i];
    *t.partial[i] = {-__builtin_inff(), 0.0F};
    for (std::int64_t d = 0; d < padded_dim; d += 16) store(t.acc[i] + d, zero());
  }
  if (seen_end > t.key_end) seen_end = t.key_end;
  for (std::int64_t begin = t.key_begin; begin < t.key_end; begin += kKeyBlock) {
    const Block b = locate<Type>(t, begin, padded_dim);
    F s[Q][kGroupsPerBlock];
    scores<Type, Q>(t, b, s);
    float p[Q][kKeyBlock];
    float correction[Q];
#pragma GCC unroll 8
    for (int i = 0; i < Q; ++i) correction[i] = soften(t, i, begin, s[i], p[i]);
    // Only keys that some query sees: others may never have been written.
    const std::int64_t lo = seen_begin > begin ? seen_begin - begin : 0;
    const std::int64_t hi = seen_end - begin < kKeyBlock ? seen_end - begin : kKeyBlock;
    std::int64_t c = 0;
    for (; c + 64 <= padded_dim; c += 64) {
      weigh<Type, Q, 4>(t, b, p, correction, static_cast<int>(lo), static_cast<int>(hi), padded_dim, c);
    }
    for (; c < padded_dim; c += 16) {
      weigh<Type, Q, 1>(t, b, p, correction, static_cast<int>(lo), static_cast<int>(hi), padded_dim, c);
    }
  }
}

template <KvType Type, int Q>
inline void attend_up_to(const AttentionTile& t) {
  if constexpr (Q > 1) {
    if (t.queries < Q) return attend_up_to<Type, Q - 1>(t);
  }
  attend_queries<Type, Q>(t);
}

// The portable build takes queries one by one: unrolling buys it nothing.
template <KvType Type>
void attend(const AttentionTile& t) {
  if constexpr (kUnrollRows > 1) {
    attend_up_to<Type, kQueryTile>(t);
  } else {
    for (int i = 0; i < t.queries; ++i) {
      AttentionTile one = t;
      one.queries = 1;
      one.q[0] = t.q[i];
      one.visible_begin[0] = t.visible_begin[i];
      one.visible_end[0] = t.visible_end[i];
      one.acc[0] = t.acc[i];
      one.partial[0] = t.partial[i];
      attend_queries<Type, 1>(one);
    }
  }
}

void merge(float* total, Partial* total_partial, const float* part, const Partial* part_partial, std::int64_t n) {
  if (part_partial->max == -__builtin_inff()) return;
  if (total_partial->max == -__builtin_inff()) {
    for (std::int64_t i = 0; i < n; i += 16) store(total + i, load(part + i));
    *total_partial = *part_partial;
    return;
  }
  const float top = part_partial->max > total_partial->max ? part_partial->max : total_partial->max;
  const F a = exp(set1(total_partial->max - top));
  const F b = exp(set1(part_partial->max - top));
  for (std::int64_t i = 0; i < n; i += 16) store(total + i, fma(load(part + i), b, mul(load(total + i), a)));
  float sums[16];
  store(sums, fma(set1(part_partial->sum), b, mul(set1(total_partial->sum), a)));
  *total_partial = {top, sums[0]};
}

void finish(const float* acc, const Partial* partial, std::int64_t n, float* out) {
  const bool empty = partial->max == -__builtin_inff();
  const F sum = set1(partial->sum);
  for (std::int64_t i = 0; i < n; i += 16) {
    const int left = n - i < 16 ? static_cast<int>(n - i) : 16;
    // The added zero makes every zero positive: its sign could depend on masked keys.
    store_n(out + i, empty ? zero() : add(div(load(acc + i), sum), zero()), left);
  }
}

const AttentionTable kAttentionTable = {
    {attend<KvType::kF16>, attend<KvType::kBF16>, attend<KvType::kF32>}, merge, finish};

}  // namespace
}  // namespace cairn::kernels
