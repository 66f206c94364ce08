// y = x W^T with weights prepacked once and, for the GGUF block types, computed in quantised form. Used by the
// host's ops table for every projection of a decoder.
//
// Guarantees: each output element depends only on its own row of x, its own row of W and the K order, so a result is
// bit-identical whatever the batch, tiling or thread count; quantised results are bit-identical on every instruction
// set too. Activations are rounded to 16-bit integers per 32-block (scale = amax / 32639, nearest even).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/types.hpp"

namespace cairn::kernels {

enum class Activation : std::uint8_t { kSilu, kGeluTanh, kGeluErf };

// One source matrix: `rows` outputs by `cols` inputs, rows `row_stride_bytes` apart (0: dense) in GGUF layout.
struct MatrixSource {
  WeightType type = WeightType::kF32;
  const void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_stride_bytes = 0;
};

class PackedMatrix {
 public:
  PackedMatrix();
  ~PackedMatrix();
  PackedMatrix(PackedMatrix&&) noexcept;
  PackedMatrix& operator=(PackedMatrix&&) noexcept;

  // Sources stacked along the outputs (q, k, v -> one matrix); types may differ. Throws std::invalid_argument when a
  // size is negative, data is null or the sizes overflow; std::bad_alloc. The sources may be freed afterwards.
  static PackedMatrix pack(std::span<const MatrixSource> parts, std::int64_t cols, const Parallel& parallel);
  // gate and up of a gated feed-forward, interleaved for linear_glu(). Both have the same rows; types may differ.
  // rows() is then the number of gate rows (the width of the result).
  static PackedMatrix pack_glu(const MatrixSource& gate, const MatrixSource& up, std::int64_t cols,
                               const Parallel& parallel);

  std::int64_t rows() const;  // outputs
  std::int64_t cols() const;  // inputs
  bool is_glu() const;
  bool empty() const;         // default-constructed or moved from
  std::size_t bytes() const;  // of the packed buffer

  // dst[0..cols) = the exact f32 values of one stored row (see embedding.hpp). Not for glu matrices.
  void dequantize_row(std::int64_t row, float* dst) const;

  struct Impl;
  const Impl* impl() const { return impl_.get(); }

 private:
  std::unique_ptr<Impl> impl_;
};

// Scratch that the functions below need for up to m rows on `threads` threads; 64-byte alignment is not required.
std::size_t linear_scratch_bytes(const PackedMatrix& w, std::int64_t m, int threads);

// y[r][0..rows) = W x[r] (+ bias) for r in [0, m). Strides are in floats. bias is [rows] or null.
// scratch holds at least linear_scratch_bytes(w, m, parallel.threads) and is used by one call at a time.
// x and y must not overlap. A matrix from pack_glu here, or another one in linear_glu: std::invalid_argument.
void linear(const PackedMatrix& w, const float* x, std::int64_t m, std::int64_t x_stride, float* y,
            std::int64_t y_stride, const float* bias, void* scratch, const Parallel& parallel);

// y[r] += W x[r] (+ bias): the residual add fused in, y = y + (W x + bias).
void linear_add(const PackedMatrix& w, const float* x, std::int64_t m, std::int64_t x_stride, float* y,
                std::int64_t y_stride, const float* bias, void* scratch, const Parallel& parallel);

// y[r] = act(gate(x[r])) * up(x[r]) for a matrix from pack_glu; bias is [2 * rows] (gate, then up) or null.
void linear_glu(const PackedMatrix& w, Activation act, const float* x, std::int64_t m, std::int64_t x_stride, float* y,
                std::int64_t y_stride, const float* bias, void* scratch, const Parallel& parallel);

inline void linear_swiglu(const PackedMatrix& w, const float* x, std::int64_t m, std::int64_t x_stride, float* y,
                          std::int64_t y_stride, void* scratch, const Parallel& parallel) {
  linear_glu(w, Activation::kSilu, x, m, x_stride, y, y_stride, nullptr, scratch, parallel);
}
inline void linear_geglu(const PackedMatrix& w, const float* x, std::int64_t m, std::int64_t x_stride, float* y,
                         std::int64_t y_stride, void* scratch, const Parallel& parallel) {
  linear_glu(w, Activation::kGeluTanh, x, m, x_stride, y, y_stride, nullptr, scratch, parallel);
}

}  // namespace cairn::kernels
