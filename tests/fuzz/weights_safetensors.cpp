// libFuzzer target: any bytes as a safetensors file, as an index of shards and as JSON beside weights.
// Seeds: corpus/safetensors.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "core/base/error.hpp"
#include "core/weights/json_value.hpp"
#include "core/weights/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    std::size_t total = 0;
    for (const auto& tensor : cairn::parse_safetensors(bytes, "fuzz").tensors) {
      if (tensor.nbytes > 0 && &tensor.data[tensor.nbytes - 1] > &bytes.back()) std::abort();
      total += tensor.nbytes;
    }
    if (total > size) std::abort();
  } catch (const cairn::BadFile&) {
  }
  try {
    for (const auto& shard : cairn::parse_safetensors_index(text, "fuzz").shards) {
      if (shard.file.find('/') != std::string::npos || shard.file == "..") std::abort();
    }
  } catch (const cairn::BadFile&) {
  }
  try {
    (void)cairn::parse_json_value(text, "fuzz");
  } catch (const cairn::BadFile&) {
  }
  return 0;
}
