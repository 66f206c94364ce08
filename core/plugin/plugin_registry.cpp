// Scanning folders for plugins and choosing among them.
#include "core/plugin/plugin_registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"

namespace cairn {

namespace {

bool is_plugin_name(const std::string& name) {
  // ".so" must be the very end, which passes over "x.so.tmp", "x.so.part" and "x.so~".
  return name.size() > 3 && name.front() != '.' && name.ends_with(".so");
}

PluginEntry inspect(const std::filesystem::path& file, const LoadPolicy& policy) {
  PluginEntry entry{.file = file, .identity = std::nullopt, .refusal = {}};
  try {
    entry.identity = read_identity_note(file);
    check_identity(*entry.identity, policy, file.string());
  } catch (const std::runtime_error& e) {
    entry.refusal = e.what();
  }
  return entry;
}

std::string summary(const std::vector<PluginEntry>& entries) {
  std::string text;
  for (const PluginEntry& entry : entries) {
    if (!text.empty()) text += ", ";
    text += entry.file.filename().string();
    if (!entry.identity) {
      text += " (unreadable)";
    } else {
      text += fmt::format(" ({}{}: {})", entry.identity->id, entry.usable() ? "" : ", refused",
                          entry.identity->architectures.empty()
                              ? "no architectures"
                              : fmt::format("{}", fmt::join(entry.identity->architectures, " ")));
    }
  }
  return text.empty() ? "no plugins at all" : text;
}

}  // namespace

void PluginRegistry::scan(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator files(folder, error);
  if (error) {
    throw NotFound(fmt::format("The plugin folder {} cannot be read ({}); build the plugins or name another folder.",
                               folder.string(), error.message()));
  }
  std::vector<std::filesystem::path> found;
  for (const auto end = std::filesystem::directory_iterator(); files != end; files.increment(error)) {
    if (is_plugin_name(files->path().filename().string())) found.push_back(files->path());
    if (error) break;
  }
  std::sort(found.begin(), found.end());
  std::erase_if(entries_, [&](const PluginEntry& entry) { return entry.file.parent_path() == folder; });
  for (const auto& file : found) entries_.push_back(inspect(file, policy_));
}

PluginEntry PluginRegistry::choose(std::string_view plugin, std::string_view architecture) const {
  if (plugin.find('/') != std::string_view::npos || plugin.ends_with(".so")) {
    PluginEntry entry = inspect(std::filesystem::path(plugin), policy_);
    if (!entry.usable()) throw NotSupported(entry.refusal);
    return entry;
  }
  const PluginEntry* refused = nullptr;
  for (const PluginEntry& entry : entries_) {
    if (!entry.identity) continue;
    const auto& claims = entry.identity->architectures;
    const bool fits = plugin.empty() ? std::find(claims.begin(), claims.end(), architecture) != claims.end()
                                     : entry.identity->id == plugin;
    if (!fits) continue;
    if (entry.usable()) return entry;
    if (refused == nullptr) refused = &entry;
  }
  if (refused != nullptr) throw NotSupported(refused->refusal);
  if (!plugin.empty()) {
    throw NotFound(fmt::format("There is no plugin with the id '{}'; there is {}.", plugin, summary(entries_)));
  }
  throw NotFound(
      fmt::format("No plugin serves weights of the architecture '{}'; there is {}. Add a plugin for it to the "
                  "plugin folder, or name one.",
                  architecture, summary(entries_)));
}

}  // namespace cairn
