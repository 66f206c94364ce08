// GGUF files (versions 2 and 3, little endian): key/value metadata with typed access, tensors in the mapping.
// Used by WeightsFile::open, and directly by the tokenizers and chat templates, which live in the metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/weights/weights_file.hpp"

namespace cairn {

// Everything given out as a view lives as long as the file object. Strings are the file's bytes: UTF-8 by convention,
// unchecked. Every accessor gives "no value" for an absent key and throws BadFile when the key has another kind of
// value than asked for.
class GgufFile final : public WeightsFile {
 public:
  // Opens one file, or all parts of a split one given the first ("...-00001-of-0000N.gguf").
  static std::shared_ptr<GgufFile> open(const std::filesystem::path& path);
  // Parses a file that is already in memory, aligned to 8 bytes, which must outlive the result. `name` is used in
  // messages. A part of a split file is taken for itself.
  static std::shared_ptr<GgufFile> parse(std::span<const std::byte> bytes, const std::string& name);

  ~GgufFile() override;

  WeightsFormat format() const override { return WeightsFormat::kGguf; }
  std::string architecture() const override;

  bool has(std::string_view key) const;
  // The scalar or short array under `key` as in metadata(), or nullptr (absent, or a long array).
  const Value* find_value(std::string_view key) const;

  std::optional<std::string_view> str(std::string_view key) const;
  std::optional<std::int64_t> i64(std::string_view key) const;   // any integer type; BadFile when it does not fit
  std::optional<std::uint64_t> u64(std::string_view key) const;  // any integer type; BadFile when negative
  std::optional<float> f32(std::string_view key) const;          // F32, F64 or any integer type
  std::optional<bool> boolean(std::string_view key) const;

  // Arrays of any length. nullptr / no value when the key is absent.
  const std::vector<std::string_view>* string_array(std::string_view key) const;
  std::optional<std::span<const float>> float_array(std::string_view key) const;       // F32 or F64
  std::optional<std::span<const std::int32_t>> int_array(std::string_view key) const;  // integers of 16 to 64 bits;
                                                                                       // BadFile when one does not fit
  std::optional<std::span<const std::byte>> byte_array(std::string_view key) const;    // I8, U8 or bool

 private:
  struct Contents;
  GgufFile(const std::filesystem::path& path, std::unique_ptr<Contents> contents);

  std::unique_ptr<Contents> contents_;
};

}  // namespace cairn
