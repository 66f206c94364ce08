// safetensors files: what the format allows is read, everything else is refused with its place.
#include "core/weights/safetensors.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/unit/weights/file_builder.hpp"

namespace cairn {
namespace {

using test::Bytes;
using test::ByteWriter;
using test::expect_error;
using test::safetensors_file;

using Shape = std::vector<std::int64_t>;

SafetensorsContents parse(const Bytes& bytes) {
  return parse_safetensors(bytes, "small.safetensors");
}

void expect_refused(std::string_view header, std::size_t data_bytes, std::vector<std::string> words) {
  SCOPED_TRACE(header.substr(0, 200));
  const Bytes bytes = safetensors_file(header, data_bytes);
  words.insert(words.end(), {"small.safetensors", "byte "});
  expect_error<BadFile>([&] { parse(bytes); }, words);
}

TEST(SafetensorsTest, TensorsAreReadInTheOrderOfTheirData) {
  const std::string header = R"({"second":{"dtype":"F16","shape":[2,3],"data_offsets":[8,20]},)"
                             R"("__metadata__":{"format":"pt","by":"caf\u00e9"},)"
                             R"("first":{"data_offsets":[0,8],"shape":[],"dtype":"I64"}}   )";
  const Bytes bytes = safetensors_file(header, 20);
  const auto contents = parse(bytes);
  ASSERT_EQ(contents.tensors.size(), 2U);
  const TensorInfo& first = contents.tensors[0];
  EXPECT_EQ(first.name, "first");
  EXPECT_EQ(first.dtype, DType::kI64);
  EXPECT_EQ(first.shape, Shape{});
  EXPECT_EQ(first.offset, 8 + header.size());
  const TensorInfo& second = contents.tensors[1];
  EXPECT_EQ(second.name, "second");
  EXPECT_EQ(second.shape, (Shape{2, 3}));
  EXPECT_EQ(second.nbytes, 12U);
  EXPECT_EQ(second.file, "small.safetensors");
  EXPECT_EQ(second.data[0], std::byte{8});
  EXPECT_EQ(second.data[11], std::byte{19});
  EXPECT_EQ(contents.metadata, Value(ValueMap{{"format", "pt"}, {"by", "caf\xC3\xA9"}}));
}

TEST(SafetensorsTest, EveryTypeIsRead) {
  const std::tuple<std::string, DType, std::size_t> types[] = {
      {"F64", DType::kF64, 8},        {"F32", DType::kF32, 4},        {"F16", DType::kF16, 2},
      {"BF16", DType::kBF16, 2},      {"I64", DType::kI64, 8},        {"I32", DType::kI32, 4},
      {"I16", DType::kI16, 2},        {"I8", DType::kI8, 1},          {"U64", DType::kU64, 8},
      {"U32", DType::kU32, 4},        {"U16", DType::kU16, 2},        {"U8", DType::kU8, 1},
      {"F8_E4M3", DType::kF8E4M3, 1}, {"F8_E5M2", DType::kF8E5M2, 1}, {"BOOL", DType::kBool, 1},
  };
  for (const auto& [name, dtype, size] : types) {
    const Bytes bytes = safetensors_file(
        R"({"t":{"dtype":")" + name + R"(","shape":[3],"data_offsets":[0,)" + std::to_string(3 * size) + "]}}",
        3 * size);
    EXPECT_EQ(parse(bytes).tensors.at(0).dtype, dtype) << name;
  }
}

TEST(SafetensorsTest, EmptyTensorsAndFilesWithoutTensorsAreAllowed) {
  const Bytes empty = safetensors_file("{}", 0);
  EXPECT_TRUE(parse(empty).tensors.empty());
  const Bytes none = safetensors_file(
      R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[2,0],"data_offsets":[0,0]}})",
      4);
  const auto contents = parse(none);
  ASSERT_EQ(contents.tensors.size(), 2U);
  EXPECT_EQ(contents.tensors[0].name, "a");
  EXPECT_EQ(contents.tensors[0].nbytes, 0U);
}

TEST(SafetensorsTest, TheDataMustBeCoveredExactly) {
  const auto two = [](int a, int b, int c, int d) {
    return R"({"a":{"dtype":"U8","shape":[)" + std::to_string(b - a) + R"(],"data_offsets":[)" + std::to_string(a) +
           "," + std::to_string(b) + R"(]},"b":{"dtype":"U8","shape":[)" + std::to_string(d - c) +
           R"(],"data_offsets":[)" + std::to_string(c) + "," + std::to_string(d) + "]}}";
  };
  const Bytes good = safetensors_file(two(0, 4, 4, 8), 8);
  EXPECT_EQ(parse(good).tensors.size(), 2U);
  expect_refused(two(0, 4, 5, 8), 8, {"\"b\"", "offset 5", "4 is next"});  // a hole
  expect_refused(two(0, 4, 3, 8), 8, {"\"b\"", "offset 3"});               // an overlap
  expect_refused(two(0, 4, 0, 4), 4, {"offset 0", "4 is next"});           // the same twice
  expect_refused(two(1, 4, 4, 8), 8, {"\"a\"", "offset 1", "0 is next"});  // a hole in front
  expect_refused(two(0, 4, 4, 8), 9, {"1 bytes follow"});                  // a tail
  expect_refused(two(0, 4, 4, 8), 7, {"\"b\"", "4 bytes", "3 left"});      // cut
}

