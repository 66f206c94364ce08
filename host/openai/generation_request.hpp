// A validated request of /v1/chat/completions or /v1/completions, ready to be handed to a runtime. Made by
// chat_request.cpp and completion_request.cpp, run by Generation.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/model_runtime.hpp"
#include "host/openai/served_model.hpp"

namespace cairn {

inline constexpr std::int64_t kMaxChoices = 2048;     // prompts times n
inline constexpr std::size_t kMaxStops = 16;          // OpenAI allows 4
inline constexpr std::size_t kMaxStopBytes = 1024;    // each
inline constexpr std::size_t kMaxLogitBias = 4096;    // entries
inline constexpr std::size_t kMaxStopTokenIds = 256;  // entries

struct GenerationRequest {
  bool chat = true;
  std::vector<std::vector<std::int32_t>> prompts;
  std::int32_t n = 1;
  SamplingParams sampling;
  std::int32_t max_tokens = 0;  // 0: as many as fit
  bool discard_output = false;  // max_tokens 0 was asked for: one token is made and not shown
  std::int32_t min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<std::int32_t> stop_token_ids;
  bool ignore_eos = false;
  bool include_stop_str = false;
  bool skip_special = true;
  bool echo = false;
  bool return_token_ids = false;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  Value model_kwargs;
};

// The name in `model`; throws when it is missing or no string.
std::string_view requested_model(const boost::json::object& body);

// Parse, validate and tokenise. Throw ApiError or InvalidArgument. Any thread.
GenerationRequest parse_chat_request(const boost::json::object& body, const ServedModel& model);
GenerationRequest parse_completion_request(const boost::json::object& body, const ServedModel& model);

// The prompt text of a chat body (messages, tools, template arguments): what /apply-template shows.
std::string render_chat_prompt(const boost::json::object& body, const ServedModel& model);

// Shared by the two parsers: everything but the prompt, the token limit and log-probabilities.
void parse_common_fields(const boost::json::object& body, const ServedModel& model, GenerationRequest& request);
// Throws context_length_exceeded with the numbers when a prompt and the tokens asked for do not fit the model.
void check_context(const GenerationRequest& request, const ServedModel& model);
const Tokenizer& require_tokenizer(const ServedModel& model);

}  // namespace cairn
