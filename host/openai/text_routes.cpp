// /tokenize, /detokenize and /apply-template. The bodies follow vLLM ("prompt", "messages", "tokens") and llama.cpp
// ("content", "add_special"); the answers carry the fields of both.
#include <boost/json/array.hpp>

#include "host/openai/api_error.hpp"
#include "host/openai/field_reader.hpp"
#include "host/openai/json_writer.hpp"
#include "host/openai/service.hpp"

namespace cairn {

std::string answer_tokenize(const boost::json::object& body, const ServedModel& model) {
  const FieldReader fields(body);
  const Tokenizer& tokenizer = require_tokenizer(model);
  EncodeOptions options;
  options.parse_special = fields.boolean("parse_special").value_or(true);
  const auto add_special = fields.boolean("add_special_tokens");
  std::string text;
  if (fields.has("messages")) {
    text = render_chat_prompt(body, model);
    options.add_special = add_special.value_or(false);  // templates print the start token themselves
  } else if (const auto prompt = fields.string("prompt")) {
    text = *prompt;
    options.add_special = add_special.value_or(true);
  } else if (const auto content = fields.string("content")) {
    text = *content;
    options.add_special = fields.boolean("add_special").value_or(add_special.value_or(false));
  } else {
    throw missing_parameter("prompt");
  }
  const auto ids = tokenizer.encode(text, options);
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("count", static_cast<std::int64_t>(ids.size()));
  json.field("max_model_len", model.runtime->describe().max_seq_len).key("tokens").begin_array();
  for (const auto id : ids) json.integer(id);
  json.end_array();
  if (fields.boolean("return_token_strs").value_or(false)) {
    json.key("token_strs").begin_array();
    for (const auto id : ids) json.string(tokenizer.token_text(id));
    json.end_array();
  }
  json.end_object();
  return out;
}

std::string answer_detokenize(const boost::json::object& body, const ServedModel& model) {
  const FieldReader fields(body);
  const Tokenizer& tokenizer = require_tokenizer(model);
  const auto* tokens = fields.array("tokens");
  if (tokens == nullptr) throw missing_parameter("tokens");
  std::vector<std::int32_t> ids;
  ids.reserve(tokens->size());
  const std::int64_t vocab_size = tokenizer.vocab_size();
  for (const auto& item : *tokens) {
    const auto id = as_integer(item);
    if (!id) throw invalid_type("tokens", "an array of integers");
    if (*id < 0 || *id >= vocab_size) {
      throw invalid_value("tokens", "The token id " + std::to_string(*id) + " is not in the vocabulary (0 to " +
                                        std::to_string(vocab_size - 1) + ").");
    }
    ids.push_back(static_cast<std::int32_t>(*id));
  }
  const std::string text = tokenizer.decode(ids, fields.boolean("skip_special_tokens").value_or(false));
  std::string out;
  JsonWriter(out).begin_object().field("prompt", text).field("content", text).end_object();
  return out;
}

std::string answer_apply_template(const boost::json::object& body, const ServedModel& model) {
  std::string out;
  JsonWriter(out).begin_object().field("prompt", render_chat_prompt(body, model)).end_object();
  return out;
}

}  // namespace cairn
