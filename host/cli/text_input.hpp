// Text from files and standard input, bounded. Used by the commands that need no model to run.
#pragma once

#include <filesystem>
#include <string>

namespace cairn {

// The whole file, at most 64 MiB. Throws NotFound when it cannot be read, BadFile when it is larger.
std::string read_text_file(const std::filesystem::path& path);
std::string read_standard_input();

}  // namespace cairn
