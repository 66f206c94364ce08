// exp, tanh, erf-based and logistic functions on the 16-lane vectors; include a simd_*.hpp first. One polynomial for
// every instruction set and every kernel.
#pragma once

namespace cairn::kernels {
namespace {

// Error below 2 ulp (1 ulp in practice); exp(0) == 1; below -104 and for -infinity 0; NaN stays NaN.
inline F exp(F x) {
  // Limits first, with x second: the x86 minimum and maximum return the second operand on NaN.
  x = max(set1(-104.0F), min(set1(88.8F), x));
  const I n = to_int(mul(x, set1(1.44269504088896341F)));
  const F whole = to_float(n);
  F r = fma(whole, set1(-0.693359375F), x);  // exact: 9 significant bits
  r = fma(whole, set1(2.12194440054690583e-4F), r);
  F p = set1(1.9875691500e-4F);
  p = fma(p, r, set1(1.3981999507e-3F));
  p = fma(p, r, set1(8.3334519073e-3F));
  p = fma(p, r, set1(4.1665795894e-2F));
  p = fma(p, r, set1(1.6666665459e-1F));
  p = fma(p, r, set1(5.0000001201e-1F));
  p = add(fma(mul(r, r), p, r), set1(1.0F));
  return scale_by_power(p, n);
}

inline F negate(F x) {
  return sub(set1(-0.0F), x);
}

inline F tanh(F x) {
  const F a = abs(x);
  const F z = mul(x, x);
  F p = set1(-5.70498872745e-3F);
  p = fma(p, z, set1(2.06390887954e-2F));
  p = fma(p, z, set1(-5.37397155531e-2F));
  p = fma(p, z, set1(1.33314422036e-1F));
  p = fma(p, z, set1(-3.33332819422e-1F));
  const F small = fma(mul(p, z), x, x);
  const F e = exp(add(a, a));
  const F large = copysign(sub(set1(1.0F), div(set1(2.0F), add(e, set1(1.0F)))), x);
  return select(less(a, set1(0.625F)), small, large);
}

// erfc(a) for a >= 0: Abramowitz and Stegun 7.1.26, absolute error below 1.5e-7.
inline F erfc_positive(F a) {
  const F t = div(set1(1.0F), fma(a, set1(0.3275911F), set1(1.0F)));
  F p = set1(1.061405429F);
  p = fma(p, t, set1(-1.453152027F));
  p = fma(p, t, set1(1.421413741F));
  p = fma(p, t, set1(-0.284496736F));
  p = fma(p, t, set1(0.254829592F));
  return mul(mul(p, t), exp(negate(mul(a, a))));
}

inline F silu(F x) {
  return div(x, add(set1(1.0F), exp(negate(x))));
}

inline F gelu_tanh(F x) {
  const F inner = mul(set1(0.797884560802865356F), mul(x, fma(mul(x, x), set1(0.044715F), set1(1.0F))));
  return mul(mul(set1(0.5F), x), add(set1(1.0F), tanh(inner)));
}

inline F gelu_erf(F x) {
  const F tail = mul(set1(0.5F), erfc_positive(mul(abs(x), set1(0.707106781186547524F))));
  return mul(x, select(less(x, zero()), tail, sub(set1(1.0F), tail)));
}

}  // namespace
}  // namespace cairn::kernels
