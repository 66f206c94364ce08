// The text of one choice as it grows: detokenising, stop strings, the one flush rule. The same code feeds streams and
// whole answers, so both carry the same text. Used by Generation (one object per choice, on its IO thread) and `run`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/incremental_decoder.hpp"
#include "core/text/stop_matcher.hpp"
#include "host/openai/generation_request.hpp"

namespace cairn {

// What a choice gained: since the last chunk for a stream, since the start for a whole answer.
struct ChoiceDelta {
  std::string text;
  std::vector<TokenRecord> tokens;  // kept only when the client asked for log-probabilities or ids
  std::size_t echoed = 0;           // how many of `tokens`, at the front, are the echoed prompt
  std::int32_t stop_token = -1;     // the token that ended the output, without a log-probability; only with ids
  bool empty() const { return text.empty() && tokens.empty() && stop_token < 0; }
  void clear() {
    text.clear();
    tokens.clear();
    echoed = 0;
    stop_token = -1;
  }
};

class ChoiceState {
 public:
  ChoiceState(const GenerationRequest& request, std::span<const std::int32_t> prompt,
              std::shared_ptr<const Tokenizer> tokenizer);

  // The echoed prompt, with the records of its tokens when they were scored. Before any push(), with echo only.
  void echo_prompt(std::span<const std::int32_t> prompt, std::span<const TokenRecord> records, ChoiceDelta& delta);
  // New tokens. True when a stop string was found: the choice is then finished and the runtime need not go on.
  bool push(std::span<const TokenRecord> records, ChoiceDelta& delta);
  // The runtime's end. Flushes what was held back.
  void finish(const RequestResult& result, ChoiceDelta& delta);

  bool finished() const { return finish_reason_ != nullptr; }
  // "stop" or "length"; null before the end.
  const char* finish_reason() const { return finish_reason_; }
  std::int32_t completion_tokens() const { return completion_tokens_; }
  std::int32_t cached_tokens() const { return cached_tokens_; }

 private:
  void push_one(const TokenRecord& record, ChoiceDelta& delta);

  std::shared_ptr<const Tokenizer> tokenizer_;
  IncrementalDecoder decoder_;
  StopMatcher stops_;
  std::string piece_;  // reused
  bool keep_logprobs_;
  bool keep_ids_;
  bool include_stop_;
  bool discard_;
  const char* finish_reason_ = nullptr;
  std::int32_t completion_tokens_ = 0;
  std::int32_t cached_tokens_ = 0;
};

}  // namespace cairn
