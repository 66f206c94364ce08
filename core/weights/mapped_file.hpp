// A regular file mapped read-only into memory. Used by the weights readers; the mapping lasts as long as the object.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace cairn {

class MappedFile {
 public:
  // Throws NotFound when there is no such file, BadFile when it is empty, no regular file, or cannot be read or mapped.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// The whole of a small text file (JSON, templates). Throws like MappedFile, and BadFile above `limit` bytes.
std::string read_text_file(const std::filesystem::path& path, std::size_t limit);

// Reads one byte of every page of `bytes`, which must lie in a mapping, asking the kernel to read ahead.
void touch_pages(std::span<const std::byte> bytes) noexcept;

}  // namespace cairn
