// Element-wise operations over ranges; see activation.hpp.
#include "kernels/cpu/activation.hpp"

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/row_items.hpp"

namespace cairn::kernels {

void activate(Activation act, const float* x, float* y, std::int64_t n, const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  for_each_element_range(parallel, n, [&](std::int64_t first, std::int64_t last) {
    table.activate(act, x + first, y + first, last - first);
  });
}

void gated_activate(Activation act, const float* gate, std::int64_t gate_stride, const float* up,
                    std::int64_t up_stride, std::int64_t rows, std::int64_t n, float* y, std::int64_t y_stride,
                    const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  for_each_row_range(parallel, rows, n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      table.gated(act, gate + r * gate_stride, up + r * up_stride, y + r * y_stride, n);
    }
  });
}

void add(const float* a, const float* b, float* y, std::int64_t n, const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  for_each_element_range(parallel, n, [&](std::int64_t first, std::int64_t last) {
    table.add(a + first, b + first, y + first, last - first);
  });
}

void mul(const float* a, const float* b, float* y, std::int64_t n, const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  for_each_element_range(parallel, n, [&](std::int64_t first, std::int64_t last) {
    table.mul(a + first, b + first, y + first, last - first);
  });
}

void scale(const float* a, float factor, float* y, std::int64_t n, const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  for_each_element_range(parallel, n, [&](std::int64_t first, std::int64_t last) {
    table.scale(a + first, factor, y + first, last - first);
  });
}

void softcap(const float* x, float cap, float* y, std::int64_t n, const Parallel& parallel) {
  const ElementTable& table = element_table(active_isa());
  for_each_element_range(parallel, n, [&](std::int64_t first, std::int64_t last) {
    table.softcap(x + first, cap, y + first, last - first);
  });
}

}  // namespace cairn::kernels
