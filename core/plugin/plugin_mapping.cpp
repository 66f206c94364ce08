// Sealed copies, dlopen through Boost.DLL, and which code belongs to which plugin.
#include "core/plugin/plugin_mapping.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <vector>

#include "core/base/error.hpp"
#include "core/plugin/identity_note.hpp"
#include "core/plugin/refusal.hpp"

namespace cairn {

namespace {

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // Linux 6.3; older kernels answer EINVAL and need no flag
#endif

struct KnownMappings {
  std::mutex mutex;
  std::vector<std::weak_ptr<PluginMapping>> mappings;
};

KnownMappings& known() {
  static KnownMappings mappings;
  return mappings;
}

// Images that must never be unmapped, and the descriptors their names refer to. Reachable for ever on purpose.
void keep_for_ever(boost::dll::shared_library library, FileDescriptor sealed) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::pair<boost::dll::shared_library, int>>();
  const std::lock_guard lock(mutex);
  kept->emplace_back(std::move(library), sealed.release());
}

}  // namespace

FileDescriptor sealed_copy(int from, std::string_view file, const std::string& tag) {
  struct stat info {};
  if (::fstat(from, &info) != 0 || !S_ISREG(info.st_mode)) {
    throw BadFile(unreadable_plugin_text(file, "it is not a regular file"));
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > kMaxPluginBytes) throw BadFile(unreadable_plugin_text(file, "it is over 4 GiB long"));

  FileDescriptor copy(::memfd_create(tag.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC));
  if (!copy && errno == EINVAL) copy = FileDescriptor(::memfd_create(tag.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!copy) {
    throw ResourceExhausted(
        fmt::format("No memory file for a private copy of plugin {} ({}).", file, std::strerror(errno)));
  }
  off_t offset = 0;
  while (static_cast<std::uint64_t>(offset) < size) {
    const ssize_t moved = ::sendfile(copy.get(), from, &offset, size - static_cast<std::uint64_t>(offset));
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) {
      throw ResourceExhausted(fmt::format("Plugin {} cannot be copied to memory ({}).", file, std::strerror(errno)));
    }
    if (moved == 0) throw BadFile(unreadable_plugin_text(file, "it became shorter while it was read"));
  }
  if (::fcntl(copy.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    throw InternalError(
        fmt::format("The private copy of plugin {} cannot be sealed ({}).", file, std::strerror(errno)));
  }
  return copy;
}

PluginMapping::PluginMapping(FileDescriptor sealed, std::string tag)
    : sealed_(std::move(sealed)),
      tag_(std::move(tag)),
      dl_path_(fmt::format("/proc/self/fd/{}", sealed_.get())),
      library_(dl_path_, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local) {}

PluginMapping::~PluginMapping() {
  try {
    if (keep_mapped_) {
      keep_for_ever(std::move(library_), std::move(sealed_));
      return;
    }
    library_.unload();
    // The loader compares names: were the descriptor's number reused while the image stays, a later plugin under the
    // same number would get this one's code.
    if (is_mapped(tag_)) sealed_.release();
  } catch (...) {
    sealed_.release();  // out of memory: not knowing is treated as still mapped
  }
}

cairn_plugin_entry_fn PluginMapping::entry() const {
  if (!library_.has(CAIRN_ENTRY_SYMBOL)) return nullptr;
  return &library_.get<const cairn_plugin*(const cairn_host*)>(CAIRN_ENTRY_SYMBOL);
}

bool is_mapped(const std::string& tag) {
  std::ifstream maps("/proc/self/maps");
  const std::string name = "/memfd:" + tag + " ";
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

void register_mapping(const std::shared_ptr<PluginMapping>& mapping) {
  KnownMappings& all = known();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.mappings, [](const auto& entry) { return entry.expired(); });
  all.mappings.push_back(mapping);
}

std::shared_ptr<const void> pin_library_of(const void* address) {
  Dl_info info{};
  if (address == nullptr || ::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  KnownMappings& all = known();
  const std::lock_guard lock(all.mutex);
  for (const auto& entry : all.mappings) {
    if (auto mapping = entry.lock(); mapping != nullptr && mapping->dl_path() == info.dli_fname) return mapping;
  }
  return nullptr;
}

}  // namespace cairn
