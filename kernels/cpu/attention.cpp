// Page layout, key/value storage, and the split of attention into work items; see attention.hpp.
#include "kernels/cpu/attention.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/cpu/attention_tile.hpp"
#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/row_items.hpp"
#include "kernels/cpu/types.hpp"

namespace cairn::kernels {
namespace {

// With fewer tiles than this per thread, tiles are also split over key partitions.
constexpr std::int64_t kTilesPerThread = 4;
// Elements of a key converted at a time before they are spread over its column.
constexpr std::int64_t kColumn = 128;

std::int64_t pad16(std::int64_t n) {
  return (n + 15) / 16 * 16;
}
std::size_t element_bytes(KvType type) {
  return type == KvType::kF32 ? 4 : 2;
}
std::size_t k_head_bytes(const KvLayout& l) {
  return static_cast<std::size_t>(l.page_size * l.head_dim) * element_bytes(l.type);
}
std::size_t v_head_bytes(const KvLayout& l) {
  return static_cast<std::size_t>(l.page_size * pad16(l.head_dim)) * element_bytes(l.type);
}
std::size_t k_head_offset(const KvLayout& l, std::int64_t head) {
  return static_cast<std::size_t>(head) * (k_head_bytes(l) + v_head_bytes(l));
}

struct Work {
  const KvLayout* layout;
  const AttentionParams* params;
  const AttentionRow* rows;
  std::int64_t row_count;
  const std::int64_t* first_tile;  // [row_count + 1]
  const float* q;
  std::int64_t q_stride;
  std::int64_t group;  // query heads per kv head
};

// Fills the parts of a tile that do not depend on the keys taken; returns the destination rows in `token` / `head`.
struct TileQueries {
  std::int64_t token[kQueryTile];
  std::int64_t head[kQueryTile];
  std::int64_t key_begin, key_end;  // all keys that some query sees, begin rounded down to a key block
};

TileQueries describe(const Work& w, std::int64_t tile, AttentionTile& t) {
  const std::int64_t* upper = std::upper_bound(w.first_tile, w.first_tile + w.row_count + 1, tile);
  const AttentionRow& row = w.rows[upper - w.first_tile - 1];
  const std::int64_t local = tile - *(upper - 1);
  const std::int64_t pairs = row.q_count * w.group;
  const std::int64_t tiles_per_head = (pairs + kQueryTile - 1) / kQueryTile;
  const std::int64_t kv_head = local / tiles_per_head;
  const std::int64_t first_pair = local % tiles_per_head * kQueryTile;
  const KvLayout& l = *w.layout;
  t.k_offset = k_head_offset(l, kv_head);
  t.v_offset = t.k_offset + k_head_bytes(l);
  t.pages = row.pages;
  t.page_size = l.page_size;
  t.head_dim = l.head_dim;
  t.queries = static_cast<int>(std::min<std::int64_t>(kQueryTile, pairs - first_pair));
  t.sm_scale = w.params->sm_scale;
  t.softcap = w.params->softcap;
  TileQueries result{};
  std::int64_t begin = row.kv_len;
  for (int i = 0; i < t.queries; ++i) {
    const std::int64_t index = (first_pair + i) / w.group;
    const std::int64_t position = row.kv_len - row.q_count + index;
    result.token[i] = row.q_start + index;
    result.head[i] = kv_head * w.group + (first_pair + i) % w.group;
    t.q[i] = w.q + result.token[i] * w.q_stride + result.head[i] * l.head_dim;
    t.visible_end[i] = std::clamp<std::int64_t>(w.params->causal ? position + 1 : row.kv_len, 0, row.kv_len);
    t.visible_begin[i] = w.params->window > 0 ? std::max<std::int64_t>(0, position + 1 - w.params->window) : 0;
    begin = std::min(begin, t.visible_begin[i]);
    result.key_end = std::max(result.key_end, t.visible_end[i]);
  }
  result.key_begin = begin / kKeyBlock * kKeyBlock;
  return result;
}

// Keys of partition `index` that the tile needs; false when there are none.
bool select_partition(const TileQueries& queries, std::int64_t index, AttentionTile& t) {
  t.key_begin = std::max(queries.key_begin, index * kKeyPartition);
  t.key_end = std::min(queries.key_end, (index + 1) * kKeyPartition);
  return t.key_begin < t.key_end;
}

void check_layout(const KvLayout& l) {
  if (l.kv_heads < 1 || l.kv_heads > 65536 || l.head_dim < 1 || l.head_dim > 65536 || l.page_size < 16 ||
      l.page_size > 256 || l.page_size % 16 != 0) {
    throw std::invalid_argument("KvLayout: " + std::to_string(l.kv_heads) + " kv heads of " +
                                std::to_string(l.head_dim) + " with pages of " + std::to_string(l.page_size) +
                                " tokens is out of range; heads and head size must be in [1, 65536] and the page "
                                "size a multiple of 16 in [16, 256].");
  }
}

// n elements as the cache stores them.
void convert(const ElementTable& table, KvType type, const float* x, std::int64_t n, std::uint8_t* to) {
  if (type == KvType::kF32) {
    std::memcpy(to, x, static_cast<std::size_t>(n) * sizeof(float));
  } else if (type == KvType::kF16) {
    table.to_f16(x, reinterpret_cast<std::uint16_t*>(to), n);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint16_t h = f32_to_bf16(x[i]);
      std::memcpy(to + i * 2, &h, sizeof h);
    }
  }
}

// Elements of `Bytes` bytes, kKeyGroup apart: a key's column in its group.
template <std::int64_t Bytes>
void scatter(const std::uint8_t* from, std::int64_t n, std::uint8_t* to) {
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * kKeyGroup * Bytes, from + i * Bytes, Bytes);
}

