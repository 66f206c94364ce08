// Half-precision conversions over every bit pattern, and each GGUF block decoder against its definition.
#include "kernels/cpu/types.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/embedding.hpp"
#include "tests/unit/kernels/kernel_test_util.hpp"

namespace cairn::kernels {
namespace {

double half_value(std::uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const int mantissa = h & 1023;
  double v = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) v = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  return (h & 0x8000) != 0 ? -v : v;
}

TEST(Types, EveryHalfConvertsExactlyAndBack) {
  for (int i = 0; i < 65536; ++i) {
    const auto h = static_cast<std::uint16_t>(i);
    const double expected = half_value(h);
    const float got = f16_to_f32(h);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << i;
      ASSERT_TRUE(std::isnan(f16_to_f32(f32_to_f16(got)))) << i;
    } else {
      ASSERT_EQ(static_cast<double>(got), expected) << i;
      ASSERT_EQ(f32_to_f16(got), h) << i;
    }
  }
}

TEST(Types, HalvesRoundToTheNearestEvenNeighbour) {
  for (int i = 0; i < 0x7BFF; ++i) {
    const double low = half_value(static_cast<std::uint16_t>(i));
    const double high = half_value(static_cast<std::uint16_t>(i + 1));
    const auto middle = static_cast<float>((low + high) / 2);  // exact: one more bit than a half
    ASSERT_EQ(f32_to_f16(middle), i % 2 == 0 ? i : i + 1) << i;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), i) << i;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9F)), i + 1) << i;
  }
  EXPECT_EQ(f32_to_f16(65519.99F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-1e30F), 0xFC00);
}

TEST(Types, Bfloat16RoundsToTheNearestEvenNeighbour) {
  EXPECT_EQ(f32_to_bf16(1.0F), 0x3F80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000U)), 0x3F80);  // a tie, to even
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F818000U)), 0x3F82);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7F800001U)))));
  for (int i = 0; i < 65536; ++i) {
    const float f = bf16_to_f32(static_cast<std::uint16_t>(i));
    if (!std::isnan(f)) {
      ASSERT_EQ(f32_to_bf16(f), i);
    }
  }
}

struct Bits {
  const std::uint8_t* p;
  int at(int bit) const { return (p[bit / 8] >> (bit % 8)) & 1; }
  int field(int bit, int width) const {
    int v = 0;
    for (int i = 0; i < width; ++i) v |= at(bit + i) << i;
    return v;
  }
};

double half_at(const std::uint8_t* p) {
  return half_value(static_cast<std::uint16_t>(p[0] | (p[1] << 8)));
}

// Value i of a block, from the layouts' definition as bit positions.
double block_value(WeightType type, const std::uint8_t* b, int i) {
  const Bits bits{b};
  switch (type) {
    case WeightType::kF32: {
      float f;
      std::memcpy(&f, b, 4);
      return static_cast<double>(f);
    }
    case WeightType::kF16:
      return half_at(b);
    case WeightType::kBF16:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(b[0] | (b[1] << 8)) << 16));
    case WeightType::kQ4_0:
      return half_at(b) * (bits.field(8 * (2 + i % 16) + (i / 16) * 4, 4) - 8);
    case WeightType::kQ4_1:
      return half_at(b) * bits.field(8 * (4 + i % 16) + (i / 16) * 4, 4) + half_at(b + 2);
    case WeightType::kQ5_0:
      return half_at(b) * (bits.field(8 * (6 + i % 16) + (i / 16) * 4, 4) + 16 * bits.at(16 + i) - 16);
    case WeightType::kQ5_1:
      return half_at(b) * (bits.field(8 * (8 + i % 16) + (i / 16) * 4, 4) + 16 * bits.at(32 + i)) + half_at(b + 2);
    case WeightType::kQ8_0:
      return half_at(b) * static_cast<std::int8_t>(b[2 + i]);
    case WeightType::kQ4_K:
    case WeightType::kQ5_K: {
      const int j = i / 32;
      // Scales 0..3: 6 low bits of bytes 4..7; minimums 0..3: of bytes 8..11. Of 4..7 the low four bits are in the
      // nibbles of bytes 12..15 and the two high bits on top of the first eight bytes.
      const int scale = j < 4 ? bits.field(8 * (4 + j), 6) : bits.field(8 * (8 + j), 4) + 16 * bits.field(8 * j + 6, 2);
      const int min =
          j < 4 ? bits.field(8 * (8 + j), 6) : bits.field(8 * (8 + j) + 4, 4) + 16 * bits.field(8 * (4 + j) + 6, 2);
      const bool five = type == WeightType::kQ5_K;
      int q = bits.field(8 * ((five ? 48 : 16) + (j / 2) * 32 + i % 32) + (j % 2) * 4, 4);
      if (five) q += 16 * bits.at(8 * (16 + i % 32) + j);
      return half_at(b) * scale * q - half_at(b + 2) * min;
    }
    case WeightType::kQ6_K: {
      const int half = i / 128;
      const int quarter = i % 128 / 32;
      const int l = i % 32;
      const int q = bits.field(8 * (half * 64 + (quarter % 2) * 32 + l) + (quarter / 2) * 4, 4) +
                    16 * bits.field(8 * (128 + half * 32 + l) + quarter * 2, 2);
      return half_at(b + 208) * static_cast<std::int8_t>(b[192 + i / 16]) * (q - 32);
    }
  }
  return 0.0;
}

