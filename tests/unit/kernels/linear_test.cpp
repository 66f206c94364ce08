// linear on every weight type and instruction set: against double-precision loops, and bit for bit across batches,
// thread counts and instruction sets.
#include "kernels/cpu/linear.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/unit/kernels/kernel_test_util.hpp"

namespace cairn::kernels {
namespace {

struct Shape {
  std::int64_t rows, cols, m;
};

// The dequantised matrix; dequantize_row has its own test.
std::vector<float> dense(WeightType type, const std::vector<std::uint8_t>& data, std::int64_t rows, std::int64_t cols) {
  std::vector<float> w(static_cast<std::size_t>(rows * cols));
  for (std::int64_t r = 0; r < rows; ++r) {
    dequantize_row(type, data.data() + weight_row_bytes(type, cols) * static_cast<std::size_t>(r), cols,
                   w.data() + r * cols);
  }
  return w;
}

std::vector<float> run_linear(const PackedMatrix& w, const std::vector<float>& x, std::int64_t m, const float* bias,
                              const Parallel& parallel) {
  std::vector<std::uint8_t> scratch(linear_scratch_bytes(w, m, parallel.threads));
  std::vector<float> y(static_cast<std::size_t>(m * w.rows()), -1.0F);
  linear(w, x.data(), m, w.cols(), y.data(), w.rows(), bias, scratch.data(), parallel);
  return y;
}

// What 16-bit activations and f32 accumulation may differ by: half a step of each block's scale, plus rounding.
double tolerance(const float* w, const float* x, std::int64_t cols, bool quantised) {
  double bound = 1e-6;
  for (std::int64_t b = 0; b < cols; b += 32) {
    double amax = 0.0;
    double weights = 0.0;
    double products = 0.0;
    for (std::int64_t i = b; i < std::min(b + 32, cols); ++i) {
      amax = std::max(amax, std::fabs(static_cast<double>(x[i])));
      weights += std::fabs(static_cast<double>(w[i]));
      products += std::fabs(static_cast<double>(w[i]) * static_cast<double>(x[i]));
    }
    bound += products * 3e-6 + (quantised ? 0.51 * amax / 32639.0 * weights : 0.0);
  }
  return bound;
}

class LinearTypes : public testing::TestWithParam<WeightType> {};

TEST_P(LinearTypes, MatchesDoublePrecisionOnOddShapes) {
  const WeightType type = GetParam();
  const std::int64_t k = weight_block_size(type) == 256 ? 512 : 96;
  for (const Shape shape : {Shape{1, k, 1}, Shape{15, k, 2}, Shape{16, k, 3}, Shape{33, k + 32, 5}, Shape{47, k - 7, 7},
                            Shape{64, 3 * k, 4}, Shape{7, 13, 9}}) {
    const auto data = random_weights(type, shape.rows, shape.cols, 1);
    const auto w = dense(type, data, shape.rows, shape.cols);
    const auto x = random_floats(static_cast<std::size_t>(shape.m * shape.cols), 2);
    const auto bias = random_floats(static_cast<std::size_t>(shape.rows), 3);
    const MatrixSource source{type, data.data(), shape.rows, 0};
    const PackedMatrix packed = PackedMatrix::pack({&source, 1}, shape.cols, serial());
    for_each_isa([&](Isa isa) {
      const auto y = run_linear(packed, x, shape.m, bias.data(), serial());
      for (std::int64_t r = 0; r < shape.m; ++r) {
        for (std::int64_t n = 0; n < shape.rows; ++n) {
          const float* xr = x.data() + r * shape.cols;
          const float* wn = w.data() + n * shape.cols;
          double expected = static_cast<double>(bias[static_cast<std::size_t>(n)]);
          for (std::int64_t i = 0; i < shape.cols; ++i)
            expected += static_cast<double>(xr[i]) * static_cast<double>(wn[i]);
          ASSERT_NEAR(y[static_cast<std::size_t>(r * shape.rows + n)], expected,
                      tolerance(wn, xr, shape.cols, weight_is_quantised(type)))
              << isa_name(isa) << " row " << r << " output " << n << " of " << shape.rows << "x" << shape.cols;
        }
      }
    });
  }
}

TEST_P(LinearTypes, ARowGivesTheSameBitsInEveryBatchAndThreadCount) {
  const WeightType type = GetParam();
  const std::int64_t rows = 210;
  const std::int64_t cols = 512;
  const std::int64_t m = 137;
  const auto data = random_weights(type, rows, cols, 4);
  const auto x = random_floats(static_cast<std::size_t>(m * cols), 5);
  const MatrixSource source{type, data.data(), rows, 0};
  ThreadPool pool(3);
  const PackedMatrix packed = PackedMatrix::pack({&source, 1}, cols, pool.parallel());
  for_each_isa([&](Isa isa) {
    const auto whole = run_linear(packed, x, m, nullptr, pool.parallel());
    for (const std::int64_t batch : {1, 2, 3, 5, 16, 130}) {
      for (const std::int64_t first : {std::int64_t{0}, std::int64_t{6}, m - batch}) {
        const std::vector<float> part(x.begin() + first * cols, x.begin() + (first + batch) * cols);
        const auto alone = run_linear(packed, part, batch, nullptr, serial());
        ASSERT_TRUE(same_bits(alone, {whole.begin() + first * rows, whole.begin() + (first + batch) * rows}))
            << isa_name(isa) << " batch " << batch << " from row " << first;
      }
    }
  });
}

TEST_P(LinearTypes, QuantisedResultsAreTheSameBitsOnEveryInstructionSet) {
  const WeightType type = GetParam();
  const std::int64_t rows = 50;
  const std::int64_t cols = 768;
  const std::int64_t m = 6;
  const auto data = random_weights(type, rows, cols, 6);
  auto x = random_floats(static_cast<std::size_t>(m * cols), 7);
  for (int i = 0; i < 64; ++i) x[static_cast<std::size_t>(i)] = 0.0F;      // a zero block
  for (int i = 64; i < 96; ++i) x[static_cast<std::size_t>(i)] *= 1e-33F;  // a tiny one
  for (int i = 96; i < 128; ++i) x[static_cast<std::size_t>(i)] *= 1e30F;  // a huge one
  const MatrixSource source{type, data.data(), rows, 0};
  const PackedMatrix packed = PackedMatrix::pack({&source, 1}, cols, serial());
  std::vector<float> first;
  for_each_isa([&](Isa isa) {
    const auto y = run_linear(packed, x, m, nullptr, serial());
    if (first.empty()) first = y;
    EXPECT_TRUE(same_bits(first, y)) << isa_name(isa) << " differs from portable";
  });
}

TEST_P(LinearTypes, PackedRowsDequantiseToTheSourceBits) {
  const WeightType type = GetParam();
  const std::int64_t rows = 21;
  const std::int64_t cols = 300;
  const auto data = random_weights(type, rows, cols, 8);
  const auto w = dense(type, data, rows, cols);
  const MatrixSource source{type, data.data(), rows, 0};
  const PackedMatrix packed = PackedMatrix::pack({&source, 1}, cols, serial());
  std::vector<float> got(w.size());
  for (std::int64_t r = 0; r < rows; ++r) packed.dequantize_row(r, got.data() + r * cols);
  EXPECT_TRUE(same_bits(got, w));
}

TEST_P(LinearTypes, GatedProductEqualsSeparateMatrices) {
  const WeightType type = GetParam();
  const std::int64_t rows = 37;
  const std::int64_t cols = 256;
  const std::int64_t m = 6;
  const auto gate = random_weights(type, rows, cols, 9);
  const auto up = random_weights(type, rows, cols, 10);
  const auto x = random_floats(static_cast<std::size_t>(m * cols), 11);
  const auto bias = random_floats(static_cast<std::size_t>(2 * rows), 12);
  const MatrixSource gate_source{type, gate.data(), rows, 0};
  const MatrixSource up_source{type, up.data(), rows, 0};
  const PackedMatrix fused = PackedMatrix::pack_glu(gate_source, up_source, cols, serial());
  const PackedMatrix gate_packed = PackedMatrix::pack({&gate_source, 1}, cols, serial());
  const PackedMatrix up_packed = PackedMatrix::pack({&up_source, 1}, cols, serial());
  for_each_isa([&](Isa isa) {
    const auto g = run_linear(gate_packed, x, m, bias.data(), serial());
    const auto u = run_linear(up_packed, x, m, bias.data() + rows, serial());
    for (const Activation act : {Activation::kSilu, Activation::kGeluTanh, Activation::kGeluErf}) {
      std::vector<std::uint8_t> scratch(linear_scratch_bytes(fused, m, 1));
      std::vector<float> y(static_cast<std::size_t>(m * rows));
      linear_glu(fused, act, x.data(), m, cols, y.data(), rows, bias.data(), scratch.data(), serial());
      for (std::size_t i = 0; i < y.size(); ++i) {
        const auto v = static_cast<double>(g[i]);
        double a = v / (1.0 + std::exp(-v));
        if (act == Activation::kGeluTanh)
          a = 0.5 * v * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (v + 0.044715 * v * v * v)));
        if (act == Activation::kGeluErf) a = 0.5 * v * (1.0 + std::erf(v / std::sqrt(2.0)));
        const double expected = a * static_cast<double>(u[i]);
        ASSERT_NEAR(y[i], expected, 1e-6 + 1e-6 * std::fabs(expected) + 3e-7 * std::fabs(v * static_cast<double>(u[i])))
            << isa_name(isa) << " at " << i;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(AllTypes, LinearTypes, testing::ValuesIn(kAllTypes),
                         [](const auto& type) { return std::string(weight_type_name(type.param)); });

TEST(Linear, StackedPartsOfDifferentTypesAndStridesGiveEachPartsOwnBits) {
  const std::int64_t cols = 256;
  const std::int64_t m = 3;
  const auto x = random_floats(static_cast<std::size_t>(m * cols), 20);
  const std::vector<std::pair<WeightType, std::int64_t>> parts = {
      {WeightType::kQ4_K, 40}, {WeightType::kQ6_K, 24}, {WeightType::kF16, 5}, {WeightType::kQ8_0, 33}};
  std::vector<std::vector<std::uint8_t>> storage;
  std::vector<MatrixSource> sources;
  std::uint32_t seed = 21;
  for (const auto& [type, rows] : parts) {
    // Rows with eight bytes between them.
    const auto packed = random_weights(type, rows, cols, seed++);
    const std::size_t bytes = weight_row_bytes(type, cols);
    std::vector<std::uint8_t> spaced((bytes + 8) * static_cast<std::size_t>(rows), 0xEE);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(spaced.data() + (bytes + 8) * static_cast<std::size_t>(r),
                  packed.data() + bytes * static_cast<std::size_t>(r), bytes);
    }
    storage.push_back(std::move(spaced));
    sources.push_back({type, storage.back().data(), rows, static_cast<std::int64_t>(bytes + 8)});
  }
  ThreadPool pool(2);
  const PackedMatrix stacked = PackedMatrix::pack(sources, cols, pool.parallel());
  ASSERT_EQ(stacked.rows(), 102);
  for_each_isa([&](Isa isa) {
    const auto y = run_linear(stacked, x, m, nullptr, pool.parallel());
    std::int64_t first = 0;
    for (const MatrixSource& source : sources) {
      const auto alone = run_linear(PackedMatrix::pack({&source, 1}, cols, serial()), x, m, nullptr, serial());
      for (std::int64_t r = 0; r < m; ++r) {
        EXPECT_EQ(0, std::memcmp(y.data() + r * 102 + first, alone.data() + r * source.rows,
                                 static_cast<std::size_t>(source.rows) * sizeof(float)))
            << isa_name(isa) << " " << weight_type_name(source.type);
      }
      first += source.rows;
    }
  });
}

TEST(Linear, GateAndUpOfDifferentTypesWork) {
  const std::int64_t rows = 40;
  const std::int64_t cols = 256;
  const auto gate = random_weights(WeightType::kQ4_K, rows, cols, 30);
  const auto up = random_weights(WeightType::kQ6_K, rows, cols, 31);
  const auto x = random_floats(static_cast<std::size_t>(cols), 32);
  const MatrixSource g{WeightType::kQ4_K, gate.data(), rows, 0};
  const MatrixSource u{WeightType::kQ6_K, up.data(), rows, 0};
  const PackedMatrix fused = PackedMatrix::pack_glu(g, u, cols, serial());
  const auto gy = run_linear(PackedMatrix::pack({&g, 1}, cols, serial()), x, 1, nullptr, serial());
  const auto uy = run_linear(PackedMatrix::pack({&u, 1}, cols, serial()), x, 1, nullptr, serial());
  std::vector<std::uint8_t> scratch(linear_scratch_bytes(fused, 1, 1));
  std::vector<float> y(static_cast<std::size_t>(rows));
  linear_swiglu(fused, x.data(), 1, cols, y.data(), rows, scratch.data(), serial());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto v = static_cast<double>(gy[i]);
    const double expected = v / (1.0 + std::exp(-v)) * static_cast<double>(uy[i]);
    EXPECT_NEAR(y[i], expected, 1e-6 + 4e-7 * std::fabs(expected));
  }
}

TEST(Linear, AddAccumulatesOntoTheOutputAndRespectsStrides) {
  const std::int64_t rows = 20;
  const std::int64_t cols = 64;
  for (const WeightType type : {WeightType::kQ4_1, WeightType::kF16}) {
    const auto data = random_weights(type, rows, cols, 40);
    const auto spaced = random_floats(2 * 70, 41);  // inputs 70 floats apart
    std::vector<float> x(spaced.begin(), spaced.begin() + 64);
    x.insert(x.end(), spaced.begin() + 70, spaced.begin() + 134);
    const MatrixSource source{type, data.data(), rows, 0};
    const PackedMatrix packed = PackedMatrix::pack({&source, 1}, cols, serial());
    const auto product = run_linear(packed, x, 2, nullptr, serial());
    // Rows of the output 24 floats apart: what lies between must stay.
    std::vector<float> y(48, 0.5F);
    std::vector<std::uint8_t> scratch(linear_scratch_bytes(packed, 2, 1));
    linear_add(packed, spaced.data(), 2, 70, y.data(), 24, nullptr, scratch.data(), serial());
    for (std::size_t i = 0; i < 48; ++i) {
      EXPECT_EQ(y[i], i % 24 < 20 ? 0.5F + product[i / 24 * 20 + i % 24] : 0.5F) << i;
    }
  }
}

TEST(Linear, AMatrixKeepsItsWeightsWhenOthersComeAndGo) {
  const std::int64_t rows = 64;
  const std::int64_t cols = 256;
  const auto x = random_floats(static_cast<std::size_t>(cols), 60);
  std::vector<PackedMatrix> matrices;
  std::vector<std::vector<float>> expected;
  for (std::uint32_t i = 0; i < 24; ++i) {
    const auto data = random_weights(WeightType::kF32, rows, cols, 61 + i);
    const MatrixSource source{WeightType::kF32, data.data(), rows, 0};
    matrices.push_back(PackedMatrix::pack({&source, 1}, cols, serial()));
    expected.push_back(run_linear(matrices.back(), x, 1, nullptr, serial()));
    if (i % 3 == 2) matrices[i - 1] = PackedMatrix();
  }
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (matrices[i].empty()) continue;
    EXPECT_TRUE(same_bits(run_linear(matrices[i], x, 1, nullptr, serial()), expected[i])) << i;
  }
}

TEST(Linear, NotANumberStaysInItsRow) {
  const std::int64_t rows = 16;
  const std::int64_t cols = 64;
  const auto data = random_weights(WeightType::kQ8_0, rows, cols, 50);
  auto x = random_floats(3 * 64, 51);
  const MatrixSource source{WeightType::kQ8_0, data.data(), rows, 0};
  const PackedMatrix packed = PackedMatrix::pack({&source, 1}, cols, serial());
  for_each_isa([&](Isa) {
    const auto clean = run_linear(packed, x, 3, nullptr, serial());
    auto dirty_x = x;
    dirty_x[64 + 5] = std::numeric_limits<float>::quiet_NaN();
    dirty_x[64 + 40] = std::numeric_limits<float>::infinity();
    const auto dirty = run_linear(packed, dirty_x, 3, nullptr, serial());
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(dirty[i], clean[i]);
      EXPECT_TRUE(std::isnan(dirty[16 + i]));
      EXPECT_EQ(dirty[32 + i], clean[32 + i]);
    }
  });
}

TEST(Linear, RefusesAGatedMatrixInThePlainProductAndTheReverse) {
  const std::vector<float> w(32, 1.0F);
  const MatrixSource source{WeightType::kF32, w.data(), 16, 0};
  const PackedMatrix plain = PackedMatrix::pack({&source, 1}, 2, serial());
  const PackedMatrix gated = PackedMatrix::pack_glu(source, source, 2, serial());
  std::vector<float> y(16);
  std::uint8_t scratch[64];
  EXPECT_THROW(linear(gated, w.data(), 1, 2, y.data(), 16, nullptr, scratch, serial()), std::invalid_argument);
  EXPECT_THROW(linear_swiglu(plain, w.data(), 1, 2, y.data(), 16, scratch, serial()), std::invalid_argument);
}

TEST(Linear, PackingRefusesImpossibleSources) {
  const float w[4] = {1, 2, 3, 4};
  const MatrixSource no_data{WeightType::kF32, nullptr, 2, 0};
  const MatrixSource negative{WeightType::kF32, w, -1, 0};
  const MatrixSource narrow{WeightType::kF32, w, 2, 4};
  const MatrixSource one{WeightType::kF32, w, 1, 0};
  const MatrixSource two{WeightType::kF32, w, 2, 0};
  EXPECT_THROW(PackedMatrix::pack({&no_data, 1}, 2, serial()), std::invalid_argument);
  EXPECT_THROW(PackedMatrix::pack({&negative, 1}, 2, serial()), std::invalid_argument);
  EXPECT_THROW(PackedMatrix::pack({&narrow, 1}, 2, serial()), std::invalid_argument);
  EXPECT_THROW(PackedMatrix::pack({&two, 1}, 0, serial()), std::invalid_argument);
  EXPECT_THROW(PackedMatrix::pack_glu(one, two, 2, serial()), std::invalid_argument);
}

}  // namespace
}  // namespace cairn::kernels
