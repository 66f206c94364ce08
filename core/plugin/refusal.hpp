// The text of a refused plugin: always the file, what the plugin wants, what this host offers, which side is too old,
// and what to do. Used by the note reader and the loader.
#pragma once

#include <string>
#include <string_view>

namespace cairn {

struct Refusal {
  std::string_view file;
  std::string problem;  // "it needs the host service cairn.frobnicate/1"
  std::string wants;    // "plugin ABI 2.x"
  std::string offers;   // "plugin ABI 1.0"
  std::string too_old;  // a sentence: "The host is too old"
  std::string action;   // a sentence: "Update Cairn, or get a build of the plugin for this host"
};
std::string refusal_text(const Refusal& refusal);

// For a file that cannot even be read as a plugin.
std::string unreadable_plugin_text(std::string_view file, std::string_view problem);

// "plugin ABI 1.0 on x86_64-linux-gnu (Cairn 0.1.0)"
std::string host_offer();

}  // namespace cairn