float load_element(KvType type, const std::uint8_t* p) {
  if (type == KvType::kF32) {
    float v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  std::uint16_t h;
  std::memcpy(&h, p, sizeof h);
  return type == KvType::kF16 ? f16_to_f32(h) : bf16_to_f32(h);
}

// Byte offsets inside a page of (head, token, dimension).
std::size_t k_offset(const KvLayout& l, std::int64_t head, std::int64_t token, std::int64_t d) {
  const std::int64_t index = token / kKeyGroup * l.head_dim * kKeyGroup + d * kKeyGroup + token % kKeyGroup;
  return k_head_offset(l, head) + static_cast<std::size_t>(index) * element_bytes(l.type);
}
std::size_t v_offset(const KvLayout& l, std::int64_t head, std::int64_t token, std::int64_t d) {
  return k_head_offset(l, head) + k_head_bytes(l) +
         static_cast<std::size_t>(token * pad16(l.head_dim) + d) * element_bytes(l.type);
}

std::size_t align64(std::size_t n) {
  return (n + 63) / 64 * 64;
}

}  // namespace

std::size_t kv_page_bytes(const KvLayout& layout) {
  check_layout(layout);
  return k_head_offset(layout, layout.kv_heads);
}

void kv_write(const KvLayout& layout, void* base, std::size_t page_stride_bytes, const float* k, std::int64_t k_stride,
              const float* v, std::int64_t v_stride, const std::int64_t* slots, std::int64_t n,
              const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  const std::size_t size = element_bytes(layout.type);
  const auto write = [&](std::int64_t i) {
    const std::int64_t slot = slots[i];
    if (slot < 0) return;
    std::uint8_t* page =
        static_cast<std::uint8_t*>(base) + static_cast<std::size_t>(slot / layout.page_size) * page_stride_bytes;
    const std::int64_t token = slot % layout.page_size;
    for (std::int64_t h = 0; h < layout.kv_heads; ++h) {
      const float* key = k + i * k_stride + h * layout.head_dim;
      std::uint8_t* k_to = page + k_offset(layout, h, token, 0);
      for (std::int64_t d = 0; d < layout.head_dim; d += kColumn) {
        alignas(64) std::uint8_t column[kColumn * sizeof(float)];
        const std::int64_t count = std::min(kColumn, layout.head_dim - d);
        convert(table, layout.type, key + d, count, column);
        std::uint8_t* to = k_to + static_cast<std::size_t>(d * kKeyGroup) * size;
        if (size == 4) {
          scatter<4>(column, count, to);
        } else {
          scatter<2>(column, count, to);
        }
      }
      std::uint8_t* v_to = page + v_offset(layout, h, token, 0);
      convert(table, layout.type, v + i * v_stride + h * layout.head_dim, layout.head_dim, v_to);
      const std::size_t used = static_cast<std::size_t>(layout.head_dim) * size;
      std::memset(v_to + used, 0, static_cast<std::size_t>(pad16(layout.head_dim)) * size - used);
    }
  };
  for_each_row_range(parallel, n, layout.kv_heads * layout.head_dim, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) write(i);
  });
}

