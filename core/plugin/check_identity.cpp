// Whether this host can load a plugin, judged by its identity alone.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "core/base/error.hpp"
#include "core/plugin/host_services.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/refusal.hpp"

namespace cairn {

namespace {

constexpr const char* kUpdateHost = "Update Cairn, or get a build of the plugin for this version";
constexpr const char* kUpdatePlugin =
    "Get a newer build of the plugin from its vendor, or rebuild it with this host's headers";

[[noreturn]] void refuse(const Refusal& refusal) {
  throw NotSupported(refusal_text(refusal));
}

// What the CPU can do, by Linux's names.
const std::vector<std::string>& cpu_flags() {
  static const std::vector<std::string> flags = [] {
    std::vector<std::string> found;
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);) {
      if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
      std::istringstream words(line.substr(std::min(line.find(':'), line.size() - 1) + 1));
      for (std::string word; words >> word;) found.push_back(word);
      break;  // the first processor stands for all
    }
    return found;
  }();
  return flags;
}

void check_abi(const PluginIdentity& identity, const std::string& file) {
  const std::string wants =
      fmt::format("plugin ABI {}.{} or a later {}.x (it was built with {}.{})", identity.abi_major,
                  identity.min_host_minor, identity.abi_major, identity.abi_major, identity.built_minor);
  if (identity.abi_major != CAIRN_ABI_MAJOR) {
    const bool host_old = identity.abi_major > CAIRN_ABI_MAJOR;
    refuse({.file = file,
            .problem = fmt::format("its ABI major version is {}", identity.abi_major),
            .wants = wants,
            .offers = host_offer(),
            .too_old = host_old ? "The host is too old" : "The plugin is too old",
            .action = host_old ? kUpdateHost : kUpdatePlugin});
  }
  if (identity.min_host_minor > CAIRN_ABI_MINOR) {
    refuse({.file = file,
            .problem = fmt::format("it needs at least minor version {} of the ABI", identity.min_host_minor),
            .wants = wants,
            .offers = host_offer(),
            .too_old = "The host is too old",
            .action = kUpdateHost});
  }
}

void check_machine(const PluginIdentity& identity, const std::string& file) {
  if (identity.target != CAIRN_TARGET_TRIPLE) {
    refuse({.file = file,
            .problem = fmt::format("it was built for {}", identity.target.empty() ? "no target" : identity.target),
            .wants = fmt::format("a host on {}", identity.target.empty() ? "an unnamed target" : identity.target),
            .offers = host_offer(),
            .too_old = "Neither side is too old",
            .action = fmt::format("Get a build of the plugin for {}", CAIRN_TARGET_TRIPLE)});
  }
  std::string missing;
  for (const std::string& feature : identity.cpu_features) {
    if (std::find(cpu_flags().begin(), cpu_flags().end(), feature) == cpu_flags().end()) {
      missing += (missing.empty() ? "" : " ") + feature;
    }
  }
  if (!missing.empty()) {
    refuse({.file = file,
            .problem = fmt::format("this processor lacks {}", missing),
            .wants = fmt::format("a processor with {}", fmt::join(identity.cpu_features, " ")),
            .offers = fmt::format("{} on a processor without {}", host_offer(), missing),
            .too_old = "Neither side is too old, but the processor may be",
            .action = "Get a build of the plugin for a lower processor baseline, or run it on a newer machine"});
  }
  if (!identity.device_runtime.empty()) {
    refuse({.file = file,
            .problem = fmt::format("it needs the device runtime {}", identity.device_runtime),
            .wants = identity.device_runtime,
            .offers = fmt::format("{} without a device runtime", host_offer()),
            .too_old = "Neither side is too old; this host was built for the CPU",
            .action = "Get a CPU build of the plugin, or a build of Cairn for that device"});
  }
}

void check_interfaces(const PluginIdentity& identity, const std::string& file) {
  for (const std::string& needed : identity.interfaces) {
    const std::size_t slash = needed.find('/');
    const std::string_view id = std::string_view(needed).substr(0, slash);
    std::uint32_t revision = 1;
    if (slash != std::string::npos) {
      const char* end = needed.data() + needed.size();
      const auto [stop, error] = std::from_chars(needed.data() + slash + 1, end, revision);
      if (error != std::errc() || stop != end) {
        throw BadFile(unreadable_plugin_text(
            file,
            fmt::format("its identity note needs the service '{}', which is not of the form name/revision", needed)));
      }
    }
    const auto interfaces = host_interfaces();
    const auto found = std::find_if(interfaces.begin(), interfaces.end(), [&](const auto& i) { return i.id == id; });
    if (found != interfaces.end() && found->revision >= revision) continue;
    const std::string has = found == interfaces.end() ? fmt::format("no service {}", id)
                                                      : fmt::format("only revision {} of {}", found->revision, id);
    refuse({.file = file,
            .problem = fmt::format("it cannot work without the host service {}", needed),
            .wants = fmt::format("the host services {}", fmt::join(identity.interfaces, " ")),
            .offers = fmt::format("{} with {}", host_offer(), has),
            .too_old = "The host is too old",
            .action = kUpdateHost});
  }
}

}  // namespace

void check_identity(const PluginIdentity& identity, const LoadPolicy& policy, const std::string& file) {
  check_abi(identity, file);
  check_machine(identity, file);
  check_interfaces(identity, file);
  if ((identity.flags & CAIRN_IDENTITY_EXPERIMENTAL) != 0 && !policy.allow_experimental) {
    refuse({.file = file,
            .problem = "it uses draft interfaces and this host's policy allows only final ones",
            .wants = "a host that allows experimental plugins",
            .offers = host_offer(),
            .too_old = "Neither side is too old",
            .action = "Get a release build of the plugin, or allow experimental plugins in the host's policy"});
  }
}

}  // namespace cairn
