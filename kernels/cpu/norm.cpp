// Row loops of the norms; see norm.hpp.
#include "kernels/cpu/norm.hpp"

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/row_items.hpp"

namespace cairn::kernels {

void rms_norm(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t n, const float* weight, float eps,
              bool unit_offset, float* y, std::int64_t y_stride, const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  for_each_row_range(parallel, rows, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      table.rms_norm(x + r * x_stride, n, weight, eps, unit_offset, y + r * y_stride);
    }
  });
}

void add_rms_norm(float* residual, std::int64_t residual_stride, const float* delta, std::int64_t delta_stride,
                  std::int64_t rows, std::int64_t n, const float* weight, float eps, bool unit_offset, float* y,
                  std::int64_t y_stride, const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  for_each_row_range(parallel, rows, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      float* sum = residual + r * residual_stride;
      table.add(sum, delta + r * delta_stride, sum, n);
      table.rms_norm(sum, n, weight, eps, unit_offset, y + r * y_stride);
    }
  });
}

void head_rms_norm(float* x, std::int64_t x_stride, std::int64_t tokens, std::int64_t heads, std::int64_t head_dim,
                   const float* weight, float eps, bool unit_offset, const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  for_each_row_range(parallel, tokens, heads * head_dim, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        float* head = x + t * x_stride + h * head_dim;
        table.rms_norm(head, head_dim, weight, eps, unit_offset, head);
      }
    }
  });
}

void layer_norm(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t n, const float* weight,
                const float* bias, float eps, float* y, std::int64_t y_stride, const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  for_each_row_range(parallel, rows, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      table.layer_norm(x + r * x_stride, n, weight, bias, eps, y + r * y_stride);
    }
  });
}

}  // namespace cairn::kernels
