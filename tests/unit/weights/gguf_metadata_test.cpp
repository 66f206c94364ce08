// GGUF key/value pairs: every type, arrays of every length, and files that lie about them.
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <limits>

#include "core/base/error.hpp"
#include "core/weights/gguf.hpp"
#include "tests/unit/weights/file_builder.hpp"

namespace cairn {
namespace {

using test::Bytes;
using test::ByteWriter;
using test::expect_error;
using test::GgufBuilder;

constexpr std::size_t kFirstKey = 24;  // byte offset of the first key: magic, version, two counts

std::string numbered(std::string text, int number) {
  return text.append(std::to_string(number));
}

// Processor time of this thread: what other processes do does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::shared_ptr<GgufFile> parse(const Bytes& bytes) {
  return GgufFile::parse(bytes, "small.gguf");
}

TEST(GgufMetadataTest, EveryScalarTypeIsRead) {
  const Bytes bytes = GgufBuilder()
                          .scalar<std::uint8_t>("u8", test::kU8, 200)
                          .scalar<std::int8_t>("i8", test::kI8, -100)
                          .scalar<std::uint16_t>("u16", test::kU16, 60000)
                          .scalar<std::int16_t>("i16", test::kI16, -30000)
                          .scalar<std::uint32_t>("u32", test::kU32, 4000000000U)
                          .scalar<std::int32_t>("i32", test::kI32, -2000000000)
                          .scalar<std::uint64_t>("u64", test::kU64, 1ULL << 63)
                          .scalar<std::int64_t>("i64", test::kI64, std::numeric_limits<std::int64_t>::min())
                          .scalar<float>("f32", test::kF32, 1.5F)
                          .scalar<double>("f64", test::kF64, -2.25)
                          .scalar<std::uint8_t>("bool", test::kBool, 1)
                          .string("string", "caf\xC3\xA9")
                          .build();
  const auto file = parse(bytes);
  EXPECT_EQ(file->i64("u8"), 200);
  EXPECT_EQ(file->i64("i8"), -100);
  EXPECT_EQ(file->u64("u16"), 60000U);
  EXPECT_EQ(file->i64("i16"), -30000);
  EXPECT_EQ(file->u64("u32"), 4000000000U);
  EXPECT_EQ(file->i64("i32"), -2000000000);
  EXPECT_EQ(file->u64("u64"), 1ULL << 63);
  EXPECT_EQ(file->i64("i64"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(file->f32("f32"), 1.5F);
  EXPECT_EQ(file->f32("f64"), -2.25F);
  EXPECT_EQ(file->f32("u8"), 200.0F);
  EXPECT_EQ(file->boolean("bool"), true);
  EXPECT_EQ(file->str("string"), "caf\xC3\xA9");
  ASSERT_NE(file->metadata().find("u16"), nullptr);
  EXPECT_EQ(*file->metadata().find("u16"), Value(60000));
  EXPECT_EQ(*file->metadata().find("u64"), Value(std::ldexp(1.0, 63)));
  EXPECT_EQ(*file->metadata().find("bool"), Value(true));
  EXPECT_EQ(*file->find_value("string"), Value("caf\xC3\xA9"));
}

TEST(GgufMetadataTest, AnAbsentKeyHasNoValue) {
  const Bytes bytes = GgufBuilder().string("general.architecture", "llama").build();
  const auto file = parse(bytes);
  EXPECT_TRUE(file->has("general.architecture"));
  EXPECT_EQ(file->architecture(), "llama");
  EXPECT_FALSE(file->has("x"));
  EXPECT_EQ(file->find_value("x"), nullptr);
  EXPECT_EQ(file->str("x"), std::nullopt);
  EXPECT_EQ(file->u64("x"), std::nullopt);
  EXPECT_EQ(file->f32("x"), std::nullopt);
  EXPECT_EQ(file->boolean("x"), std::nullopt);
  EXPECT_EQ(file->string_array("x"), nullptr);
  EXPECT_FALSE(file->float_array("x").has_value());
  EXPECT_FALSE(file->int_array("x").has_value());
  EXPECT_FALSE(file->byte_array("x").has_value());
}

TEST(GgufMetadataTest, AValueOfAnotherKindIsNamedWithItsPlace) {
  const Bytes bytes = GgufBuilder().scalar<std::int32_t>("count", test::kI32, -1).strings("list", {"a", "b"}).build();
  const auto file = parse(bytes);
  expect_error<BadFile>([&] { (void)file->u64("count"); },
                        {"small.gguf", "\"count\"", "byte " + std::to_string(kFirstKey), "I32", "at least 0"});
  expect_error<BadFile>([&] { (void)file->str("count"); }, {"\"count\"", "a string"});
  expect_error<BadFile>([&] { (void)file->boolean("count"); }, {"\"count\"", "a boolean"});
  expect_error<BadFile>([&] { (void)file->string_array("count"); }, {"\"count\"", "an array of strings"});
  expect_error<BadFile>([&] { (void)file->f32("list"); }, {"\"list\"", "array of 2 string values", "a number"});
  expect_error<BadFile>([&] { (void)file->int_array("list"); }, {"\"list\"", "an array of integers"});
  expect_error<BadFile>([&] { (void)file->float_array("list"); }, {"\"list\"", "F32"});
  expect_error<BadFile>([&] { (void)file->byte_array("list"); }, {"\"list\"", "U8"});
}

TEST(GgufMetadataTest, ShortArraysAreInTheMetadata) {
  const Bytes bytes = GgufBuilder()
                          .array<std::uint32_t>("numbers", test::kU32, {1, 2, 3})
                          .strings("words", {"x", "", "y"})
                          .array<std::uint8_t>("flags", test::kBool, {1, 0})
                          .build();
  const auto file = parse(bytes);
  EXPECT_EQ(*file->find_value("numbers"), Value(ValueList{1, 2, 3}));
  EXPECT_EQ(*file->find_value("words"), Value(ValueList{"x", "", "y"}));
  EXPECT_EQ(*file->find_value("flags"), Value(ValueList{true, false}));
}

TEST(GgufMetadataTest, LongArraysAreReachedByTheirAccessorsOnly) {
  std::vector<std::string> words;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  for (int i = 0; i < 5000; ++i) {
    words.push_back(numbered("w", i));
    scores.push_back(-0.5F * static_cast<float>(i));
    types.push_back(i - 2500);
  }
  // Keys of different lengths, so that one array is aligned in the file and another is not.
  const Bytes bytes = GgufBuilder()
                          .strings("tokens", words)
                          .array("scores", test::kF32, scores)
                          .array("types", test::kI32, types)
                          .array("typesx", test::kI32, types)
                          .array("typesxy", test::kI32, types)
                          .array("typesxyz", test::kI32, types)
                          .build();
  const auto file = parse(bytes);
  EXPECT_EQ(file->find_value("tokens"), nullptr);
  EXPECT_EQ(file->metadata(), Value(ValueMap{}));
  const auto* tokens = file->string_array("tokens");
  ASSERT_NE(tokens, nullptr);
  ASSERT_EQ(tokens->size(), words.size());
  EXPECT_TRUE(std::equal(tokens->begin(), tokens->end(), words.begin()));
  const auto read_scores = file->float_array("scores");
  ASSERT_TRUE(read_scores.has_value());
  EXPECT_EQ(std::vector<float>(read_scores->begin(), read_scores->end()), scores);
  for (const std::string key : {"types", "typesx", "typesxy", "typesxyz"}) {
    const auto read_types = file->int_array(key);
    ASSERT_TRUE(read_types.has_value()) << key;
    EXPECT_EQ(std::vector<std::int32_t>(read_types->begin(), read_types->end()), types) << key;
  }
}

TEST(GgufMetadataTest, IntegerArraysOfOtherWidthsAreConverted) {
  const Bytes bytes = GgufBuilder()
                          .array<std::int16_t>("i16", test::kI16, {-1, 7})
                          .array<std::uint16_t>("u16", test::kU16, {65535})
                          .array<std::uint32_t>("u32", test::kU32, {2147483647})
                          .array<std::int64_t>("i64", test::kI64, {-2147483648LL})
                          .array<std::uint64_t>("u64", test::kU64, {12})
                          .array<std::uint32_t>("large", test::kU32, {1, 2147483648U})
                          .array<double>("f64", test::kF64, {0.5, -3})
                          .array<std::uint8_t>("bytes", test::kU8, {0, 255})
                          .build();
  const auto file = parse(bytes);
  const auto list = [&](std::string_view key) {
    const auto values = file->int_array(key).value();
    return std::vector<std::int32_t>(values.begin(), values.end());
  };
  EXPECT_EQ(list("i16"), (std::vector<std::int32_t>{-1, 7}));
  EXPECT_EQ(list("u16"), (std::vector<std::int32_t>{65535}));
  EXPECT_EQ(list("u32"), (std::vector<std::int32_t>{2147483647}));
  EXPECT_EQ(list("i64"), (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min()}));
  EXPECT_EQ(list("u64"), (std::vector<std::int32_t>{12}));
  expect_error<BadFile>([&] { (void)file->int_array("large"); }, {"\"large\"", "fit in 32"});
  const auto doubles = file->float_array("f64").value();
  EXPECT_EQ(std::vector<float>(doubles.begin(), doubles.end()), (std::vector<float>{0.5F, -3.0F}));
  const auto raw = file->byte_array("bytes").value();
  EXPECT_EQ(Bytes(raw.begin(), raw.end()), (Bytes{std::byte{0}, std::byte{255}}));
}

TEST(GgufMetadataTest, NestedArraysAreValues) {
  ByteWriter value;  // [[1, 2], ["x"]]
  value.number(test::kArray).number<std::uint64_t>(2);
  value.number(test::kU8).number<std::uint64_t>(2).number<std::uint8_t>(1).number<std::uint8_t>(2);
  value.number(test::kString).number<std::uint64_t>(1).string("x");
  const Bytes bytes = GgufBuilder().raw("nested", test::kArray, value.bytes()).build();
  EXPECT_EQ(*parse(bytes)->find_value("nested"), Value(ValueList{ValueList{1, 2}, ValueList{"x"}}));
}

TEST(GgufMetadataTest, NestingHasALimit) {
  ByteWriter value;
  for (int depth = 0; depth < 2000; ++depth) value.number(test::kArray).number<std::uint64_t>(1);
  value.number(test::kU8).number<std::uint64_t>(0);
  const Bytes bytes = GgufBuilder().raw("nested", test::kArray, value.bytes()).build();
  expect_error<BadFile>([&] { parse(bytes); }, {"small.gguf", "\"nested\"", "deep"});
}

TEST(GgufMetadataTest, Version2IsReadAndOthersAreRefused) {
  GgufBuilder builder;
  builder.string("general.architecture", "qwen2");
  builder.version = 2;
  const Bytes two = builder.build();
  EXPECT_EQ(parse(two)->architecture(), "qwen2");
  builder.version = 1;
  const Bytes one = builder.build();
  expect_error<NotSupported>([&] { parse(one); }, {"small.gguf", "version 1", "byte 4"});
  builder.version = 4;
  const Bytes four = builder.build();
  expect_error<NotSupported>([&] { parse(four); }, {"small.gguf", "version 4"});
  builder.version = 0x03000000;
  const Bytes big = builder.build();
  expect_error<NotSupported>([&] { parse(big); }, {"small.gguf", "big endian"});
}

TEST(GgufMetadataTest, AnotherMagicNumberIsRefused) {
  GgufBuilder builder;
  builder.magic = 0x4655474A;
  const Bytes bytes = builder.build();
  expect_error<BadFile>([&] { parse(bytes); }, {"small.gguf", "byte 0", "GGUF"});
}

TEST(GgufMetadataTest, CountsBeyondTheFileAreRefusedBeforeAnythingIsAllocated) {
  for (const std::int64_t lie : {std::int64_t{1}, std::int64_t{1} << 40, std::int64_t{-1}}) {
    GgufBuilder keys;
    keys.extra_keys = lie;
    const Bytes many_keys = keys.build();
    expect_error<BadFile>([&] { parse(many_keys); }, {"small.gguf", "number of keys", "byte 16"});
    GgufBuilder tensors;
    tensors.extra_tensors = lie;
    const Bytes many_tensors = tensors.build();
    expect_error<BadFile>([&] { parse(many_tensors); }, {"small.gguf", "number of tensors", "byte 8"});
  }
}

TEST(GgufMetadataTest, ArrayCountsBeyondTheFileAreRefused) {
  for (const std::uint32_t type : {test::kU8, test::kF64, test::kString, test::kArray}) {
    for (const std::uint64_t count : {std::uint64_t{100}, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
      ByteWriter value;
      value.number(type).number(count);
      const Bytes bytes = GgufBuilder().raw("list", test::kArray, value.bytes()).build();
      expect_error<BadFile>([&] { parse(bytes); }, {"small.gguf", "\"list\"", "byte ", std::to_string(count)});
    }
  }
}

TEST(GgufMetadataTest, StringLengthsBeyondTheFileAreRefused) {
  for (const std::uint64_t length : {std::uint64_t{9}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    ByteWriter value;
    value.number(length).text("eight by");
    const Bytes bytes = GgufBuilder().raw("text", test::kString, value.bytes()).build();
    expect_error<BadFile>([&] { parse(bytes); }, {"small.gguf", "\"text\"", "byte "});
  }
}

TEST(GgufMetadataTest, BadKeysAreRefused) {
  const Bytes twice = GgufBuilder().string("a", "1").string("b", "2").string("a", "3").build();
  expect_error<BadFile>([&] { parse(twice); }, {"small.gguf", "\"a\" occurs twice"});
  const Bytes empty = GgufBuilder().string("", "1").build();
  expect_error<BadFile>([&] { parse(empty); }, {"small.gguf", "is empty", "byte 24"});
  const Bytes endless = GgufBuilder().string(std::string(65536, 'k'), "1").build();
  expect_error<BadFile>([&] { parse(endless); }, {"small.gguf", "key 0", "65535"});
  const Bytes odd = GgufBuilder().raw("line\nbreak\x01", 99, {}).string("padding", "padding").build();
  expect_error<BadFile>([&] { parse(odd); }, {"\"line\\x0abreak\\x01\"", "type number 99"});
}

TEST(GgufMetadataTest, BooleansAreZeroOrOne) {
  const Bytes scalar = GgufBuilder().scalar<std::uint8_t>("flag", test::kBool, 2).build();
  expect_error<BadFile>([&] { parse(scalar); }, {"small.gguf", "\"flag\"", "neither 0 nor 1"});
  std::vector<std::uint8_t> flags(2000, 1);
  flags[1999] = 7;
  const Bytes array = GgufBuilder().array("flags", test::kBool, flags).build();
  expect_error<BadFile>([&] { parse(array); },
                        {"small.gguf", "\"flags\"", "byte " + std::to_string(kFirstKey + 13 + 16 + 1999)});
}

TEST(GgufMetadataTest, ManyShortArraysDoNotMultiplyMemory) {
  // 1,100 arrays of 1,000 one-byte elements: 1 MB in the file would be 44 MB of values.
  GgufBuilder builder;
  const std::vector<std::uint8_t> thousand(1000, 1);
  for (int i = 0; i < 1100; ++i) builder.array(numbered("key", i), test::kU8, thousand);
  const Bytes bytes = builder.build();
  expect_error<BadFile>([&] { parse(bytes); }, {"small.gguf", "\"key1048\"", "1048576"});
}

TEST(GgufMetadataTest, ALargeVocabularyIsParsedQuickly) {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  for (int i = 0; i < 150000; ++i) {
    tokens.push_back(numbered("token", i));
    merges.push_back(numbered("left", i) + " right");
  }
  const Bytes bytes = GgufBuilder().strings("tokens", tokens).strings("merges", merges).build();
  const double began = thread_seconds();
  const auto file = parse(bytes);
  const double elapsed = thread_seconds() - began;
  EXPECT_EQ(file->string_array("merges")->back(), "left149999 right");
  // A few milliseconds in a release build; the bound leaves room for sanitizers.
  EXPECT_LT(elapsed, 0.5);
}

}  // namespace
}  // namespace cairn
