// The element types of weights in their three spellings: the file reader's, the kernels' and the ABI's.
// Used by the weights service.
#pragma once

#include <optional>

#include "cairn/abi.h"
#include "core/tensor/dtype.hpp"
#include "kernels/cpu/types.hpp"

namespace cairn {

// The type the linear kernels know it by; no value when they do not.
std::optional<kernels::WeightType> kernel_weight_type(DType dtype) noexcept;
// Block-quantised types become CAIRN_DTYPE_BLOCK with GGUF's number of the type.
cairn_dtype abi_dtype(DType dtype) noexcept;
// data[0..elements) as float32, exactly. Throws NotSupported for a type without a conversion.
void weights_to_f32(DType dtype, const std::byte* data, std::int64_t elements, float* out);

}  // namespace cairn
