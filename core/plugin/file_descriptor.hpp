// Owning file descriptor, and how plugin files are opened. Used by the identity note reader and the loader.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <utility>

namespace cairn {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Opens for reading; never blocks on a FIFO or device. Throws NotFound or BadFile.
FileDescriptor open_plugin_file(const std::filesystem::path& file);

}  // namespace cairn
