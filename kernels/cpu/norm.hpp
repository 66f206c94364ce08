// Root-mean-square and layer normalisation on f32 rows. Used for the block norms, the final norm and q/k norms.
// Sums run over 16 lanes in k order and a fixed tree, so a row gives the same bits in any batch and on any
// instruction set.
#pragma once

#include <cstdint>

#include "kernels/cpu/parallel.hpp"

namespace cairn::kernels {

// y[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight. weight is [n] or null; unit_offset uses (1 + weight) as Gemma does.
// x == y is allowed. Strides are in floats.
void rms_norm(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t n, const float* weight, float eps,
              bool unit_offset, float* y, std::int64_t y_stride, const Parallel& parallel);

// residual[r] += delta[r]; y[r] = rms_norm(residual[r]).
void add_rms_norm(float* residual, std::int64_t residual_stride, const float* delta, std::int64_t delta_stride,
                  std::int64_t rows, std::int64_t n, const float* weight, float eps, bool unit_offset, float* y,
                  std::int64_t y_stride, const Parallel& parallel);

// Every head of every token on its own: x is [tokens][heads][head_dim] with tokens x_stride apart, in place.
void head_rms_norm(float* x, std::int64_t x_stride, std::int64_t tokens, std::int64_t heads, std::int64_t head_dim,
                   const float* weight, float eps, bool unit_offset, const Parallel& parallel);

// y[r] = (x[r] - mean) / sqrt(var + eps) * weight + bias; weight and bias are [n] or null.
void layer_norm(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t n, const float* weight,
                const float* bias, float eps, float* y, std::int64_t y_stride, const Parallel& parallel);

}  // namespace cairn::kernels
