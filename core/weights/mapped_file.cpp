// Mapping, advising and reading files through POSIX calls.
#include "core/weights/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"

namespace cairn {
namespace {

constexpr std::size_t kPage = 4096;  // the smallest page of the machines we run on; larger pages are touched twice

std::string errno_text(int error) {
  return std::system_category().message(error);
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) throw NotFound(fmt::format("There is no file {}.", path.string()));
    throw BadFile(
        fmt::format("{} cannot be opened: {}; check the path and its permissions.", path.string(), errno_text(error)));
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    throw BadFile(fmt::format("{} cannot be examined: {}.", path.string(), errno_text(errno)));
  }
  if (!S_ISREG(status.st_mode)) throw BadFile(fmt::format("{} is not a regular file.", path.string()));
  if (status.st_size <= 0) throw BadFile(fmt::format("{} is empty; download it again.", path.string()));
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) {
    throw BadFile(fmt::format("{} ({} bytes) cannot be mapped: {}; check the address-space limit (ulimit -v).",
                              path.string(), size, errno_text(errno)));
  }
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

std::string read_text_file(const std::filesystem::path& path, std::size_t limit) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  if (bytes.size() > limit) {
    throw BadFile(fmt::format("{} is {} bytes long; more than {} is not expected of such a file.", path.string(),
                              bytes.size(), limit));
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void touch_pages(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  // madvise wants the start of a page.
  const std::size_t into_page = reinterpret_cast<std::uintptr_t>(bytes.data()) % kPage;
  // Advice only: when it is refused, the reads below do the work one page fault at a time.
  (void)::madvise(const_cast<std::byte*>(bytes.data()) - into_page, bytes.size() + into_page, MADV_WILLNEED);
  for (std::size_t i = 0; i < bytes.size(); i += kPage) {
    (void)*static_cast<const volatile std::byte*>(&bytes[i]);
  }
  (void)*static_cast<const volatile std::byte*>(&bytes.back());
}

}  // namespace cairn
