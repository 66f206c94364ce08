// Norms and rotary embedding against double-precision formulas, on every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>

#include "kernels/cpu/norm.hpp"
#include "kernels/cpu/rope.hpp"
#include "tests/unit/kernels/kernel_test_util.hpp"

namespace cairn::kernels {
namespace {

double mean_square(const float* x, std::int64_t n) {
  double s = 0.0;
  for (std::int64_t i = 0; i < n; ++i) s += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return s / static_cast<double>(n);
}

TEST(Norm, RmsNormMatchesItsFormula) {
  ThreadPool pool(2);
  for (const std::int64_t n : {1, 15, 16, 17, 64, 576, 1000}) {
    const std::int64_t rows = 37;
    const std::int64_t stride = n + 3;
    const auto x = random_floats(static_cast<std::size_t>(rows * stride), 1, 2.0F);
    const auto weight = random_floats(static_cast<std::size_t>(n), 2);
    for (int mode = 0; mode < 3; ++mode) {  // no weight, weight, 1 + weight
      std::vector<float> first;
      for_each_isa([&](Isa isa) {
        std::vector<float> y(static_cast<std::size_t>(rows * n));
        rms_norm(x.data(), stride, rows, n, mode == 0 ? nullptr : weight.data(), 1e-5F, mode == 2, y.data(), n,
                 pool.parallel());
        for (std::int64_t r = 0; r < rows; ++r) {
          const double factor = 1.0 / std::sqrt(mean_square(x.data() + r * stride, n) + 1e-5);
          for (std::int64_t i = 0; i < n; ++i) {
            double expected = static_cast<double>(x[static_cast<std::size_t>(r * stride + i)]) * factor;
            const auto w = static_cast<double>(weight[static_cast<std::size_t>(i)]);
            if (mode == 1) expected *= w;
            if (mode == 2) expected *= 1.0 + w;
            ASSERT_NEAR(y[static_cast<std::size_t>(r * n + i)], expected, 2e-6 * std::fabs(expected) + 1e-7)
                << isa_name(isa) << " n " << n << " mode " << mode;
          }
        }
        if (first.empty()) first = y;
        ASSERT_TRUE(same_bits(first, y)) << isa_name(isa);
      });
    }
  }
}

TEST(Norm, AddRmsNormAddsThenNormalises) {
  const std::int64_t n = 40;
  const auto a = random_floats(80, 3);
  const auto b = random_floats(80, 4);
  const auto weight = random_floats(40, 5);
  for_each_isa([&](Isa) {
    std::vector<float> residual = a;
    std::vector<float> y(80);
    add_rms_norm(residual.data(), n, b.data(), n, 2, n, weight.data(), 1e-6F, false, y.data(), n, serial());
    for (std::size_t i = 0; i < 80; ++i) ASSERT_EQ(residual[i], a[i] + b[i]);
    for (std::int64_t r = 0; r < 2; ++r) {
      const double factor = 1.0 / std::sqrt(mean_square(residual.data() + r * n, n) + 1e-6);
      for (std::int64_t i = 0; i < n; ++i) {
        const std::size_t at = static_cast<std::size_t>(r * n + i);
        const double expected =
            static_cast<double>(residual[at]) * factor * static_cast<double>(weight[static_cast<std::size_t>(i)]);
        ASSERT_NEAR(y[at], expected, 2e-6 * std::fabs(expected) + 1e-7);
      }
    }
  });
}

TEST(Norm, HeadNormTreatsEachHeadAlone) {
  const auto x = random_floats(2 * 3 * 24, 6);
  const auto weight = random_floats(24, 7);
  for_each_isa([&](Isa) {
    auto y = x;
    head_rms_norm(y.data(), 72, 2, 3, 24, weight.data(), 1e-6F, false, serial());
    for (std::size_t h = 0; h < 6; ++h) {
      const double factor = 1.0 / std::sqrt(mean_square(x.data() + h * 24, 24) + 1e-6);
      for (std::size_t i = 0; i < 24; ++i) {
        const double expected = static_cast<double>(x[h * 24 + i]) * factor * static_cast<double>(weight[i]);
        ASSERT_NEAR(y[h * 24 + i], expected, 2e-6 * std::fabs(expected) + 1e-7);
      }
    }
  });
}

TEST(Norm, LayerNormMatchesItsFormula) {
  for (const std::int64_t n : {7, 16, 33, 512}) {
    auto x = random_floats(static_cast<std::size_t>(5 * n), 8);
    for (float& v : x) v += 3.0F;
    const auto weight = random_floats(static_cast<std::size_t>(n), 9);
    const auto bias = random_floats(static_cast<std::size_t>(n), 10);
    std::vector<float> first;
    for_each_isa([&](Isa isa) {
      std::vector<float> y(x.size());
      layer_norm(x.data(), n, 5, n, weight.data(), bias.data(), 1e-5F, y.data(), n, serial());
      for (std::int64_t r = 0; r < 5; ++r) {
        double mean = 0.0;
        double variance = 0.0;
        for (std::int64_t i = 0; i < n; ++i)
          mean += static_cast<double>(x[static_cast<std::size_t>(r * n + i)]) / static_cast<double>(n);
        for (std::int64_t i = 0; i < n; ++i) {
          variance +=
              std::pow(static_cast<double>(x[static_cast<std::size_t>(r * n + i)]) - mean, 2) / static_cast<double>(n);
        }
        for (std::int64_t i = 0; i < n; ++i) {
          const auto at = static_cast<std::size_t>(r * n + i);
          const auto column = static_cast<std::size_t>(i);
          const double expected =
              (static_cast<double>(x[at]) - mean) / std::sqrt(variance + 1e-5) * static_cast<double>(weight[column]) +
              static_cast<double>(bias[column]);
          ASSERT_NEAR(y[at], expected, 5e-6) << isa_name(isa) << " n " << n;
        }
      }
      if (first.empty()) first = y;
      ASSERT_TRUE(same_bits(first, y)) << isa_name(isa);
    });
  }
}

RopeConfig basic(std::int64_t dim, double theta) {
  RopeConfig c;
  c.head_dim = dim;
  c.theta = theta;
  return c;
}

TEST(Rope, RotatesBothStylesByPositionTimesFrequency) {
  for (const RopeStyle style : {RopeStyle::kNeox, RopeStyle::kInterleaved}) {
    for (const std::int64_t rotary : {64, 40, 6}) {
      RopeConfig c = basic(64, 10000.0);
      c.style = style;
      c.rotary_dim = rotary;
      const RopeTable table(c, 512);
      const std::vector<std::int64_t> positions = {0, 1, 511, 37, 37};
      const auto x = random_floats(5 * 3 * 64, 11);
      std::vector<float> first;
      for_each_isa([&](Isa isa) {
        auto y = x;
        rope_apply(table, positions.data(), 5, y.data(), 192, 3, serial());
        for (std::int64_t t = 0; t < 5; ++t) {
          for (std::int64_t h = 0; h < 3; ++h) {
            const float* from = x.data() + (t * 3 + h) * 64;
            const float* to = y.data() + (t * 3 + h) * 64;
            for (std::int64_t i = 0; i < rotary / 2; ++i) {
              const std::int64_t ia = style == RopeStyle::kNeox ? i : 2 * i;
              const std::int64_t ib = style == RopeStyle::kNeox ? i + rotary / 2 : 2 * i + 1;
              const double angle = static_cast<double>(positions[static_cast<std::size_t>(t)]) /
                                   std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(rotary));
              const auto a = static_cast<double>(from[ia]);
              const auto b = static_cast<double>(from[ib]);
              ASSERT_NEAR(to[ia], a * std::cos(angle) - b * std::sin(angle), 1e-6) << isa_name(isa);
              ASSERT_NEAR(to[ib], b * std::cos(angle) + a * std::sin(angle), 1e-6) << isa_name(isa);
            }
            for (std::int64_t i = rotary; i < 64; ++i) ASSERT_EQ(to[i], from[i]);
          }
        }
        if (first.empty()) first = y;
        ASSERT_TRUE(same_bits(first, y)) << isa_name(isa);
      });
    }
  }
}

TEST(Rope, NarrowAndWidePositionsAgreeAndPaddingIsClamped) {
  const RopeTable table(basic(32, 10000.0), 10);
  const std::vector<std::int32_t> narrow = {3, -5, 99};
  const std::vector<std::int64_t> wide = {3, 0, 9};
  auto a = random_floats(3 * 32, 12);
  auto b = a;
  rope_apply(table, narrow.data(), 3, a.data(), 32, 1, serial());
  rope_apply(table, wide.data(), 3, b.data(), 32, 1, serial());
  EXPECT_TRUE(same_bits(a, b));
}

TEST(Rope, LinearScalingDividesTheFrequencies) {
  RopeConfig c = basic(8, 10000.0);
  c.scaling = RopeScaling::kLinear;
  c.factor = 4.0;
  const auto f = rope_frequencies(c);
  EXPECT_DOUBLE_EQ(f.inv_freq[0], 0.25);
  EXPECT_NEAR(f.inv_freq[1], 0.1 / 4.0, 1e-15);
  EXPECT_EQ(f.attention_factor, 1.0);
}

TEST(Rope, DynamicNtkRaisesTheBaseForALongerContext) {
  RopeConfig c = basic(4, 100.0);
  c.scaling = RopeScaling::kDynamicNtk;
  c.factor = 2.0;
  c.original_max_position = 1000;
  c.max_position = 1000;
  EXPECT_NEAR(rope_frequencies(c).inv_freq[1], 0.1, 1e-15);
  c.max_position = 4000;
  // base = 100 * (2 * 4 - 1)^(4 / 2) = 4900; 4900^(-1/2) = 1 / 70
  EXPECT_NEAR(rope_frequencies(c).inv_freq[1], 1.0 / 70.0, 1e-15);
}

TEST(Rope, Llama3KeepsHighFrequenciesAndScalesLowOnes) {
  // Llama 3.1: theta 500000, factor 8, low 1, high 4, 8192 tokens, head size 128.
  RopeConfig c = basic(128, 500000.0);
  c.scaling = RopeScaling::kLlama3;
  c.factor = 8.0;
  c.low_freq_factor = 1.0;
  c.high_freq_factor = 4.0;
  c.original_max_position = 8192;
  const auto f = rope_frequencies(c);
  for (std::size_t i = 0; i < 64; ++i) {
    const double plain = std::pow(500000.0, -static_cast<double>(i) / 64.0);
    const double turns = 8192.0 * plain / (2.0 * std::numbers::pi);  // over the original context
    if (turns > 4.0) {
      EXPECT_DOUBLE_EQ(f.inv_freq[i], plain) << i;
    } else if (turns < 1.0) {
      EXPECT_DOUBLE_EQ(f.inv_freq[i], plain / 8.0) << i;
    } else {
      const double keep = (turns - 1.0) / 3.0;
      EXPECT_NEAR(f.inv_freq[i], plain * (keep + (1.0 - keep) / 8.0), 1e-15) << i;
    }
  }
}

TEST(Rope, YarnBlendsByTheNumberOfTurnsAndScalesAttention) {
  // DeepSeek-like: dim 64, theta 10000, factor 40, 4096 tokens. The correction range is floor / ceil of
  // 64 ln(4096 / (2 pi b)) / (2 ln 10000) for b = 32 and 1: [10, 23].
  RopeConfig c = basic(64, 10000.0);
  c.scaling = RopeScaling::kYarn;
  c.factor = 40.0;
  c.original_max_position = 4096;
  const auto f = rope_frequencies(c);
  for (std::size_t i = 0; i < 32; ++i) {
    const double plain = std::pow(10000.0, -static_cast<double>(i) / 32.0);
    const double ramp = std::min(1.0, std::max(0.0, (static_cast<double>(i) - 10.0) / 13.0));
    EXPECT_NEAR(f.inv_freq[i], plain * (1.0 - ramp) + plain / 40.0 * ramp, 1e-15) << i;
  }
  EXPECT_NEAR(f.attention_factor, 0.1 * std::log(40.0) + 1.0, 1e-12);
  c.mscale = 1.0;
  c.mscale_all_dim = 0.707;
  EXPECT_NEAR(rope_frequencies(c).attention_factor, (0.1 * std::log(40.0) + 1.0) / (0.0707 * std::log(40.0) + 1.0),
              1e-12);
  c.attention_factor = 1.5;
  EXPECT_EQ(rope_frequencies(c).attention_factor, 1.5);
  const RopeTable table(c, 2);
  EXPECT_FLOAT_EQ(table.cos_row(0)[0], 1.5F);
}

TEST(Rope, LongRopeChoosesFactorsByTheServedContext) {
  RopeConfig c = basic(4, 100.0);
  c.scaling = RopeScaling::kLongRope;
  c.original_max_position = 4096;
  c.max_position = 4096;
  c.short_factors = {1.0, 2.0};
  c.long_factors = {3.0, 5.0};
  EXPECT_NEAR(rope_frequencies(c).inv_freq[1], 0.1 / 2.0, 1e-15);
  EXPECT_EQ(rope_frequencies(c).attention_factor, 1.0);
  c.max_position = 131072;
  EXPECT_NEAR(rope_frequencies(c).inv_freq[0], 1.0 / 3.0, 1e-15);
  EXPECT_NEAR(rope_frequencies(c).inv_freq[1], 0.1 / 5.0, 1e-15);
  EXPECT_NEAR(rope_frequencies(c).attention_factor, std::sqrt(1.0 + std::log(32.0) / std::log(4096.0)), 1e-12);
}

TEST(Rope, ExplicitFrequencyFactorsDivide) {
  RopeConfig c = basic(4, 100.0);
  c.freq_factors = {1.0F, 8.0F};
  EXPECT_NEAR(rope_frequencies(c).inv_freq[1], 0.1 / 8.0, 1e-15);
}

TEST(Rope, RefusesImpossibleConfigurations) {
  EXPECT_THROW(rope_frequencies(basic(0, 10000.0)), std::invalid_argument);
  EXPECT_THROW(rope_frequencies(basic(7, 10000.0)), std::invalid_argument);
  EXPECT_THROW(rope_frequencies(basic(8, 0.0)), std::invalid_argument);
  EXPECT_THROW(rope_frequencies(basic(8, std::nan(""))), std::invalid_argument);
  RopeConfig c = basic(8, 10000.0);
  c.rotary_dim = 10;
  EXPECT_THROW(rope_frequencies(c), std::invalid_argument);
  c = basic(8, 10000.0);
  c.scaling = RopeScaling::kYarn;
  EXPECT_THROW(rope_frequencies(c), std::invalid_argument);
  c = basic(8, 10000.0);
  c.freq_factors = {1.0F};
  EXPECT_THROW(rope_frequencies(c), std::invalid_argument);
  EXPECT_THROW(RopeTable(basic(8, 10000.0), 0), std::invalid_argument);
}

}  // namespace
}  // namespace cairn::kernels
