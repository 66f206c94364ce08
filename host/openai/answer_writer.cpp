#include "host/openai/answer_writer.hpp"

#include <algorithm>
#include <cmath>

#include "host/config/utf8.hpp"
#include "host/openai/version.hpp"

namespace cairn {
namespace {

void write_usage(JsonWriter& json, const Usage& usage) {
  json.begin_object();
  json.field("prompt_tokens", usage.prompt_tokens);
  json.field("completion_tokens", usage.completion_tokens);
  json.field("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  json.key("prompt_tokens_details").begin_object().field("cached_tokens", usage.cached_tokens).end_object();
  json.end_object();
}

void write_ids(JsonWriter& json, std::string_view name, std::span<const std::int32_t> ids) {
  json.key(name).begin_array();
  for (const auto id : ids) json.integer(id);
  json.end_array();
}

// Clients read a number here; a probability of zero is OpenAI's -9999.
float finite_logprob(float logprob) {
  return std::isfinite(logprob) ? std::max(logprob, -9999.0F) : -9999.0F;
}

void write_bytes(JsonWriter& json, std::string_view bytes) {
  json.begin_array();
  for (const char c : bytes) json.integer(static_cast<unsigned char>(c));
  json.end_array();
}

// The old shape has no list of bytes: a token that is no text of its own is spelt out.
std::string text_of(std::string_view bytes) {
  if (is_valid_utf8(bytes)) return std::string(bytes);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "\\x";
    text += kHex[byte >> 4U];
    text += kHex[byte & 15U];
  }
  return text;
}

std::int64_t count_characters(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

}  // namespace

AnswerWriter::AnswerWriter(const GenerationRequest& request, std::shared_ptr<const Tokenizer> tokenizer,
                           std::string_view id, std::string_view model, std::int64_t created)
    : request_(request), tokenizer_(std::move(tokenizer)) {
  const char* object =
      !request.chat ? "text_completion" : (request.stream ? "chat.completion.chunk" : "chat.completion");
  JsonWriter json(head_);
  json.begin_object().field("id", id).field("object", object).field("created", created).field("model", model);
  json.field("system_fingerprint", kSystemFingerprint).key("choices").begin_array();
}

void AnswerWriter::token_ids(JsonWriter& json, const ChoiceDelta& delta) const {
  if (!request_.return_token_ids) return;
  json.key("token_ids").begin_array();
  for (std::size_t i = delta.echoed; i < delta.tokens.size(); ++i) json.integer(delta.tokens[i].token);
  if (delta.stop_token >= 0) json.integer(delta.stop_token);
  json.end_array();
}

void AnswerWriter::chat_logprobs(JsonWriter& json, const ChoiceDelta& delta) const {
  json.begin_object().key("content").begin_array();
  for (const auto& record : delta.tokens) {
    const std::string_view bytes = tokenizer_->token_bytes(record.token);
    json.begin_object().field("token", bytes).key("logprob").number(finite_logprob(record.logprob)).key("bytes");
    write_bytes(json, bytes);
    json.key("top_logprobs").begin_array();
    for (int i = 0; i < std::min<int>(record.top_count, request_.sampling.logprobs); ++i) {
      const auto& top = record.top[static_cast<std::size_t>(i)];
      const std::string_view top_bytes = tokenizer_->token_bytes(top.token);
      json.begin_object().field("token", top_bytes).key("logprob").number(finite_logprob(top.logprob)).key("bytes");
      write_bytes(json, top_bytes);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().key("refusal").null().end_object();
}

void AnswerWriter::text_logprobs(JsonWriter& json, const ChoiceView& choice, const ChoiceDelta& delta) const {
  json.begin_object().key("tokens").begin_array();
  for (const auto& record : delta.tokens) json.string(text_of(tokenizer_->token_bytes(record.token)));
  json.end_array().key("token_logprobs").begin_array();
  for (const auto& record : delta.tokens) {
    record.has_logprob ? json.number(finite_logprob(record.logprob)) : json.null();
  }
  json.end_array().key("top_logprobs").begin_array();
  for (const auto& record : delta.tokens) {
    if (!record.has_logprob) {
      json.null();
      continue;
    }
    json.begin_object();
    bool has_chosen = false;
    for (int i = 0; i < std::min<int>(record.top_count, request_.sampling.logprobs); ++i) {
      const auto& top = record.top[static_cast<std::size_t>(i)];
      json.key(text_of(tokenizer_->token_bytes(top.token))).number(finite_logprob(top.logprob));
      has_chosen = has_chosen || top.token == record.token;
    }
    if (!has_chosen) {
      json.key(text_of(tokenizer_->token_bytes(record.token))).number(finite_logprob(record.logprob));
    }
    json.end_object();
  }
  json.end_array().key("text_offset").begin_array();
  for (const auto& record : delta.tokens) {
    json.integer(*choice.text_offset);
    if (request_.skip_special && tokenizer_->is_special(record.token)) continue;
    *choice.text_offset += count_characters(tokenizer_->token_bytes(record.token));
  }
  json.end_array().end_object();
}

void AnswerWriter::logprobs_and_reason(JsonWriter& json, const ChoiceView& choice, const ChoiceDelta& delta) const {
  json.key("logprobs");
  if (request_.sampling.logprobs < 0 || (delta.tokens.empty() && request_.stream)) {
    json.null();
  } else if (request_.chat) {
    chat_logprobs(json, delta);
  } else {
    text_logprobs(json, choice, delta);
  }
  json.key("finish_reason");
  choice.finish_reason == nullptr ? json.null() : json.string(choice.finish_reason);
}

void AnswerWriter::event_tail(std::string& out, const Usage* usage) const {
  out += ']';
  if (usage != nullptr) {
    out += ",\"usage\":";
    JsonWriter json(out);
    write_usage(json, *usage);
  } else if (request_.include_usage) {
    out += ",\"usage\":null";
  }
  out += "}\n\n";
}

void AnswerWriter::role_event(std::string& out, const ChoiceView& choice, const Usage* usage) const {
  out.append("data: ").append(head_);
  JsonWriter json(out);
  json.begin_object().field("index", choice.index).key("delta").begin_object();
  json.field("role", "assistant").field("content", "").end_object();
  json.key("logprobs").null().key("finish_reason").null();
  if (request_.return_token_ids) write_ids(json, "prompt_token_ids", choice.prompt);
  json.end_object();
  event_tail(out, usage);
}

void AnswerWriter::delta_event(std::string& out, const ChoiceView& choice, const ChoiceDelta& delta,
                               const Usage* usage) const {
  out.append("data: ").append(head_);
  JsonWriter json(out);
  json.begin_object().field("index", choice.index);
  if (request_.chat) {
    json.key("delta").begin_object();
    if (!delta.text.empty() || choice.finish_reason == nullptr) json.field("content", delta.text);
    json.end_object();
  } else {
    json.field("text", delta.text);
  }
  logprobs_and_reason(json, choice, delta);
  if (request_.return_token_ids && choice.first && !request_.chat) write_ids(json, "prompt_token_ids", choice.prompt);
  token_ids(json, delta);
  json.end_object();
  event_tail(out, usage);
}

void AnswerWriter::usage_event(std::string& out, const Usage& usage) const {
  out.append("data: ").append(head_);
  event_tail(out, &usage);
}

void AnswerWriter::error_event(std::string& out, std::string_view error_json) {
  out.append("data: ").append(error_json).append("\n\n");
}

void AnswerWriter::begin_whole(std::string& out) const {
  out += head_;
}

void AnswerWriter::whole_choice(std::string& out, const ChoiceView& choice, const ChoiceDelta& all) const {
  if (out.back() != '[') out += ',';
  JsonWriter json(out);
  json.begin_object().field("index", choice.index);
  if (request_.chat) {
    json.key("message").begin_object();
    json.field("role", "assistant").field("content", all.text).key("refusal").null().end_object();
  } else {
    json.field("text", all.text);
  }
  logprobs_and_reason(json, choice, all);
  if (request_.return_token_ids) write_ids(json, "prompt_token_ids", choice.prompt);
  token_ids(json, all);
  json.end_object();
}

void AnswerWriter::end_whole(std::string& out, std::span<const std::int32_t> first_prompt, const Usage& usage) const {
  out += "],\"usage\":";
  JsonWriter json(out);
  write_usage(json, usage);
  if (request_.chat && request_.return_token_ids) write_ids(json, "prompt_token_ids", first_prompt);
  out += '}';
}

}  // namespace cairn
