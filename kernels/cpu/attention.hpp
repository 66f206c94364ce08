// Paged key/value storage and attention over it, for prefill, decode and mixes of both. Used by the KV and attention
// resources: the host allocates page_bytes() per page and layer and passes base pointer and page stride.
//
// Inside a page, per kv head: K as [page_size / 16][head_dim][16 keys], then V as [page_size][head_dim rounded up to
// 16]. Guarantee: the result for a query depends only on its q, its position and the K/V at the positions it may see:
// keys are taken in blocks of 64 and partitions of 256 anchored at absolute positions and combined in a fixed order, so
// decode, whole prefill and any chunking agree bit for bit, for any batch and thread count.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/parallel.hpp"

namespace cairn::kernels {

enum class KvType : std::uint8_t { kF16, kBF16, kF32 };

struct KvLayout {
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t page_size = 0;  // tokens per page: a multiple of 16 in [16, 256]
  KvType type = KvType::kF16;
};

// Bytes of one page of one layer (K and V of all heads); a multiple of 32. Throws std::invalid_argument on a layout
// outside the bounds above (kv_heads and head_dim must be in [1, 65536]).
std::size_t kv_page_bytes(const KvLayout& layout);

// Stores tokens [0, n): k and v rows are [kv_heads][head_dim], rows k_stride / v_stride floats apart. slots[i] =
// page * page_size + offset; a negative slot stores nothing. F16 values saturate at +-65504, so that no stored value
// is infinite. `base` is 32-byte aligned and so is page_stride_bytes (>= kv_page_bytes).
void kv_write(const KvLayout& layout, void* base, std::size_t page_stride_bytes, const float* k, std::int64_t k_stride,
              const float* v, std::int64_t v_stride, const std::int64_t* slots, std::int64_t n,
              const Parallel& parallel);

void kv_copy_page(const KvLayout& layout, void* base, std::size_t page_stride_bytes, std::int64_t from,
                  std::int64_t to);

// One stored token back as f32 [kv_heads][head_dim] each (tests, offload checks).
void kv_read(const KvLayout& layout, const void* base, std::size_t page_stride_bytes, std::int64_t slot, float* k,
             float* v);

// The queries [q_start, q_start + q_count) of one request. Its keys are positions [0, kv_len) of `pages`
// (ceil(kv_len / page_size) entries); with `causal` query i has position kv_len - q_count + i.
struct AttentionRow {
  std::int64_t q_start = 0;
  std::int64_t q_count = 0;
  std::int64_t kv_len = 0;  // including the tokens of this step; 0 gives zeros
  const std::int32_t* pages = nullptr;
};

struct AttentionParams {
  std::int64_t q_heads = 0;  // a multiple of kv_heads
  float sm_scale = 0.0F;     // usually 1 / sqrt(head_dim)
  float softcap = 0.0F;      // > 0: s = softcap * tanh(s / softcap)
  std::int64_t window = 0;   // > 0: a query at p sees keys in (p - window, p]
  bool causal = true;
};

// Scratch for a call with at most `max_rows` rows, `max_queries` query tokens over all rows, and `max_kv_len` keys in
// a row.
std::size_t attention_scratch_bytes(const KvLayout& layout, std::int64_t q_heads, std::int64_t max_rows,
                                    std::int64_t max_queries, std::int64_t max_kv_len, int threads);

// out[t][head][d] for every query token; q rows are [q_heads][head_dim], q_stride / out_stride floats apart.
void attention(const KvLayout& layout, const void* base, std::size_t page_stride_bytes, const AttentionParams& params,
               const AttentionRow* rows, std::int64_t row_count, const float* q, std::int64_t q_stride, float* out,
               std::int64_t out_stride, void* scratch, const Parallel& parallel);

}  // namespace cairn::kernels
