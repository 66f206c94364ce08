// Which files of a folder are models. Used by `cairn models` and `serve --models`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cairn {

struct ModelFile {
  std::string name;  // what clients call it: the file name without ".gguf" and the part number, or the folder's name
  std::filesystem::path path;
};

// GGUF files (of a split one the first part) and folders with a config.json, in order of name. Throws NotFound when
// there is no such folder.
std::vector<ModelFile> find_models(const std::filesystem::path& folder);
std::string model_name_of(const std::filesystem::path& path);

}  // namespace cairn
