// IncrementalDecoder: the tokenizer's decode stream, fed with ids.
#include "core/text/incremental_decoder.hpp"

#include <utility>

#include "core/text/tokenizer.hpp"
#include "core/text/tokenizer_decoder.hpp"
#include "core/text/tokenizer_parts.hpp"

namespace cairn {

IncrementalDecoder::IncrementalDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)),
      stream_(std::make_unique<DecodeStream>(tokenizer_->parts().decoder)),
      skip_special_(skip_special) {}

IncrementalDecoder::~IncrementalDecoder() = default;
IncrementalDecoder::IncrementalDecoder(IncrementalDecoder&&) noexcept = default;
IncrementalDecoder& IncrementalDecoder::operator=(IncrementalDecoder&&) noexcept = default;

void IncrementalDecoder::push(std::int32_t id, std::string& out) {
  if (const auto token = tokenizer_->parts().output_spelling(id, skip_special_)) stream_->push(*token, out);
}

void IncrementalDecoder::flush(std::string& out) {
  stream_->flush(out);
}

}  // namespace cairn
