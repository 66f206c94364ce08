// The unit of attention work that the driver hands to an instruction set's kernel. Private to kernels/cpu.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::kernels {

inline constexpr int kQueryTile = 6;       // queries (token, head of the group) per tile
inline constexpr int kKeyGroup = 16;       // keys per stored K group
inline constexpr int kKeyBlock = 64;       // keys per softmax step, anchored at multiples of 64
inline constexpr int kKeyPartition = 256;  // keys per independent partial result, anchored likewise

// The partial softmax of one query over one partition (or all merged so far): out is acc / sum.
struct Partial {
  float max;  // -infinity when nothing was visible
  float sum;
};

// Up to kQueryTile queries of one row and one kv head against the keys [key_begin, key_end) of one partition.
struct AttentionTile {
  const std::uint8_t* base;  // of the pages
  std::size_t page_stride;
  std::size_t k_offset;  // of this kv head's K inside a page, bytes
  std::size_t v_offset;
  const std::int32_t* pages;
  std::int64_t page_size;
  std::int64_t head_dim;
  int queries;
  const float* q[kQueryTile];  // [head_dim]
  float sm_scale, softcap;
  std::int64_t visible_begin[kQueryTile];  // query i sees keys [visible_begin, visible_end)
  std::int64_t visible_end[kQueryTile];
  std::int64_t key_begin, key_end;  // key_begin is a multiple of kKeyBlock
  float* acc[kQueryTile];           // [head_dim rounded up to 16], overwritten
  Partial* partial[kQueryTile];     // overwritten
};

}  // namespace cairn::kernels
