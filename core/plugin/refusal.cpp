// Wording of refusals, and opening plugin files.
#include "core/plugin/refusal.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "cairn/abi.h"
#include "core/base/error.hpp"
#include "core/plugin/file_descriptor.hpp"
#include "core/plugin/host_services.hpp"
#include "core/plugin/status.hpp"

namespace cairn {

std::string host_offer() {
  return fmt::format("plugin ABI {}.{} on {} (Cairn {})", CAIRN_ABI_MAJOR, CAIRN_ABI_MINOR, CAIRN_TARGET_TRIPLE,
                     from_abi_str(host_base()->version));
}

std::string refusal_text(const Refusal& refusal) {
  return fmt::format("Plugin {} was refused: {}. It wants {}; this host offers {}. {}. {}.", refusal.file,
                     refusal.problem, refusal.wants, refusal.offers, refusal.too_old, refusal.action);
}

std::string unreadable_plugin_text(std::string_view file, std::string_view problem) {
  return refusal_text({.file = file,
                       .problem = std::string(problem),
                       .wants = "something that cannot be read from the file",
                       .offers = host_offer(),
                       .too_old = "Neither side is known to be too old",
                       .action = "Copy the file again, or build it with cairn_add_plugin() or with "
                                 "CAIRN_PLUGIN_IDENTITY in one source file"});
}

FileDescriptor open_plugin_file(const std::filesystem::path& file) {
  FileDescriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd) return fd;
  const int error = errno;
  if (error == ENOENT || error == ENOTDIR) {
    throw NotFound(fmt::format("There is no plugin file {}; check the path, or list a folder with `cairn plugins`.",
                               file.string()));
  }
  throw BadFile(unreadable_plugin_text(file.string(), fmt::format("it cannot be opened ({})", std::strerror(error))));
}

}  // namespace cairn
