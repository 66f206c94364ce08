// Softmax rows and statistics; see softmax.hpp.
#include "kernels/cpu/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/row_items.hpp"

namespace cairn::kernels {
namespace {

// Sum of exp(x - max) in runs of kSumRun, the exponentials going to y.
double exponentials(const ElementTable& table, const float* x, std::int64_t n, float max, float* y) {
  double total = 0.0;
  for (std::int64_t i = 0; i < n; i += kSumRun) {
    float sum;
    table.exp_runs(x + i, std::min(kSumRun, n - i), max, 1.0F, y + i, &sum);
    total += sum;
  }
  return total;
}

}  // namespace

void softmax(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t n, float* y, std::int64_t y_stride,
             const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  for_each_row_range(parallel, rows, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      float* to = y + r * y_stride;
      const float max = table.max(x + r * x_stride, n);
      if (!std::isfinite(max)) {
        std::fill(to, to + n, 0.0F);
        continue;
      }
      const double total = exponentials(table, x + r * x_stride, n, max, to);
      table.scale(to, static_cast<float>(1.0 / total), to, n);
    }
  });
}

SoftmaxStats softmax_stats(const float* x, std::int64_t n) {
  const ElementTable& table = element_table(active_isa());
  const float max = table.max(x, n);
  if (!std::isfinite(max)) return {max, static_cast<double>(max)};
  double total = 0.0;
  float run[kSumRun];
  for (std::int64_t i = 0; i < n; i += kSumRun) {
    float sum;
    table.exp_runs(x + i, std::min(kSumRun, n - i), max, 1.0F, run, &sum);
    total += sum;
  }
  return {max, static_cast<double>(max) + std::log(total)};
}

}  // namespace cairn::kernels
