// Opening files and folders: what kind they are, what lies beside them, and what is said when nothing can be opened.
#include "core/weights/weights_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/base/error.hpp"
#include "core/weights/gguf.hpp"
#include "core/weights/json_value.hpp"
#include "tests/unit/weights/file_builder.hpp"

namespace cairn {
namespace {

using test::Bytes;
using test::bytes_of;
using test::expect_error;
using test::GgufBuilder;
using test::safetensors_file;
using test::TemporaryFolder;

Bytes one_tensor(const std::string& name, std::size_t bytes) {
  const std::string size = std::to_string(bytes);
  return safetensors_file(
      R"({")" + name + R"(":{"dtype":"U8","shape":[)" + size + R"(],"data_offsets":[0,)" + size + "]}}", bytes);
}

GgufBuilder part(std::uint16_t number, std::uint16_t count, std::int32_t tensors) {
  GgufBuilder builder;
  builder.scalar("split.no", test::kU16, number).scalar("split.count", test::kU16, count);
  builder.scalar("split.tensors.count", test::kI32, tensors);
  return builder;
}

TEST(WeightsFileTest, AGgufFileIsKnownByItsContent) {
  const TemporaryFolder folder;
  const auto path = folder.write("model.bin", GgufBuilder()
                                                  .string("general.architecture", "llama")
                                                  .tensor("t", {2}, test::kTensorF32, bytes_of({1, 2}))
                                                  .build());
  const auto file = WeightsFile::open(path);
  EXPECT_EQ(file->format(), WeightsFormat::kGguf);
  EXPECT_EQ(file->architecture(), "llama");
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(file->directory(), folder.path());
  EXPECT_EQ(file->find("t")->file, path.string());
  EXPECT_NE(std::dynamic_pointer_cast<GgufFile>(file), nullptr);
  float value = 0;
  std::memcpy(&value, file->find("t")->data + 4, sizeof(value));
  EXPECT_EQ(value, 2.0F);
}

TEST(WeightsFileTest, TheFileMayBeRemovedWhileItIsOpen) {
  const TemporaryFolder folder;
  const auto path = folder.write("m.gguf", GgufBuilder().tensor("t", {1}, 0, bytes_of({3})).build());
  const auto file = WeightsFile::open(path);
  std::filesystem::remove(path);
  float value = 0;
  std::memcpy(&value, file->find("t")->data, sizeof(value));
  EXPECT_EQ(value, 3.0F);
}

TEST(WeightsFileTest, PartsOfASplitGgufAreJoined) {
  const TemporaryFolder folder;
  const auto first =
      folder.write("m-00001-of-00003.gguf", part(0, 3, 2).string("general.architecture", "qwen2").build());
  folder.write("m-00002-of-00003.gguf", part(1, 3, 2).tensor("a", {1}, 0, bytes_of({1})).build());
  folder.write("m-00003-of-00003.gguf", part(2, 3, 2).tensor("b", {1}, 0, bytes_of({2})).build());
  const auto file = WeightsFile::open(first);
  EXPECT_EQ(file->architecture(), "qwen2");
  ASSERT_EQ(file->tensors().size(), 2U);
  EXPECT_EQ(file->find("b")->file, (folder.path() / "m-00003-of-00003.gguf").string());
  float value = 0;
  std::memcpy(&value, file->find("b")->data, sizeof(value));
  EXPECT_EQ(value, 2.0F);
}

TEST(WeightsFileTest, ASplitGgufThatDoesNotFitTogetherIsRefused) {
  const TemporaryFolder folder;
  const auto first = folder.write("m-00001-of-00002.gguf", part(0, 2, 2).tensor("a", {1}, 0, Bytes(4)).build());
  expect_error<NotFound>([&] { WeightsFile::open(first); }, {"m-00002-of-00002.gguf"});
  const auto second = folder.write("m-00002-of-00002.gguf", part(1, 2, 2).tensor("a", {1}, 0, Bytes(4)).build());
  expect_error<BadFile>([&] { WeightsFile::open(first); }, {"m-00002", "m-00001", "\"a\"", "already given"});
  expect_error<BadFile>([&] { WeightsFile::open(second); }, {"part 2 of 2", "m-00001-of-00002.gguf"});
  folder.write("m-00002-of-00002.gguf", part(0, 2, 2).tensor("b", {1}, 0, Bytes(4)).build());
  expect_error<BadFile>([&] { WeightsFile::open(first); }, {"m-00002-of-00002.gguf", "part 2 of 2"});
  folder.write("m-00002-of-00002.gguf", part(1, 2, 3).build());
  expect_error<BadFile>([&] { WeightsFile::open(first); }, {"1 tensors", "says 2"});
  const auto renamed = folder.write("m.gguf", part(0, 2, 2).build());
  expect_error<BadFile>([&] { WeightsFile::open(renamed); }, {"m.gguf", "model-00001-of-00002.gguf"});
}

TEST(WeightsFileTest, ASafetensorsFileBringsTheJsonOfItsFolder) {
  const TemporaryFolder folder;
  const auto path = folder.write("x.safetensors", one_tensor("t", 3));
  folder.write("config.json", R"({"model_type":"llama","hidden_size":576,"rope_theta":1e5,"tie":true,"none":null})");
  const auto file = WeightsFile::open(path);
  EXPECT_EQ(file->format(), WeightsFormat::kSafetensors);
  EXPECT_EQ(file->architecture(), "llama");
  EXPECT_EQ(
      *file->metadata().find("config"),
      Value(ValueMap{{"model_type", "llama"}, {"hidden_size", 576}, {"rope_theta", 1e5}, {"tie", true}, {"none", {}}}));
  EXPECT_EQ(file->metadata().find("tokenizer_config"), nullptr);
  EXPECT_EQ(file->side_file("config.json"), folder.path() / "config.json");
  EXPECT_EQ(file->side_file("tokenizer.json"), std::nullopt);
}

TEST(WeightsFileTest, AFolderIsReadWithEverythingInIt) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", one_tensor("t", 3));
  folder.write("config.json", R"({"architectures":["Qwen3ForCausalLM"]})");
  folder.write("tokenizer_config.json", R"({"chat_template":"old"})");
  folder.write("generation_config.json", R"({"eos_token_id":[1,2]})");
  folder.write("chat_template.jinja", "{{ messages }}");
  const auto file = WeightsFile::open(folder.path());
  EXPECT_EQ(file->architecture(), "Qwen3ForCausalLM");
  EXPECT_EQ(file->directory(), folder.path());
  EXPECT_EQ(*file->metadata().find("chat_template"), Value("{{ messages }}"));
  EXPECT_EQ(*file->metadata().find("tokenizer_config")->find("chat_template"), Value("old"));
  EXPECT_EQ(*file->metadata().find("generation_config")->find("eos_token_id"), Value(ValueList{1, 2}));
}

TEST(WeightsFileTest, AChatTemplateInJsonIsTaken) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", one_tensor("t", 1));
  folder.write("chat_template.json", R"({"chat_template":"from json"})");
  EXPECT_EQ(*WeightsFile::open(folder.path())->metadata().find("chat_template"), Value("from json"));
}

