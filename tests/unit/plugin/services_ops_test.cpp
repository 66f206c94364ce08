// "cairn.ops" without matrices: values against loops in double precision, strided views, and misuse.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "allocation_count.hpp"
#include "core/plugin/thread_context.hpp"
#include "core/tensor/tensor.hpp"
#include "host_table.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace cairn {
namespace {

// A float32 array with its view; values are a fixed function of `salt`.
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::vector<float> data;

  Array(std::vector<std::int64_t> extents, int salt, std::vector<std::int64_t> given_strides = {})
      : shape(std::move(extents)), strides(std::move(given_strides)) {
    std::int64_t size = 1;
    for (const auto extent : shape) size *= extent;
    if (!strides.empty()) size = shape[0] * strides[0];
    for (std::int64_t i = 0; i < size; ++i)
      data.push_back(static_cast<float>((i * 37 + salt * 11) % 101) / 25.0F - 2.0F);
  }
  cairn_tensor_view view() {
    return {data.data(),
            {CAIRN_DEVICE_CPU, 0},
            static_cast<std::int32_t>(shape.size()),
            kFloat32,
            shape.data(),
            strides.empty() ? nullptr : strides.data(),
            0,
            0,
            nullptr};
  }
  // Element at an index along each dimension.
  float& at(std::initializer_list<std::int64_t> index) {
    std::int64_t offset = 0;
    std::int64_t compact = 1;
    std::vector<std::int64_t> steps(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
      steps[d] = strides.empty() ? compact : strides[d];
      compact *= shape[d];
    }
    std::size_t d = 0;
    for (const auto i : index) offset += i * steps[d++];
    return data[static_cast<std::size_t>(offset)];
  }
};

double d(float x) {
  return static_cast<double>(x);
}

class Ops : public testing::Test {
 protected:
  const cairn_ops_service& ops = host_table<cairn_ops_service>("cairn.ops");
  kernels::ThreadPool pool{3};
  kernels::Parallel parallel = pool.parallel();
  ThreadScope scope{ThreadContext{.parallel = &parallel}};
};

// q as a slice of a fused projection: 5 tokens, 3 heads of 8, tokens 40 floats apart.
Array fused(int salt) {
  return Array({5, 3, 8}, salt, {40, 8, 1});
}

TEST_F(Ops, RmsNormWorksOnHeadsOfAFusedProjectionInPlace) {
  Array x = fused(1);
  Array original = x;
  Array weight({8}, 2);
  const auto x_view = x.view();
  const auto weight_view = weight.view();
  ASSERT_EQ(ops.rms_norm(&x_view, &weight_view, 1e-5, &x_view), CAIRN_STATUS_OK) << last_status_message();
  for (std::int64_t t = 0; t < 5; ++t) {
    for (std::int64_t h = 0; h < 3; ++h) {
      double squares = 0;
      for (std::int64_t i = 0; i < 8; ++i) squares += d(original.at({t, h, i})) * d(original.at({t, h, i}));
      for (std::int64_t i = 0; i < 8; ++i) {
        EXPECT_NEAR(d(x.at({t, h, i})), d(original.at({t, h, i})) / std::sqrt(squares / 8 + 1e-5) * d(weight.at({i})),
                    1e-5);
      }
    }
    for (std::size_t i = 24; i < 40; ++i) {
      const std::size_t at = static_cast<std::size_t>(t) * 40 + i;
      EXPECT_EQ(x.data[at], original.data[at]) << "outside of the view";
    }
  }
}

TEST_F(Ops, LayerNormAndSoftmaxMatchTheirFormulas) {
  Array x({4, 10}, 3);
  Array weight({10}, 4);
  Array bias({10}, 5);
  Array out({4, 10}, 6);
  const auto x_view = x.view();
  const auto weight_view = weight.view();
  const auto bias_view = bias.view();
  const auto out_view = out.view();
  ASSERT_EQ(ops.layer_norm(&x_view, &weight_view, &bias_view, 1e-5, &out_view), CAIRN_STATUS_OK);
  for (std::int64_t r = 0; r < 4; ++r) {
    double mean = 0;
    for (std::int64_t i = 0; i < 10; ++i) mean += d(x.at({r, i})) / 10;
    double variance = 0;
    for (std::int64_t i = 0; i < 10; ++i) variance += (d(x.at({r, i})) - mean) * (d(x.at({r, i})) - mean) / 10;
    for (std::int64_t i = 0; i < 10; ++i) {
      const double expected =
          (d(x.at({r, i})) - mean) / std::sqrt(variance + 1e-5) * d(weight.at({i})) + d(bias.at({i}));
      EXPECT_NEAR(d(out.at({r, i})), expected, 1e-5);
    }
  }
  ASSERT_EQ(ops.softmax(&x_view, &out_view), CAIRN_STATUS_OK);
  for (std::int64_t r = 0; r < 4; ++r) {
    double sum = 0;
    for (std::int64_t i = 0; i < 10; ++i) sum += std::exp(d(x.at({r, i})));
    for (std::int64_t i = 0; i < 10; ++i) EXPECT_NEAR(d(out.at({r, i})), std::exp(d(x.at({r, i}))) / sum, 1e-6);
  }
}

