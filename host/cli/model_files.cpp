#include "host/cli/model_files.hpp"

#include <algorithm>
#include <cctype>

#include "core/base/error.hpp"

namespace cairn {
namespace {

// "-00002-of-00005" at the end of `stem`: its part number, or 0.
int part_number(const std::string& stem) {
  constexpr std::size_t kLength = 15;
  if (stem.size() <= kLength) return 0;
  const std::string tail = stem.substr(stem.size() - kLength);
  for (std::size_t i = 0; i < kLength; ++i) {
    const bool digit = (i >= 1 && i <= 5) || i >= 10;
    const bool matches =
        digit ? std::isdigit(static_cast<unsigned char>(tail[i])) != 0 : tail[i] == "-00000-of-00000"[i];
    if (!matches) return 0;
  }
  return std::stoi(tail.substr(1, 5));
}

}  // namespace

std::string model_name_of(const std::filesystem::path& path) {
  auto clean = path.lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  const std::string extension = clean.extension().string();
  if (extension != ".gguf" && extension != ".safetensors") return clean.filename().string();
  std::string stem = clean.stem().string();
  if (part_number(stem) > 0) stem.resize(stem.size() - 15);
  return stem;
}

std::vector<ModelFile> find_models(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<ModelFile> models;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) throw NotFound("Cannot read the model folder " + folder.string() + ": " + error.message() + ".");
  for (const auto& entry : entries) {
    const auto& path = entry.path();
    if (path.filename().string().starts_with('.')) continue;
    const bool gguf =
        path.extension() == ".gguf" && entry.is_regular_file(error) && part_number(path.stem().string()) <= 1;
    const bool directory = entry.is_directory(error) && std::filesystem::is_regular_file(path / "config.json", error);
    if (gguf || directory) models.push_back({model_name_of(path), path});
  }
  std::sort(models.begin(), models.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return models;
}

}  // namespace cairn
