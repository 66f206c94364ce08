#include "core/resources/tensor_args.hpp"

#include <string>

#include "core/base/error.hpp"

namespace cairn {
namespace {

[[noreturn]] void refuse(const cairn_tensor_view* view, const char* function, const char* argument,
                         const std::string& wanted) {
  std::string shape = "NULL";
  if (view != nullptr) {
    shape = "[";
    for (std::int32_t i = 0; i < view->ndim; ++i) {
      if (i > 0) shape += ", ";
      shape += std::to_string(view->shape[i]);
    }
    shape += "] of dtype code " + std::to_string(view->dtype.code) + " with " + std::to_string(view->dtype.bits) +
             " bits on device type " + std::to_string(view->device.type);
  }
  throw InvalidArgument(std::string(function) + ": " + argument + " is " + shape + ", but must be " + wanted + ".");
}

// Rows of a view whose dimensions after the first are compact; data may be null only without elements.
RowsView<std::byte> rows_of(const cairn_tensor_view& view, std::int64_t& row_elements, bool& compact) {
  RowsView<std::byte> rows;
  rows.rows = view.ndim > 0 ? view.shape[0] : 1;
  row_elements = 1;
  compact = true;
  for (std::int32_t i = view.ndim - 1; i >= 1; --i) {
    if (view.strides != nullptr && view.shape[i] > 1 && view.strides[i] != row_elements) compact = false;
    row_elements *= view.shape[i];
  }
  rows.row_elements = row_elements;
  rows.stride = view.strides != nullptr && view.ndim > 0 ? view.strides[0] : row_elements;
  rows.data = static_cast<std::byte*>(view.data) + view.byte_offset;
  return rows;
}

}  // namespace

RowsView<float> float_rows(const cairn_tensor_view* view, std::int64_t min_rows, std::int64_t row_elements,
                           const char* function, const char* argument) {
  if (view != nullptr && view->ndim >= 1 && view->shape != nullptr && view->device.type == CAIRN_DEVICE_CPU &&
      view->dtype.code == CAIRN_DTYPE_FLOAT && view->dtype.bits == 32 && view->dtype.lanes == 1) {
    std::int64_t elements = 0;
    bool compact = false;
    const RowsView<std::byte> rows = rows_of(*view, elements, compact);
    if (compact && rows.rows >= min_rows && (row_elements < 0 || elements == row_elements) &&
        (rows.rows <= 1 || rows.stride >= elements) && (view->data != nullptr || rows.rows * elements == 0)) {
      return {reinterpret_cast<float*>(rows.data), rows.rows, elements, rows.stride};
    }
  }
  refuse(view, function, argument,
         "float32 on the CPU with at least " + std::to_string(min_rows) + " rows" +
             (row_elements < 0 ? std::string() : " of " + std::to_string(row_elements) + " compact values"));
}

RowsView<std::int32_t> int32_rows(const cairn_tensor_view* view, std::int64_t min_rows, const char* function,
                                  const char* argument) {
  if (view != nullptr && view->ndim >= 1 && view->shape != nullptr && view->device.type == CAIRN_DEVICE_CPU &&
      view->dtype.code == CAIRN_DTYPE_INT && view->dtype.bits == 32 && view->dtype.lanes == 1) {
    std::int64_t elements = 0;
    bool compact = false;
    const RowsView<std::byte> rows = rows_of(*view, elements, compact);
    if (compact && elements == 1 && rows.rows >= min_rows && rows.stride == 1 &&
        (view->data != nullptr || rows.rows == 0)) {
      return {reinterpret_cast<std::int32_t*>(rows.data), rows.rows, 1, 1};
    }
  }
  refuse(view, function, argument, "compact int32 on the CPU with at least " + std::to_string(min_rows) + " rows");
}

}  // namespace cairn
