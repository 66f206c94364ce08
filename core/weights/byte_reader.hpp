// A cursor over a file in memory that never reads past its end. Used by the GGUF parser.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/base/error.hpp"

namespace cairn {

class ByteReader {
 public:
  // Both must outlive the reader; `file` is used in messages.
  ByteReader(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }
  const std::string& file() const { return file_; }

  // A little-endian number; this code runs on little-endian machines only. `what` names it in the message.
  template <class T>
  T read(std::string_view what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
    if (count > remaining()) {
      fail(position_, fmt::format("{} needs {} bytes and the file ends after {}", what, count, remaining()));
    }
    const auto taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

  // A string with a 64-bit length in front, of at most `limit` bytes.
  std::string_view string(std::uint64_t limit, std::string_view what) {
    const std::size_t start = position_;
    const auto length = read<std::uint64_t>(what);
    if (length > limit)
      fail(start, fmt::format("{} has a length of {} bytes, more than the {} allowed", what, length, limit));
    const auto text = take(length, what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  [[noreturn]] void fail(std::size_t offset, std::string_view problem) const {
    throw BadFile(
        fmt::format("{}: {} (at byte {} of {}). The file is damaged or incomplete; download or convert it again.",
                    file_, problem, offset, bytes_.size()));
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::size_t position_ = 0;
};

}  // namespace cairn
