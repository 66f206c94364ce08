// Token embedding: rows of a weight matrix as exact f32. Used at the start of a forward pass.
#pragma once

#include <cstdint>

#include "kernels/cpu/linear.hpp"
#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/types.hpp"

namespace cairn::kernels {

// y[i][0..cols) = scale * row ids[i]. An id outside [0, rows) gives a row of zeros (padding); callers refuse real
// requests with such ids. scale is 1 for most models (exact then); Gemma multiplies by sqrt(hidden).
void embedding(WeightType type, const void* table, std::int64_t rows, std::int64_t cols, const std::int32_t* ids,
               std::int64_t n, float scale, float* y, std::int64_t y_stride, const Parallel& parallel);
// The same from a packed matrix (tied embedding and head share one copy in memory).
void embedding(const PackedMatrix& table, const std::int32_t* ids, std::int64_t n, float scale, float* y,
               std::int64_t y_stride, const Parallel& parallel);

}  // namespace cairn::kernels
