// RoPE frequencies, table and rotation; see rope.hpp.
#include "kernels/cpu/rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/row_items.hpp"

namespace cairn::kernels {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;

[[noreturn]] void refuse(const std::string& what, const std::string& expected) {
  throw std::invalid_argument("RoPE: " + what + " is out of range; " + expected + ".");
}

void check(const RopeConfig& c, std::int64_t dim) {
  if (c.head_dim < 1) refuse("head_dim " + std::to_string(c.head_dim), "it must be positive");
  if (dim < 2 || dim % 2 != 0 || dim > c.head_dim) {
    refuse("rotary_dim " + std::to_string(dim), "it must be even and in [2, " + std::to_string(c.head_dim) + "]");
  }
  if (!(c.theta > 1.0) || !std::isfinite(c.theta)) refuse("theta " + std::to_string(c.theta), "it must exceed 1");
  if (!(c.factor > 0.0) || !std::isfinite(c.factor))
    refuse("factor " + std::to_string(c.factor), "it must be positive");
  const bool needs_context = c.scaling == RopeScaling::kDynamicNtk || c.scaling == RopeScaling::kYarn ||
                             c.scaling == RopeScaling::kLlama3 || c.scaling == RopeScaling::kLongRope;
  if (needs_context && c.original_max_position < 1) {
    refuse("original_max_position " + std::to_string(c.original_max_position), "this scaling needs it");
  }
  const auto half = static_cast<std::size_t>(dim / 2);
  if (!c.freq_factors.empty() && c.freq_factors.size() != half) {
    refuse(std::to_string(c.freq_factors.size()) + " frequency factors", "expected " + std::to_string(half));
  }
  if (c.scaling == RopeScaling::kLongRope && (c.short_factors.size() != half || c.long_factors.size() != half)) {
    refuse(std::to_string(c.short_factors.size()) + " short and " + std::to_string(c.long_factors.size()) +
               " long factors",
           "expected " + std::to_string(half) + " each");
  }
}

// Yarn's magnitude correction.
double yarn_magnitude(double factor, double scale) {
  return factor <= 1.0 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

void apply_yarn(const RopeConfig& c, std::int64_t dim, RopeFrequencies& f) {
  const auto correction = [&](double rotations) {
    return static_cast<double>(dim) * std::log(static_cast<double>(c.original_max_position) / (rotations * kTwoPi)) /
           (2.0 * std::log(c.theta));
  };
  double low = correction(c.beta_fast);
  double high = correction(c.beta_slow);
  if (c.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < f.inv_freq.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    f.inv_freq[i] = f.inv_freq[i] / c.factor * ramp + f.inv_freq[i] * (1.0 - ramp);
  }
  if (c.attention_factor > 0.0) {
    f.attention_factor = c.attention_factor;
  } else if (c.mscale > 0.0 && c.mscale_all_dim > 0.0) {
    f.attention_factor = yarn_magnitude(c.factor, c.mscale) / yarn_magnitude(c.factor, c.mscale_all_dim);
  } else {
    f.attention_factor = yarn_magnitude(c.factor, 1.0);
  }
}

void apply_llama3(const RopeConfig& c, RopeFrequencies& f) {
  const auto context = static_cast<double>(c.original_max_position);
  for (double& inv : f.inv_freq) {
    const double wavelength = kTwoPi / inv;
    if (wavelength < context / c.high_freq_factor) continue;
    if (wavelength > context / c.low_freq_factor) {
      inv /= c.factor;
      continue;
    }
    const double smooth = (context / wavelength - c.low_freq_factor) / (c.high_freq_factor - c.low_freq_factor);
    inv = (1.0 - smooth) * inv / c.factor + smooth * inv;
  }
}

void apply_longrope(const RopeConfig& c, RopeFrequencies& f) {
  const auto original = static_cast<double>(c.original_max_position);
  const std::vector<double>& factors = c.max_position > c.original_max_position ? c.long_factors : c.short_factors;
  for (std::size_t i = 0; i < f.inv_freq.size(); ++i) f.inv_freq[i] /= factors[i];
  const double factor = c.factor != 1.0 ? c.factor : static_cast<double>(c.max_position) / original;
  if (c.attention_factor > 0.0) {
    f.attention_factor = c.attention_factor;
  } else {
    f.attention_factor = factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(original));
  }
}

template <class Position>
void rotate(const RopeTable& table, const Position* positions, std::int64_t tokens, float* x, std::int64_t x_stride,
            std::int64_t heads, const Parallel& parallel) {
  const ElementTable& kernels = element_table(active_isa());
  const bool neox = table.style() == RopeStyle::kNeox;
  for_each_row_range(parallel, tokens, heads * table.head_dim(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t t = first; t < last; ++t) {
      const std::int64_t position = std::clamp<std::int64_t>(positions[t], 0, table.max_positions() - 1);
      for (std::int64_t h = 0; h < heads; ++h) {
        kernels.rope(neox, table.cos_row(position), table.sin_row(position), table.rotary_dim() / 2,
                     x + t * x_stride + h * table.head_dim());
      }
    }
  });
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeConfig& c) {
  const std::int64_t dim = c.rotary_dim != 0 ? c.rotary_dim : c.head_dim;
  check(c, dim);
  double theta = c.theta;
  if (c.scaling == RopeScaling::kDynamicNtk && c.max_position > c.original_max_position && dim > 2) {
    const double ratio = static_cast<double>(c.max_position) / static_cast<double>(c.original_max_position);
    theta *= std::pow(c.factor * ratio - (c.factor - 1.0), static_cast<double>(dim) / static_cast<double>(dim - 2));
  }
  RopeFrequencies f;
  for (std::int64_t i = 0; i < dim / 2; ++i) {
    f.inv_freq.push_back(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim)));
  }
  for (std::size_t i = 0; i < c.freq_factors.size(); ++i) f.inv_freq[i] /= static_cast<double>(c.freq_factors[i]);
  switch (c.scaling) {
    case RopeScaling::kNone:
    case RopeScaling::kDynamicNtk:
      break;
    case RopeScaling::kLinear:
      for (double& inv : f.inv_freq) inv /= c.factor;
      break;
    case RopeScaling::kYarn:
      apply_yarn(c, dim, f);
      break;
    case RopeScaling::kLlama3:
      apply_llama3(c, f);
      break;
    case RopeScaling::kLongRope:
      apply_longrope(c, f);
      break;
  }
  return f;
}

