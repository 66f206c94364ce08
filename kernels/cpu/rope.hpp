// Rotary position embedding: the published frequency scalings, a cos/sin table, and the rotation of q and k rows.
// Used by the position resource. Angles are computed in double precision when the table grows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/parallel.hpp"

namespace cairn::kernels {

// kNeox rotates (x[i], x[i + rotary_dim / 2]); kInterleaved rotates (x[2i], x[2i + 1]).
enum class RopeStyle : std::uint8_t { kNeox, kInterleaved };
enum class RopeScaling : std::uint8_t { kNone, kLinear, kDynamicNtk, kYarn, kLlama3, kLongRope };

struct RopeConfig {
  RopeStyle style = RopeStyle::kNeox;
  std::int64_t head_dim = 0;
  std::int64_t rotary_dim = 0;  // 0: head_dim; even and <= head_dim
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;                     // kLinear, kDynamicNtk, kYarn, kLlama3; kLongRope: 1 means max / original
  std::int64_t original_max_position = 0;  // context the model was trained for: kDynamicNtk, kYarn, kLlama3, kLongRope
  std::int64_t max_position = 0;           // context it is served with: kDynamicNtk, kLongRope
  double low_freq_factor = 1.0;            // kLlama3
  double high_freq_factor = 4.0;           // kLlama3
  double beta_fast = 32.0;                 // kYarn
  double beta_slow = 1.0;                  // kYarn
  double mscale = 0.0;                     // kYarn; 0: not given
  double mscale_all_dim = 0.0;             // kYarn; 0: not given
  double attention_factor = 0.0;           // kYarn, kLongRope; 0: the published default
  bool truncate = true;                    // kYarn: round the correction range to whole dimensions
  std::vector<double> short_factors;       // kLongRope, rotary_dim / 2 each
  std::vector<double> long_factors;
  std::vector<float> freq_factors;  // GGUF rope_freqs.weight: inv_freq[i] /= freq_factors[i]; empty: none
};

// The inverse frequencies and the factor on cos and sin. Throws std::invalid_argument with the offending value.
struct RopeFrequencies {
  std::vector<double> inv_freq;  // rotary_dim / 2
  double attention_factor = 1.0;
};
// kDynamicNtk and kLongRope depend on the length in use; we fix it at max_position so that a token's rotation does not
// depend on what else is in the request (a promise of determinism under chunking and preemption).
RopeFrequencies rope_frequencies(const RopeConfig& config);

// cos and sin for positions [0, max_positions), built once.
class RopeTable {
 public:
  RopeTable(const RopeConfig& config, std::int64_t max_positions);

  std::int64_t rotary_dim() const { return half_ * 2; }
  std::int64_t head_dim() const { return head_dim_; }
  std::int64_t max_positions() const { return max_positions_; }
  RopeStyle style() const { return style_; }
  const float* cos_row(std::int64_t position) const { return table_.data() + position * half_ * 2; }
  const float* sin_row(std::int64_t position) const { return cos_row(position) + half_; }

 private:
  RopeStyle style_;
  std::int64_t head_dim_, half_, max_positions_;
  std::vector<float> table_;
};

// Rotates in place x[token][head][0..rotary_dim); tokens lie x_stride floats apart, heads head_dim apart.
// Positions outside [0, max_positions) are clamped (padding rows); the caller validates real rows.
void rope_apply(const RopeTable& table, const std::int32_t* positions, std::int64_t tokens, float* x,
                std::int64_t x_stride, std::int64_t heads, const Parallel& parallel);
void rope_apply(const RopeTable& table, const std::int64_t* positions, std::int64_t tokens, float* x,
                std::int64_t x_stride, std::int64_t heads, const Parallel& parallel);

}  // namespace cairn::kernels
