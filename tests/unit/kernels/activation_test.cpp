// Activations, element-wise operations and softmax against double-precision formulas, on every instruction set.
#include "kernels/cpu/activation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/dispatch.hpp"
#include "kernels/cpu/softmax.hpp"
#include "tests/unit/kernels/kernel_test_util.hpp"

namespace cairn::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double exact(Activation act, double x) {
  switch (act) {
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kGeluTanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  }
  return 0.0;
}

// Distance in units of the last place of the exact result.
double ulps(float got, double expected) {
  const auto nearest = static_cast<float>(expected);
  const double unit =
      static_cast<double>(std::nextafter(std::fabs(nearest), kInfinity)) - std::fabs(static_cast<double>(nearest));
  return std::fabs(static_cast<double>(got) - expected) / unit;
}

TEST(VectorExp, IsWithinTwoUlpOverItsRangeAndExactAtTheEdges) {
  std::vector<float> x;
  for (double v = -87.0; v < 88.7; v += 0.00173) x.push_back(static_cast<float>(v));
  for (int e = -40; e < 0; ++e) x.insert(x.end(), {std::ldexp(1.1F, e), -std::ldexp(1.1F, e)});
  std::vector<float> first;
  for_each_isa([&](Isa isa) {
    const ElementTable& table = element_table(isa);
    std::vector<float> y(x.size());
    table.exp(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_LT(ulps(y[i], std::exp(static_cast<double>(x[i]))), 2.0) << x[i];
    if (first.empty()) first = y;
    EXPECT_TRUE(same_bits(first, y)) << isa_name(isa);

    const std::vector<float> edges = {0.0F, -0.0F, -kInfinity, -1000.0F, 89.0F, kInfinity, std::nanf(""), -100.0F};
    std::vector<float> e(edges.size());
    table.exp(edges.data(), e.data(), static_cast<std::int64_t>(edges.size()));
    EXPECT_EQ(e[0], 1.0F);
    EXPECT_EQ(e[1], 1.0F);
    EXPECT_EQ(e[2], 0.0F);
    EXPECT_EQ(e[3], 0.0F);
    EXPECT_EQ(e[4], kInfinity);
    EXPECT_EQ(e[5], kInfinity);
    EXPECT_TRUE(std::isnan(e[6]));
    EXPECT_NEAR(e[7], std::exp(-100.0), 1.5e-45) << "denormal results round, they do not vanish";
  });
}

TEST(Activation, EveryFunctionMatchesItsFormula) {
  ThreadPool pool(2);
  std::vector<float> x;
  for (double v = -30.0; v < 30.0; v += 0.0137) x.push_back(static_cast<float>(v));
  x.insert(x.end(), {0.0F, 1e-20F, -1e-20F, 500.0F, -500.0F});
  for (const Activation act : {Activation::kSilu, Activation::kGeluTanh, Activation::kGeluErf}) {
    std::vector<float> first;
    for_each_isa([&](Isa isa) {
      std::vector<float> y(x.size());
      activate(act, x.data(), y.data(), static_cast<std::int64_t>(x.size()), pool.parallel());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = exact(act, static_cast<double>(x[i]));
        ASSERT_NEAR(y[i], expected, 4e-7 * std::fabs(expected) + 1.6e-7 * std::fabs(static_cast<double>(x[i])))
            << isa_name(isa) << " at " << x[i];
      }
      if (first.empty()) first = y;
      EXPECT_TRUE(same_bits(first, y)) << isa_name(isa);
    });
  }
}

