// The JSON of one generation request's answer, whole or as stream events, in the shapes of both endpoints.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/openai/choice_state.hpp"
#include "host/openai/json_writer.hpp"

namespace cairn {

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t cached_tokens = 0;
};

// What the writer must know of a choice beside its text.
struct ChoiceView {
  std::int64_t index = 0;
  std::span<const std::int32_t> prompt;
  std::int64_t* text_offset = nullptr;  // characters before the next token; moved on as tokens are written
  const char* finish_reason = nullptr;
  bool first = false;  // nothing of this choice was sent before
};

class AnswerWriter {
 public:
  AnswerWriter(const GenerationRequest& request, std::shared_ptr<const Tokenizer> tokenizer, std::string_view id,
               std::string_view model, std::int64_t created);

  // Stream events, appended to `out`. The first chat event of a choice carries the role.
  void role_event(std::string& out, const ChoiceView& choice, const Usage* usage) const;
  void delta_event(std::string& out, const ChoiceView& choice, const ChoiceDelta& delta, const Usage* usage) const;
  void usage_event(std::string& out, const Usage& usage) const;
  static void done_event(std::string& out) { out += "data: [DONE]\n\n"; }
  static void error_event(std::string& out, std::string_view error_json);

  // The whole answer: begin, each choice in order, end.
  void begin_whole(std::string& out) const;
  void whole_choice(std::string& out, const ChoiceView& choice, const ChoiceDelta& all) const;
  void end_whole(std::string& out, std::span<const std::int32_t> first_prompt, const Usage& usage) const;

 private:
  void event_tail(std::string& out, const Usage* usage) const;
  void chat_logprobs(JsonWriter& json, const ChoiceDelta& delta) const;
  void text_logprobs(JsonWriter& json, const ChoiceView& choice, const ChoiceDelta& delta) const;
  void logprobs_and_reason(JsonWriter& json, const ChoiceView& choice, const ChoiceDelta& delta) const;
  void token_ids(JsonWriter& json, const ChoiceDelta& delta) const;

  const GenerationRequest& request_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string head_;  // {"id":...,"choices":[
};

}  // namespace cairn
