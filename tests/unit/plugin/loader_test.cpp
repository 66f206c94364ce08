// Loading and unloading plugins: a good one, and one for each thing that can be wrong.
#include "core/plugin/loader.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/error.hpp"
#include "core/plugin/plugin_mapping.hpp"
#include "core/tensor/tensor.hpp"
#include "sample_files.hpp"

namespace cairn {
namespace {

// What sample_plugin.c offers under "cairn.test.sample".
struct SampleTable {
  int (*calls)();
  cairn_status (*wrap)(cairn_tensor** out, int* destroyed);
};
const SampleTable& table_of(const PluginLibrary& library) {
  return *static_cast<const SampleTable*>(library.find_interface("cairn.test.sample", 1));
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

int mapped_pages_of_plugins() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("/memfd:cairn-plugin-") != std::string::npos;
  return count;
}

TEST(Loader, LoadsInitialisesAndUnmaps) {
  auto library = PluginLibrary::load(sample("good"));
  EXPECT_EQ(library->identity().id, "ai.cairn.sample");
  EXPECT_EQ(table_of(*library).calls(), 1);
  EXPECT_EQ(library->find_interface("ai.cairn.unknown", 1), nullptr);
  EXPECT_NE(library->model_api().open, nullptr);
  EXPECT_GT(mapped_pages_of_plugins(), 0);
  const UnloadReport report = library->unload();
  EXPECT_TRUE(report.unmapped) << report.detail;
  EXPECT_EQ(mapped_pages_of_plugins(), 0);
  EXPECT_TRUE(library->unload().unmapped);
}

TEST(Loader, ReadsATableOnlyAsFarAsItsSizeSays) {
  const auto library = PluginLibrary::load(sample("good"));
  EXPECT_EQ(library->model_api().checkpoint_path, nullptr);
  EXPECT_NE(library->model_api().create_node, nullptr);
}

TEST(Loader, RepeatedCyclesStartFreshAndLeaveNothingBehind) {
  PluginLibrary::load(sample("good"))->unload();
  const int descriptors = open_descriptors();
  for (int i = 0; i < 50; ++i) {
    const auto library = PluginLibrary::load(sample("good"));
    ASSERT_EQ(table_of(*library).calls(), 1);
    ASSERT_TRUE(library->unload().unmapped);
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(mapped_pages_of_plugins(), 0);
}

TEST(Loader, TwoCopiesOfOnePluginAreSeparate) {
  const auto first = PluginLibrary::load(sample("good"));
  const auto second = PluginLibrary::load(sample("good"));
  EXPECT_NE(&table_of(*first), &table_of(*second));
  EXPECT_EQ(table_of(*second).calls(), 1);
  second->unload();
  EXPECT_EQ(table_of(*first).calls(), 1);
}

TEST(Loader, ALoadedPluginDoesNotFollowItsFile) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "plugin.so";
  std::filesystem::copy_file(sample("good"), file);
  const auto library = PluginLibrary::load(file);
  write_bytes(file, std::vector<std::byte>(100));
  EXPECT_EQ(table_of(*library).calls(), 1);
  std::filesystem::remove(file);
  std::filesystem::copy_file(sample("resident"), file);
  const auto newer = PluginLibrary::load(file);
  EXPECT_EQ(newer->identity().flags, 0U);
  EXPECT_EQ(library->identity().flags, static_cast<std::uint32_t>(CAIRN_IDENTITY_UNLOADABLE));
}

TEST(Loader, APluginThatDoesNotClaimToBeUnloadableStaysMapped) {
  const auto library = PluginLibrary::load(sample("resident"));
  const SampleTable& table = table_of(*library);
  const UnloadReport report = library->unload();
  EXPECT_FALSE(report.unmapped);
  EXPECT_NE(report.detail.find("does not claim to be unloadable"), std::string::npos) << report.detail;
  EXPECT_EQ(table.calls(), 0);  // shutdown ran, and the code is still there
  // Its descriptor's number is not given to another plugin, which the loader would take for the same one.
  const auto other = PluginLibrary::load(sample("good"));
  EXPECT_NE(&table_of(*other), &table);
}

TEST(Loader, WrappedMemoryKeepsTheCodeUntilItsDestroyHasRun) {
  const int before = mapped_pages_of_plugins();
  const auto library = PluginLibrary::load(sample("good"));
  cairn_tensor* tensor = nullptr;
  int destroyed = 0;
  ASSERT_EQ(table_of(*library).wrap(&tensor, &destroyed), CAIRN_STATUS_OK);
  const UnloadReport report = library->unload();
  EXPECT_FALSE(report.unmapped);
  EXPECT_NE(report.detail.find("1 host objects still use its code"), std::string::npos) << report.detail;
  EXPECT_EQ(destroyed, 0);
  Tensor::from_handle(tensor)->release();
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(mapped_pages_of_plugins(), before);
}

// ---- refusals ----

// The five things of every refusal, in order.
void expect_five_things(const std::string& text, const std::string& file, const std::string& problem,
                        const std::string& wants, const std::string& offers, const std::string& too_old,
                        const std::string& action) {
  std::size_t at = 0;
  for (const std::string& part : {file, problem, "It wants " + wants, "this host offers " + offers, too_old, action}) {
    const std::size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << "'" << part << "' is not in its place in: " << text;
    at = found;
  }
}

struct Case {
  const char* plugin;
  const char* problem;
  const char* wants;
  const char* too_old;
  const char* action;
};

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, SaysTheFiveThingsAndLeavesNothingBehind) {
  const Case& c = GetParam();
  const int descriptors = open_descriptors();
  const int pages = mapped_pages_of_plugins();
  std::string text;
  try {
    PluginLibrary::load(sample(c.plugin));
    FAIL() << "it was loaded";
  } catch (const BadFile& e) {
    text = e.what();
  } catch (const NotSupported& e) {
    text = e.what();
  }
  expect_five_things(text, sample(c.plugin).string(), c.problem, c.wants, "plugin ABI 1.0", c.too_old, c.action);
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(mapped_pages_of_plugins(), pages);
}

INSTANTIATE_TEST_SUITE_P(
    Loader, Refused,
    testing::Values(
        Case{"newer_major", "its ABI major version is 2", "plugin ABI 2.0", "The host is too old", "Update Cairn"},
        Case{"older_major", "its ABI major version is 0", "plugin ABI 0.0", "The plugin is too old",
             "Get a newer build"},
        Case{"newer_minor", "at least minor version 77", "plugin ABI 1.77", "The host is too old", "Update Cairn"},
        Case{"wrong_magic", "begins with 0x12345678", "something that cannot be read", "Neither side",
             "Copy the file again"},
        Case{"no_note", "no Cairn identity note", "something that cannot be read", "Neither side",
             "Copy the file again"},
        Case{"lying_id", "its note says id 'ai.cairn.sample' and its code says 'ai.cairn.other'", "plugin ABI 1.0",
             "Neither side", "Rebuild the plugin"},
        Case{"lying_minor", "its note says min_host_minor 0 and its code says 1", "plugin ABI 1.0", "Neither side",
             "Rebuild the plugin"},
        Case{"wrong_target", "it was built for riscv64-linux-gnu", "a host on riscv64-linux-gnu", "Neither side",
             "Get a build of the plugin for " CAIRN_TARGET_TRIPLE},
        Case{"wants_cpu", "this processor lacks ", "a processor with sse2 avx9000", "the processor may be",
             "a lower processor baseline"},
        Case{"wants_device", "it needs the device runtime cuda>=12.4", "cuda>=12.4", "Neither side", "Get a CPU build"},
        Case{"wants_service", "cannot work without the host service cairn.frobnicate/1",
             "the host services cairn.log/1 cairn.frobnicate/1", "The host is too old", "Update Cairn"},
        Case{"wants_revision", "cannot work without the host service cairn.log/9", "the host services cairn.log/9",
             "The host is too old", "Update Cairn"},
        Case{"null_entry", "returned NULL", "plugin ABI 1.0", "does not say which side", "Look at the log"},
        Case{"short_descriptor", "its description is incomplete (32 bytes", "plugin ABI 1.0", "Neither side",
             "Fill struct_size"},
        Case{"init_fails", "its init failed with PERMISSION_DENIED (the licence file is missing)", "plugin ABI 1.0",
             "Neither side", "Do what the plugin's message says"},
        Case{"no_entry", "it does not export cairn_plugin_entry", "plugin ABI 1.0", "Neither side",
             "Define cairn_plugin_entry"},
        Case{"undefined_symbol", "cairn_test_symbol_that_nobody_defines", "plugin ABI 1.0", "Neither side",
             "needs nothing but libc"},
        Case{"throws", "let an exception escape (thrown by the plugin)", "plugin ABI 1.0", "Neither side",
             "Report it to the plugin's vendor"}),
    [](const auto& each) { return std::string(each.param.plugin); });

TEST(Loader, ExperimentalPluginsAreRefusedByPolicyOnly) {
  EXPECT_NO_THROW(PluginLibrary::load(sample("experimental")));
  LoadPolicy policy;
  policy.allow_experimental = false;
  const std::string text = thrown_text<NotSupported>([&] { PluginLibrary::load(sample("experimental"), policy); });
  expect_five_things(text, "experimental.so", "draft interfaces", "a host that allows experimental", "plugin ABI 1.0",
                     "Neither side", "Get a release build");
}

TEST(Loader, OnlyPluginsFromAllowedFoldersAreLoaded) {
  const TemporaryFolder folder;
  LoadPolicy policy;
  policy.allowed_folders = {folder.path()};
  const std::string text = thrown_text<NotSupported>([&] { PluginLibrary::load(sample("good"), policy); });
  expect_five_things(text, "good.so", "does not lie in a folder", "to be loaded from", "plugin ABI 1.0", "Neither side",
                     "Move the plugin");
  // A link into the folder does not help, a copy does.
  std::filesystem::create_symlink(sample("good"), folder.path() / "link.so");
  EXPECT_THROW(PluginLibrary::load(folder.path() / "link.so", policy), NotSupported);
  std::filesystem::copy_file(sample("good"), folder.path() / "copy.so");
  EXPECT_NO_THROW(PluginLibrary::load(folder.path() / "copy.so", policy));
  // A sibling whose name begins with the folder's is not in it.
  std::filesystem::create_directory(folder.path().string() + "-more");
  std::filesystem::copy_file(sample("good"), folder.path().string() + "-more/copy.so");
  EXPECT_THROW(PluginLibrary::load(folder.path().string() + "-more/copy.so", policy), NotSupported);
  std::filesystem::remove_all(folder.path().string() + "-more");
}

TEST(Loader, APluginWithoutAModelSaysSoWhenOneIsAskedFor) {
  const auto none = PluginLibrary::load(sample("no_model"));
  EXPECT_NE(thrown_text<NotSupported>([&] { none->model_api(); }).find("offers no cairn.model/1"), std::string::npos);
  const auto part = PluginLibrary::load(sample("no_create_node"));
  EXPECT_NE(thrown_text<BadFile>([&] { part->model_api(); }).find("required function create_node"), std::string::npos);
}

TEST(Loader, AMissingFileIsNotFound) {
  EXPECT_THROW(PluginLibrary::load(sample("there_is_none")), NotFound);
}

}  // namespace
}  // namespace cairn
