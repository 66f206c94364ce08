// Writers of small GGUF and safetensors files for tests, made from the published formats and sharing nothing with the
// readers, and a check that a call fails with the right words.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::test {

using Bytes = std::vector<std::byte>;

class ByteWriter {
 public:
  template <class T>
  ByteWriter& number(T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
    return *this;
  }
  ByteWriter& text(std::string_view text) {
    const auto* raw = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), raw, raw + text.size());
    return *this;
  }
  // With a 64-bit length in front.
  ByteWriter& string(std::string_view value) { return number<std::uint64_t>(value.size()).text(value); }
  ByteWriter& pad_to(std::size_t multiple) {
    while (bytes_.size() % multiple != 0) bytes_.push_back(std::byte{0});
    return *this;
  }
  ByteWriter& append(const Bytes& more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

// Numbers of the GGUF format.
inline constexpr std::uint32_t kU8 = 0, kI8 = 1, kU16 = 2, kI16 = 3, kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7,
                               kString = 8, kArray = 9, kU64 = 10, kI64 = 11, kF64 = 12;
inline constexpr std::uint32_t kTensorF32 = 0, kTensorF16 = 1, kTensorQ4_0 = 2, kTensorQ8_0 = 8, kTensorQ6_K = 14;

class GgufBuilder {
 public:
  std::uint32_t magic = 0x46554747;
  std::uint32_t version = 3;
  std::size_t alignment = 32;   // where the data section begins; the key is set by the test
  std::int64_t extra_keys = 0;  // added to the counts in the header, to make them lie
  std::int64_t extra_tensors = 0;

  template <class T>
  GgufBuilder& scalar(std::string_view key, std::uint32_t type, T value) {
    ++keys_;
    entries_.string(key).number(type).number(value);
    return *this;
  }
  GgufBuilder& string(std::string_view key, std::string_view value) {
    ++keys_;
    entries_.string(key).number(kString).string(value);
    return *this;
  }
  template <class T>
  GgufBuilder& array(std::string_view key, std::uint32_t type, const std::vector<T>& values) {
    ++keys_;
    entries_.string(key).number(kArray).number(type).number<std::uint64_t>(values.size());
    for (const T value : values) entries_.number(value);
    return *this;
  }
  GgufBuilder& strings(std::string_view key, const std::vector<std::string>& values) {
    ++keys_;
    entries_.string(key).number(kArray).number(kString).number<std::uint64_t>(values.size());
    for (const auto& value : values) entries_.string(value);
    return *this;
  }
  // A key with a value written by hand.
  GgufBuilder& raw(std::string_view key, std::uint32_t type, const Bytes& value) {
    ++keys_;
    entries_.string(key).number(type).append(value);
    return *this;
  }
  // `ne`: innermost first, as the format has it. The data follows that of the tensors before, aligned.
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& ne, std::uint32_t type,
                      const Bytes& data) {
    data_.pad_to(alignment);
    const std::uint64_t offset = data_.bytes().size();
    data_.append(data);
    return record(name, ne, type, offset);
  }
  // A record without data of its own.
  GgufBuilder& record(std::string_view name, const std::vector<std::uint64_t>& ne, std::uint32_t type,
                      std::uint64_t offset) {
    ++tensors_;
    records_.string(name).number<std::uint32_t>(static_cast<std::uint32_t>(ne.size()));
    for (const std::uint64_t extent : ne) records_.number(extent);
    records_.number(type).number(offset);
    return *this;
  }
  Bytes build() const {
    ByteWriter out;
    out.number(magic).number(version);
    out.number<std::uint64_t>(static_cast<std::uint64_t>(tensors_ + extra_tensors));
    out.number<std::uint64_t>(static_cast<std::uint64_t>(keys_ + extra_keys));
    out.append(entries_.bytes()).append(records_.bytes());
    if (tensors_ > 0) out.pad_to(alignment);
    return out.append(data_.bytes()).bytes();
  }

 private:
  std::int64_t keys_ = 0;
  std::int64_t tensors_ = 0;
  ByteWriter entries_, records_, data_;
};

// A safetensors file of a header as given and data of that many bytes: 0, 1, 2, ...
inline Bytes safetensors_file(std::string_view header, std::size_t data_bytes) {
  ByteWriter out;
  out.string(header);
  for (std::size_t i = 0; i < data_bytes; ++i) out.number(static_cast<std::uint8_t>(i));
  return out.bytes();
}

inline Bytes bytes_of(std::initializer_list<float> values) {
  ByteWriter out;
  for (const float value : values) out.number(value);
  return out.bytes();
}

// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "cairn-weights-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::span<const std::byte> bytes) const {
    std::ofstream out(path_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }
  std::filesystem::path write(const std::string& name, std::string_view text) const {
    return write(name, std::as_bytes(std::span(text.data(), text.size())));
  }

 private:
  std::filesystem::path path_;
};

// `call` must throw exactly Error, with every one of `words` in its message.
template <class Error, class Call>
void expect_error(Call&& call, const std::vector<std::string>& words) {
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const auto& word : words)
      EXPECT_NE(message.find(word), std::string::npos) << word << " is not in: " << message;
    return;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return;
  }
  ADD_FAILURE() << "no exception";
}

}  // namespace cairn::test