RopeTable::RopeTable(const RopeConfig& config, std::int64_t max_positions)
    : style_(config.style), head_dim_(config.head_dim), half_(0), max_positions_(max_positions) {
  const RopeFrequencies f = rope_frequencies(config);
  if (max_positions < 1 || max_positions > (std::int64_t{1} << 28)) {
    refuse("a table of " + std::to_string(max_positions) + " positions", "it must be in [1, 2^28]");
  }
  half_ = static_cast<std::int64_t>(f.inv_freq.size());
  table_.resize(static_cast<std::size_t>(max_positions * half_ * 2));
  for (std::int64_t p = 0; p < max_positions; ++p) {
    float* row = table_.data() + p * half_ * 2;
    for (std::int64_t i = 0; i < half_; ++i) {
      const double angle = static_cast<double>(p) * f.inv_freq[static_cast<std::size_t>(i)];
      row[i] = static_cast<float>(std::cos(angle) * f.attention_factor);
      row[half_ + i] = static_cast<float>(std::sin(angle) * f.attention_factor);
    }
  }
}

void rope_apply(const RopeTable& table, const std::int32_t* positions, std::int64_t tokens, float* x,
                std::int64_t x_stride, std::int64_t heads, const Parallel& parallel) {
  rotate(table, positions, tokens, x, x_stride, heads, parallel);
}

void rope_apply(const RopeTable& table, const std::int64_t* positions, std::int64_t tokens, float* x,
                std::int64_t x_stride, std::int64_t heads, const Parallel& parallel) {
  rotate(table, positions, tokens, x, x_stride, heads, parallel);
}

}  // namespace cairn::kernels
