// "cairn.ops": argument checks, then the kernels. On the way to a kernel nothing is allocated but this thread's
// scratch, which only grows.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/plugin/dense_ops.hpp"
#include "core/plugin/matrix.hpp"
#include "core/plugin/service_tables.hpp"
#include "core/plugin/status.hpp"
#include "core/plugin/thread_context.hpp"
#include "core/plugin/view_matrix.hpp"
#include "kernels/cpu/activation.hpp"
#include "kernels/cpu/embedding.hpp"
#include "kernels/cpu/linear.hpp"
#include "kernels/cpu/norm.hpp"
#include "kernels/cpu/softmax.hpp"

namespace cairn {

namespace {

using View = cairn_tensor_view;

[[noreturn]] void mismatch(const char* a_name, const View& a, const char* b_name, const View& b) {
  throw InvalidArgument(fmt::format("{} {} does not fit {} {}", a_name, view_string(a), b_name, view_string(b)));
}

const Matrix& matrix_of(const cairn_matrix* handle, bool gated) {
  if (handle == nullptr) throw InvalidArgument("matrix is NULL");
  const Matrix& matrix = *Matrix::from_handle(handle);
  if (matrix.packed.is_glu() != gated) {
    throw InvalidArgument(gated ? "the matrix was not prepacked as CAIRN_PREPACK_GATED"
                                : "the matrix was prepacked as CAIRN_PREPACK_GATED, which only linear_gated takes");
  }
  return matrix;
}

kernels::Activation activation_of(std::uint32_t activation) {
  switch (activation) {
    case CAIRN_ACTIVATION_SILU:
      return kernels::Activation::kSilu;
    case CAIRN_ACTIVATION_GELU_TANH:
      return kernels::Activation::kGeluTanh;
    case CAIRN_ACTIVATION_GELU:
      return kernels::Activation::kGeluErf;
    default:
      throw NotSupported(fmt::format("the activation {} is not known here", activation));
  }
}

void forbid_overlap(const FloatRows& input, const char* name, const FloatRows& out) {
  if (overlap(input, out)) throw InvalidArgument(fmt::format("out shares memory with {}", name));
}

// For ops that may work in place: the same elements or none in common.
void forbid_partial_overlap(const FloatRows& input, const char* name, const FloatRows& out) {
  if (overlap(input, out) && !same_place(input, out)) {
    throw InvalidArgument(fmt::format("out shares memory with {} without being the same tensor", name));
  }
}

// Elements of one entry of dimension 0: what stays contiguous in the views of a fused projection.
std::int64_t entry_elements(const View* view, const char* name) {
  if (view == nullptr) throw InvalidArgument(fmt::format("{} is NULL", name));
  if (view->ndim < 2 || view->ndim > kMaxViewDims || view->shape == nullptr) return -1;  // float_rows checks the rest
  const auto count = element_count(view_shape(*view).subspan(1));
  if (!count) throw InvalidArgument(fmt::format("{} {} has an impossible shape", name, view_string(*view)));
  return *count;
}

bool same_shape(const View& a, const View& b) {
  return std::ranges::equal(view_shape(a), view_shape(b));
}

// Input and output of one shape, as rows of dimension 0.
struct Pair {
  FloatRows x;
  FloatRows out;
};
Pair same_shape_pair(const View* x, const View* out) {
  const Pair pair{float_rows(x, "x", entry_elements(x, "x")), output_rows(out, "out", entry_elements(out, "out"))};
  if (!same_shape(*x, *out)) mismatch("x", *x, "out", *out);
  forbid_partial_overlap(pair.x, "x", pair.out);
  return pair;
}

int task_count(std::int64_t count) {
  if (count > std::numeric_limits<int>::max()) throw InvalidArgument(fmt::format("{} rows in one call", count));
  return static_cast<int>(count);
}

// Runs body(x, x_stride, rows, out, out_stride, parallel) over all vectors of `width` elements, with as few calls as
// the strides allow.
template <class Body>
void over_last_dimension(const Pair& pair, std::int64_t width, Body&& body) {
  if (pair.x.rows == 0 || width == 0) return;
  const auto& parallel = current_parallel();
  const std::int64_t inner = pair.x.columns / width;
  if (inner == 1) return body(pair.x.data, pair.x.stride, pair.x.rows, pair.out.data, pair.out.stride, parallel);
  if (pair.x.compact() && pair.out.compact()) {
    return body(pair.x.data, width, pair.x.rows * inner, pair.out.data, width, parallel);
  }
  parallel.for_each(task_count(pair.x.rows), [&](int row, int) {
    body(pair.x.data + row * pair.x.stride, width, inner, pair.out.data + row * pair.out.stride, width,
         kernels::serial());
  });
}

std::int64_t last_extent(const View& view) {
  return view.shape[view.ndim - 1];
}

cairn_status linear(const cairn_matrix* handle, const View* x, const View* bias, std::uint32_t accumulate,
                    const View* out) {
  return guard("ops.linear", [&] {
    const Matrix& matrix = matrix_of(handle, false);
    const FloatRows in = float_rows(x, "x", matrix.columns);
    const FloatRows to = output_rows(out, "out", matrix.rows);
    if (in.rows != to.rows) mismatch("x", *x, "out", *out);
    const float* bias_data = optional_vector(bias, "bias", matrix.rows);
    forbid_overlap(in, "x", to);
    if (in.rows == 0) return;
    const auto& parallel = current_parallel();
    void* scratch = thread_scratch(kernels::linear_scratch_bytes(matrix.packed, in.rows, parallel.threads));
    const auto run = accumulate != 0 ? kernels::linear_add : kernels::linear;
    run(matrix.packed, in.data, in.rows, in.stride, to.data, to.stride, bias_data, scratch, parallel);
  });
}

cairn_status linear_gated(const cairn_matrix* handle, const View* x, std::uint32_t activation, const View* out) {
  return guard("ops.linear_gated", [&] {
    const Matrix& matrix = matrix_of(handle, true);
    const FloatRows in = float_rows(x, "x", matrix.columns);
    const FloatRows to = output_rows(out, "out", matrix.rows / 2);
    if (in.rows != to.rows) mismatch("x", *x, "out", *out);
    const auto act = activation_of(activation);
    forbid_overlap(in, "x", to);
    if (in.rows == 0) return;
    const auto& parallel = current_parallel();
    void* scratch = thread_scratch(kernels::linear_scratch_bytes(matrix.packed, in.rows, parallel.threads));
    kernels::linear_glu(matrix.packed, act, in.data, in.rows, in.stride, to.data, to.stride, nullptr, scratch,
                        parallel);
  });
}

cairn_status embedding(const cairn_matrix* handle, const View* ids, const View* out) {
  return guard("ops.embedding", [&] {
    const Matrix& matrix = matrix_of(handle, false);
    const IdRows tokens = id_rows(ids, "ids");
    if (tokens.rows > 1) throw InvalidArgument(fmt::format("ids {} is not a vector", view_string(*ids)));
    const std::int64_t count = tokens.rows * tokens.columns;
    const FloatRows to = output_rows(out, "out", matrix.columns);
    if (to.rows != count) mismatch("ids", *ids, "out", *out);
    for (std::int64_t i = 0; i < count; ++i) {
      if (tokens.data[i] < 0 || tokens.data[i] >= matrix.rows) {
        throw std::out_of_range(
            fmt::format("id {} at position {} is outside the {} rows of the matrix", tokens.data[i], i, matrix.rows));
      }
    }
    if (count == 0) return;
    kernels::embedding(matrix.packed, tokens.data, count, 1.0F, to.data, to.stride, current_parallel());
  });
}

cairn_status rms_norm(const View* x, const View* weight, double eps, const View* out) {
  return guard("ops.rms_norm", [&] {
    const Pair pair = same_shape_pair(x, out);
    const std::int64_t width = last_extent(*x);
    const float* scale = optional_vector(weight, "weight", width);
    over_last_dimension(pair, width,
                        [&](const float* in, std::int64_t in_stride, std::int64_t rows, float* to,
                            std::int64_t to_stride, const kernels::Parallel& parallel) {
                          kernels::rms_norm(in, in_stride, rows, width, scale, static_cast<float>(eps), false, to,
                                            to_stride, parallel);
                        });
  });
}

cairn_status layer_norm(const View* x, const View* weight, const View* bias, double eps, const View* out) {
  return guard("ops.layer_norm", [&] {
    const Pair pair = same_shape_pair(x, out);
    const std::int64_t width = last_extent(*x);
    const float* scale = optional_vector(weight, "weight", width);
    const float* shift = optional_vector(bias, "bias", width);
    over_last_dimension(pair, width,
                        [&](const float* in, std::int64_t in_stride, std::int64_t rows, float* to,
                            std::int64_t to_stride, const kernels::Parallel& parallel) {
                          kernels::layer_norm(in, in_stride, rows, width, scale, shift, static_cast<float>(eps), to,
                                              to_stride, parallel);
                        });
  });
}

cairn_status softmax(const View* x, const View* out) {
  return guard("ops.softmax", [&] {
    const Pair pair = same_shape_pair(x, out);
    const std::int64_t width = last_extent(*x);
    over_last_dimension(pair, width,
                        [&](const float* in, std::int64_t in_stride, std::int64_t rows, float* to,
                            std::int64_t to_stride, const kernels::Parallel& parallel) {
                          kernels::softmax(in, in_stride, rows, width, to, to_stride, parallel);
                        });
  });
}

using Elementwise = void (*)(const float* a, const float* b, float* y, std::int64_t n,
                             const kernels::Parallel& parallel);

// The elements of b when it is repeated over leading dimensions of a, which its shape must then end.
std::int64_t broadcast_elements(const View& a, const View& b) {
  auto shape = view_shape(b);
  while (shape.size() > 1 && shape.front() == 1) shape = shape.subspan(1);
  const auto whole = view_shape(a);
  const bool fits =
      shape.size() <= whole.size() && std::ranges::equal(shape, whole.subspan(whole.size() - shape.size()));
  if (!fits) mismatch("b", b, "a", a);
  return element_count(shape).value_or(0);
}

void elementwise(const View* a, const View* b, const View* out, Elementwise run) {
  const FloatRows first = float_rows(a, "a", entry_elements(a, "a"));
  const FloatRows to = output_rows(out, "out", entry_elements(out, "out"));
  if (!same_shape(*a, *out)) mismatch("a", *a, "out", *out);
  forbid_partial_overlap(first, "a", to);
  const FloatRows second = float_rows(b, "b", entry_elements(b, "b"));
  const auto& parallel = current_parallel();
  if (same_shape(*a, *b)) {
    forbid_partial_overlap(second, "b", to);
    if (first.rows == 0) return;
    if (first.compact() && second.compact() && to.compact()) {
      return run(first.data, second.data, to.data, first.rows * first.columns, parallel);
    }
    return parallel.for_each(task_count(first.rows), [&](int row, int) {
      run(first.data + row * first.stride, second.data + row * second.stride, to.data + row * to.stride, first.columns,
          kernels::serial());
    });
  }
  const std::int64_t width = broadcast_elements(*a, *b);
  forbid_overlap(second, "b", to);
  if (first.rows == 0 || width == 0) return;
  if (!second.compact()) throw InvalidArgument(fmt::format("b {} is not contiguous", view_string(*b)));
  parallel.for_each(task_count(first.rows), [&](int row, int) {
    for (std::int64_t at = 0; at < first.columns; at += width) {
      run(first.data + row * first.stride + at, second.data, to.data + row * to.stride + at, width, kernels::serial());
    }
  });
}

cairn_status add(const View* a, const View* b, const View* out) {
  return guard("ops.add", [&] { elementwise(a, b, out, kernels::add); });
}

cairn_status mul(const View* a, const View* b, const View* out) {
  return guard("ops.mul", [&] { elementwise(a, b, out, kernels::mul); });
}

cairn_status activation(const View* x, std::uint32_t kind, const View* out) {
  return guard("ops.activation", [&] {
    const auto act = activation_of(kind);
    const Pair pair = same_shape_pair(x, out);
    const auto& parallel = current_parallel();
    if (pair.x.rows == 0) return;
    if (pair.x.compact() && pair.out.compact()) {
      return kernels::activate(act, pair.x.data, pair.out.data, pair.x.rows * pair.x.columns, parallel);
    }
    parallel.for_each(task_count(pair.x.rows), [&](int row, int) {
      kernels::activate(act, pair.x.data + row * pair.x.stride, pair.out.data + row * pair.out.stride, pair.x.columns,
                        kernels::serial());
    });
  });
}

cairn_status gated(const View* gate, const View* up, std::uint32_t kind, const View* out) {
  return guard("ops.gated", [&] {
    const auto act = activation_of(kind);
    const FloatRows g = float_rows(gate, "gate", entry_elements(gate, "gate"));
    const FloatRows u = float_rows(up, "up", entry_elements(up, "up"));
    const FloatRows to = output_rows(out, "out", entry_elements(out, "out"));
    if (!same_shape(*gate, *up)) mismatch("gate", *gate, "up", *up);
    if (!same_shape(*gate, *out)) mismatch("gate", *gate, "out", *out);
    forbid_partial_overlap(g, "gate", to);
    forbid_partial_overlap(u, "up", to);
    if (g.rows == 0) return;
    kernels::gated_activate(act, g.data, g.stride, u.data, u.stride, g.rows, g.columns, to.data, to.stride,
                            current_parallel());
  });
}

cairn_status matmul(const View* a, const View* b, const View* out) {
  return guard("ops.matmul", [&] {
    const FloatRows left = float_rows(a, "a");
    const FloatRows right = float_rows(b, "b");
    const FloatRows to = output_rows(out, "out");
    if (a->ndim != 2 || b->ndim != 2 || out->ndim != 2) {
      throw InvalidArgument(
          fmt::format("a {}, b {} and out {} must be matrices", view_string(*a), view_string(*b), view_string(*out)));
    }
    if (a->shape[1] != b->shape[0]) mismatch("a", *a, "b", *b);
    if (out->shape[0] != a->shape[0] || out->shape[1] != b->shape[1]) mismatch("b", *b, "out", *out);
    forbid_overlap(left, "a", to);
    forbid_overlap(right, "b", to);
    if (to.rows == 0) return;
    (void)task_count(to.rows);
    (void)task_count(to.columns);
    dense_matmul(left.data, left.stride, right.data, right.stride, to.rows, a->shape[1], to.columns, to.data, to.stride,
                 current_parallel());
  });
}

// A whole compact tensor of `ndim` dimensions.
FloatRows compact_tensor(const View* view, const char* name, std::int32_t ndim, bool is_output = false) {
  const FloatRows rows = is_output ? output_rows(view, name) : float_rows(view, name);
  if (view->ndim != ndim)
    throw InvalidArgument(fmt::format("{} {} does not have {} dimensions", name, view_string(*view), ndim));
  if (!rows.compact()) throw InvalidArgument(fmt::format("{} {} is not contiguous", name, view_string(*view)));
  return rows;
}

ConvAxis conv_axis(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                   std::int64_t dilation) {
  constexpr std::int64_t kMax = std::int64_t{1} << 30;  // keeps every product below within 63 bits
  if (in < 0 || in > kMax || kernel < 1 || kernel > kMax || stride < 1 || stride > kMax || padding < 0 ||
      padding > kMax || dilation < 1 || dilation > kMax) {
    throw InvalidArgument(fmt::format("extent {}, kernel {}, stride {}, padding {} or dilation {} is out of range", in,
                                      kernel, stride, padding, dilation));
  }
  const std::int64_t room = in + 2 * padding - dilation * (kernel - 1) - 1;
  return {in, kernel, stride, padding, dilation, room < 0 ? 0 : room / stride + 1};
}

// `axes` spatial dimensions: 1 or 2.
void convolve(const View* x, const View* weight, const View* bias, const std::int64_t* stride,
              const std::int64_t* padding, const std::int64_t* dilation, std::int64_t groups, const View* out,
              std::int32_t axes) {
  const FloatRows in = compact_tensor(x, "x", axes + 2);
  const FloatRows factors = compact_tensor(weight, "weight", axes + 2);
  const FloatRows to = compact_tensor(out, "out", axes + 2, true);
  ConvShape shape;
  shape.batch = x->shape[0];
  shape.channels = x->shape[1];
  shape.out_channels = weight->shape[0];
  shape.groups = groups;
  if (groups < 1 || shape.channels % groups != 0 || shape.out_channels % groups != 0 ||
      weight->shape[1] != shape.channels / groups) {
    throw InvalidArgument(
        fmt::format("x {} and weight {} do not fit {} groups", view_string(*x), view_string(*weight), groups));
  }
  const auto axis = [&](std::int32_t i) {
    return conv_axis(x->shape[2 + i], weight->shape[2 + i], stride[i], padding[i], dilation[i]);
  };
  shape.x = axis(axes - 1);
  if (axes == 2) shape.y = axis(0);
  const bool fits = out->shape[0] == shape.batch && out->shape[1] == shape.out_channels &&
                    out->shape[1 + axes] == shape.x.out && (axes == 1 || out->shape[2] == shape.y.out);
  if (!fits) {
    throw InvalidArgument(fmt::format("out {} should be [{}, {}, {}{}]", view_string(*out), shape.batch,
                                      shape.out_channels, axes == 2 ? fmt::format("{}, ", shape.y.out) : "",
                                      shape.x.out));
  }
  const float* bias_data = optional_vector(bias, "bias", shape.out_channels);
  forbid_overlap(in, "x", to);
  forbid_overlap(factors, "weight", to);
  if (to.rows == 0) return;
  (void)task_count(shape.batch * shape.out_channels);
  dense_conv(shape, in.data, factors.data, bias_data, to.data, current_parallel());
}

cairn_status conv1d(const View* x, const View* weight, const View* bias, std::int64_t stride, std::int64_t padding,
                    std::int64_t dilation, std::int64_t groups, const View* out) {
  return guard("ops.conv1d", [&] { convolve(x, weight, bias, &stride, &padding, &dilation, groups, out, 1); });
}

cairn_status conv2d(const View* x, const View* weight, const View* bias, const std::int64_t stride[2],
                    const std::int64_t padding[2], const std::int64_t dilation[2], std::int64_t groups,
                    const View* out) {
  return guard("ops.conv2d", [&] {
    if (stride == nullptr || padding == nullptr || dilation == nullptr) {
      throw InvalidArgument("stride, padding or dilation is NULL");
    }
    convolve(x, weight, bias, stride, padding, dilation, groups, out, 2);
  });
}

}  // namespace

const cairn_ops_service kOpsService = {
    .struct_size = sizeof(cairn_ops_service),
    .linear = linear,
    .linear_gated = linear_gated,
    .embedding = embedding,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .add = add,
    .mul = mul,
    .activation = activation,
    .gated = gated,
    .softmax = softmax,
    .matmul = matmul,
    .conv1d = conv1d,
    .conv2d = conv2d,
};

}  // namespace cairn
