// libFuzzer target: any bytes as a GGUF file. Seeds: corpus/gguf.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/base/error.hpp"
#include "core/weights/gguf.hpp"

namespace {

// Reads what a caller would: the ends of every tensor and every array.
void use(const cairn::GgufFile& file) {
  unsigned sum = 0;
  for (const auto& tensor : file.tensors()) {
    if (file.find(tensor.name) != &tensor || cairn::checked_nbytes(tensor.dtype, tensor.shape) != tensor.nbytes)
      std::abort();
    if (tensor.nbytes > 0) {
      sum += std::to_integer<unsigned>(tensor.data[0]) + std::to_integer<unsigned>(tensor.data[tensor.nbytes - 1]);
    }
  }
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) {
    try {
      if (const auto* strings = file.string_array(key)) {
        for (const auto text : *strings) sum += text.empty() ? 0U : static_cast<unsigned char>(text.back());
      }
      (void)file.u64(key);
      if (const auto floats = file.float_array(key); floats && !floats->empty()) sum += floats->back() > 0 ? 1 : 0;
      if (const auto numbers = file.int_array(key); numbers && !numbers->empty()) sum += numbers->back() > 0 ? 1 : 0;
      if (const auto raw = file.byte_array(key); raw && !raw->empty()) sum += std::to_integer<unsigned>(raw->back());
    } catch (const cairn::BadFile&) {
      continue;  // another kind of value
    }
  }
  volatile unsigned sink = sum;
  (void)sink;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    use(*cairn::GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz"));
  } catch (const cairn::BadFile&) {
  } catch (const cairn::NotSupported&) {
  }
  return 0;
}
