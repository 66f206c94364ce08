// Loads one plugin: policy, identity note, checks, a private sealed copy, dlopen, handshake, init; and unloads it.
// Used by the runtime when a model is opened. Every refusal is a BadFile or NotSupported whose text says the file, what
// the plugin wants, what this host offers, which side is too old, and what to do.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/abi.h"
#include "core/plugin/identity_note.hpp"

namespace cairn {

class PluginMapping;

struct LoadPolicy {
  // Folders plugins may come from; a file lies in one when its resolved path does. Empty: anywhere.
  std::vector<std::filesystem::path> allowed_folders;
  bool allow_experimental = true;  // load plugins that use draft interfaces
};

// What happened at unload.
struct UnloadReport {
  bool unmapped = false;  // the code is gone from this process
  std::string detail;     // why it is not, or empty
};

// Throws NotSupported when this host cannot load a plugin of this identity. Reads no file.
void check_identity(const PluginIdentity& identity, const LoadPolicy& policy, const std::string& file);

// load, unload and the destructor: the control thread. The getters: any thread.
class PluginLibrary {
 public:
  // Throws NotFound, BadFile, NotSupported; InternalError when the plugin's init fails. Nothing stays behind then.
  static std::shared_ptr<PluginLibrary> load(const std::filesystem::path& file, const LoadPolicy& policy = {});
  // Unloads when that has not been done; the report goes to the log.
  ~PluginLibrary();
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  const std::filesystem::path& file() const { return file_; }
  const PluginIdentity& identity() const { return identity_; }
  const cairn_plugin* descriptor() const { return descriptor_; }

  // A table of the plugin by id, or nullptr.
  const void* find_interface(std::string_view id, std::uint32_t min_revision) const;
  // The "cairn.model" table, cut or zero-filled to this host's size. Throws NotSupported when there is none, BadFile
  // when a required function is missing.
  const cairn_model_api& model_api() const;

  // shutdown, then dlclose. Every model of it must be closed. Idempotent. Memory of the plugin that host objects still
  // hold (wrapped tensors, opaque values) keeps the code mapped until the last one goes; the report says so.
  UnloadReport unload();

 private:
  PluginLibrary() = default;

  std::filesystem::path file_;
  PluginIdentity identity_;
  std::shared_ptr<PluginMapping> mapping_;
  const cairn_plugin* descriptor_ = nullptr;
  cairn_model_api model_api_{};
  bool initialised_ = false;
};

}  // namespace cairn
