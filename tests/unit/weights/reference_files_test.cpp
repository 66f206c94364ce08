// Files written by the formats' own Python packages (tests/tools/make_weight_seeds.py), read value by value.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>

#include "core/weights/gguf.hpp"

namespace cairn {
namespace {

const std::filesystem::path kCorpus = CAIRN_FUZZ_CORPUS;

using Shape = std::vector<std::int64_t>;

template <class T>
std::vector<T> values(const TensorInfo& tensor) {
  std::vector<T> out(tensor.nbytes / sizeof(T));
  std::memcpy(out.data(), tensor.data, tensor.nbytes);
  return out;
}

TEST(ReferenceFilesTest, GgufValuesAndTensors) {
  const auto file = GgufFile::open(kCorpus / "gguf" / "small.gguf");
  EXPECT_EQ(file->architecture(), "llama");
  EXPECT_EQ(file->u64("test.u8"), 255U);
  EXPECT_EQ(file->i64("test.i8"), -128);
  EXPECT_EQ(file->u64("test.u16"), 65535U);
  EXPECT_EQ(file->i64("test.i16"), -32768);
  EXPECT_EQ(file->u64("test.u32"), 4294967295U);
  EXPECT_EQ(file->i64("test.i32"), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(file->i64("test.u64"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(file->i64("test.i64"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(file->f32("test.f32"), 0.15625F);
  EXPECT_EQ(*file->find_value("test.f64"), Value(1e300));
  EXPECT_EQ(file->boolean("test.bool"), true);
  EXPECT_EQ(file->str("test.string"), "na\u00efve \u5317\u4eac");
  EXPECT_EQ(*file->string_array("tokenizer.ggml.tokens"), (std::vector<std::string_view>{"<s>", "a", "\u0120b"}));
  const auto scores = file->float_array("tokenizer.ggml.scores").value();
  EXPECT_EQ(std::vector<float>(scores.begin(), scores.end()), (std::vector<float>{0.0F, -1.5F, -2.0F}));
  const auto types = file->int_array("tokenizer.ggml.token_type").value();
  EXPECT_EQ(std::vector<std::int32_t>(types.begin(), types.end()), (std::vector<std::int32_t>{3, 1, 1}));

  ASSERT_EQ(file->tensors().size(), 3U);
  EXPECT_EQ(file->find("f32")->shape, (Shape{2, 3}));
  EXPECT_EQ(values<float>(*file->find("f32")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(file->find("f16")->dtype, DType::kF16);
  EXPECT_EQ(values<std::uint16_t>(*file->find("f16")), (std::vector<std::uint16_t>{0x3C00, 0xC000}));
  const TensorInfo& blocks = *file->find("q8_0");
  EXPECT_EQ(blocks.dtype, DType::kQ8_0);
  EXPECT_EQ(blocks.shape, (Shape{2, 32}));
  // Each row is a block: a scale of two bytes, then 32 quants. The rows run from -1 to 1, so the outermost are +-127.
  const auto raw = values<std::int8_t>(blocks);
  ASSERT_EQ(raw.size(), 68U);
  EXPECT_EQ(raw[2], -127);
  EXPECT_EQ(raw[67], 127);
}

TEST(ReferenceFilesTest, AGgufVocabulary) {
  const auto file = GgufFile::open(kCorpus / "gguf" / "vocabulary.gguf");
  EXPECT_EQ(file->architecture(), "qwen2");
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_EQ(*file->string_array("tokenizer.ggml.merges"), (std::vector<std::string_view>{"x y"}));
}

TEST(ReferenceFilesTest, SafetensorsValues) {
  const auto file = WeightsFile::open(kCorpus / "safetensors" / "small.safetensors");
  ASSERT_EQ(file->tensors().size(), 5U);
  EXPECT_EQ(file->find("matrix")->shape, (Shape{2, 3}));
  EXPECT_EQ(values<float>(*file->find("matrix")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values<std::uint16_t>(*file->find("half")), (std::vector<std::uint16_t>{0x3C00, 0xC000}));
  EXPECT_EQ(values<std::int64_t>(*file->find("ids")), (std::vector<std::int64_t>{-1, std::int64_t{1} << 40}));
  EXPECT_EQ(file->find("scalar")->shape, Shape{});
  EXPECT_EQ(values<std::uint8_t>(*file->find("scalar")), (std::vector<std::uint8_t>{7}));
  EXPECT_EQ(file->find("empty")->shape, (Shape{0, 4}));
  EXPECT_EQ(*file->metadata().find("safetensors_metadata"), Value(ValueMap{{"format", "np"}}));
}

TEST(ReferenceFilesTest, ASafetensorsFileWithoutTensors) {
  EXPECT_TRUE(WeightsFile::open(kCorpus / "safetensors" / "empty.safetensors")->tensors().empty());
}

}  // namespace
}  // namespace cairn