TEST(SafetensorsTest, OffsetsMustFitTypeAndShape) {
  const auto tensor = [](std::string_view rest) { return R"({"t":{"dtype":"F32",)" + std::string(rest) + "}}"; };
  expect_refused(tensor(R"("shape":[2],"data_offsets":[0,4])"), 4, {"\"t\"", "F32", "[2]", "not its size"});
  expect_refused(tensor(R"("shape":[1],"data_offsets":[4,0])"), 4, {"\"t\"", "[begin, end]"});
  expect_refused(tensor(R"("shape":[1],"data_offsets":[0])"), 4, {"\"t\"", "[begin, end]"});
  expect_refused(tensor(R"("shape":[1],"data_offsets":[0,4,4])"), 4, {"\"t\"", "[begin, end]"});
  expect_refused(tensor(R"("shape":[1],"data_offsets":[0,9223372036854775807])"), 4, {"\"t\"", "not its size"});
  expect_refused(tensor(R"("shape":[1],"data_offsets":[0,18446744073709551615])"), 4, {"2^63"});
  expect_refused(tensor(R"("shape":[4611686018427387904,4],"data_offsets":[0,4])"), 4, {"\"t\"", "not its size"});
  expect_refused(tensor(R"("shape":[-1],"data_offsets":[0,4])"), 4, {"a number"});
  expect_refused(tensor(R"("shape":[1.0],"data_offsets":[0,4])"), 4, {"a fraction"});
  expect_refused(tensor(R"("shape":[[1]],"data_offsets":[0,4])"), 4, {"an array"});
  expect_refused(tensor(R"("shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])"), 4, {});
}

TEST(SafetensorsTest, TheHeaderIsStrict) {
  expect_refused(R"({"t":{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}})", 4, {"\"t\"", "\"Q7\""});
  expect_refused(R"({"t":{"dtype":"F32","shape":[1]}})", 4, {"\"t\"", "lacks"});
  expect_refused(R"({"t":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, {"\"dtype\" twice"});
  expect_refused(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, {"\"t\"", "\"x\""});
  expect_refused(R"({"t":[1]})", 4, {"an array"});
  expect_refused(R"({"t":null})", 4, {"a null"});
  expect_refused(
      R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"t":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}})", 4,
      {"\"t\" occurs twice"});
  expect_refused(R"({"__metadata__":{"a":"1","a":"2"}})", 0, {"\"a\" occurs twice"});
  expect_refused(R"({"__metadata__":{"a":1}})", 0, {"a number"});
  expect_refused(R"({"__metadata__":{"a":{}}})", 0, {"an object"});
  expect_refused(R"({"__metadata__":{},"__metadata__":{}})", 0, {"occurs twice"});
  expect_refused(R"({"a":)", 0, {});
  expect_refused(R"({} x)", 0, {"something follows"});
  expect_refused(R"({/* hello */})", 0, {"not valid JSON"});
  expect_refused("{\"\xff\":{}}", 0, {"not valid JSON"});
  expect_refused("[]", 0, {"does not begin"});
  expect_refused("", 0, {"does not begin"});
  expect_refused(std::string(R"({"t":)") + std::string(100000, '{'), 0, {});
}

TEST(SafetensorsTest, HeaderLengthsBeyondTheFileAreRefused) {
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{100'000'001}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    const Bytes bytes = ByteWriter().number(length).text("{}").bytes();
    expect_error<BadFile>([&] { parse(bytes); }, {"small.safetensors", "byte 0", std::to_string(length)});
  }
  const Bytes tiny(7);
  expect_error<BadFile>([&] { parse(tiny); }, {"small.safetensors", "7 bytes"});
}

TEST(SafetensorsTest, TheIndexListsShardsByName) {
  const auto index = parse_safetensors_index(
      R"({"metadata":{"total_size":8},"weight_map":{"a":"m-2.safetensors","b":"m-1.safetensors","c":"m-2.safetensors"}})",
      "index.json");
  ASSERT_EQ(index.shards.size(), 2U);
  EXPECT_EQ(index.shards[0].file, "m-1.safetensors");
  EXPECT_EQ(index.shards[0].tensors, (std::vector<std::string>{"b"}));
  EXPECT_EQ(index.shards[1].tensors, (std::vector<std::string>{"a", "c"}));
}

TEST(SafetensorsTest, TheIndexCannotLeadOutOfItsFolder) {
  for (const std::string name : {"../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".", "", "a\\\\b",
                                 ".hidden", "a\\u0000b", "a\\nb"}) {
    const std::string text = R"({"weight_map":{"t":")" + name + "\"}}";
    expect_error<BadFile>([&] { parse_safetensors_index(text, "index.json"); },
                          {"index.json", "\"t\"", "plain file name"});
  }
  expect_error<BadFile>([&] { parse_safetensors_index(R"({"weight_map":{"t":1}})", "index.json"); }, {"no string"});
  expect_error<BadFile>([&] { parse_safetensors_index(R"({"weight_map":[]})", "index.json"); }, {"weight_map"});
  expect_error<BadFile>([&] { parse_safetensors_index("[1]", "index.json"); }, {"weight_map"});
  expect_error<BadFile>([&] { parse_safetensors_index("{", "index.json"); }, {"index.json", "JSON"});
}

}  // namespace
}  // namespace cairn
