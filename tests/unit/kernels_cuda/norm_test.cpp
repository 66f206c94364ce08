// RMSNorm on the device against a plain loop in double precision. Skips, visibly, where no device is.
#include "kernels/cuda/norm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/cuda/device.hpp"

namespace cairn::kernels::cuda {
namespace {

class CudaNorm : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (devices(&why).empty()) GTEST_SKIP() << "no CUDA device here: " << why;
  }
};

// A copy of host memory on the device.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(const std::vector<float>& values) : bytes_(values.size() * sizeof(float)) {
    EXPECT_EQ(cudaMalloc(&memory_, bytes_), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory_, values.data(), bytes_, cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~DeviceBuffer() { cudaFree(memory_); }
  float* data() const { return static_cast<float*>(memory_); }
  std::vector<float> read() const {
    std::vector<float> values(bytes_ / sizeof(float));
    EXPECT_EQ(cudaMemcpy(values.data(), memory_, bytes_, cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

TEST_F(CudaNorm, AgreesWithAPlainLoopAndARowAloneEqualsTheRowInABatch) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const std::int64_t n : {1, 63, 576, 2049}) {
    constexpr std::int64_t kRows = 5;
    std::vector<float> x(static_cast<std::size_t>(kRows * n));
    std::vector<float> weight(static_cast<std::size_t>(n));
    for (float& value : x) value = normal(random);
    for (float& value : weight) value = normal(random);
    const DeviceBuffer x_device(x);
    const DeviceBuffer weight_device(weight);
    const DeviceBuffer y_device(x);
    ASSERT_EQ(rms_norm(x_device.data(), weight_device.data(), 1e-5F, kRows, n, y_device.data(), nullptr), cudaSuccess);
    const std::vector<float> y = y_device.read();
    for (std::int64_t row = 0; row < kRows; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += std::pow(x[static_cast<std::size_t>(row * n + i)], 2.0);
      const double scale = 1.0 / std::sqrt(sum / static_cast<double>(n) + 1e-5);
      for (std::int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(row * n + i);
        EXPECT_NEAR(y[at], x[at] * scale * weight[static_cast<std::size_t>(i)], 1e-5 * (1 + std::fabs(y[at])));
      }
    }
    const DeviceBuffer alone(x);
    ASSERT_EQ(rms_norm(x_device.data() + 2 * n, weight_device.data(), 1e-5F, 1, n, alone.data(), nullptr), cudaSuccess);
    const std::vector<float> single = alone.read();
    for (std::int64_t i = 0; i < n; ++i) {
      EXPECT_EQ(single[static_cast<std::size_t>(i)], y[static_cast<std::size_t>(2 * n + i)]);
    }
  }
}

}  // namespace
}  // namespace cairn::kernels::cuda
