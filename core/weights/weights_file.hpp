// A model's weights and metadata, opened from a GGUF file, a safetensors file or a Hugging Face folder, and mapped
// read-only. Used by the runtime (weights service), the tokenizers and the command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/value.hpp"
#include "core/tensor/dtype.hpp"

namespace cairn {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // outermost first, row-major (GGUF's ne reversed); empty for a scalar
  const std::byte* data = nullptr;  // into the mapping. GGUF: aligned to general.alignment (at least 8). safetensors:
                                    // no alignment is promised, read through memcpy or unaligned loads
  std::size_t nbytes = 0;
  std::string file;          // the file it lies in, for messages
  std::uint64_t offset = 0;  // of the data, from the start of that file
};

enum class WeightsFormat : std::uint8_t { kGguf, kSafetensors };

// Immutable once open: every method may be called from any thread. TensorInfo::data and every string_view or span a
// reader gives out point into the mapping or into this object, so they live as long as it does.
//
// The mapping follows the file. Replace a model by renaming a new file over the old one; truncating or rewriting a
// file in place while it is served kills the process with SIGBUS or changes the weights under it, and no check made
// at open can prevent that.
class WeightsFile {
 public:
  virtual ~WeightsFile();
  WeightsFile(const WeightsFile&) = delete;
  WeightsFile& operator=(const WeightsFile&) = delete;

  // Opens a .gguf file (of a split one, the first part), a .safetensors file or a Hugging Face folder. The kind is
  // decided by content, not by the name. Throws NotFound (no such file, nothing to load in the folder), BadFile
  // (damaged, with the file, the tensor or key, and the byte offset), NotSupported (a format we do not read).
  static std::shared_ptr<WeightsFile> open(const std::filesystem::path& path);

  virtual WeightsFormat format() const = 0;
  // GGUF: general.architecture. Hugging Face: model_type of config.json, else the first of its "architectures".
  // Empty when the file does not say.
  virtual std::string architecture() const = 0;

  // In file order; shards one after the other. Empty for a file that holds a vocabulary only.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // The tensor of that name, or nullptr.
  const TensorInfo* find(std::string_view name) const;

  // A map. GGUF: the key/value pairs under their own names, without arrays of more than kMaxMetadataArray elements
  // (GgufFile has typed accessors for all arrays). Hugging Face: "config", "tokenizer_config", "generation_config",
  // "special_tokens_map" (the parsed JSON files), "chat_template" (text of chat_template.jinja, or the value in
  // chat_template.json), "safetensors_metadata" (the __metadata__ of the header; of the first shard that has one).
  // Keys whose file does not exist are absent.
  const Value& metadata() const { return metadata_; }

  // What was opened, and the folder that holds it (or is it): where tokenizer.json and its like are found.
  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& directory() const { return directory_; }
  // The path of directory()/name when such a regular file exists. `name` is one of ours, not from outside.
  std::optional<std::filesystem::path> side_file(std::string_view name) const;

  // Sum of TensorInfo::nbytes.
  std::size_t total_bytes() const { return total_bytes_; }

  // Reads every tensor page once so that serving does not wait for the disk. `progress` is called on this thread with
  // the fraction done, from 0 to 1, at least once with 1.
  void prefetch(const std::function<void(double)>& progress = {}) const;

 protected:
  WeightsFile(std::filesystem::path path, std::filesystem::path directory);
  // Called by the readers once, after parsing. Throws BadFile for a name that occurs twice.
  void adopt_tensors(std::vector<TensorInfo> tensors);
  void adopt_metadata(Value metadata) { metadata_ = std::move(metadata); }

 private:
  std::filesystem::path path_;
  std::filesystem::path directory_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, std::size_t> index_;  // views into tensors_
  std::size_t total_bytes_ = 0;
  Value metadata_;
};

// Longest GGUF array that metadata() holds element by element.
inline constexpr std::size_t kMaxMetadataArray = 1024;

}  // namespace cairn
