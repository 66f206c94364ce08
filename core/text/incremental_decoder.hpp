// Detokenises one request's output token by token: whole UTF-8 characters only, and in total exactly the bytes that
// Tokenizer::decode gives for all the ids at once. One object per request, used by the thread that delivers output.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace cairn {

class DecodeStream;
class Tokenizer;

class IncrementalDecoder {
 public:
  // Keeps `tokenizer` alive. With skip_special the special tokens add nothing.
  explicit IncrementalDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special = true);
  ~IncrementalDecoder();
  IncrementalDecoder(IncrementalDecoder&&) noexcept;
  IncrementalDecoder& operator=(IncrementalDecoder&&) noexcept;

  // Appends the characters that `id` completes; a partial tail is kept. Allocates nothing but room in `out` once its
  // buffers have grown to the longest token.
  void push(std::int32_t id, std::string& out);

  // The end of the output: an incomplete character becomes U+FFFD (one for the whole tail; one per byte for
  // vocabularies with byte fall-back, as the reference does), and text held back by the decoder's end rules comes out.
  // The object then starts afresh.
  void flush(std::string& out);

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<DecodeStream> stream_;
  bool skip_special_;
};

}  // namespace cairn
