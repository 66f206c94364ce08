// Sizes of element types and tensors.
#include "core/tensor/dtype.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "core/base/error.hpp"

namespace cairn {
namespace {

using Shape = std::vector<std::int64_t>;

TEST(DTypeTest, EveryTypeHasItsOwnNameAndASize) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const DTypeInfo& info = dtype_info(static_cast<DType>(i));
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_GT(info.block_size, 0U);
    EXPECT_GT(info.block_bytes, 0U);
  }
}

// Bytes per block counted from the published layouts: half-precision scales and minima, packed quants, packed scales.
TEST(DTypeTest, BlockSizesFollowTheLayouts) {
  struct Expected {
    DType dtype;
    std::string_view name;
    std::uint32_t block;
    std::uint32_t bytes;
  };
  const Expected expected[] = {
      {DType::kF32, "F32", 1, 4},
      {DType::kBF16, "BF16", 1, 2},
      {DType::kI64, "I64", 1, 8},
      {DType::kF8E4M3, "F8_E4M3", 1, 1},
      {DType::kQ4_0, "Q4_0", 32, 2 + 16},
      {DType::kQ4_1, "Q4_1", 32, 2 + 2 + 16},
      {DType::kQ5_0, "Q5_0", 32, 2 + 4 + 16},
      {DType::kQ5_1, "Q5_1", 32, 2 + 2 + 4 + 16},
      {DType::kQ8_0, "Q8_0", 32, 2 + 32},
      {DType::kMXFP4, "MXFP4", 32, 1 + 16},
      {DType::kQ2_K, "Q2_K", 256, 16 + 64 + 2 + 2},
      {DType::kQ3_K, "Q3_K", 256, 32 + 64 + 12 + 2},
      {DType::kQ4_K, "Q4_K", 256, 2 + 2 + 12 + 128},
      {DType::kQ5_K, "Q5_K", 256, 2 + 2 + 12 + 32 + 128},
      {DType::kQ6_K, "Q6_K", 256, 128 + 64 + 16 + 2},
      {DType::kQ8_K, "Q8_K", 256, 4 + 256 + 2 * 16},
      {DType::kIQ4_XS, "IQ4_XS", 256, 2 + 2 + 4 + 128},
  };
  for (const auto& e : expected) {
    EXPECT_EQ(dtype_name(e.dtype), e.name);
    EXPECT_EQ(dtype_info(e.dtype).block_size, e.block) << e.name;
    EXPECT_EQ(dtype_info(e.dtype).block_bytes, e.bytes) << e.name;
    EXPECT_EQ(is_block_quantised(e.dtype), e.block > 1) << e.name;
  }
}

TEST(DTypeTest, ElementCountMultipliesAndRefusesWhatDoesNotFit) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count(Shape{3, 4, 5}), 60);
  EXPECT_EQ(element_count(Shape{3, 0, 5}), 0);
  EXPECT_EQ(element_count(Shape{3, -1}), std::nullopt);
  EXPECT_EQ(element_count(Shape{std::int64_t{1} << 40, std::int64_t{1} << 40}), std::nullopt);
  EXPECT_EQ(element_count(Shape{std::int64_t{1} << 40, std::int64_t{1} << 40, 0}), std::nullopt);
}

TEST(DTypeTest, BytesCountBlocksAlongTheLastDimension) {
  EXPECT_EQ(nbytes(DType::kF16, Shape{3, 5}), 30U);
  EXPECT_EQ(nbytes(DType::kQ4_1, Shape{576, 1536}), 576U * 48 * 20);
  EXPECT_EQ(nbytes(DType::kF32, Shape{}), 4U);
  EXPECT_EQ(checked_nbytes(DType::kQ4_1, Shape{32, 31}), std::nullopt);
  EXPECT_EQ(checked_nbytes(DType::kQ4_K, Shape{256, 32}), std::nullopt);
  EXPECT_EQ(checked_nbytes(DType::kF64, Shape{std::int64_t{1} << 61}), std::nullopt);
}

TEST(DTypeTest, AnImpossibleShapeIsNamed) {
  try {
    (void)nbytes(DType::kQ8_0, Shape{4, 33});
    FAIL() << "no exception";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("Q8_0 cannot have shape [4, 33]"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cairn
