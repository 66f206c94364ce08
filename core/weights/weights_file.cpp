// What all weights readers share: telling formats apart, the name index, prefetching.
#include "core/weights/weights_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>

#include "core/base/error.hpp"
#include "core/weights/gguf.hpp"
#include "core/weights/mapped_file.hpp"
#include "core/weights/quote_name.hpp"
#include "core/weights/safetensors.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPrefetchChunk = std::size_t{4} << 20;

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

WeightsFile::WeightsFile(fs::path path, fs::path directory)
    : path_(std::move(path)), directory_(std::move(directory)) {}

WeightsFile::~WeightsFile() = default;

std::shared_ptr<WeightsFile> WeightsFile::open(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return SafetensorsModel::open_directory(path);
  std::array<std::byte, 9> head{};
  {
    const MappedFile file(path);
    std::memcpy(head.data(), file.bytes().data(), std::min(head.size(), file.bytes().size()));
  }
  if (starts_with(head, "GGUF")) return GgufFile::open(path);
  if (head[8] == std::byte{'{'}) return SafetensorsModel::open_file(path);
  if (starts_with(head, "PK\x03\x04") || starts_with(head, "\x80\x02")) {
    throw NotSupported(
        fmt::format("{} is a PyTorch pickle, which runs code when it is loaded; convert it to safetensors or GGUF.",
                    path.string()));
  }
  throw BadFile(
      fmt::format("{} is neither GGUF nor safetensors: at byte 0 there is no GGUF magic, at byte 8 no '{{'. "
                  "Give a .gguf file, a .safetensors file, or a Hugging Face model folder.",
                  path.string()));
}

const TensorInfo* WeightsFile::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

std::optional<fs::path> WeightsFile::side_file(std::string_view name) const {
  fs::path file = directory_ / name;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  return file;
}

void WeightsFile::prefetch(const std::function<void(double)>& progress) const {
  std::size_t done = 0;
  for (const TensorInfo& tensor : tensors_) {
    for (std::size_t at = 0; at < tensor.nbytes; at += kPrefetchChunk) {
      const std::size_t length = std::min(kPrefetchChunk, tensor.nbytes - at);
      touch_pages({tensor.data + at, length});
      done += length;
      if (progress && done < total_bytes_) progress(static_cast<double>(done) / static_cast<double>(total_bytes_));
    }
  }
  if (progress) progress(1.0);
}

void WeightsFile::adopt_tensors(std::vector<TensorInfo> tensors) {
  tensors_ = std::move(tensors);
  index_.reserve(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const TensorInfo& tensor = tensors_[i];
    const auto [it, inserted] = index_.emplace(tensor.name, i);
    if (!inserted) {
      const TensorInfo& first = tensors_[it->second];
      throw BadFile(
          fmt::format("{}: tensor {} at byte {} was already given by {} at byte {}; a model has each name once, make "
                      "the file again.",
                      tensor.file, quote_name(tensor.name), tensor.offset, first.file, first.offset));
    }
    total_bytes_ += tensor.nbytes;  // no overflow: tensors do not overlap within a file that is mapped
  }
}

}  // namespace cairn
