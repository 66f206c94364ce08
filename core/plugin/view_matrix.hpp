// Tensor views as the kernels take them: checked, and folded to rows of floats with one stride between them.
// Used by the ops service. Nothing here allocates unless a check fails.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cairn/abi.h"
#include "core/base/error.hpp"
#include "core/tensor/dtype.hpp"

namespace cairn {

// Dimensions that a view from a plugin may have.
inline constexpr std::int32_t kMaxViewDims = 16;

// `rows` rows of `columns` contiguous elements, `stride` elements apart.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
  bool compact() const { return stride == columns || rows <= 1; }
};
using FloatRows = Rows<float>;
using IdRows = Rows<std::int32_t>;

// "[3, 576] strides [1152, 1]" for messages.
std::string view_string(const cairn_tensor_view& view);

// The shape of a view that has passed as_rows.
inline std::span<const std::int64_t> view_shape(const cairn_tensor_view& view) {
  return {view.shape, static_cast<std::size_t>(view.ndim)};
}

// Folds a view so that the trailing dimensions make `columns` elements (-1: the last dimension alone). The trailing
// dimensions must be contiguous and the leading ones evenly spaced. `name` is the argument's, for messages. Throws
// InvalidArgument: NULL, device, dtype, shape, strides, alignment.
FloatRows float_rows(const cairn_tensor_view* view, const char* name, std::int64_t columns = -1);
IdRows id_rows(const cairn_tensor_view* view, const char* name, std::int64_t columns = -1);

// An output: also not read-only.
FloatRows output_rows(const cairn_tensor_view* view, const char* name, std::int64_t columns = -1);

// A compact vector of `count` floats, or nullptr for a NULL view.
const float* optional_vector(const cairn_tensor_view* view, const char* name, std::int64_t count);

// Whether the two ranges of memory share a byte.
bool overlap(const FloatRows& a, const FloatRows& b);
// Whether the two are the same elements at the same places.
bool same_place(const FloatRows& a, const FloatRows& b);

}  // namespace cairn
