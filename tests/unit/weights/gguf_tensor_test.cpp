// GGUF tensor records: shapes, types, places, and files that lie about them.
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/weights/gguf.hpp"
#include "tests/unit/weights/file_builder.hpp"

namespace cairn {
namespace {

using test::Bytes;
using test::bytes_of;
using test::expect_error;
using test::GgufBuilder;

using Shape = std::vector<std::int64_t>;

std::shared_ptr<GgufFile> parse(const Bytes& bytes) {
  return GgufFile::parse(bytes, "small.gguf");
}

TEST(GgufTensorTest, TensorsAreFoundWithTheirShapeOutermostFirst) {
  const Bytes quants(2 * 34, std::byte{3});
  const Bytes bytes = GgufBuilder()
                          .tensor("matrix", {3, 2}, test::kTensorF32, bytes_of({0, 1, 2, 3, 4, 5}))
                          .tensor("blocks", {32, 2}, test::kTensorQ8_0, quants)
                          .tensor("scalar", {}, test::kTensorF32, bytes_of({7}))
                          .tensor("deep", {2, 1, 1, 1}, test::kTensorF16, Bytes(4))
                          .build();
  const auto file = parse(bytes);
  ASSERT_EQ(file->tensors().size(), 4U);
  const TensorInfo* matrix = file->find("matrix");
  ASSERT_NE(matrix, nullptr);
  EXPECT_EQ(matrix, &file->tensors()[0]);
  EXPECT_EQ(matrix->dtype, DType::kF32);
  EXPECT_EQ(matrix->shape, (Shape{2, 3}));
  EXPECT_EQ(matrix->nbytes, 24U);
  EXPECT_EQ(matrix->file, "small.gguf");
  EXPECT_EQ(matrix->data, bytes.data() + matrix->offset);
  EXPECT_EQ(matrix->offset % 32, 0U);
  float last = 0;
  std::memcpy(&last, matrix->data + 20, sizeof(last));
  EXPECT_EQ(last, 5.0F);
  const TensorInfo* blocks = file->find("blocks");
  ASSERT_NE(blocks, nullptr);
  EXPECT_EQ(blocks->dtype, DType::kQ8_0);
  EXPECT_EQ(Bytes(blocks->data, blocks->data + blocks->nbytes), quants);
  EXPECT_EQ(file->find("scalar")->shape, Shape{});
  EXPECT_EQ(file->find("deep")->shape, (Shape{1, 1, 1, 2}));
  EXPECT_EQ(file->find("none"), nullptr);
  EXPECT_EQ(file->total_bytes(), 24U + 68U + 4U + 4U);
}

TEST(GgufTensorTest, EveryKnownTypeNumberHasItsType) {
  const std::pair<std::uint32_t, DType> types[] = {
      {0, DType::kF32},      {1, DType::kF16},    {2, DType::kQ4_0},    {3, DType::kQ4_1},     {6, DType::kQ5_0},
      {7, DType::kQ5_1},     {8, DType::kQ8_0},   {10, DType::kQ2_K},   {11, DType::kQ3_K},    {12, DType::kQ4_K},
      {13, DType::kQ5_K},    {14, DType::kQ6_K},  {15, DType::kQ8_K},   {16, DType::kIQ2_XXS}, {17, DType::kIQ2_XS},
      {18, DType::kIQ3_XXS}, {19, DType::kIQ1_S}, {20, DType::kIQ4_NL}, {21, DType::kIQ3_S},   {22, DType::kIQ2_S},
      {23, DType::kIQ4_XS},  {24, DType::kI8},    {25, DType::kI16},    {26, DType::kI32},     {27, DType::kI64},
      {28, DType::kF64},     {29, DType::kIQ1_M}, {30, DType::kBF16},   {34, DType::kTQ1_0},   {35, DType::kTQ2_0},
      {39, DType::kMXFP4},
  };
  for (const auto& [number, dtype] : types) {
    const Bytes bytes = GgufBuilder().tensor("t", {256}, number, Bytes(2048)).build();
    EXPECT_EQ(parse(bytes)->find("t")->dtype, dtype) << number;
  }
}

TEST(GgufTensorTest, UnknownTypeNumbersAreRefused) {
  for (const std::uint32_t number : {4U, 5U, 9U, 31U, 36U, 40U, 0xFFFFFFFFU}) {
    const Bytes bytes = GgufBuilder().tensor("t", {256}, number, Bytes(2048)).build();
    expect_error<BadFile>([&] { parse(bytes); }, {"small.gguf", "\"t\"", "type number " + std::to_string(number)});
  }
}

TEST(GgufTensorTest, TheAlignmentKeyMovesTheData) {
  GgufBuilder builder;
  builder.alignment = 256;
  builder.scalar<std::uint32_t>("general.alignment", test::kU32, 256);
  builder.tensor("a", {1}, test::kTensorF32, bytes_of({1})).tensor("b", {1}, test::kTensorF32, bytes_of({2}));
  const Bytes bytes = builder.build();
  const auto file = parse(bytes);
  EXPECT_EQ(file->find("a")->offset, 256U);
  EXPECT_EQ(file->find("b")->offset, 512U);
  float value = 0;
  std::memcpy(&value, file->find("b")->data, sizeof(value));
  EXPECT_EQ(value, 2.0F);
}

TEST(GgufTensorTest, ImpossibleAlignmentsAreRefused) {
  for (const std::uint32_t alignment : {0U, 1U, 4U, 24U, 33U, 1U << 21, 0xFFFFFFFFU}) {
    const Bytes bytes = GgufBuilder().scalar("general.alignment", test::kU32, alignment).build();
    expect_error<BadFile>([&] { parse(bytes); }, {"small.gguf", "general.alignment", "byte 24"});
  }
  const Bytes text = GgufBuilder().string("general.alignment", "32").build();
  expect_error<BadFile>([&] { parse(text); }, {"general.alignment"});
}

TEST(GgufTensorTest, ShapesThatCannotBeAreRefused) {
  const std::uint64_t huge = std::uint64_t{1} << 40;
  const std::vector<std::vector<std::uint64_t>> shapes = {
      {0}, {4, 0}, {std::uint64_t{1} << 63}, {~std::uint64_t{0}}, {huge, huge}, {huge, huge, huge, huge}};
  for (const auto& ne : shapes) {
    const Bytes bytes = GgufBuilder().tensor("wrong", ne, test::kTensorF32, Bytes(64)).build();
    expect_error<BadFile>([&] { parse(bytes); }, {"small.gguf", "\"wrong\"", "byte "});
  }
  const Bytes five = GgufBuilder().tensor("five", {1, 1, 1, 1, 1}, test::kTensorF32, Bytes(4)).build();
  expect_error<BadFile>([&] { parse(five); }, {"\"five\"", "5 dimensions"});
  const Bytes ragged = GgufBuilder().tensor("ragged", {48, 2}, test::kTensorQ4_0, Bytes(64)).build();
  expect_error<BadFile>([&] { parse(ragged); }, {"\"ragged\"", "Q4_0", "[2, 48]"});
}

TEST(GgufTensorTest, DataOutsideTheFileIsRefused) {
  const Bytes long_by_one = GgufBuilder().tensor("t", {5}, test::kTensorF32, Bytes(16)).build();
  expect_error<BadFile>([&] { parse(long_by_one); }, {"small.gguf", "\"t\"", "20 bytes", "offset 0"});
  for (const std::uint64_t offset : {std::uint64_t{64}, std::uint64_t{1} << 62, ~std::uint64_t{0} - 31}) {
    const Bytes bytes = GgufBuilder().tensor("t", {4}, test::kTensorF32, Bytes(16)).record("u", {1}, 0, offset).build();
    expect_error<BadFile>([&] { parse(bytes); }, {"small.gguf", "\"u\"", "offset " + std::to_string(offset)});
  }
  Bytes cut = GgufBuilder().tensor("t", {4}, test::kTensorF32, Bytes(16)).build();
  cut.erase(cut.end() - 17, cut.end());  // into the padding before the data
  expect_error<BadFile>([&] { parse(cut); }, {"small.gguf", "\"t\""});
}

TEST(GgufTensorTest, MisalignedAndOverlappingDataIsRefused) {
  const Bytes misaligned =
      GgufBuilder().tensor("t", {40}, test::kTensorF32, Bytes(160)).record("u", {1}, 0, 16).build();
  expect_error<BadFile>([&] { parse(misaligned); }, {"small.gguf", "\"u\"", "16", "alignment 32"});
  const Bytes overlap = GgufBuilder().tensor("t", {40}, test::kTensorF32, Bytes(160)).record("u", {1}, 0, 128).build();
  expect_error<BadFile>([&] { parse(overlap); }, {"small.gguf", "\"t\" and \"u\" overlap"});
  const Bytes same = GgufBuilder().tensor("t", {1}, test::kTensorF32, Bytes(4)).record("u", {1}, 0, 0).build();
  expect_error<BadFile>([&] { parse(same); }, {"overlap"});
}

TEST(GgufTensorTest, NamesAreUniqueAndNotEmpty) {
  const Bytes twice = GgufBuilder().tensor("t", {1}, 0, Bytes(4)).tensor("t", {1}, 0, Bytes(4)).build();
  expect_error<BadFile>([&] { parse(twice); }, {"small.gguf", "\"t\"", "already given"});
  const Bytes empty = GgufBuilder().tensor("", {1}, 0, Bytes(4)).build();
  expect_error<BadFile>([&] { parse(empty); }, {"small.gguf", "no name"});
  const Bytes endless = GgufBuilder().tensor(std::string(1025, 'n'), {1}, 0, Bytes(4)).build();
  expect_error<BadFile>([&] { parse(endless); }, {"small.gguf", "tensor 0", "1024"});
}

TEST(GgufTensorTest, AFileWithoutTensorsIsAVocabulary) {
  const Bytes bytes = GgufBuilder().strings("tokenizer.ggml.tokens", {"a", "b"}).build();
  const auto file = parse(bytes);
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_EQ(file->string_array("tokenizer.ggml.tokens")->size(), 2U);
  EXPECT_EQ(file->format(), WeightsFormat::kGguf);
}

}  // namespace
}  // namespace cairn
