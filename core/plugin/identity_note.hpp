// The identity note of a plugin (abi.h section 5), read from the ELF file without loading it or running any of its
// code. Used by the loader, the plugin registry and `cairn plugins`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

struct PluginIdentity {
  std::uint32_t note_size = 0;
  std::uint32_t abi_major = 0;
  std::uint32_t built_minor = 0;
  std::uint32_t min_host_minor = 0;
  std::uint32_t flags = 0;  // CAIRN_IDENTITY_*
  std::string id;
  std::string version;
  std::string vendor;
  std::string build;
  std::string target;
  std::vector<std::string> cpu_features;
  std::string device_runtime;
  std::vector<std::string> interfaces;  // "cairn.ops/1"
  std::vector<std::string> optional_interfaces;
  std::vector<std::string> architectures;
  std::string toolchain;
};

// Parses a whole ELF64 file in memory. Looks at the PT_NOTE program headers, then at the SHT_NOTE sections. A note
// longer than this host knows is cut, a shorter one reads as zeros. Never reads outside `file`; work is bounded by its
// size. Throws BadFile; `name` is used in messages.
PluginIdentity parse_identity_note(std::span<const std::byte> file, std::string_view name);

// The same for a file, of which only the headers and notes are read. Throws NotFound, BadFile.
PluginIdentity read_identity_note(const std::filesystem::path& file);
PluginIdentity read_identity_note(int fd, std::string_view name);

// Files over this size are refused unread.
inline constexpr std::uint64_t kMaxPluginBytes = std::uint64_t{4} << 30;

}  // namespace cairn