void kv_copy_page(const KvLayout& layout, void* base, std::size_t page_stride_bytes, std::int64_t from,
                  std::int64_t to) {
  auto* bytes = static_cast<std::uint8_t*>(base);
  std::memmove(bytes + static_cast<std::size_t>(to) * page_stride_bytes,
               bytes + static_cast<std::size_t>(from) * page_stride_bytes, k_head_offset(layout, layout.kv_heads));
}

void kv_read(const KvLayout& layout, const void* base, std::size_t page_stride_bytes, std::int64_t slot, float* k,
             float* v) {
  const std::uint8_t* page =
      static_cast<const std::uint8_t*>(base) + static_cast<std::size_t>(slot / layout.page_size) * page_stride_bytes;
  for (std::int64_t h = 0; h < layout.kv_heads; ++h) {
    for (std::int64_t d = 0; d < layout.head_dim; ++d) {
      const std::int64_t token = slot % layout.page_size;
      k[h * layout.head_dim + d] = load_element(layout.type, page + k_offset(layout, h, token, d));
      v[h * layout.head_dim + d] = load_element(layout.type, page + v_offset(layout, h, token, d));
    }
  }
}

std::size_t attention_scratch_bytes(const KvLayout& layout, std::int64_t q_heads, std::int64_t max_rows,
                                    std::int64_t max_queries, std::int64_t max_kv_len, int threads) {
  const std::size_t tile_floats = static_cast<std::size_t>(kQueryTile * pad16(layout.head_dim));
  const std::size_t tile = align64(tile_floats * sizeof(float)) + align64(kQueryTile * sizeof(Partial));
  const std::int64_t partitions = max_kv_len / kKeyPartition + 1;
  // Split tiles: at most kTilesPerThread * threads, and at most every tile there can be.
  const std::int64_t pairs_tiles = (max_queries * q_heads + kQueryTile - 1) / kQueryTile + max_rows * layout.kv_heads;
  const std::int64_t split = std::min<std::int64_t>(kTilesPerThread * threads, pairs_tiles);
  return 64 + align64(static_cast<std::size_t>(max_rows + 1) * sizeof(std::int64_t)) +
         tile * static_cast<std::size_t>(2 * threads) + tile * static_cast<std::size_t>(split * partitions);
}

