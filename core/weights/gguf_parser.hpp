// The GGUF format itself: bytes to key/value entries and tensor records. Used by GgufFile only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "core/base/value.hpp"
#include "core/weights/gguf_types.hpp"
#include "core/weights/weights_file.hpp"

namespace cairn {

// One array, in the form its accessor gives out. Only the members that fit `element` are set.
struct GgufArray {
  GgufValueType element = GgufValueType::kU8;
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;        // U8, I8, bool: in the file
  std::vector<std::string_view> strings;   // string
  std::span<const float> floats;           // F32, F64: in the file where that is possible, else in float_copy
  std::span<const std::int32_t> integers;  // 16 to 64 bits: in the file where that is possible, else in integer_copy
  std::vector<float> float_copy;
  std::vector<std::int32_t> integer_copy;
  bool misfit = false;  // an integer does not fit in 32 signed bits; `integers` is empty
};

struct GgufEntry {
  std::string_view key;
  std::size_t offset = 0;  // of the key, for messages
  GgufValueType type = GgufValueType::kU8;
  std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray> value;
};

struct GgufContents {
  std::vector<GgufEntry> entries;
  std::unordered_map<std::string_view, std::size_t> index;  // key -> entry
  Value metadata;                                           // see WeightsFile::metadata
  std::vector<TensorInfo> tensors;

  const GgufEntry* find(std::string_view key) const {
    const auto it = index.find(key);
    return it == index.end() ? nullptr : &entries[it->second];
  }
};

// Throws BadFile, or NotSupported for big-endian files and version 1. The result points into `bytes`. Memory used
// beyond the file is at most a few times its size, whatever the file claims.
GgufContents parse_gguf(std::span<const std::byte> bytes, const std::string& file);

}  // namespace cairn
