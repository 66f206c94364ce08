// Checks and folding of tensor views.
#include "core/plugin/view_matrix.hpp"

#include <fmt/format.h>

#include <limits>

#include "core/tensor/tensor.hpp"

namespace cairn {

namespace {

[[noreturn]] void bad(const char* name, const cairn_tensor_view& view, const std::string& problem) {
  throw InvalidArgument(fmt::format("{} {} {}", name, view_string(view), problem));
}

bool is_dtype(cairn_dtype a, cairn_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

// Elements of all dimensions of which none is negative.
std::int64_t checked_elements(const char* name, const cairn_tensor_view& view) {
  const auto count = element_count(view_shape(view));
  if (!count || *count > std::numeric_limits<std::int64_t>::max() / 8) bad(name, view, "has an impossible shape");
  return *count;
}

template <class T>
Rows<T> fold(const cairn_tensor_view* given, const char* name, std::int64_t columns, cairn_dtype dtype,
             const char* dtype_text) {
  if (given == nullptr) throw InvalidArgument(fmt::format("{} is NULL", name));
  const cairn_tensor_view& view = *given;
  if (view.ndim < 1 || view.ndim > kMaxViewDims || view.shape == nullptr) {
    throw InvalidArgument(fmt::format("{} has {} dimensions; 1 to {} are allowed", name, view.ndim, kMaxViewDims));
  }
  if (!is_dtype(view.dtype, dtype)) bad(name, view, fmt::format("is not {}", dtype_text));
  if (view.device.type != CAIRN_DEVICE_CPU) bad(name, view, "is not in CPU memory");
  const std::int64_t elements = checked_elements(name, view);
  if (columns < 0) columns = view.shape[view.ndim - 1];
  if (elements == 0)
    return {.data = nullptr, .rows = columns == 0 ? 0 : elements, .columns = columns, .stride = columns};
  if (columns <= 0 || elements % columns != 0)
    bad(name, view, fmt::format("is not made of rows of {} elements", columns));
  if (view.data == nullptr) bad(name, view, "has no memory (data is NULL)");
  auto* data = reinterpret_cast<T*>(static_cast<char*>(view.data) + view.byte_offset);
  if (reinterpret_cast<std::uintptr_t>(data) % alignof(T) != 0) bad(name, view, "is not aligned to its elements");

  // Innermost outwards: first the dimensions of a row, then those that count rows. Sizes are bounded by `elements`.
  const auto stride_of = [&](std::int32_t dim, std::int64_t compact) {
    return view.strides == nullptr ? compact : view.strides[dim];
  };
  std::int64_t inner = 1;
  std::int32_t dim = view.ndim - 1;
  for (; dim >= 0 && inner < columns; --dim) {
    const std::int64_t size = view.shape[dim];
    if (size != 1 && stride_of(dim, inner) != inner) bad(name, view, "is not contiguous within a row");
    inner *= size;
  }
  if (inner != columns) bad(name, view, fmt::format("cannot be cut into rows of {} elements", columns));
  Rows<T> rows{.data = data, .rows = 1, .columns = columns, .stride = columns};
  std::int64_t compact = columns;
  for (; dim >= 0; --dim) {
    const std::int64_t size = view.shape[dim];
    const std::int64_t stride = stride_of(dim, compact);
    compact *= size;
    if (size == 1) continue;
    if (rows.rows == 1) {
      if (stride < columns || stride > std::numeric_limits<std::int64_t>::max() / 8 / size) {
        bad(name, view, "has rows that overlap or are impossibly far apart");
      }
      rows.stride = stride;
    } else if (stride != rows.stride * rows.rows) {
      bad(name, view, "has rows that are not evenly spaced");
    }
    rows.rows *= size;
  }
  return rows;
}

}  // namespace

std::string view_string(const cairn_tensor_view& view) {
  if (view.ndim < 0 || view.ndim > kMaxViewDims || view.shape == nullptr) return "[?]";
  std::string text = shape_string(view_shape(view));
  if (view.strides != nullptr) {
    text += " strides " + shape_string({view.strides, static_cast<std::size_t>(view.ndim)});
  }
  return text;
}

FloatRows float_rows(const cairn_tensor_view* view, const char* name, std::int64_t columns) {
  return fold<float>(view, name, columns, kFloat32, "float32");
}

IdRows id_rows(const cairn_tensor_view* view, const char* name, std::int64_t columns) {
  return fold<std::int32_t>(view, name, columns, kInt32, "int32");
}

FloatRows output_rows(const cairn_tensor_view* view, const char* name, std::int64_t columns) {
  const FloatRows rows = float_rows(view, name, columns);
  if ((view->flags & CAIRN_TENSOR_READ_ONLY) != 0) bad(name, *view, "is read-only");
  return rows;
}

const float* optional_vector(const cairn_tensor_view* view, const char* name, std::int64_t count) {
  if (view == nullptr) return nullptr;
  const FloatRows rows = float_rows(view, name, count);
  if (rows.rows != 1) bad(name, *view, fmt::format("does not have {} elements", count));
  return rows.data;
}

bool overlap(const FloatRows& a, const FloatRows& b) {
  if (a.data == nullptr || b.data == nullptr) return false;
  const auto begin = [](const FloatRows& r) { return reinterpret_cast<std::uintptr_t>(r.data); };
  const auto end = [&](const FloatRows& r) {
    return begin(r) + static_cast<std::uintptr_t>((r.rows - 1) * r.stride + r.columns) * sizeof(float);
  };
  return begin(a) < end(b) && begin(b) < end(a);
}

bool same_place(const FloatRows& a, const FloatRows& b) {
  return a.data == b.data && a.rows == b.rows && a.columns == b.columns && (a.stride == b.stride || a.rows <= 1);
}

}  // namespace cairn