TEST(WeightsFileTest, ShardsAreJoinedByTheIndex) {
  const TemporaryFolder folder;
  folder.write("m-1.safetensors", one_tensor("a", 1));
  folder.write("m-2.safetensors", one_tensor("b", 2));
  folder.write("model.safetensors.index.json", R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  const auto file = WeightsFile::open(folder.path());
  EXPECT_EQ(file->find("a")->nbytes, 1U);
  EXPECT_EQ(file->find("b")->file, (folder.path() / "m-2.safetensors").string());
}

TEST(WeightsFileTest, AnIndexThatIsWrongIsRefused) {
  const TemporaryFolder folder;
  folder.write("m-1.safetensors", one_tensor("a", 1));
  folder.write("m-2.safetensors", one_tensor("b", 1));
  const std::string index = "model.safetensors.index.json";
  folder.write(index, R"({"weight_map":{"a":"m-2.safetensors","b":"m-2.safetensors"}})");
  expect_error<BadFile>([&] { WeightsFile::open(folder.path()); }, {index, "\"a\"", "m-2.safetensors"});
  folder.write(index, R"({"weight_map":{"a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors"}})");
  expect_error<BadFile>([&] { WeightsFile::open(folder.path()); }, {index, "\"b\"", "m-1.safetensors"});
  folder.write(index, R"({"weight_map":{"a":"m-1.safetensors","b":"m-3.safetensors"}})");
  expect_error<NotFound>([&] { WeightsFile::open(folder.path()); }, {"m-3.safetensors"});
  folder.write("m-3.safetensors", one_tensor("a", 1));
  folder.write(index, R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors","x":"m-3.safetensors"}})");
  expect_error<BadFile>([&] { WeightsFile::open(folder.path()); }, {"m-3.safetensors", "\"a\"", "already given"});
}

TEST(WeightsFileTest, AFolderWithATokenizerOnlyOpens) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", "{}");
  const auto file = WeightsFile::open(folder.path());
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_EQ(file->side_file("tokenizer.json"), folder.path() / "tokenizer.json");
}