TEST_F(Ops, ElementwiseOpsTakeStridesAndBroadcast) {
  Array a = fused(1);
  Array b = fused(2);
  Array vector({8}, 3);
  Array matrix({1, 3, 8}, 4);
  Array out({5, 3, 8}, 5);
  const auto a_view = a.view();
  const auto b_view = b.view();
  const auto vector_view = vector.view();
  const auto matrix_view = matrix.view();
  const auto out_view = out.view();
  const auto expect = [&](const std::function<float(std::int64_t, std::int64_t, std::int64_t)>& expected) {
    for (std::int64_t t = 0; t < 5; ++t) {
      for (std::int64_t h = 0; h < 3; ++h) {
        for (std::int64_t i = 0; i < 8; ++i) ASSERT_EQ(out.at({t, h, i}), expected(t, h, i)) << t << h << i;
      }
    }
  };
  ASSERT_EQ(ops.add(&a_view, &b_view, &out_view), CAIRN_STATUS_OK) << last_status_message();
  expect([&](auto t, auto h, auto i) { return a.at({t, h, i}) + b.at({t, h, i}); });
  ASSERT_EQ(ops.mul(&a_view, &vector_view, &out_view), CAIRN_STATUS_OK) << last_status_message();
  expect([&](auto t, auto h, auto i) { return a.at({t, h, i}) * vector.at({i}); });
  ASSERT_EQ(ops.add(&a_view, &matrix_view, &out_view), CAIRN_STATUS_OK) << last_status_message();
  expect([&](auto t, auto h, auto i) { return a.at({t, h, i}) + matrix.at({0, h, i}); });
  Array wrong({3}, 6);
  const auto wrong_view = wrong.view();
  EXPECT_EQ(ops.add(&a_view, &wrong_view, &out_view), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(last_status_message(), "ops.add: b [3] does not fit a [5, 3, 8] strides [40, 8, 1]");
}

TEST_F(Ops, ActivationsMatchTheirFormulas) {
  Array gate({3, 20}, 1);
  Array up({3, 20}, 2);
  Array out({3, 20}, 3);
  const auto gate_view = gate.view();
  const auto up_view = up.view();
  const auto out_view = out.view();
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  const auto gelu = [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); };
  const auto gelu_tanh = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  const std::vector<std::pair<std::uint32_t, std::function<double(double)>>> kinds = {
      {CAIRN_ACTIVATION_SILU, silu}, {CAIRN_ACTIVATION_GELU, gelu}, {CAIRN_ACTIVATION_GELU_TANH, gelu_tanh}};
  for (const auto& [kind, expected] : kinds) {
    ASSERT_EQ(ops.activation(&gate_view, kind, &out_view), CAIRN_STATUS_OK);
    for (std::int64_t i = 0; i < 20; ++i) EXPECT_NEAR(d(out.at({2, i})), expected(d(gate.at({2, i}))), 1e-5);
    ASSERT_EQ(ops.gated(&gate_view, &up_view, kind, &out_view), CAIRN_STATUS_OK);
    for (std::int64_t i = 0; i < 20; ++i) {
      EXPECT_NEAR(d(out.at({1, i})), expected(d(gate.at({1, i}))) * d(up.at({1, i})), 1e-5);
    }
  }
  EXPECT_EQ(ops.activation(&gate_view, 99, &out_view), CAIRN_STATUS_UNSUPPORTED);
}

