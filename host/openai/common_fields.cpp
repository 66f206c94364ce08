// The parameters that chat and text completions share: sampling, stops, streaming.
#include <algorithm>
#include <boost/json/array.hpp>
#include <charconv>
#include <limits>

#include "core/weights/json_value.hpp"
#include "host/openai/api_error.hpp"
#include "host/openai/field_reader.hpp"
#include "host/openai/generation_request.hpp"

namespace cairn {
namespace {

namespace json = boost::json;

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

void parse_sampling(const FieldReader& fields, SamplingParams& sampling) {
  sampling.temperature = static_cast<float>(fields.number("temperature", 0, 2).value_or(1));
  sampling.top_p = static_cast<float>(fields.number_above("top_p", 0, 1).value_or(1));
  sampling.min_p = static_cast<float>(fields.number("min_p", 0, 1).value_or(0));
  const auto top_k = fields.integer("top_k", -1, kInt32Max).value_or(0);  // -1 and 0 both mean off, as in vLLM
  sampling.top_k = static_cast<std::int32_t>(top_k < 0 ? 0 : top_k);
  sampling.repetition_penalty = static_cast<float>(fields.number_above("repetition_penalty", 0, 10).value_or(1));
  sampling.presence_penalty = static_cast<float>(fields.number("presence_penalty", -2, 2).value_or(0));
  sampling.frequency_penalty = static_cast<float>(fields.number("frequency_penalty", -2, 2).value_or(0));
  if (const auto seed =
          fields.integer("seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max())) {
    sampling.seed = static_cast<std::uint64_t>(*seed);
    sampling.has_seed = true;
  }
  // A temperature or probability that rounds to nothing in float must not change meaning.
  if (sampling.top_p <= 0) sampling.top_p = std::numeric_limits<float>::min();
}

void parse_logit_bias(const FieldReader& fields, std::int64_t vocab_size, SamplingParams& sampling) {
  const auto* bias = fields.object("logit_bias");
  if (bias == nullptr) return;
  if (bias->size() > kMaxLogitBias) {
    throw invalid_value("logit_bias", "'logit_bias' has " + std::to_string(bias->size()) + " entries; at most " +
                                          std::to_string(kMaxLogitBias) + " are allowed.");
  }
  const FieldReader entries(*bias, "logit_bias.");
  for (const auto& entry : *bias) {
    const std::string_view key = entry.key();
    std::int64_t id = -1;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || id < 0 || id >= vocab_size) {
      throw invalid_value("logit_bias", "The keys of 'logit_bias' are token ids from 0 to " +
                                            std::to_string(vocab_size - 1) + "; '" + std::string(key.substr(0, 32)) +
                                            "' is not one.");
    }
    const auto value = entries.number(key, -100, 100);
    if (!value) throw invalid_type("logit_bias." + std::string(key), "a number");
    sampling.logit_bias.emplace_back(static_cast<std::int32_t>(id), static_cast<float>(*value));
  }
}

void add_stop(const json::value& value, std::vector<std::string>& stops) {
  if (!value.is_string()) throw invalid_type("stop", "a string or an array of strings");
  const std::string_view text = value.get_string();
  if (text.empty()) throw invalid_value("stop", "'stop' must not hold an empty string.");
  if (text.size() > kMaxStopBytes) {
    throw invalid_value("stop", "A stop string has " + std::to_string(text.size()) + " bytes; at most " +
                                    std::to_string(kMaxStopBytes) + " are allowed.");
  }
  stops.emplace_back(text);
}

void parse_stops(const FieldReader& fields, std::int64_t vocab_size, GenerationRequest& request) {
  if (const auto* stop = fields.get("stop")) {
    if (!stop->is_array()) {
      add_stop(*stop, request.stop);
    } else {
      if (stop->get_array().size() > kMaxStops) {
        throw invalid_value("stop", "'stop' has " + std::to_string(stop->get_array().size()) + " strings; at most " +
                                        std::to_string(kMaxStops) + " are allowed.");
      }
      for (const auto& item : stop->get_array()) add_stop(item, request.stop);
    }
  }
  if (const auto* ids = fields.array("stop_token_ids")) {
    if (ids->size() > kMaxStopTokenIds) {
      throw invalid_value("stop_token_ids", "'stop_token_ids' has " + std::to_string(ids->size()) +
                                                " entries; at most " + std::to_string(kMaxStopTokenIds) +
                                                " are allowed.");
    }
    for (const auto& item : *ids) {
      const auto id = as_integer(item);
      if (!id) throw invalid_type("stop_token_ids", "an array of integers");
      if (*id < 0 || *id >= vocab_size) {
        throw invalid_value("stop_token_ids", "The token id " + std::to_string(*id) +
                                                  " in 'stop_token_ids' is not in "
                                                  "the vocabulary (0 to " +
                                                  std::to_string(vocab_size - 1) + ").");
      }
      request.stop_token_ids.push_back(static_cast<std::int32_t>(*id));
    }
  }
}

void parse_streaming(const FieldReader& fields, GenerationRequest& request) {
  request.stream = fields.boolean("stream").value_or(false);
  const auto* options = fields.object("stream_options");
  if (options == nullptr) return;
  if (!request.stream) throw invalid_value("stream_options", "'stream_options' is only allowed when 'stream' is true.");
  const FieldReader inner(*options, "stream_options.");
  request.include_usage = inner.boolean("include_usage").value_or(false);
  request.continuous_usage = inner.boolean("continuous_usage_stats").value_or(false);
  inner.boolean("include_obfuscation");
  static constexpr std::string_view kKnown[] = {"include_usage", "continuous_usage_stats", "include_obfuscation"};
  inner.check_unknown(kKnown);
}

// Parameters that promise something about the output which this server cannot keep are refused, not ignored.
void refuse_unsupported(const FieldReader& fields) {
  for (const std::string_view name :
       {"guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "json_schema",
        "grammar", "functions", "function_call", "audio", "web_search_options", "prediction", "prompt_logprobs",
        "truncate_prompt_tokens", "chat_template", "logits_processors", "bad_words", "allowed_token_ids",
        "prompt_embeds"}) {
    if (fields.has(name)) throw unsupported(std::string(name), "'" + std::string(name) + "' is not supported.");
  }
  if (fields.boolean("use_beam_search").value_or(false)) {
    throw unsupported("use_beam_search", "Beam search is not supported; leave 'use_beam_search' out.");
  }
  if (const auto* format = fields.object("response_format")) {
    const auto type = FieldReader(*format, "response_format.").string("type");
    if (!type) throw missing_parameter("response_format.type");
    if (*type != "text") {
      throw unsupported("response_format", "Only the response format 'text' is supported; structured output is not.");
    }
  }
  if (const auto* modalities = fields.array("modalities")) {
    for (const auto& item : *modalities) {
      if (!item.is_string()) throw invalid_type("modalities", "an array of strings");
      if (item.get_string() != "text") throw unsupported("modalities", "Only the modality 'text' is supported.");
    }
  }
}

void check_ignored_types(const FieldReader& fields) {
  for (const std::string_view name : {"user", "service_tier", "safety_identifier", "prompt_cache_key"})
    fields.string(name);
  for (const std::string_view name : {"store", "parallel_tool_calls"}) fields.boolean(name);
  fields.object("metadata");
}

}  // namespace

std::string_view requested_model(const json::object& body) {
  const auto model = FieldReader(body).string("model");
  if (!model || model->empty()) throw missing_parameter("model");
  return *model;
}

const Tokenizer& require_tokenizer(const ServedModel& model) {
  if (model.tokenizer == nullptr) {
    throw ApiError(400, "unsupported", "The model '" + model.runtime->describe().id + "' takes no text.", "model");
  }
  return *model.tokenizer;
}

void parse_common_fields(const json::object& body, const ServedModel& model, GenerationRequest& request) {
  const FieldReader fields(body);
  const std::int64_t vocab_size = model.runtime->describe().vocab_size;
  parse_sampling(fields, request.sampling);
  parse_logit_bias(fields, vocab_size, request.sampling);
  parse_stops(fields, vocab_size, request);
  parse_streaming(fields, request);
  refuse_unsupported(fields);
  check_ignored_types(fields);
  request.n = static_cast<std::int32_t>(fields.integer("n", 1, 128).value_or(1));
  request.min_tokens = static_cast<std::int32_t>(fields.integer("min_tokens", 0, kInt32Max).value_or(0));
  request.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  request.include_stop_str = fields.boolean("include_stop_str_in_output").value_or(false);
  request.skip_special = fields.boolean("skip_special_tokens").value_or(true);
  request.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  if (const auto* kwargs = fields.object("model_kwargs")) request.model_kwargs = to_value(*kwargs);
}

void check_context(const GenerationRequest& request, const ServedModel& model) {
  const std::int64_t limit = model.runtime->describe().max_seq_len;
  const std::int64_t choices = static_cast<std::int64_t>(request.prompts.size()) * request.n;
  if (choices > kMaxChoices) {
    throw invalid_value("n", "The request asks for " + std::to_string(choices) +
                                 " choices (prompts times 'n'); at most " + std::to_string(kMaxChoices) +
                                 " are allowed.");
  }
  if (request.max_tokens > 0 && request.min_tokens > request.max_tokens) {
    throw invalid_value("min_tokens", "'min_tokens' is " + std::to_string(request.min_tokens) +
                                          " and must not be over the token limit of " +
                                          std::to_string(request.max_tokens) + ".");
  }
  const char* param = request.chat ? "messages" : "prompt";
  for (const auto& prompt : request.prompts) {
    if (prompt.empty()) throw invalid_value(param, "The prompt is empty; it must have at least one token.");
    const auto length = static_cast<std::int64_t>(prompt.size());
    const std::int64_t wanted = std::max<std::int64_t>(request.max_tokens, 1);
    if (limit > 0 && length + wanted > limit) {
      throw ApiError(400, "context_length_exceeded",
                     "This model's maximum context length is " + std::to_string(limit) +
                         " tokens, and the request has " + std::to_string(length) +
                         " tokens in the prompt and asks for " + std::to_string(wanted) +
                         " tokens of output. Shorten the prompt or the output.",
                     param);
    }
  }
}

}  // namespace cairn
