// Splitting independent rows into work items. Private to kernels/cpu.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/parallel.hpp"

namespace cairn::kernels {

// Below this many elements a hand-over to another thread costs more than the work.
inline constexpr std::int64_t kSerialElements = 16384;

// Calls body(first, last) for ranges that cover rows [0, rows), each row `elements` long.
template <class Body>
void for_each_row_range(const Parallel& parallel, std::int64_t rows, std::int64_t elements, Body&& body) {
  if (rows <= 0) return;
  if (parallel.threads <= 1 || rows * elements <= kSerialElements) {
    body(std::int64_t{0}, rows);
    return;
  }
  const std::int64_t items = std::min<std::int64_t>(rows, std::int64_t{4} * parallel.threads);
  parallel.for_each(static_cast<int>(items),
                    [&](int item, int) { body(rows * item / items, rows * (item + 1) / items); });
}

// The same for a flat array: ranges begin at multiples of 1024 elements, so results do not depend on the split.
template <class Body>
void for_each_element_range(const Parallel& parallel, std::int64_t n, Body&& body) {
  constexpr std::int64_t kUnit = 1024;
  for_each_row_range(parallel, (n + kUnit - 1) / kUnit, kUnit,
                     [&](std::int64_t first, std::int64_t last) { body(first * kUnit, std::min(n, last * kUnit)); });
}

}  // namespace cairn::kernels
