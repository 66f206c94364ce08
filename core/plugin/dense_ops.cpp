// Loops over output tiles; a tile is one task of the pool.
#include "core/plugin/dense_ops.hpp"

#include <algorithm>

namespace cairn {

namespace {
constexpr std::int64_t kTileColumns = 256;  // floats of one output tile: stays in the first-level cache
}

void dense_matmul(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride, std::int64_t m,
                  std::int64_t k, std::int64_t n, float* out, std::int64_t out_stride,
                  const kernels::Parallel& parallel) {
  const std::int64_t tiles = (n + kTileColumns - 1) / kTileColumns;
  const auto tile = [&](std::int64_t row, std::int64_t first) {
    const std::int64_t count = std::min(kTileColumns, n - first);
    float* y = out + row * out_stride + first;
    std::fill_n(y, count, 0.0F);
    for (std::int64_t i = 0; i < k; ++i) {
      const float factor = a[row * a_stride + i];
      const float* source = b + i * b_stride + first;
      for (std::int64_t j = 0; j < count; ++j) y[j] += factor * source[j];
    }
  };
  if (tiles >= parallel.threads) {
    for (std::int64_t row = 0; row < m; ++row) {
      parallel.for_each(static_cast<int>(tiles), [&](int t, int) { tile(row, t * kTileColumns); });
    }
  } else {
    parallel.for_each(static_cast<int>(m), [&](int row, int) {
      for (std::int64_t t = 0; t < tiles; ++t) tile(row, t * kTileColumns);
    });
  }
}

void dense_conv(const ConvShape& shape, const float* x, const float* weight, const float* bias, float* out,
                const kernels::Parallel& parallel) {
  const std::int64_t in_per_group = shape.channels / shape.groups;
  const std::int64_t out_per_group = shape.out_channels / shape.groups;
  const std::int64_t in_plane = shape.y.in * shape.x.in;
  const std::int64_t out_plane = shape.y.out * shape.x.out;
  const std::int64_t taps = shape.y.kernel * shape.x.kernel;

  // Adds one tap of one input plane to one output row.
  const auto add_tap = [&](const float* row, float factor, std::int64_t kx, float* y) {
    const std::int64_t shift = kx * shape.x.dilation - shape.x.padding;
    for (std::int64_t ox = 0; ox < shape.x.out; ++ox) {
      const std::int64_t ix = ox * shape.x.stride + shift;
      if (ix >= 0 && ix < shape.x.in) y[ox] += factor * row[ix];
    }
  };
  const auto plane = [&](int index, int) {
    const std::int64_t image = index / shape.out_channels;
    const std::int64_t channel = index % shape.out_channels;
    const std::int64_t first_in = channel / out_per_group * in_per_group;
    float* y = out + index * out_plane;
    std::fill_n(y, out_plane, bias == nullptr ? 0.0F : bias[channel]);
    for (std::int64_t c = 0; c < in_per_group; ++c) {
      const float* source = x + (image * shape.channels + first_in + c) * in_plane;
      const float* factors = weight + (channel * in_per_group + c) * taps;
      for (std::int64_t oy = 0; oy < shape.y.out; ++oy) {
        for (std::int64_t ky = 0; ky < shape.y.kernel; ++ky) {
          const std::int64_t iy = oy * shape.y.stride + ky * shape.y.dilation - shape.y.padding;
          if (iy < 0 || iy >= shape.y.in) continue;
          for (std::int64_t kx = 0; kx < shape.x.kernel; ++kx) {
            add_tap(source + iy * shape.x.in, factors[ky * shape.x.kernel + kx], kx, y + oy * shape.x.out);
          }
        }
      }
    }
  };
  parallel.for_each(static_cast<int>(shape.batch * shape.out_channels), plane);
}

}  // namespace cairn
