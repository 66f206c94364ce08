// Tables of the GGUF format.
#include "core/weights/gguf_types.hpp"

namespace cairn {

std::string_view gguf_value_type_name(GgufValueType type) {
  switch (type) {
    case GgufValueType::kU8:
      return "U8";
    case GgufValueType::kI8:
      return "I8";
    case GgufValueType::kU16:
      return "U16";
    case GgufValueType::kI16:
      return "I16";
    case GgufValueType::kU32:
      return "U32";
    case GgufValueType::kI32:
      return "I32";
    case GgufValueType::kF32:
      return "F32";
    case GgufValueType::kBool:
      return "boolean";
    case GgufValueType::kString:
      return "string";
    case GgufValueType::kArray:
      return "array";
    case GgufValueType::kU64:
      return "U64";
    case GgufValueType::kI64:
      return "I64";
    case GgufValueType::kF64:
      return "F64";
  }
  return "unknown";
}

std::size_t gguf_scalar_size(GgufValueType type) {
  switch (type) {
    case GgufValueType::kU8:
    case GgufValueType::kI8:
    case GgufValueType::kBool:
      return 1;
    case GgufValueType::kU16:
    case GgufValueType::kI16:
      return 2;
    case GgufValueType::kU32:
    case GgufValueType::kI32:
    case GgufValueType::kF32:
      return 4;
    case GgufValueType::kU64:
    case GgufValueType::kI64:
    case GgufValueType::kF64:
      return 8;
    case GgufValueType::kString:
    case GgufValueType::kArray:
      break;
  }
  return 0;
}

std::optional<DType> gguf_tensor_dtype(std::uint32_t number) {
  switch (number) {
    case 0:
      return DType::kF32;
    case 1:
      return DType::kF16;
    case 2:
      return DType::kQ4_0;
    case 3:
      return DType::kQ4_1;
    case 6:
      return DType::kQ5_0;
    case 7:
      return DType::kQ5_1;
    case 8:
      return DType::kQ8_0;
    case 10:
      return DType::kQ2_K;
    case 11:
      return DType::kQ3_K;
    case 12:
      return DType::kQ4_K;
    case 13:
      return DType::kQ5_K;
    case 14:
      return DType::kQ6_K;
    case 15:
      return DType::kQ8_K;
    case 16:
      return DType::kIQ2_XXS;
    case 17:
      return DType::kIQ2_XS;
    case 18:
      return DType::kIQ3_XXS;
    case 19:
      return DType::kIQ1_S;
    case 20:
      return DType::kIQ4_NL;
    case 21:
      return DType::kIQ3_S;
    case 22:
      return DType::kIQ2_S;
    case 23:
      return DType::kIQ4_XS;
    case 24:
      return DType::kI8;
    case 25:
      return DType::kI16;
    case 26:
      return DType::kI32;
    case 27:
      return DType::kI64;
    case 28:
      return DType::kF64;
    case 29:
      return DType::kIQ1_M;
    case 30:
      return DType::kBF16;
    case 34:
      return DType::kTQ1_0;
    case 35:
      return DType::kTQ2_0;
    case 39:
      return DType::kMXFP4;
    default:
      return std::nullopt;
  }
}

}  // namespace cairn
