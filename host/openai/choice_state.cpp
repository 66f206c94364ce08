#include "host/openai/choice_state.hpp"

#include <algorithm>

namespace cairn {
namespace {

// Enough prompt tokens before the output for a character that the prompt left open and for decoders that treat the
// beginning of a text specially.
constexpr std::size_t kPrimeTokens = 8;

}  // namespace

ChoiceState::ChoiceState(const GenerationRequest& request, std::span<const std::int32_t> prompt,
                         std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)),
      decoder_(tokenizer_, request.skip_special),
      stops_(request.stop, request.include_stop_str),
      keep_logprobs_(request.sampling.logprobs >= 0),
      keep_ids_(request.return_token_ids),
      include_stop_(request.include_stop_str),
      discard_(request.discard_output) {
  if (request.echo) return;
  // The output is the rest of the text that the prompt began, not a text of its own: a leading space stays.
  std::string unused;
  for (const auto id : prompt.subspan(prompt.size() - std::min(prompt.size(), kPrimeTokens))) decoder_.push(id, unused);
}

void ChoiceState::echo_prompt(std::span<const std::int32_t> prompt, std::span<const TokenRecord> records,
                              ChoiceDelta& delta) {
  for (const auto id : prompt) decoder_.push(id, delta.text);  // stop strings are looked for in the output only
  if (!keep_logprobs_) return;
  delta.echoed = prompt.size();
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    delta.tokens.push_back(i < records.size() ? records[i] : TokenRecord{.token = prompt[i]});
  }
}

void ChoiceState::push_one(const TokenRecord& record, ChoiceDelta& delta) {
  piece_.clear();
  decoder_.push(record.token, piece_);
  if (keep_logprobs_ || keep_ids_) delta.tokens.push_back(record);
  ++completion_tokens_;
  if (stops_.push(piece_, delta.text)) finish_reason_ = "stop";
}

bool ChoiceState::push(std::span<const TokenRecord> records, ChoiceDelta& delta) {
  if (discard_) return false;
  for (const auto& record : records) {
    if (finished()) break;
    push_one(record, delta);
  }
  return finished();
}

void ChoiceState::finish(const RequestResult& result, ChoiceDelta& delta) {
  cached_tokens_ = result.usage.cached_tokens;
  if (finished()) return;  // a stop string came first
  if (discard_) {
    piece_.clear();
    decoder_.flush(piece_);
    delta.text += piece_;  // only an echoed prompt can have left something
    finish_reason_ = "length";
    return;
  }
  if (result.stop_token >= 0) {
    piece_.clear();
    if (include_stop_) decoder_.push(result.stop_token, piece_);
    if (keep_ids_) delta.stop_token = result.stop_token;
    if (stops_.push(piece_, delta.text)) finish_reason_ = "stop";
  }
  if (!finished()) {
    piece_.clear();
    decoder_.flush(piece_);
    if (stops_.push(piece_, delta.text)) {
      finish_reason_ = "stop";
    } else {
      stops_.flush(delta.text);
    }
  }
  completion_tokens_ = std::max(completion_tokens_, result.usage.completion_tokens);
  if (!finished()) finish_reason_ = result.reason == FinishReason::kLength ? "length" : "stop";
}

}  // namespace cairn
