// Plain float32 matrix product and convolutions on compact arrays: for the small, unquantised parts of models. Every
// output element is summed in one fixed order, so it does not depend on the rest of the batch. Used by the ops service.
#pragma once

#include <cstdint>

#include "kernels/cpu/parallel.hpp"

namespace cairn {

// out[m][n] = a[m][k] b[k][n]; rows lie *_stride floats apart. out overlaps neither input.
void dense_matmul(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride, std::int64_t m,
                  std::int64_t k, std::int64_t n, float* out, std::int64_t out_stride,
                  const kernels::Parallel& parallel);

// One spatial axis of a convolution.
struct ConvAxis {
  std::int64_t in = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t out = 1;  // (in + 2 padding - dilation (kernel - 1) - 1) / stride + 1
};
// x [batch][channels][y.in][x.in], weight [out_channels][channels / groups][y.kernel][x.kernel], bias [out_channels] or
// null, out [batch][out_channels][y.out][x.out]. A one-dimensional convolution has the default y axis.
struct ConvShape {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t groups = 1;
  ConvAxis y;
  ConvAxis x;
};
void dense_conv(const ConvShape& shape, const float* x, const float* weight, const float* bias, float* out,
                const kernels::Parallel& parallel);

}  // namespace cairn
