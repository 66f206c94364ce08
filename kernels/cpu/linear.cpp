// Splitting a matrix product into work items and finishing the outputs; see linear.hpp.
#include "kernels/cpu/linear.hpp"

#include <algorithm>
#include <stdexcept>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/packed_matrix.hpp"

namespace cairn::kernels {
namespace {

// Activation rows whose quantised form stays in a core's second-level cache while weights stream past.
constexpr std::int64_t kRowChunk = 128;
// An item has about this many products per activation row in flight, one to two microseconds of work; but there are
// enough items that a slow or late thread costs little, and few enough that claiming them stays cheap.
constexpr std::int64_t kItemProducts = 65536;
constexpr std::int64_t kMinItemsPerThread = 4;
constexpr std::int64_t kMaxItemsPerThread = 16;

enum class Finish { kStore, kAdd, kGlu };

struct Call {
  const PackedMatrix::Impl* w;
  const LinearTable* linear;
  const ElementTable* elements;
  const float* x;
  std::int64_t m, x_stride;
  float* y;
  std::int64_t y_stride;
  const float* bias;
  Finish finish;
  Activation act;
  const ActivationBlock* blocks;  // [m][blocks_of(cols)]
  std::int64_t row_blocks;
};

void run_tiles(const Call& c, const Segment& s, std::int64_t tile, int tiles, std::int64_t row, int rows, float* out,
               std::int64_t out_stride, Prefetch prefetch) {
  const std::uint8_t* x;
  std::size_t stride;
  if (weight_is_quantised(s.type)) {
    x = reinterpret_cast<const std::uint8_t*>(c.blocks + row * c.row_blocks);
    stride = static_cast<std::size_t>(c.row_blocks) * sizeof(ActivationBlock);
  } else {
    x = reinterpret_cast<const std::uint8_t*>(c.x + row * c.x_stride);
    stride = static_cast<std::size_t>(c.x_stride) * sizeof(float);
  }
  c.linear->tile[static_cast<int>(s.type)](c.w->tile(s, tile), s.tile_stride, tiles, x, stride, rows, c.w->cols, out,
                                           out_stride, prefetch);
}

// y or y + ..., for `count` outputs from `first` on.
void finish_rows(const Call& c, const float* out, std::int64_t out_stride, std::int64_t row, int rows,
                 std::int64_t first, std::int64_t count) {
  for (int r = 0; r < rows; ++r) {
    const float* o = out + r * out_stride;
    float* y = c.y + (row + r) * c.y_stride + first;
    if (c.bias != nullptr) {
      const float* b = c.bias + first;
      if (c.finish == Finish::kAdd) {
        for (std::int64_t i = 0; i < count; ++i) y[i] += o[i] + b[i];
      } else {
        for (std::int64_t i = 0; i < count; ++i) y[i] = o[i] + b[i];
      }
    } else if (c.finish == Finish::kAdd) {
      for (std::int64_t i = 0; i < count; ++i) y[i] += o[i];
    } else {
      for (std::int64_t i = 0; i < count; ++i) y[i] = o[i];
    }
  }
}

void finish_glu(const Call& c, float* out, std::int64_t out_stride, std::int64_t row, int rows, std::int64_t first,
                std::int64_t count) {
  for (int r = 0; r < rows; ++r) {
    float* gate = out + r * out_stride;
    float* up = gate + kTile;
    if (c.bias != nullptr) {
      for (std::int64_t i = 0; i < count; ++i) {
        gate[i] += c.bias[first + i];
        up[i] += c.bias[c.w->rows + first + i];
      }
    }
    c.elements->gated(c.act, gate, up, c.y + (row + r) * c.y_stride + first, count);
  }
}

// Row group `group` of `groups` asks for its share of the tiles after `tile`.
Prefetch share_of_next(const Call& c, const Segment& s, std::int64_t tile, std::int64_t end, std::int64_t group,
                       std::int64_t groups) {
  const std::int64_t tiles = std::min<std::int64_t>(end - tile - kMaxTiles, kMaxTiles);
  if (tiles <= 0) return {};
  const auto lines = static_cast<std::int64_t>(s.tile_stride / 64) * tiles;
  const std::int64_t per_block = (lines + groups * c.row_blocks - 1) / (groups * c.row_blocks);
  const std::int64_t first = group * per_block * c.row_blocks;
  if (first >= lines) return {};
  return {c.w->tile(s, tile + kMaxTiles) + first * 64, static_cast<int>(per_block)};
}

// Tiles [begin, end) of one segment (pairs of gate and up for glu) against rows [row_begin, row_end).
void run_item(const Call& c, const Segment& s, std::int64_t begin, std::int64_t end, std::int64_t row_begin,
              std::int64_t row_end) {
  alignas(64) float out[kMaxTileRows * kMaxTiles * kTile];
  constexpr std::int64_t kOutStride = kMaxTiles * kTile;
  for (std::int64_t t = begin; t < end; t += kMaxTiles) {
    const int tiles = static_cast<int>(std::min<std::int64_t>(kMaxTiles, end - t));
    const std::int64_t groups = (row_end - row_begin + kMaxTileRows - 1) / kMaxTileRows;
    for (std::int64_t row = row_begin; row < row_end; row += kMaxTileRows) {
      const Prefetch prefetch = share_of_next(c, s, t, end, (row - row_begin) / kMaxTileRows, groups);
      const int rows = static_cast<int>(std::min<std::int64_t>(kMaxTileRows, row_end - row));
      if (c.finish != Finish::kGlu) {
        run_tiles(c, s, t, tiles, row, rows, out, kOutStride, prefetch);
        const std::int64_t local = t * kTile;
        finish_rows(c, out, kOutStride, row, rows, s.first_row + local,
                    std::min<std::int64_t>(tiles * kTile, s.rows - local));
        continue;
      }
      if (c.w->segments.size() == 1) {
        run_tiles(c, s, t, 2, row, rows, out, kOutStride, prefetch);
      } else {
        run_tiles(c, c.w->segments[0], t / 2, 1, row, rows, out, kOutStride, Prefetch{});
        run_tiles(c, c.w->segments[1], t / 2, 1, row, rows, out + kTile, kOutStride, Prefetch{});
      }
      const std::int64_t first = t / 2 * kTile;
      finish_glu(c, out, kOutStride, row, rows, first, std::min<std::int64_t>(kTile, c.w->rows - first));
    }
  }
}

void run(const PackedMatrix& matrix, Finish finish, Activation act, const float* x, std::int64_t m,
         std::int64_t x_stride, float* y, std::int64_t y_stride, const float* bias, void* scratch,
         const Parallel& parallel) {
  if (matrix.is_glu() != (finish == Finish::kGlu)) {
    throw std::invalid_argument(
        "linear: a matrix packed with pack_glu goes to linear_glu, and every other matrix to linear or linear_add.");
  }
  if (m <= 0 || matrix.rows() == 0) return;
  const Isa isa = active_isa();
  const PackedMatrix::Impl& w = *matrix.impl();
  Call c{&w,      &linear_table(isa), &element_table(isa), x, m, x_stride, y, y_stride, bias, finish, act,
         nullptr, blocks_of(w.cols)};
  if (w.any_quantised) {
    const auto address = (reinterpret_cast<std::uintptr_t>(scratch) + 63) / 64 * 64;
    auto* blocks = reinterpret_cast<ActivationBlock*>(address);
    c.blocks = blocks;
    const auto quantise = [&](int row, int) {
      c.linear->quantise_row(x + row * x_stride, w.cols, blocks + row * c.row_blocks);
    };
    if (m * w.cols < 16384) {
      for (std::int64_t row = 0; row < m; ++row) quantise(static_cast<int>(row), 0);
    } else {
      parallel.for_each(static_cast<int>(m), quantise);
    }
  }

  // Items are numbered row chunk by row chunk, so that threads working side by side share activations and weights.
  const bool two_glu_segments = finish == Finish::kGlu && w.segments.size() == 2;
  std::int64_t total_tiles = 0;
  for (const Segment& s : w.segments) total_tiles += s.tiles;
  const std::int64_t row_chunks = (m + kRowChunk - 1) / kRowChunk;
  const std::int64_t work =
      m * total_tiles * kTile * w.cols / (kItemProducts * std::min<std::int64_t>(m, kMaxTileRows));
  const std::int64_t wanted =
      parallel.threads > 1
          ? std::clamp<std::int64_t>(work, parallel.threads * kMinItemsPerThread, parallel.threads * kMaxItemsPerThread)
          : 1;
  const std::int64_t per_chunk = std::max<std::int64_t>(wanted / row_chunks, 1);
  const std::int64_t step = std::max<std::int64_t>((total_tiles / per_chunk + 1) / 2 * 2, 2);
  std::int64_t items = 0;
  for (const Segment& s : w.segments) items += (s.tiles + step - 1) / step;
  if (two_glu_segments) items = (2 * w.segments[0].tiles + step - 1) / step;

  parallel.for_each(static_cast<int>(items * row_chunks), [&](int item, int) {
    const std::int64_t chunk = item / items;
    std::int64_t index = item % items;
    const std::int64_t row_begin = chunk * kRowChunk;
    const std::int64_t row_end = std::min(m, row_begin + kRowChunk);
    if (two_glu_segments) {
      run_item(c, w.segments[0], index * step, std::min(2 * w.segments[0].tiles, (index + 1) * step), row_begin,
               row_end);
      return;
    }
    for (const Segment& s : w.segments) {
      const std::int64_t count = (s.tiles + step - 1) / step;
      if (index < count) {
        run_item(c, s, index * step, std::min(s.tiles, (index + 1) * step), row_begin, row_end);
        return;
      }
      index -= count;
    }
  });
}

}  // namespace

std::size_t linear_scratch_bytes(const PackedMatrix& w, std::int64_t m, int) {
  if (w.empty() || !w.impl()->any_quantised || m <= 0) return 64;
  return static_cast<std::size_t>(m * blocks_of(w.cols())) * sizeof(ActivationBlock) + 128;
}

void linear(const PackedMatrix& w, const float* x, std::int64_t m, std::int64_t x_stride, float* y,
            std::int64_t y_stride, const float* bias, void* scratch, const Parallel& parallel) {
  run(w, Finish::kStore, Activation::kSilu, x, m, x_stride, y, y_stride, bias, scratch, parallel);
}

void linear_add(const PackedMatrix& w, const float* x, std::int64_t m, std::int64_t x_stride, float* y,
                std::int64_t y_stride, const float* bias, void* scratch, const Parallel& parallel) {
  run(w, Finish::kAdd, Activation::kSilu, x, m, x_stride, y, y_stride, bias, scratch, parallel);
}

void linear_glu(const PackedMatrix& w, Activation act, const float* x, std::int64_t m, std::int64_t x_stride, float* y,
                std::int64_t y_stride, const float* bias, void* scratch, const Parallel& parallel) {
  run(w, Finish::kGlu, act, x, m, x_stride, y, y_stride, bias, scratch, parallel);
}

}  // namespace cairn::kernels
