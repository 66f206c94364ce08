// Row gather with exact dequantisation; see embedding.hpp.
#include "kernels/cpu/embedding.hpp"

#include <algorithm>

#include "kernels/cpu/row_items.hpp"

namespace cairn::kernels {
namespace {

template <class Decode>
void gather(std::int64_t rows, std::int64_t cols, const std::int32_t* ids, std::int64_t n, float scale, float* y,
            std::int64_t y_stride, const Parallel& parallel, Decode&& decode) {
  for_each_row_range(parallel, n, cols, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      float* to = y + i * y_stride;
      if (ids[i] < 0 || ids[i] >= rows) {
        std::fill(to, to + cols, 0.0F);
        continue;
      }
      decode(std::int64_t{ids[i]}, to);
      if (scale != 1.0F) {
        for (std::int64_t c = 0; c < cols; ++c) to[c] *= scale;
      }
    }
  });
}

}  // namespace

void embedding(WeightType type, const void* table, std::int64_t rows, std::int64_t cols, const std::int32_t* ids,
               std::int64_t n, float scale, float* y, std::int64_t y_stride, const Parallel& parallel) {
  const std::size_t row_bytes = weight_row_bytes(type, cols);
  gather(rows, cols, ids, n, scale, y, y_stride, parallel, [&](std::int64_t id, float* to) {
    dequantize_row(type, static_cast<const std::uint8_t*>(table) + static_cast<std::size_t>(id) * row_bytes, cols, to);
  });
}

void embedding(const PackedMatrix& table, const std::int32_t* ids, std::int64_t n, float scale, float* y,
               std::int64_t y_stride, const Parallel& parallel) {
  gather(table.rows(), table.cols(), ids, n, scale, y, y_stride, parallel,
         [&](std::int64_t id, float* to) { table.dequantize_row(id, to); });
}

}  // namespace cairn::kernels
