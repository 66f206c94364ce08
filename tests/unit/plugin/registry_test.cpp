// Plugin folders.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/plugin/plugin_registry.hpp"
#include "sample_files.hpp"

namespace cairn {
namespace {

class Registry : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& plugin) {
    std::filesystem::copy_file(sample(plugin), folder_.path() / name);
  }
  TemporaryFolder folder_;
  PluginRegistry registry_;
};

TEST_F(Registry, ListsPluginsInOrderAndBrokenOnesWithTheirRefusal) {
  put("b.so", "good");
  put("a.so", "wants_service");
  write_bytes(folder_.path() / "c.so", std::vector<std::byte>(10));
  registry_.scan(folder_.path());
  ASSERT_EQ(registry_.entries().size(), 3U);
  EXPECT_EQ(registry_.entries()[0].file.filename(), "a.so");
  EXPECT_FALSE(registry_.entries()[0].usable());
  EXPECT_TRUE(registry_.entries()[0].identity.has_value());
  EXPECT_NE(registry_.entries()[0].refusal.find("cairn.frobnicate/1"), std::string::npos);
  EXPECT_TRUE(registry_.entries()[1].usable());
  EXPECT_FALSE(registry_.entries()[2].identity.has_value());
  EXPECT_NE(registry_.entries()[2].refusal.find("not an ELF"), std::string::npos);
}

TEST_F(Registry, PassesOverFilesThatAreBeingCopied) {
  for (const char* name : {".hidden.so", "x.so.tmp", "x.so.part", "x.so~", "notes.txt", ".so"}) put(name, "good");
  registry_.scan(folder_.path());
  EXPECT_TRUE(registry_.entries().empty());
}

TEST_F(Registry, ASecondScanReplacesTheFirst) {
  put("a.so", "good");
  registry_.scan(folder_.path());
  std::filesystem::rename(folder_.path() / "a.so", folder_.path() / "b.so");
  registry_.scan(folder_.path());
  ASSERT_EQ(registry_.entries().size(), 1U);
  EXPECT_EQ(registry_.entries()[0].file.filename(), "b.so");
}

TEST_F(Registry, ChoosesByArchitectureByIdAndByPath) {
  put("a.so", "newer_major");
  put("b.so", "good");
  registry_.scan(folder_.path());
  EXPECT_EQ(registry_.choose("", "other").file.filename(), "b.so");
  EXPECT_EQ(registry_.choose("ai.cairn.sample", "").file.filename(), "b.so");
  EXPECT_EQ(registry_.choose(sample("resident").string(), "").file, sample("resident"));
}

TEST_F(Registry, SaysWhatThereIsWhenNothingFits) {
  put("b.so", "good");
  registry_.scan(folder_.path());
  const std::string by_architecture = thrown_text<NotFound>([&] { registry_.choose("", "gpt5"); });
  EXPECT_NE(by_architecture.find("'gpt5'"), std::string::npos) << by_architecture;
  EXPECT_NE(by_architecture.find("b.so (ai.cairn.sample: sample other)"), std::string::npos) << by_architecture;
  const std::string by_id = thrown_text<NotFound>([&] { registry_.choose("ai.other", ""); });
  EXPECT_NE(by_id.find("'ai.other'"), std::string::npos) << by_id;
}

TEST_F(Registry, TheRefusalOfTheOnlyPluginThatFitsIsTheAnswer) {
  put("a.so", "newer_major");
  registry_.scan(folder_.path());
  EXPECT_NE(thrown_text<NotSupported>([&] { registry_.choose("", "sample"); }).find("The host is too old"),
            std::string::npos);
  EXPECT_THROW(registry_.choose((folder_.path() / "a.so").string(), ""), NotSupported);
}

TEST_F(Registry, AMissingFolderIsNotFound) {
  EXPECT_THROW(registry_.scan(folder_.path() / "absent"), NotFound);
}

}  // namespace
}  // namespace cairn
