// "cairn.weights": metadata, tensors and prepacked matrices of an open weights file.
#include <fmt/format.h>

#include <atomic>
#include <limits>
#include <memory>
#include <vector>

#include "core/base/error.hpp"
#include "core/plugin/host_services.hpp"
#include "core/plugin/matrix.hpp"
#include "core/plugin/open_weights.hpp"
#include "core/plugin/service_tables.hpp"
#include "core/plugin/status.hpp"
#include "core/plugin/thread_context.hpp"
#include "core/plugin/weight_types.hpp"
#include "core/tensor/tensor.hpp"

namespace cairn {

namespace {

std::atomic<std::int64_t> matrix_count{0};

const OpenWeights& opened(const cairn_weights* weights) {
  if (weights == nullptr) throw InvalidArgument("weights is NULL; the deployment names no weights file");
  return *OpenWeights::from_handle(weights);
}

const TensorInfo& find_tensor(const OpenWeights& weights, std::string_view name) {
  const TensorInfo* info = weights.file().find(name);
  if (info == nullptr) {
    throw NotFound(fmt::format("{} has no tensor '{}'", weights.file().path().string(), name));
  }
  return *info;
}

cairn_status metadata(const cairn_weights* weights, cairn_str key, cairn_value* out) {
  return guard("weights.metadata", [&] {
    if (out == nullptr) throw InvalidArgument("out is NULL");
    *out = opened(weights).metadata(from_abi_str(key));
  });
}

cairn_status tensor_name(const cairn_weights* weights, std::uint64_t index, cairn_str* out) {
  return guard("weights.tensor_name", [&] {
    if (out == nullptr) throw InvalidArgument("out is NULL");
    const auto& tensors = opened(weights).file().tensors();
    if (index >= tensors.size()) throw std::out_of_range(fmt::format("index {} of {} tensors", index, tensors.size()));
    *out = to_abi_str(tensors[index].name);
  });
}

cairn_status tensor(const cairn_weights* weights, cairn_str name, cairn_tensor_view* out) {
  return guard("weights.tensor", [&] {
    if (out == nullptr) throw InvalidArgument("out is NULL");
    const TensorInfo& info = find_tensor(opened(weights), from_abi_str(name));
    *out = {.data = const_cast<std::byte*>(info.data),  // the view is marked read-only, and so are the pages
            .device = {CAIRN_DEVICE_CPU, 0},
            .ndim = static_cast<std::int32_t>(info.shape.size()),
            .dtype = abi_dtype(info.dtype),
            .shape = info.shape.data(),
            .strides = nullptr,
            .byte_offset = 0,
            .flags = CAIRN_TENSOR_READ_ONLY,
            .owner = nullptr};
  });
}

cairn_status tensor_f32(const cairn_weights* weights, cairn_str name, cairn_tensor** out_owned) {
  return guard("weights.tensor_f32", [&] {
    if (out_owned == nullptr) throw InvalidArgument("out_owned is NULL");
    const TensorInfo& info = find_tensor(opened(weights), from_abi_str(name));
    TensorPtr converted = Tensor::create(kFloat32, info.shape);
    // A row-major tensor of whole blocks is one long row to the converter.
    weights_to_f32(info.dtype, info.data, converted->elements(), reinterpret_cast<float*>(converted->data()));
    *out_owned = converted.release()->handle();
  });
}

struct Stack {
  std::vector<kernels::MatrixSource> parts;
  std::int64_t rows = 0;
  std::int64_t columns = -1;
};

Stack stack_of(const OpenWeights& weights, const cairn_str* names, std::uint64_t count) {
  Stack stack;
  for (std::uint64_t i = 0; i < count; ++i) {
    const TensorInfo& info = find_tensor(weights, from_abi_str(names[i]));
    if (info.shape.size() != 2) {
      throw InvalidArgument(
          fmt::format("the tensor '{}' has the shape {}, a matrix is needed", info.name, shape_string(info.shape)));
    }
    if (stack.columns >= 0 && info.shape[1] != stack.columns) {
      throw InvalidArgument(fmt::format("the tensor '{}' has the shape {}, those before it have {} columns", info.name,
                                        shape_string(info.shape), stack.columns));
    }
    const auto type = kernel_weight_type(info.dtype);
    if (!type) {
      throw NotSupported(fmt::format("the tensor '{}' is of type {}, which has no matrix kernel here", info.name,
                                     dtype_name(info.dtype)));
    }
    stack.columns = info.shape[1];
    stack.rows += info.shape[0];
    if (stack.rows > std::numeric_limits<std::int32_t>::max()) throw InvalidArgument("more than 2^31 rows");
    stack.parts.push_back({.type = *type, .data = info.data, .rows = info.shape[0], .row_stride_bytes = 0});
  }
  return stack;
}

// The two halves of a gated stack, given as one tensor or as two.
std::pair<kernels::MatrixSource, kernels::MatrixSource> halves(const Stack& stack) {
  if (stack.parts.size() == 1 && stack.rows % 2 == 0) {
    kernels::MatrixSource gate = stack.parts[0];
    gate.rows = stack.rows / 2;
    kernels::MatrixSource up = gate;
    const std::size_t row_bytes = kernels::weight_row_bytes(gate.type, stack.columns);
    up.data = static_cast<const std::byte*>(gate.data) + row_bytes * static_cast<std::size_t>(gate.rows);
    return {gate, up};
  }
  if (stack.parts.size() == 2 && stack.parts[0].rows == stack.parts[1].rows) return {stack.parts[0], stack.parts[1]};
  throw InvalidArgument(
      fmt::format("the gated layout takes one tensor with an even number of rows, or two with as many rows each; these "
                  "are {} with {} "
                  "rows in all",
                  stack.parts.size(), stack.rows));
}

cairn_status prepack(const cairn_weights* weights, const cairn_str* names, std::uint64_t count, std::uint32_t layout,
                     cairn_matrix** out_owned) {
  return guard("weights.prepack", [&] {
    if (out_owned == nullptr || names == nullptr || count == 0) {
      throw InvalidArgument("names or out_owned is NULL, or no tensor is named");
    }
    if (count > 4096) throw InvalidArgument(fmt::format("{} tensors in one matrix; at most 4096", count));
    if (layout != CAIRN_PREPACK_PLAIN && layout != CAIRN_PREPACK_GATED) {
      throw NotSupported(fmt::format("the layout {} is not known here", layout));
    }
    const Stack stack = stack_of(opened(weights), names, count);
    auto matrix = std::make_unique<Matrix>();
    matrix->rows = stack.rows;
    matrix->columns = stack.columns;
    if (layout == CAIRN_PREPACK_PLAIN) {
      matrix->packed = kernels::PackedMatrix::pack(stack.parts, stack.columns, current_parallel());
    } else {
      const auto [gate, up] = halves(stack);
      matrix->packed = kernels::PackedMatrix::pack_glu(gate, up, stack.columns, current_parallel());
    }
    matrix_count.fetch_add(1, std::memory_order_relaxed);
    *out_owned = matrix.release()->handle();
  });
}

void matrix_release(cairn_matrix* handle) {
  if (handle == nullptr) return;
  const std::unique_ptr<const Matrix> matrix(Matrix::from_handle(handle));
  matrix_count.fetch_sub(1, std::memory_order_relaxed);
}

cairn_status matrix_shape(const cairn_matrix* handle, std::int64_t* out_rows, std::int64_t* out_columns) {
  if (handle == nullptr || out_rows == nullptr || out_columns == nullptr) {
    return set_status(CAIRN_STATUS_INVALID_ARGUMENT, "weights.matrix_shape: NULL argument");
  }
  *out_rows = Matrix::from_handle(handle)->rows;
  *out_columns = Matrix::from_handle(handle)->columns;
  return CAIRN_STATUS_OK;
}

}  // namespace

std::int64_t live_matrices() noexcept {
  return matrix_count.load(std::memory_order_relaxed);
}

const cairn_weights_service kWeightsService = {
    .struct_size = sizeof(cairn_weights_service),
    .format = [](const cairn_weights* weights) -> std::uint32_t {
      if (weights == nullptr) return 0;
      return OpenWeights::from_handle(weights)->file().format() == WeightsFormat::kGguf ? CAIRN_WEIGHTS_GGUF
                                                                                        : CAIRN_WEIGHTS_SAFETENSORS;
    },
    .architecture = [](const cairn_weights* weights) -> cairn_str {
      return weights == nullptr ? cairn_str{} : to_abi_str(OpenWeights::from_handle(weights)->architecture());
    },
    .metadata = metadata,
    .tensor_count = [](const cairn_weights* weights) -> std::uint64_t {
      return weights == nullptr ? 0 : OpenWeights::from_handle(weights)->file().tensors().size();
    },
    .tensor_name = tensor_name,
    .tensor = tensor,
    .tensor_f32 = tensor_f32,
    .prepack = prepack,
    .matrix_release = matrix_release,
    .matrix_shape = matrix_shape,
};

}  // namespace cairn