TEST_F(Ops, MatmulMatchesALoopForNarrowAndWideResults) {
  for (const std::int64_t n : {5, 1000}) {
    Array a({7, 9}, 1);
    Array b({9, n}, 2);
    Array out({7, n}, 3);
    const auto a_view = a.view();
    const auto b_view = b.view();
    const auto out_view = out.view();
    ASSERT_EQ(ops.matmul(&a_view, &b_view, &out_view), CAIRN_STATUS_OK) << last_status_message();
    for (std::int64_t r = 0; r < 7; ++r) {
      for (std::int64_t c = 0; c < n; ++c) {
        double expected = 0;
        for (std::int64_t k = 0; k < 9; ++k) expected += d(a.at({r, k})) * d(b.at({k, c}));
        ASSERT_NEAR(d(out.at({r, c})), expected, 1e-4) << r << " " << c;
      }
    }
    EXPECT_EQ(ops.matmul(&b_view, &a_view, &out_view), CAIRN_STATUS_INVALID_ARGUMENT);
  }
}

TEST_F(Ops, ConvolutionsMatchALoop) {
  const std::int64_t stride[] = {2, 1};
  const std::int64_t padding[] = {1, 2};
  const std::int64_t dilation[] = {1, 2};
  Array x({2, 4, 7, 6}, 1);
  Array weight({6, 2, 3, 2}, 2);  // 2 groups
  Array bias({6}, 3);
  Array out({2, 6, 4, 8}, 4);  // (7 + 2 - 2 - 1) / 2 + 1 = 4, (6 + 4 - 2 - 1) / 1 + 1 = 8
  const auto x_view = x.view();
  const auto weight_view = weight.view();
  const auto bias_view = bias.view();
  const auto out_view = out.view();
  ASSERT_EQ(ops.conv2d(&x_view, &weight_view, &bias_view, stride, padding, dilation, 2, &out_view), CAIRN_STATUS_OK)
      << last_status_message();
  for (std::int64_t n = 0; n < 2; ++n) {
    for (std::int64_t o = 0; o < 6; ++o) {
      for (std::int64_t y = 0; y < 4; ++y) {
        for (std::int64_t c = 0; c < 8; ++c) {
          double expected = d(bias.at({o}));
          for (std::int64_t i = 0; i < 2; ++i) {
            for (std::int64_t ky = 0; ky < 3; ++ky) {
              for (std::int64_t kx = 0; kx < 2; ++kx) {
                const std::int64_t iy = y * 2 + ky - 1;
                const std::int64_t ix = c + kx * 2 - 2;
                if (iy < 0 || iy >= 7 || ix < 0 || ix >= 6) continue;
                expected += d(x.at({n, o / 3 * 2 + i, iy, ix})) * d(weight.at({o, i, ky, kx}));
              }
            }
          }
          ASSERT_NEAR(d(out.at({n, o, y, c})), expected, 1e-4) << n << o << y << c;
        }
      }
    }
  }
  Array line({1, 3, 10}, 1);
  Array taps({2, 3, 4}, 2);
  Array result({1, 2, 4}, 3);  // (10 + 2 - 3 - 1) / 2 + 1 = 5, so this is one short
  const auto line_view = line.view();
  const auto taps_view = taps.view();
  auto result_view = result.view();
  EXPECT_EQ(ops.conv1d(&line_view, &taps_view, nullptr, 2, 1, 1, 1, &result_view), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(last_status_message(), "ops.conv1d: out [1, 2, 4] should be [1, 2, 5]");
  Array right({1, 2, 5}, 3);
  result_view = right.view();
  ASSERT_EQ(ops.conv1d(&line_view, &taps_view, nullptr, 2, 1, 1, 1, &result_view), CAIRN_STATUS_OK);
  double expected = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t k = 0; k < 4; ++k) expected += d(line.at({0, i, 3 + k})) * d(taps.at({1, i, k}));
  }
  EXPECT_NEAR(d(right.at({0, 1, 2})), expected, 1e-4);
  EXPECT_EQ(ops.conv1d(&line_view, &taps_view, nullptr, 0, 1, 1, 1, &result_view), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(ops.conv1d(&line_view, &taps_view, nullptr, 1, 1, 1, 2, &result_view), CAIRN_STATUS_INVALID_ARGUMENT);
}

