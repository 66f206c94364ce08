// Random data, GGUF blocks and the list of instruction sets for the kernel tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_features.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/cpu/types.hpp"

namespace cairn::kernels {

inline const std::vector<WeightType> kAllTypes = {
    WeightType::kF32,  WeightType::kF16,  WeightType::kBF16, WeightType::kQ4_0, WeightType::kQ4_1, WeightType::kQ5_0,
    WeightType::kQ5_1, WeightType::kQ8_0, WeightType::kQ4_K, WeightType::kQ5_K, WeightType::kQ6_K};

// Runs body(isa) with each supported set in force and restores the best one.
template <class Body>
void for_each_isa(Body&& body) {
  for (const Isa isa : supported_isas()) {
    set_isa_for_tests(isa);
    body(isa);
  }
  set_isa_for_tests(best_isa());
}

inline std::vector<float> random_floats(std::size_t n, std::uint32_t seed, float scale = 1.0F) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> v(n);
  for (float& x : v) x = normal(rng);
  return v;
}

// Rows of a matrix in the GGUF layout: random codes, scales of a few hundredths.
inline std::vector<std::uint8_t> random_weights(WeightType type, std::int64_t rows, std::int64_t cols,
                                                std::uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0.0F, 0.05F);
  const std::size_t row_bytes = weight_row_bytes(type, cols);
  std::vector<std::uint8_t> data(row_bytes * static_cast<std::size_t>(rows));
  const auto put16 = [](std::uint8_t* p, std::uint16_t v) { std::memcpy(p, &v, 2); };
  const int block_bytes = weight_block_bytes(type);
  for (std::size_t at = 0; at < data.size(); at += static_cast<std::size_t>(block_bytes)) {
    std::uint8_t* block = data.data() + at;
    for (int i = 0; i < block_bytes; ++i) block[i] = static_cast<std::uint8_t>(rng());
    const float value = normal(rng);
    switch (type) {
      case WeightType::kF32:
        std::memcpy(block, &value, 4);
        break;
      case WeightType::kF16:
        put16(block, f32_to_f16(value));
        break;
      case WeightType::kBF16:
        put16(block, f32_to_bf16(value));
        break;
      case WeightType::kQ6_K:
        put16(block + 208, f32_to_f16(value * 0.01F));
        break;
      case WeightType::kQ4_0:
      case WeightType::kQ5_0:
      case WeightType::kQ8_0:
        put16(block, f32_to_f16(value));
        break;
      default:
        put16(block, f32_to_f16(value));
        put16(block + 2, f32_to_f16(normal(rng)));
        break;
    }
  }
  return data;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace cairn::kernels