TEST(WeightsFileTest, WhatCannotBeOpenedSaysWhatToDo) {
  const TemporaryFolder folder;
  expect_error<NotFound>([&] { WeightsFile::open(folder.path() / "absent.gguf"); }, {"absent.gguf"});
  expect_error<NotFound>([&] { WeightsFile::open(folder.path()); }, {folder.path().string(), "Hugging Face"});
  folder.write("pytorch_model.bin", "PK\x03\x04rest of it");
  expect_error<NotFound>([&] { WeightsFile::open(folder.path()); }, {"convert them to safetensors"});
  expect_error<NotSupported>([&] { WeightsFile::open(folder.path() / "pytorch_model.bin"); }, {"pickle", "convert"});
  folder.write("m.gguf", "GGUF");
  expect_error<NotFound>([&] { WeightsFile::open(folder.path()); }, {"open", "m.gguf"});
  expect_error<BadFile>([&] { WeightsFile::open(folder.path() / "m.gguf"); }, {"m.gguf", "byte 4"});
  const auto text = folder.write("notes.txt", "nothing of the kind");
  expect_error<BadFile>([&] { WeightsFile::open(text); }, {"notes.txt", "neither GGUF nor safetensors"});
  const auto empty = folder.write("empty.gguf", "");
  expect_error<BadFile>([&] { WeightsFile::open(empty); }, {"empty.gguf", "is empty"});
  const auto pipe = folder.path() / "pipe.gguf";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error<BadFile>([&] { WeightsFile::open(pipe); }, {"pipe.gguf", "regular file"});
}

TEST(WeightsFileTest, DamagedJsonBesideTheWeightsIsNamed) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", one_tensor("t", 1));
  folder.write("config.json", R"({"a": [1, 2})");
  expect_error<BadFile>([&] { WeightsFile::open(folder.path()); }, {"config.json", "byte 11"});
}

TEST(WeightsFileTest, PrefetchReportsARisingFractionUpToOne) {
  const TemporaryFolder folder;
  const auto path = folder.write("m.safetensors", one_tensor("t", (std::size_t{9} << 20) + 5));
  std::vector<double> seen;
  WeightsFile::open(path)->prefetch([&](double fraction) { seen.push_back(fraction); });
  ASSERT_EQ(seen.size(), 3U);  // steps of 4 MiB
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_GT(seen.front(), 0.0);
  EXPECT_EQ(seen.back(), 1.0);
  const auto vocabulary = folder.write("v.gguf", GgufBuilder().string("k", "v").build());
  seen.clear();
  WeightsFile::open(vocabulary)->prefetch([&](double fraction) { seen.push_back(fraction); });
  EXPECT_EQ(seen, std::vector<double>{1.0});
}

TEST(JsonValueTest, NumbersKeepTheirKindAndTheLastOfARepeatedKeyCounts) {
  const Value value = parse_json_value(R"({"i":-3,"big":18446744073709551615,"d":2.0,"i":4,"s":"é\n"} )", "x.json");
  EXPECT_EQ(*value.find("i"), Value(4));
  EXPECT_EQ(*value.find("big"), Value(18446744073709551615.0));
  EXPECT_EQ(*value.find("d"), Value(2.0));
  EXPECT_EQ(*value.find("s"), Value("é\n"));
}

TEST(JsonValueTest, DepthAndNumberOfValuesAreLimited) {
  expect_error<BadFile>([] { parse_json_value(std::string(100, '[') + std::string(100, ']'), "deep.json"); },
                        {"deep.json", "64 levels"});
  std::string many = "[0";
  for (int i = 0; i < 5'000'000; ++i) many += ",0";
  expect_error<BadFile>([&] { parse_json_value(many + "]", "many.json"); }, {"many.json", "values"});
  expect_error<BadFile>([] { parse_json_value("{} {}", "two.json"); }, {"two.json", "byte 3"});
}

}  // namespace
}  // namespace cairn
