// Checks of tensor views that layers pass to resources: CPU float32 or int32 rows whose inner dimensions are compact.
// The token (outermost) stride may be larger than compact, so that q, k and v can be slices of one fused projection.
#pragma once

#include <cstdint>

#include "cairn/abi.h"

namespace cairn {

// Rows of `row_elements` values each, `stride` elements apart.
template <class T>
struct RowsView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_elements = 0;
  std::int64_t stride = 0;
};

// Each throws InvalidArgument naming `function`, `argument` and the offending shape.
RowsView<float> float_rows(const cairn_tensor_view* view, std::int64_t min_rows, std::int64_t row_elements,
                           const char* function, const char* argument);
RowsView<std::int32_t> int32_rows(const cairn_tensor_view* view, std::int64_t min_rows, const char* function,
                                  const char* argument);

}  // namespace cairn
