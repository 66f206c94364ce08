// The mapped image of one plugin: a private, sealed copy of the file and the dlopen handle on it.
// Used by PluginLibrary, and by host objects that must keep a plugin's code mapped.
#pragma once

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>
#include <memory>
#include <string>

#include "cairn/abi.h"
#include "core/plugin/file_descriptor.hpp"

namespace cairn {

// A copy of the file in memory that nobody can change any more. `tag` becomes its unique name in /proc/self/maps.
// Throws BadFile (not a regular file, too large, unreadable) or ResourceExhausted.
FileDescriptor sealed_copy(int from, std::string_view file, const std::string& tag);

class PluginMapping {
 public:
  // dlopens the sealed copy with RTLD_NOW | RTLD_LOCAL. Throws std::exception with the loader's message.
  PluginMapping(FileDescriptor sealed, std::string tag);
  // Unmaps, unless keep_mapped() was called. Any thread.
  ~PluginMapping();
  PluginMapping(const PluginMapping&) = delete;
  PluginMapping& operator=(const PluginMapping&) = delete;

  // The entry function, or nullptr.
  cairn_plugin_entry_fn entry() const;
  // The code stays until the process ends, whoever lets go of it.
  void keep_mapped() noexcept { keep_mapped_ = true; }
  const std::string& tag() const noexcept { return tag_; }
  const std::string& dl_path() const noexcept { return dl_path_; }

 private:
  FileDescriptor sealed_;  // open as long as the image is mapped: the loader knows the image by this descriptor's path
  std::string tag_;
  std::string dl_path_;
  boost::dll::shared_library library_;
  bool keep_mapped_ = false;
};

// Whether any page of the image with this tag is still mapped.
bool is_mapped(const std::string& tag);

// Makes a mapping known to pin_library_of.
void register_mapping(const std::shared_ptr<PluginMapping>& mapping);
// Keeps the plugin that `address` (one of its functions) belongs to mapped as long as the result lives; null when the
// address is not in a loaded plugin. Any thread.
std::shared_ptr<const void> pin_library_of(const void* address);

}  // namespace cairn