TEST(Activation, GatedProductWorksOnAFusedBufferInAnyWidth) {
  for (const std::int64_t n : {1, 16, 19, 100}) {
    const std::int64_t rows = 5;
    const auto x = random_floats(static_cast<std::size_t>(rows * 2 * n), 1);
    for_each_isa([&](Isa isa) {
      std::vector<float> y(static_cast<std::size_t>(rows * n));
      gated_activate(Activation::kSilu, x.data(), 2 * n, x.data() + n, 2 * n, rows, n, y.data(), n, serial());
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t i = 0; i < n; ++i) {
          const double g = static_cast<double>(x[static_cast<std::size_t>(r * 2 * n + i)]);
          const double u = static_cast<double>(x[static_cast<std::size_t>(r * 2 * n + n + i)]);
          const double expected = exact(Activation::kSilu, g) * u;
          ASSERT_NEAR(y[static_cast<std::size_t>(r * n + i)], expected, 5e-7 * std::fabs(expected) + 1e-9)
              << isa_name(isa);
        }
      }
    });
  }
}

TEST(Elementwise, AddMulScaleAndSoftcap) {
  ThreadPool pool(3);
  const std::size_t n = 20011;  // split between threads, and not a multiple of a vector
  const auto a = random_floats(n, 2, 10.0F);
  const auto b = random_floats(n, 3);
  for_each_isa([&](Isa isa) {
    std::vector<float> y(n);
    const auto count = static_cast<std::int64_t>(n);
    add(a.data(), b.data(), y.data(), count, pool.parallel());
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] + b[i]) << isa_name(isa);
    mul(a.data(), b.data(), y.data(), count, pool.parallel());
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] * b[i]) << isa_name(isa);
    scale(a.data(), 0.3F, y.data(), count, pool.parallel());
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] * 0.3F) << isa_name(isa);
    softcap(a.data(), 15.0F, y.data(), count, pool.parallel());
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = 15.0 * std::tanh(static_cast<double>(a[i]) / 15.0);
      ASSERT_NEAR(y[i], expected, 6e-7 * std::fabs(expected) + 1e-9) << isa_name(isa);
    }
  });
}

TEST(Softmax, MatchesDoublePrecisionAndSumsToOne) {
  for (const std::int64_t n : {1, 5, 16, 300, 5000}) {
    const auto x = random_floats(static_cast<std::size_t>(3 * n), 4, 4.0F);
    std::vector<float> first;
    for_each_isa([&](Isa isa) {
      std::vector<float> y(x.size());
      softmax(x.data(), n, 3, n, y.data(), n, serial());
      for (std::int64_t r = 0; r < 3; ++r) {
        const float* row = x.data() + r * n;
        double total = 0.0;
        for (std::int64_t i = 0; i < n; ++i) total += std::exp(static_cast<double>(row[i]));
        for (std::int64_t i = 0; i < n; ++i) {
          const double expected = std::exp(static_cast<double>(row[i])) / total;
          ASSERT_NEAR(y[static_cast<std::size_t>(r * n + i)], expected, 2e-6 * expected + 1e-12) << isa_name(isa);
        }
        EXPECT_NEAR(softmax_stats(row, n).log_sum_exp, std::log(total), 2e-6);
        EXPECT_EQ(softmax_stats(row, n).max, *std::max_element(row, row + n));
      }
      if (first.empty()) first = y;
      EXPECT_TRUE(same_bits(first, y)) << isa_name(isa);
    });
  }
}

TEST(Softmax, NotANumberCountsAsMinusInfinityAndAnEmptyRowGivesZeros) {
  for_each_isa([&](Isa) {
    std::vector<float> x = {std::nanf(""), 0.0F, -kInfinity, 0.0F};
    std::vector<float> y(4);
    softmax(x.data(), 4, 1, 4, y.data(), 4, serial());
    EXPECT_EQ(y, (std::vector<float>{0.0F, 0.5F, 0.0F, 0.5F}));
    x = {-kInfinity, std::nanf("")};
    softmax(x.data(), 2, 1, 2, y.data(), 2, serial());
    EXPECT_EQ(y[0], 0.0F);
    EXPECT_EQ(y[1], 0.0F);
  });
}

}  // namespace
}  // namespace cairn::kernels
