// Softmax and log-softmax statistics of f32 rows, with one summing order on every instruction set. Used by the ops
// table and for log-probabilities.
#pragma once

#include <cstdint>

#include "kernels/cpu/parallel.hpp"

namespace cairn::kernels {

// y[r] = softmax(x[r]); x == y is allowed. A row without a finite maximum gives zeros.
void softmax(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t n, float* y, std::int64_t y_stride,
             const Parallel& parallel);

struct SoftmaxStats {
  float max = 0.0F;
  double log_sum_exp = 0.0;  // log(sum(exp(x))); log_softmax(x)[i] = x[i] - log_sum_exp
};
// NaN counts as minus infinity.
SoftmaxStats softmax_stats(const float* x, std::int64_t n);

}  // namespace cairn::kernels
