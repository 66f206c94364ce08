// Norms, activations, RoPE and the softmax pieces, written once on the 16-lane vectors; include a simd_*.hpp first.
#pragma once

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace cairn::kernels {
namespace {

inline int lanes_left(std::int64_t n, std::int64_t i) {
  return n - i < 16 ? static_cast<int>(n - i) : 16;
}

// y[i] = f(a[i]), full vectors first; the tail is computed on zero-filled lanes.
template <class Function>
inline void map(const float* a, float* y, std::int64_t n, Function f) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, f(load(a + i)));
  if (i < n) store_n(y + i, f(load_n(a + i, lanes_left(n, i))), lanes_left(n, i));
}
template <class Function>
inline void map2(const float* a, const float* b, float* y, std::int64_t n, Function f) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, f(load(a + i), load(b + i)));
  if (i < n) {
    const int left = lanes_left(n, i);
    store_n(y + i, f(load_n(a + i, left), load_n(b + i, left)), left);
  }
}

void activate_row(Activation act, const float* x, float* y, std::int64_t n) {
  switch (act) {
    case Activation::kSilu:
      return map(x, y, n, [](F v) { return silu(v); });
    case Activation::kGeluTanh:
      return map(x, y, n, [](F v) { return gelu_tanh(v); });
    case Activation::kGeluErf:
      return map(x, y, n, [](F v) { return gelu_erf(v); });
  }
}

void gated_row(Activation act, const float* gate, const float* up, float* y, std::int64_t n) {
  switch (act) {
    case Activation::kSilu:
      return map2(gate, up, y, n, [](F g, F u) { return mul(silu(g), u); });
    case Activation::kGeluTanh:
      return map2(gate, up, y, n, [](F g, F u) { return mul(gelu_tanh(g), u); });
    case Activation::kGeluErf:
      return map2(gate, up, y, n, [](F g, F u) { return mul(gelu_erf(g), u); });
  }
}

void add_row(const float* a, const float* b, float* y, std::int64_t n) {
  map2(a, b, y, n, [](F p, F q) { return add(p, q); });
}
void mul_row(const float* a, const float* b, float* y, std::int64_t n) {
  map2(a, b, y, n, [](F p, F q) { return mul(p, q); });
}
void scale_row(const float* a, float factor, float* y, std::int64_t n) {
  const F f = set1(factor);
  map(a, y, n, [f](F v) { return mul(v, f); });
}
void softcap_row(const float* x, float cap, float* y, std::int64_t n) {
  const F c = set1(cap);
  map(x, y, n, [c](F v) { return mul(c, tanh(div(v, c))); });
}
void exp_row(const float* x, float* y, std::int64_t n) {
  map(x, y, n, [](F v) { return exp(v); });
}

// The sum of f over the row: 16 lanes in order, then the tree. f(0) must be 0 for the tail, or be masked by f.
template <class Function>
inline float sum_row(const float* x, std::int64_t n, Function f) {
  F sum = zero();
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) sum = f(load(x + i), sum);
  if (i < n) sum = f(load_n(x + i, lanes_left(n, i)), sum);
  return reduce_add(sum);
}

void rms_norm_row(const float* x, std::int64_t n, const float* weight, float eps, bool unit_offset, float* y) {
  const float squares = sum_row(x, n, [](F v, F sum) { return fma(v, v, sum); });
  const F factor = set1(1.0F / __builtin_sqrtf(squares / static_cast<float>(n) + eps));
  if (weight == nullptr) {
    map(x, y, n, [factor](F v) { return mul(v, factor); });
  } else if (unit_offset) {
    map2(x, weight, y, n, [factor](F v, F w) { return mul(mul(v, factor), add(w, set1(1.0F))); });
  } else {
    map2(x, weight, y, n, [factor](F v, F w) { return mul(mul(v, factor), w); });
  }
}

