// The plugins of the host's plugin folders, known by their notes alone; finds the one for a model.
// Used by `cairn serve` and `cairn plugins`. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/identity_note.hpp"
#include "core/plugin/loader.hpp"

namespace cairn {

struct PluginEntry {
  std::filesystem::path file;
  std::optional<PluginIdentity> identity;  // none: the note could not be read
  std::string refusal;                     // why it cannot be loaded; empty: it can
  bool usable() const { return refusal.empty(); }
};

class PluginRegistry {
 public:
  explicit PluginRegistry(LoadPolicy policy = {}) : policy_(std::move(policy)) {}

  // Reads the notes of the *.so files of the folder, in order of name, and replaces what was known of it. Hidden files
  // and names of files being copied (".tmp", ".part", "~") are passed over; a broken file becomes an entry with its
  // refusal. Throws NotFound when there is no such folder.
  void scan(const std::filesystem::path& folder);
  const std::vector<PluginEntry>& entries() const { return entries_; }

  // The plugin to load: `plugin` is an id, the path of a .so, or empty for the first usable one that claims
  // `architecture`. Throws NotFound with what there is, or NotSupported with the refusal of the one that would fit.
  PluginEntry choose(std::string_view plugin, std::string_view architecture) const;

  const LoadPolicy& policy() const { return policy_; }

 private:
  LoadPolicy policy_;
  std::vector<PluginEntry> entries_;
};

}  // namespace cairn
