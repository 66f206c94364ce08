// The table of instruction-set specific functions behind the public kernels. Private to kernels/cpu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/activation.hpp"
#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/cpu_features.hpp"
#include "kernels/cpu/linear_layout.hpp"

namespace cairn::kernels {

// Cache lines that a block kernel asks for while it works, `per_block` at each 32-block: what the next tiles will need.
// The hardware follows a stream of weights only while it is first read and would idle while rows reuse a tile.
struct Prefetch {
  const std::uint8_t* from = nullptr;
  int per_block = 0;
};

// out[r][t * 16 + lane], rows out_stride floats apart, for `rows` <= kMaxTileRows activation rows and `tiles` <=
// kMaxTiles tiles. x is ActivationBlock[] for block types and float[] otherwise, rows x_stride bytes apart.
using TileKernel = void (*)(const std::uint8_t* w, std::size_t tile_stride, int tiles, const std::uint8_t* x,
                            std::size_t x_stride, int rows, std::int64_t k, float* out, std::int64_t out_stride,
                            Prefetch prefetch);

struct LinearTable {
  TileKernel tile[kWeightTypeCount];
  void (*quantise_row)(const float* x, std::int64_t k, ActivationBlock* blocks);
};

struct ElementTable {
  void (*activate)(Activation act, const float* x, float* y, std::int64_t n);
  void (*gated)(Activation act, const float* gate, const float* up, float* y, std::int64_t n);
  void (*add)(const float* a, const float* b, float* y, std::int64_t n);
  void (*mul)(const float* a, const float* b, float* y, std::int64_t n);
  void (*scale)(const float* a, float factor, float* y, std::int64_t n);
  void (*softcap)(const float* x, float cap, float* y, std::int64_t n);
  void (*rms_norm)(const float* x, std::int64_t n, const float* weight, float eps, bool unit_offset, float* y);
  void (*layer_norm)(const float* x, std::int64_t n, const float* weight, const float* bias, float eps, float* y);
  void (*rope)(bool neox, const float* cos, const float* sin, std::int64_t half, float* x);
  // The largest element, NaN ignored; minus infinity when there is none.
  float (*max)(const float* x, std::int64_t n);
  // The first index whose element equals value, or -1.
  std::int64_t (*find)(const float* x, std::int64_t n, float value);
  // y[i] = exp((x[i] - max) * factor), NaN in x giving 0; sums[b] = the sum of the b-th run of kSumRun elements.
  void (*exp_runs)(const float* x, std::int64_t n, float max, float factor, float* y, float* sums);
  void (*exp)(const float* x, float* y, std::int64_t n);
  // Half precision, nearest even, saturating at +-65504; NaN stays NaN.
  void (*to_f16)(const float* x, std::uint16_t* y, std::int64_t n);
};

// Elements per partial sum of exp_runs.
inline constexpr std::int64_t kSumRun = 256;

// One tile of queries against a range of keys of one kv head; see attention_kernels.hpp.
struct AttentionTile;
using AttentionKernel = void (*)(const AttentionTile& tile);

struct Partial;

struct AttentionTable {
  AttentionKernel attend[3];  // by KvType
  // total = total merged with part, both over n values (n a multiple of 16).
  void (*merge)(float* total, Partial* total_partial, const float* part, const Partial* part_partial, std::int64_t n);
  // out[i] = acc[i] / partial.sum, or 0 when nothing was visible.
  void (*finish)(const float* acc, const Partial* partial, std::int64_t n, float* out);
};

const LinearTable& linear_table(Isa isa);
const ElementTable& element_table(Isa isa);
const AttentionTable& attention_table(Isa isa);

}  // namespace cairn::kernels
