// Reads the YAML deployment file: which models to serve, with M*'s keys. Used by the command line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/deployment.hpp"

namespace cairn {

// One model per document, or a list under the single key `models`. Relative paths count from `base`. Throws BadFile
// with "name:line:column" and a sentence for anything that is wrong: YAML that does not parse, an unknown key (with the
// nearest known one), a wrong type, a value out of range, a file over the limits on size, nesting and aliases.
std::vector<DeploymentConfig> parse_deployment(std::string_view text, const std::string& name,
                                               const std::filesystem::path& base);
// The same from a file; NotFound when there is none.
std::vector<DeploymentConfig> load_deployment(const std::filesystem::path& file);

}  // namespace cairn
