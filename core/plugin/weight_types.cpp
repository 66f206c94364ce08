// Tables between the three spellings, and conversion to float32.
#include "core/plugin/weight_types.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/base/error.hpp"

namespace cairn {

namespace {

// Reads element i of unaligned data.
template <class T>
T element(const std::byte* data, std::int64_t i) {
  T value;
  std::memcpy(&value, data + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void convert(const std::byte* data, std::int64_t elements, float* out) {
  for (std::int64_t i = 0; i < elements; ++i) out[i] = static_cast<float>(element<T>(data, i));
}

constexpr cairn_dtype block(std::uint8_t gguf_type) {
  return {CAIRN_DTYPE_BLOCK, gguf_type, 1};
}

}  // namespace

std::optional<kernels::WeightType> kernel_weight_type(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF32:
      return kernels::WeightType::kF32;
    case DType::kF16:
      return kernels::WeightType::kF16;
    case DType::kBF16:
      return kernels::WeightType::kBF16;
    case DType::kQ4_0:
      return kernels::WeightType::kQ4_0;
    case DType::kQ4_1:
      return kernels::WeightType::kQ4_1;
    case DType::kQ5_0:
      return kernels::WeightType::kQ5_0;
    case DType::kQ5_1:
      return kernels::WeightType::kQ5_1;
    case DType::kQ8_0:
      return kernels::WeightType::kQ8_0;
    case DType::kQ4_K:
      return kernels::WeightType::kQ4_K;
    case DType::kQ5_K:
      return kernels::WeightType::kQ5_K;
    case DType::kQ6_K:
      return kernels::WeightType::kQ6_K;
    default:
      return std::nullopt;
  }
}

cairn_dtype abi_dtype(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF32:
      return {CAIRN_DTYPE_FLOAT, 32, 1};
    case DType::kF16:
      return {CAIRN_DTYPE_FLOAT, 16, 1};
    case DType::kBF16:
      return {CAIRN_DTYPE_BFLOAT, 16, 1};
    case DType::kF64:
      return {CAIRN_DTYPE_FLOAT, 64, 1};
    case DType::kI8:
      return {CAIRN_DTYPE_INT, 8, 1};
    case DType::kU8:
      return {CAIRN_DTYPE_UINT, 8, 1};
    case DType::kI16:
      return {CAIRN_DTYPE_INT, 16, 1};
    case DType::kU16:
      return {CAIRN_DTYPE_UINT, 16, 1};
    case DType::kI32:
      return {CAIRN_DTYPE_INT, 32, 1};
    case DType::kU32:
      return {CAIRN_DTYPE_UINT, 32, 1};
    case DType::kI64:
      return {CAIRN_DTYPE_INT, 64, 1};
    case DType::kU64:
      return {CAIRN_DTYPE_UINT, 64, 1};
    case DType::kBool:
      return {CAIRN_DTYPE_BOOL, 8, 1};
    case DType::kF8E4M3:
      return {CAIRN_DTYPE_FLOAT8_E4M3FN, 8, 1};
    case DType::kF8E5M2:
      return {CAIRN_DTYPE_FLOAT8_E5M2, 8, 1};
    case DType::kQ4_0:
      return block(2);
    case DType::kQ4_1:
      return block(3);
    case DType::kQ5_0:
      return block(6);
    case DType::kQ5_1:
      return block(7);
    case DType::kQ8_0:
      return block(8);
    case DType::kQ2_K:
      return block(10);
    case DType::kQ3_K:
      return block(11);
    case DType::kQ4_K:
      return block(12);
    case DType::kQ5_K:
      return block(13);
    case DType::kQ6_K:
      return block(14);
    case DType::kQ8_K:
      return block(15);
    case DType::kIQ2_XXS:
      return block(16);
    case DType::kIQ2_XS:
      return block(17);
    case DType::kIQ3_XXS:
      return block(18);
    case DType::kIQ1_S:
      return block(19);
    case DType::kIQ4_NL:
      return block(20);
    case DType::kIQ3_S:
      return block(21);
    case DType::kIQ2_S:
      return block(22);
    case DType::kIQ4_XS:
      return block(23);
    case DType::kIQ1_M:
      return block(29);
    case DType::kTQ1_0:
      return block(34);
    case DType::kTQ2_0:
      return block(35);
    case DType::kMXFP4:
      return block(39);
  }
  return {CAIRN_DTYPE_OPAQUE, 8, 1};
}

void weights_to_f32(DType dtype, const std::byte* data, std::int64_t elements, float* out) {
  if (const auto type = kernel_weight_type(dtype)) {
    kernels::dequantize_row(*type, data, elements, out);
    return;
  }
  switch (dtype) {
    case DType::kF64:
      return convert<double>(data, elements, out);
    case DType::kI8:
      return convert<std::int8_t>(data, elements, out);
    case DType::kU8:
    case DType::kBool:
      return convert<std::uint8_t>(data, elements, out);
    case DType::kI16:
      return convert<std::int16_t>(data, elements, out);
    case DType::kU16:
      return convert<std::uint16_t>(data, elements, out);
    case DType::kI32:
      return convert<std::int32_t>(data, elements, out);
    case DType::kU32:
      return convert<std::uint32_t>(data, elements, out);
    case DType::kI64:
      return convert<std::int64_t>(data, elements, out);
    case DType::kU64:
      return convert<std::uint64_t>(data, elements, out);
    default:
      throw NotSupported(fmt::format("elements of type {} cannot be converted to float32", dtype_name(dtype)));
  }
}

}  // namespace cairn