TEST(Types, EveryBlockTypeDecodesToItsDefinition) {
  for (const WeightType type : kAllTypes) {
    const int size = weight_block_size(type);
    const std::int64_t n = size * 7;
    const auto data = random_weights(type, 1, n, 77);
    std::vector<float> got(static_cast<std::size_t>(n));
    dequantize_row(type, data.data(), n, got.data());
    for (std::int64_t i = 0; i < n; ++i) {
      const double expected =
          block_value(type, data.data() + i / size * weight_block_bytes(type), static_cast<int>(i % size));
      // Differences of products may round twice in f32.
      ASSERT_NEAR(got[static_cast<std::size_t>(i)], expected, std::fabs(expected) * 2e-7 + 2e-6)
          << weight_type_name(type) << " " << i;
    }
  }
}

TEST(Types, APartialLastBlockDecodesOnlyWhatIsAskedFor) {
  for (const WeightType type : kAllTypes) {
    const std::int64_t whole = weight_block_size(type) * 2;
    const std::int64_t n = whole - weight_block_size(type) / 2;
    const auto data = random_weights(type, 1, whole, 78);
    EXPECT_EQ(weight_row_bytes(type, n), weight_row_bytes(type, whole));
    std::vector<float> all(static_cast<std::size_t>(whole));
    std::vector<float> part(static_cast<std::size_t>(whole), 9.0F);
    dequantize_row(type, data.data(), whole, all.data());
    dequantize_row(type, data.data(), n, part.data());
    for (std::int64_t i = 0; i < whole; ++i) {
      ASSERT_EQ(part[static_cast<std::size_t>(i)], i < n ? all[static_cast<std::size_t>(i)] : 9.0F);
    }
  }
}

TEST(Embedding, GathersExactRowsFromSourceAndPackedTables) {
  ThreadPool pool(2);
  for (const WeightType type : kAllTypes) {
    const std::int64_t rows = 40;
    const std::int64_t cols = 512;
    const auto data = random_weights(type, rows, cols, 79);
    const MatrixSource source{type, data.data(), rows, 0};
    const PackedMatrix packed = PackedMatrix::pack({&source, 1}, cols, pool.parallel());
    const std::vector<std::int32_t> ids = {0, 39, 7, 7, -1, 40, 16};
    std::vector<float> from_source(ids.size() * 520, 5.0F);
    std::vector<float> from_packed(ids.size() * 520, 5.0F);
    embedding(type, data.data(), rows, cols, ids.data(), 7, 1.0F, from_source.data(), 520, pool.parallel());
    embedding(packed, ids.data(), 7, 1.0F, from_packed.data(), 520, serial());
    EXPECT_TRUE(same_bits(from_source, from_packed));
    std::vector<float> row(static_cast<std::size_t>(cols));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::fill(row.begin(), row.end(), 0.0F);
      if (ids[i] >= 0 && ids[i] < rows) {
        dequantize_row(type, data.data() + weight_row_bytes(type, cols) * static_cast<std::size_t>(ids[i]), cols,
                       row.data());
      }
      for (std::size_t c = 0; c < 520; ++c) ASSERT_EQ(from_source[i * 520 + c], c < 512 ? row[c] : 5.0F);
    }
  }
}

TEST(Embedding, ScalesRowsWhenAsked) {
  const std::vector<float> table = {1, 2, 3, 4};
  const std::int32_t id = 1;
  float y[2];
  embedding(WeightType::kF32, table.data(), 2, 2, &id, 1, 2.5F, y, 2, serial());
  EXPECT_EQ(y[0], 7.5F);
  EXPECT_EQ(y[1], 10.0F);
}

}  // namespace
}  // namespace cairn::kernels
