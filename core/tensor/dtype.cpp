// The table of element types, and checked size arithmetic on shapes.
#include "core/tensor/dtype.hpp"

#include <array>

#include "core/base/error.hpp"

namespace cairn {
namespace {

// Indexed by DType. Block layouts are GGUF's: scales, minima and high bits are inside the block.
constexpr std::array<DTypeInfo, kDTypeCount> kInfo{{
    {"F32", 1, 4},        {"F16", 1, 2},       {"BF16", 1, 2},     {"F64", 1, 8},        {"I8", 1, 1},
    {"U8", 1, 1},         {"I16", 1, 2},       {"U16", 1, 2},      {"I32", 1, 4},        {"U32", 1, 4},
    {"I64", 1, 8},        {"U64", 1, 8},       {"BOOL", 1, 1},     {"F8_E4M3", 1, 1},    {"F8_E5M2", 1, 1},
    {"Q4_0", 32, 18},     {"Q4_1", 32, 20},    {"Q5_0", 32, 22},   {"Q5_1", 32, 24},     {"Q8_0", 32, 34},
    {"IQ4_NL", 32, 18},   {"MXFP4", 32, 17},   {"Q2_K", 256, 84},  {"Q3_K", 256, 110},   {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},   {"Q6_K", 256, 210},  {"Q8_K", 256, 292}, {"IQ1_S", 256, 50},   {"IQ1_M", 256, 56},
    {"IQ2_XXS", 256, 66}, {"IQ2_XS", 256, 74}, {"IQ2_S", 256, 82}, {"IQ3_XXS", 256, 98}, {"IQ3_S", 256, 110},
    {"IQ4_XS", 256, 136}, {"TQ1_0", 256, 54},  {"TQ2_0", 256, 66},
}};

}  // namespace

const DTypeInfo& dtype_info(DType dtype) noexcept {
  return kInfo[static_cast<std::size_t>(dtype)];
}

std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) noexcept {
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, dim, &product)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : product;
}

std::optional<std::size_t> checked_nbytes(DType dtype, std::span<const std::int64_t> shape) noexcept {
  const auto count = element_count(shape);
  if (!count) return std::nullopt;
  const DTypeInfo& info = dtype_info(dtype);
  const std::int64_t last = shape.empty() ? 1 : shape.back();
  if (last % info.block_size != 0) return std::nullopt;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(*count / info.block_size, static_cast<std::int64_t>(info.block_bytes), &bytes)) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(bytes);
}

std::size_t nbytes(DType dtype, std::span<const std::int64_t> shape) {
  if (const auto bytes = checked_nbytes(dtype, shape)) return *bytes;
  const DTypeInfo& info = dtype_info(dtype);
  throw InvalidArgument("A tensor of type " + std::string(info.name) + " cannot have shape " + shape_string(shape) +
                        ": dimensions must not be negative, the last must be a multiple of " +
                        std::to_string(info.block_size) + ", and the size must fit in 63 bits.");
}

std::string shape_string(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t dim : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dim);
  }
  return text + "]";
}

}  // namespace cairn
