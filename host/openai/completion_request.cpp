// Text completion bodies: prompts as text or ids, echo, and log-probabilities of the old shape.
#include <boost/json/array.hpp>
#include <limits>

#include "host/openai/api_error.hpp"
#include "host/openai/field_reader.hpp"
#include "host/openai/generation_request.hpp"

namespace cairn {
namespace {

namespace json = boost::json;

constexpr std::int32_t kDefaultMaxTokens = 16;  // OpenAI's

constexpr std::string_view kKnown[] = {"model",
                                       "prompt",
                                       "suffix",
                                       "max_tokens",
                                       "temperature",
                                       "top_p",
                                       "top_k",
                                       "min_p",
                                       "repetition_penalty",
                                       "presence_penalty",
                                       "frequency_penalty",
                                       "seed",
                                       "n",
                                       "best_of",
                                       "stop",
                                       "stop_token_ids",
                                       "stream",
                                       "stream_options",
                                       "logprobs",
                                       "echo",
                                       "logit_bias",
                                       "ignore_eos",
                                       "min_tokens",
                                       "include_stop_str_in_output",
                                       "skip_special_tokens",
                                       "add_special_tokens",
                                       "return_token_ids",
                                       "response_format",
                                       "model_kwargs",
                                       "user",
                                       "metadata",
                                       "store",
                                       "service_tier",
                                       "guided_json",
                                       "guided_regex",
                                       "guided_choice",
                                       "guided_grammar",
                                       "structured_outputs",
                                       "json_schema",
                                       "grammar",
                                       "use_beam_search",
                                       "prompt_logprobs",
                                       "truncate_prompt_tokens",
                                       "spaces_between_special_tokens",
                                       "length_penalty",
                                       "priority",
                                       "request_id",
                                       "logits_processors",
                                       "bad_words",
                                       "allowed_token_ids",
                                       "prompt_embeds"};

std::vector<std::int32_t> parse_ids(const json::array& array, std::int64_t vocab_size) {
  std::vector<std::int32_t> ids;
  ids.reserve(array.size());
  for (const auto& item : array) {
    const auto id = as_integer(item);
    if (!id)
      throw invalid_type("prompt", "a string, an array of strings, an array of token ids or an array of such arrays");
    if (*id < 0 || *id >= vocab_size) {
      throw invalid_value("prompt", "The token id " + std::to_string(*id) +
                                        " in 'prompt' is not in the vocabulary (0 to " +
                                        std::to_string(vocab_size - 1) + ").");
    }
    ids.push_back(static_cast<std::int32_t>(*id));
  }
  return ids;
}

void parse_prompts(const FieldReader& fields, const ServedModel& model, GenerationRequest& request) {
  const auto* prompt = fields.get("prompt");
  if (prompt == nullptr) throw missing_parameter("prompt");
  const Tokenizer& tokenizer = require_tokenizer(model);
  const std::int64_t vocab_size = model.runtime->describe().vocab_size;
  const EncodeOptions encode{.add_special = fields.boolean("add_special_tokens").value_or(true), .parse_special = true};
  if (prompt->is_string()) {
    request.prompts.push_back(tokenizer.encode(std::string_view(prompt->get_string()), encode));
    return;
  }
  if (!prompt->is_array()) throw invalid_type("prompt", "a string or an array");
  const auto& list = prompt->get_array();
  if (list.empty()) throw invalid_value("prompt", "'prompt' must not be an empty array.");
  if (list[0].is_number()) {
    request.prompts.push_back(parse_ids(list, vocab_size));
    return;
  }
  if (list.size() > static_cast<std::size_t>(kMaxChoices)) {
    throw invalid_value("prompt", "'prompt' holds " + std::to_string(list.size()) + " prompts; at most " +
                                      std::to_string(kMaxChoices) + " are allowed.");
  }
  for (const auto& item : list) {
    if (item.is_string()) {
      request.prompts.push_back(tokenizer.encode(std::string_view(item.get_string()), encode));
    } else if (item.is_array()) {
      request.prompts.push_back(parse_ids(item.get_array(), vocab_size));
    } else {
      throw invalid_type("prompt", "a string, an array of strings, an array of token ids or an array of such arrays");
    }
  }
}

}  // namespace

GenerationRequest parse_completion_request(const json::object& body, const ServedModel& model) {
  const FieldReader fields(body);
  fields.check_unknown(kKnown);
  GenerationRequest request;
  request.chat = false;
  parse_common_fields(body, model, request);

  const auto limit = fields.integer("max_tokens", 0, std::numeric_limits<std::int32_t>::max());
  request.max_tokens = static_cast<std::int32_t>(limit.value_or(kDefaultMaxTokens));
  if (request.max_tokens == 0) {
    // The prompt is still run, for its log-probabilities; a runtime makes at least one token.
    request.max_tokens = 1;
    request.discard_output = true;
  }
  request.echo = fields.boolean("echo").value_or(false);
  if (const auto logprobs = fields.integer("logprobs", 0, kMaxTopLogprobs)) {
    request.sampling.logprobs = static_cast<std::int32_t>(*logprobs);
    if (request.echo) request.sampling.prompt_logprobs = request.sampling.logprobs;
  }
  // Evaluation harnesses score a prompt by echoing it with one more token, and drop the last entry of the arrays. An
  // end token would leave that entry out, so it counts as a token here.
  if (request.echo && request.sampling.logprobs >= 0 && request.max_tokens == 1) request.ignore_eos = true;
  if (const auto suffix = fields.string("suffix"); suffix && !suffix->empty()) {
    throw unsupported("suffix", "'suffix' (filling in the middle) is not supported.");
  }
  if (fields.integer("best_of", 1, 128).value_or(request.n) != request.n) {
    throw unsupported("best_of", "'best_of' must equal 'n'.");
  }
  parse_prompts(fields, model, request);
  check_context(request, model);
  return request;
}

}  // namespace cairn