TEST_F(Ops, ASecondCallAllocatesNothing) {
  Array x = fused(1);
  Array y = fused(2);
  Array weight({8}, 3);
  const auto x_view = x.view();
  const auto y_view = y.view();
  const auto weight_view = weight.view();
  const auto all = [&] {
    return ops.rms_norm(&x_view, &weight_view, 1e-5, &x_view) |
           ops.layer_norm(&x_view, nullptr, nullptr, 1e-5, &y_view) | ops.softmax(&x_view, &y_view) |
           ops.add(&x_view, &y_view, &x_view) | ops.mul(&x_view, &weight_view, &x_view) |
           ops.activation(&x_view, CAIRN_ACTIVATION_SILU, &y_view) |
           ops.gated(&x_view, &y_view, CAIRN_ACTIVATION_SILU, &y_view);
  };
  ASSERT_EQ(all(), CAIRN_STATUS_OK);
  const std::int64_t before = allocations_of_this_thread();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(all(), CAIRN_STATUS_OK);
  EXPECT_EQ(allocations_of_this_thread(), before);
}

TEST_F(Ops, EmptyTensorsAreNoWork) {
  Array x({0, 8}, 1);
  cairn_tensor_view view = x.view();
  view.data = nullptr;
  EXPECT_EQ(ops.rms_norm(&view, nullptr, 1e-5, &view), CAIRN_STATUS_OK) << last_status_message();
  EXPECT_EQ(ops.add(&view, &view, &view), CAIRN_STATUS_OK) << last_status_message();
  EXPECT_EQ(ops.softmax(&view, &view), CAIRN_STATUS_OK) << last_status_message();
  EXPECT_EQ(ops.activation(&view, CAIRN_ACTIVATION_SILU, &view), CAIRN_STATUS_OK) << last_status_message();
}

TEST_F(Ops, MisuseIsNamedWithTheFunctionAndTheShapes) {
  Array x({3, 8}, 1);
  Array y({3, 8}, 2);
  const cairn_tensor_view good = x.view();
  const cairn_tensor_view out = y.view();
  const auto message = [&](const cairn_tensor_view* bad) {
    EXPECT_EQ(ops.softmax(bad, &out), CAIRN_STATUS_INVALID_ARGUMENT);
    return take_status_message();
  };
  EXPECT_EQ(message(nullptr), "ops.softmax: x is NULL");
  cairn_tensor_view bad = good;
  bad.data = nullptr;
  EXPECT_EQ(message(&bad), "ops.softmax: x [3, 8] has no memory (data is NULL)");
  bad = good;
  bad.dtype = kInt32;
  EXPECT_EQ(message(&bad), "ops.softmax: x [3, 8] is not float32");
  bad = good;
  bad.device.type = CAIRN_DEVICE_CUDA;
  EXPECT_EQ(message(&bad), "ops.softmax: x [3, 8] is not in CPU memory");
  bad = good;
  bad.byte_offset = 2;
  EXPECT_EQ(message(&bad), "ops.softmax: x [3, 8] is not aligned to its elements");
  bad = good;
  bad.ndim = 0;
  EXPECT_EQ(message(&bad), "ops.softmax: x has 0 dimensions; 1 to 16 are allowed");
  bad.ndim = 1000;
  EXPECT_EQ(message(&bad), "ops.softmax: x has 1000 dimensions; 1 to 16 are allowed");
  const std::int64_t other[] = {8, 3};
  bad = good;
  bad.shape = other;
  EXPECT_EQ(message(&bad), "ops.softmax: x [8, 3] does not fit out [3, 8]");
  const std::int64_t negative[] = {-3, 8};
  bad.shape = negative;
  EXPECT_NE(message(&bad).find("impossible shape"), std::string::npos);
  const std::int64_t huge[] = {INT64_MAX, 8};
  bad.shape = huge;
  EXPECT_NE(message(&bad).find("impossible shape"), std::string::npos);
  bad = good;
  for (const auto& strides : std::vector<std::vector<std::int64_t>>{{8, 2}, {4, 1}, {-8, 1}, {INT64_MAX, 1}, {0, 1}}) {
    bad.strides = strides.data();
    EXPECT_NE(message(&bad), "") << strides[0];
  }
  cairn_tensor_view read_only = out;
  read_only.flags = CAIRN_TENSOR_READ_ONLY;
  EXPECT_EQ(ops.softmax(&good, &read_only), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(last_status_message(), "ops.softmax: out [3, 8] is read-only");
  // The same memory one row on.
  Array shared({4, 8}, 3);
  cairn_tensor_view first = shared.view();
  first.shape = good.shape;
  cairn_tensor_view second = first;
  second.byte_offset = 32;
  EXPECT_EQ(ops.softmax(&first, &second), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(last_status_message(), "ops.softmax: out shares memory with x without being the same tensor");
}

}  // namespace
}  // namespace cairn
