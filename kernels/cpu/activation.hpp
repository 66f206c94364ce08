// Element-wise operations on f32 rows: activations, gated products, add, multiply, scale. Used by the host's ops
// table. Bit-identical on every instruction set (one polynomial exp and erf for all).
#pragma once

#include <cstdint>

#include "kernels/cpu/linear.hpp"
#include "kernels/cpu/parallel.hpp"

namespace cairn::kernels {

// y[i] = act(x[i]); x == y is allowed in every function of this header.
void activate(Activation act, const float* x, float* y, std::int64_t n, const Parallel& parallel);
inline void silu(const float* x, float* y, std::int64_t n, const Parallel& p) {
  activate(Activation::kSilu, x, y, n, p);
}

// y[r][i] = act(gate[r][i]) * up[r][i] for i in [0, n); strides in floats. For a fused [m][2n] buffer pass
// gate = x, up = x + n and both strides 2n.
void gated_activate(Activation act, const float* gate, std::int64_t gate_stride, const float* up,
                    std::int64_t up_stride, std::int64_t rows, std::int64_t n, float* y, std::int64_t y_stride,
                    const Parallel& parallel);

void add(const float* a, const float* b, float* y, std::int64_t n, const Parallel& parallel);
void mul(const float* a, const float* b, float* y, std::int64_t n, const Parallel& parallel);
// y = a * factor
void scale(const float* a, float factor, float* y, std::int64_t n, const Parallel& parallel);
// y[i] = cap * tanh(x[i] / cap), the soft cap on final logits.
void softcap(const float* x, float cap, float* y, std::int64_t n, const Parallel& parallel);

}  // namespace cairn::kernels
