// Writes GGUF files that hold metadata only, in memory: for tests of what reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/weights/gguf.hpp"

namespace cairn::test {

class GgufWriter {
 public:
  GgufWriter& str(std::string_view key, std::string_view value) {
    head(key, 8);
    text(value);
    return *this;
  }
  GgufWriter& boolean(std::string_view key, bool value) {
    head(key, 7);
    body_.push_back(value ? 1 : 0);
    return *this;
  }
  GgufWriter& u32(std::string_view key, std::uint32_t value) {
    head(key, 4);
    raw(value);
    return *this;
  }
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& values) {
    array(key, 8, values.size());
    for (const std::string& v : values) text(v);
    return *this;
  }
  GgufWriter& floats(std::string_view key, const std::vector<float>& values) {
    array(key, 6, values.size());
    for (const float v : values) raw(v);
    return *this;
  }
  GgufWriter& ints(std::string_view key, const std::vector<std::int32_t>& values) {
    array(key, 5, values.size());
    for (const std::int32_t v : values) raw(v);
    return *this;
  }

  // The file; lives as long as this writer.
  std::shared_ptr<GgufFile> open() {
    std::string file = "GGUF";
    const auto put = [&](auto value) { file.append(reinterpret_cast<const char*>(&value), sizeof value); };
    put(std::uint32_t{3});
    put(std::uint64_t{0});
    put(std::uint64_t{count_});
    file += body_;
    storage_.assign(file.size() / 8 + 1, 0);
    std::memcpy(storage_.data(), file.data(), file.size());
    return GgufFile::parse({reinterpret_cast<const std::byte*>(storage_.data()), file.size()}, "test.gguf");
  }

 private:
  template <class T>
  void raw(T value) {
    body_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    raw(std::uint64_t{value.size()});
    body_ += value;
  }
  void head(std::string_view key, std::uint32_t type) {
    text(key);
    raw(type);
    ++count_;
  }
  void array(std::string_view key, std::uint32_t type, std::size_t size) {
    head(key, 9);
    raw(type);
    raw(std::uint64_t{size});
  }

  std::string body_;
  std::uint64_t count_ = 0;
  std::vector<std::uint64_t> storage_;
};

}  // namespace cairn::test
