// safetensors files, alone or as the shards of a Hugging Face folder, with the JSON files that lie beside them.
// Used by WeightsFile::open; the header parser is public for tests and fuzzing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/weights/mapped_file.hpp"
#include "core/weights/weights_file.hpp"

namespace cairn {

struct SafetensorsContents {
  std::vector<TensorInfo> tensors;  // in the order of their data
  Value metadata;                   // the __metadata__ map, or none
};

// Parses a whole file held in memory; the result points into `bytes`. `name` is used in messages. Throws BadFile.
// Checks what the format promises: header of at most 100 MB of strict JSON without duplicate keys, and data ranges that
// cover the rest of the file exactly, without holes or overlaps.
SafetensorsContents parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

// Shard file names of a model.safetensors.index.json, without repeats, in order of name, with the tensors each must
// have. Throws BadFile when it is not such an index or when a shard name could lead out of the folder.
struct SafetensorsIndex {
  struct Shard {
    std::string file;
    std::vector<std::string> tensors;
  };
  std::vector<Shard> shards;
};
SafetensorsIndex parse_safetensors_index(std::string_view text, const std::string& name);

class SafetensorsModel final : public WeightsFile {
 public:
  // One file; the JSON files of its folder are read when they are there.
  static std::shared_ptr<SafetensorsModel> open_file(const std::filesystem::path& path);
  // A folder with model.safetensors, or model.safetensors.index.json and its shards, or a tokenizer.json only.
  static std::shared_ptr<SafetensorsModel> open_directory(const std::filesystem::path& path);

  WeightsFormat format() const override { return WeightsFormat::kSafetensors; }
  std::string architecture() const override;

 private:
  SafetensorsModel(std::filesystem::path path, std::filesystem::path directory);
  void load(const std::vector<std::filesystem::path>& files, const SafetensorsIndex& index);
  Value read_side_files() const;

  std::vector<MappedFile> mappings_;
};

}  // namespace cairn