void attention(const KvLayout& layout, const void* base, std::size_t page_stride_bytes, const AttentionParams& params,
               const AttentionRow* rows, std::int64_t row_count, const float* q, std::int64_t q_stride, float* out,
               std::int64_t out_stride, void* scratch, const Parallel& parallel) {
  const AttentionTable& table = attention_table(active_isa());
  const AttentionKernel kernel = table.attend[static_cast<int>(layout.type)];
  const std::int64_t padded = pad16(layout.head_dim);
  const std::size_t acc_bytes = align64(static_cast<std::size_t>(kQueryTile * padded) * sizeof(float));
  const std::size_t tile_size = acc_bytes + align64(kQueryTile * sizeof(Partial));

  auto* memory = reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(scratch) + 63) / 64 * 64);
  auto* first_tile = reinterpret_cast<std::int64_t*>(memory);
  Work w{&layout, &params, rows, row_count, first_tile, q, q_stride, params.q_heads / layout.kv_heads};
  std::int64_t tiles = 0;
  std::int64_t partitions = 1;
  for (std::int64_t r = 0; r < row_count; ++r) {
    first_tile[r] = tiles;
    tiles += (rows[r].q_count * w.group + kQueryTile - 1) / kQueryTile * layout.kv_heads;
    partitions = std::max(partitions, (rows[r].kv_len + kKeyPartition - 1) / kKeyPartition);
  }
  first_tile[row_count] = tiles;
  if (tiles == 0) return;
  memory += align64(static_cast<std::size_t>(row_count + 1) * sizeof(std::int64_t));

  const auto attach = [&](AttentionTile& t, std::uint8_t* area) {
    for (int i = 0; i < kQueryTile; ++i) {
      t.acc[i] = reinterpret_cast<float*>(area) + i * padded;
      t.partial[i] = reinterpret_cast<Partial*>(area + acc_bytes) + i;
    }
  };
  const auto new_tile = [&] {
    AttentionTile t;
    t.base = static_cast<const std::uint8_t*>(base);
    t.page_stride = page_stride_bytes;
    return t;
  };
  const auto finish = [&](const TileQueries& queries, const AttentionTile& t, float* const* acc,
                          Partial* const* partial) {
    for (int i = 0; i < t.queries; ++i) {
      table.finish(acc[i], partial[i], layout.head_dim,
                   out + queries.token[i] * out_stride + queries.head[i] * layout.head_dim);
    }
  };
  // Merges partition results in rising order; the same steps whether they were computed here or by other threads.
  const auto merge = [&](const AttentionTile& total, const AttentionTile& part) {
    for (int i = 0; i < part.queries; ++i) {
      table.merge(total.acc[i], total.partial[i], part.acc[i], part.partial[i], padded);
    }
  };
  const auto clear = [](const AttentionTile& total) {
    for (int i = 0; i < kQueryTile; ++i) *total.partial[i] = {-__builtin_inff(), 0.0F};
  };

  if (partitions == 1 || parallel.threads <= 1 || tiles > kTilesPerThread * parallel.threads) {
    parallel.for_each(static_cast<int>(tiles), [&](int index, int thread) {
      std::uint8_t* area = memory + static_cast<std::size_t>(2 * thread) * tile_size;
      AttentionTile t = new_tile();
      AttentionTile total;
      attach(t, area);
      attach(total, area + tile_size);
      clear(total);
      const TileQueries queries = describe(w, index, t);
      const std::int64_t end = (queries.key_end + kKeyPartition - 1) / kKeyPartition;
      for (std::int64_t p = queries.key_begin / kKeyPartition; p < end; ++p) {
        if (!select_partition(queries, p, t)) continue;
        kernel(t);
        merge(total, t);
      }
      finish(queries, t, total.acc, total.partial);
    });
    return;
  }

  std::uint8_t* split = memory + static_cast<std::size_t>(2 * parallel.threads) * tile_size;
  const auto area_of = [&](std::int64_t tile, std::int64_t partition) {
    return split + static_cast<std::size_t>(tile * partitions + partition) * tile_size;
  };
  parallel.for_each(static_cast<int>(tiles * partitions), [&](int item, int) {
    AttentionTile t = new_tile();
    attach(t, area_of(item / partitions, item % partitions));
    const TileQueries queries = describe(w, item / partitions, t);
    if (select_partition(queries, item % partitions, t)) {
      kernel(t);
    } else {
      clear(t);
    }
  });
  parallel.for_each(static_cast<int>(tiles), [&](int index, int thread) {
    AttentionTile t = new_tile();
    AttentionTile total;
    attach(total, memory + static_cast<std::size_t>(2 * thread) * tile_size);
    clear(total);
    const TileQueries queries = describe(w, index, t);
    for (std::int64_t p = 0; p < partitions; ++p) {
      attach(t, area_of(index, p));
      merge(total, t);
    }
    finish(queries, t, total.acc, total.partial);
  });
}

}  // namespace cairn::kernels