void layer_norm_row(const float* x, std::int64_t n, const float* weight, const float* bias, float eps, float* y) {
  const auto count = static_cast<float>(n);
  const float mean = sum_row(x, n, [](F v, F sum) { return add(sum, v); }) / count;
  const F m = set1(mean);
  F squares = zero();
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const F d = sub(load(x + i), m);
    squares = fma(d, d, squares);
  }
  if (i < n) {
    const int left = lanes_left(n, i);
    const F d = select(lane_range(0, left), sub(load_n(x + i, left), m), zero());
    squares = fma(d, d, squares);
  }
  const F factor = set1(1.0F / __builtin_sqrtf(reduce_add(squares) / count + eps));
  for (i = 0; i < n; i += 16) {
    const int left = lanes_left(n, i);
    F v = mul(sub(load_n(x + i, left), m), factor);
    if (weight != nullptr) v = mul(v, load_n(weight + i, left));
    if (bias != nullptr) v = add(v, load_n(bias + i, left));
    store_n(y + i, v, left);
  }
}

// The rotated pair is (a cos - b sin, b cos + a sin), each with one fused step.
void rope_row(bool neox, const float* cos, const float* sin, std::int64_t half, float* x) {
  if (!neox) {
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = x[2 * i];
      const float b = x[2 * i + 1];
      x[2 * i] = __builtin_fmaf(a, cos[i], -(b * sin[i]));
      x[2 * i + 1] = __builtin_fmaf(b, cos[i], a * sin[i]);
    }
    return;
  }
  for (std::int64_t i = 0; i < half; i += 16) {
    const int left = lanes_left(half, i);
    const F a = load_n(x + i, left);
    const F b = load_n(x + half + i, left);
    const F c = load_n(cos + i, left);
    const F s = load_n(sin + i, left);
    store_n(x + i, fma(a, c, negate(mul(b, s))), left);
    store_n(x + half + i, fma(b, c, mul(a, s)), left);
  }
}

float max_row(const float* x, std::int64_t n) {
  const F lowest = set1(-__builtin_inff());
  F m0 = lowest;
  F m1 = lowest;
  std::int64_t i = 0;
  // max(x, m) gives m where x is NaN.
  for (; i + 32 <= n; i += 32) {
    m0 = max(load(x + i), m0);
    m1 = max(load(x + i + 16), m1);
  }
  for (; i < n; i += 16) {
    const int left = lanes_left(n, i);
    m0 = max(select(lane_range(0, left), load_n(x + i, left), lowest), m0);
  }
  return reduce_max(max(m0, m1));
}

std::int64_t find_row(const float* x, std::int64_t n, float value) {
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const F a = max(max(load(x + i), set1(-__builtin_inff())), max(load(x + i + 16), set1(-__builtin_inff())));
    const F b = max(max(load(x + i + 32), set1(-__builtin_inff())), max(load(x + i + 48), set1(-__builtin_inff())));
    if (!(reduce_max(max(a, b)) < value)) break;
  }
  for (; i < n; ++i) {
    if (x[i] == value) return i;
  }
  return -1;
}

void exp_runs(const float* x, std::int64_t n, float max_value, float factor, float* y, float* sums) {
  const F m = set1(max_value);
  const F f = set1(factor);
  const F lowest = set1(-__builtin_inff());
  for (std::int64_t begin = 0; begin < n; begin += kSumRun) {
    const std::int64_t end = begin + kSumRun < n ? begin + kSumRun : n;
    F sum = zero();
    for (std::int64_t i = begin; i < end; i += 16) {
      const int left = lanes_left(end, i);
      // max(v, lowest) turns NaN into minus infinity.
      const F v = max(select(lane_range(0, left), load_n(x + i, left), lowest), lowest);
      const F e = exp(mul(sub(v, m), f));
      store_n(y + i, e, left);
      sum = add(sum, e);
    }
    sums[begin / kSumRun] = reduce_add(sum);
  }
}

void to_f16_row(const float* x, std::uint16_t* y, std::int64_t n) {
  const F limit = set1(65504.0F);
  const F lowest = set1(-65504.0F);
  for (std::int64_t i = 0; i < n; i += 16) {
    const int left = lanes_left(n, i);
    // The value second: minimum and maximum return the second operand on NaN.
    const F v = max(lowest, min(limit, load_n(x + i, left)));
    if (left == 16) {
      store_f16(y + i, v);
    } else {
      std::uint16_t last[16];
      store_f16(last, v);
      for (int lane = 0; lane < left; ++lane) y[i + lane] = last[lane];
    }
  }
}

const ElementTable kElementTable = {activate_row,   gated_row, add_row, mul_row,  scale_row, softcap_row, rms_norm_row,
                                    layer_norm_row, rope_row,  max_row, find_row, exp_runs,  exp_row,     to_f16_row};

}  // namespace
}  // namespace cairn::kernels
