// Chat bodies: messages and tools are checked, the model's template makes the prompt.
#include <algorithm>
#include <boost/json/array.hpp>
#include <limits>

#include "core/base/error.hpp"
#include "host/openai/api_error.hpp"
#include "host/openai/field_reader.hpp"
#include "host/openai/generation_request.hpp"

namespace cairn {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxMessages = 65536;
constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool", "function"};

constexpr std::string_view kKnown[] = {"model",
                                       "messages",
                                       "tools",
                                       "tool_choice",
                                       "max_tokens",
                                       "max_completion_tokens",
                                       "temperature",
                                       "top_p",
                                       "top_k",
                                       "min_p",
                                       "repetition_penalty",
                                       "presence_penalty",
                                       "frequency_penalty",
                                       "seed",
                                       "n",
                                       "stop",
                                       "stop_token_ids",
                                       "stream",
                                       "stream_options",
                                       "logprobs",
                                       "top_logprobs",
                                       "logit_bias",
                                       "ignore_eos",
                                       "min_tokens",
                                       "include_stop_str_in_output",
                                       "skip_special_tokens",
                                       "add_special_tokens",
                                       "add_generation_prompt",
                                       "continue_final_message",
                                       "chat_template_kwargs",
                                       "reasoning_effort",
                                       "documents",
                                       "return_token_ids",
                                       "echo",
                                       "response_format",
                                       "modalities",
                                       "model_kwargs",
                                       "user",
                                       "metadata",
                                       "store",
                                       "service_tier",
                                       "parallel_tool_calls",
                                       "safety_identifier",
                                       "prompt_cache_key",
                                       "prompt_cache_retention",
                                       "verbosity",
                                       "functions",
                                       "function_call",
                                       "audio",
                                       "web_search_options",
                                       "prediction",
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
                                       "chat_template",
                                       "spaces_between_special_tokens",
                                       "length_penalty",
                                       "priority",
                                       "request_id",
                                       "logits_processors",
                                       "bad_words",
                                       "allowed_token_ids",
                                       "prompt_embeds",
                                       "best_of"};

void check_content(const json::value& content, const std::string& param) {
  if (content.is_string() || content.is_null()) return;
  if (!content.is_array()) throw invalid_type(param, "a string or an array of content parts");
  for (std::size_t i = 0; i < content.get_array().size(); ++i) {
    const std::string part = param + "[" + std::to_string(i) + "]";
    if (!content.get_array()[i].is_object()) throw invalid_type(part, "an object");
    const FieldReader fields(content.get_array()[i].get_object(), part + ".");
    const auto type = fields.string("type");
    if (!type) throw missing_parameter(part + ".type");
    if (*type != "text" && *type != "refusal") {
      throw unsupported(part + ".type", "Content parts of type '" + std::string(type->substr(0, 32)) +
                                            "' are not supported by this model; only 'text' is.");
    }
    if (!fields.string(*type)) throw missing_parameter(part + "." + std::string(*type));
  }
}

void check_tool_calls(const json::array& calls, const std::string& param) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string name = param + "[" + std::to_string(i) + "]";
    if (!calls[i].is_object()) throw invalid_type(name, "an object");
    const FieldReader call(calls[i].get_object(), name + ".");
    const auto* function = call.object("function");
    if (function == nullptr) throw missing_parameter(name + ".function");
    if (!FieldReader(*function, name + ".function.").string("name")) throw missing_parameter(name + ".function.name");
  }
}

const json::array& checked_messages(const json::object& body) {
  const FieldReader fields(body);
  const auto* messages = fields.array("messages");
  if (messages == nullptr) throw missing_parameter("messages");
  if (messages->empty()) throw invalid_value("messages", "'messages' must hold at least one message.");
  if (messages->size() > kMaxMessages) {
    throw invalid_value("messages", "'messages' holds " + std::to_string(messages->size()) + " messages; at most " +
                                        std::to_string(kMaxMessages) + " are allowed.");
  }
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const std::string param = "messages[" + std::to_string(i) + "]";
    if (!(*messages)[i].is_object()) throw invalid_type(param, "an object");
    const auto& message = (*messages)[i].get_object();
    const FieldReader inner(message, param + ".");
    const auto role = inner.string("role");
    if (!role) throw missing_parameter(param + ".role");
    if (std::find(std::begin(kRoles), std::end(kRoles), *role) == std::end(kRoles)) {
      throw invalid_value(param + ".role",
                          "'" + std::string(role->substr(0, 32)) +
                              "' is not a role; the roles are system, developer, user, assistant, tool "
                              "and function.");
    }
    const auto* calls = inner.array("tool_calls");
    if (calls != nullptr) check_tool_calls(*calls, param + ".tool_calls");
    if (const auto* content = inner.get("content")) {
      check_content(*content, param + ".content");
    } else if (*role != "assistant") {
      throw missing_parameter(param + ".content");
    }
    inner.string("name");
    inner.string("tool_call_id");
  }
  return *messages;
}

// The tools the template shall see, or nullptr.
const json::array* checked_tools(const json::object& body) {
  const FieldReader fields(body);
  const auto* tools = fields.array("tools");
  if (tools != nullptr) {
    for (std::size_t i = 0; i < tools->size(); ++i) {
      const std::string param = "tools[" + std::to_string(i) + "]";
      if (!(*tools)[i].is_object()) throw invalid_type(param, "an object");
      const FieldReader tool((*tools)[i].get_object(), param + ".");
      if (const auto type = tool.string("type"); !type || *type != "function") {
        throw invalid_value(param + ".type", "'" + param + ".type' must be 'function'.");
      }
      const auto* function = tool.object("function");
      if (function == nullptr) throw missing_parameter(param + ".function");
      const FieldReader inner(*function, param + ".function.");
      if (!inner.string("name")) throw missing_parameter(param + ".function.name");
      inner.string("description");
      inner.object("parameters");
    }
  }
  const auto* choice = fields.get("tool_choice");
  if (choice != nullptr && !choice->is_string() && !choice->is_object()) {
    throw invalid_type("tool_choice", "a string or an object");
  }
  if (choice != nullptr && choice->is_string()) {
    const std::string_view name = choice->get_string();
    if (name == "none") return nullptr;
    if (name == "auto") return tools;
    if (name != "required") {
      throw invalid_value("tool_choice",
                          "'tool_choice' must be 'none', 'auto', 'required' or an object that names a function.");
    }
  }
  if (choice != nullptr) {
    throw unsupported("tool_choice", "A call of a tool cannot be forced here; use 'auto' or 'none' for 'tool_choice'.");
  }
  return tools;
}

// "developer" is the newer name of "system"; templates written before it know only the old one.
void rename_developer_role(json::array& messages) {
  for (auto& message : messages) {
    auto& role = message.as_object().at("role");
    if (role.as_string() == "developer") role = "system";
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Cuts the prompt after the last message's text, so that the model goes on with it instead of starting a new turn.
void cut_after_final_message(std::string& prompt, const json::array& messages) {
  const auto& last = messages.back().get_object();
  const auto* content = last.if_contains("content");
  std::string_view text;
  if (content != nullptr && content->is_string()) text = content->get_string();
  if (content != nullptr && content->is_array() && !content->get_array().empty()) {
    text = FieldReader(content->get_array().back().get_object()).string("text").value_or("");
  }
  const std::string_view tail = trimmed(text);
  const auto at = tail.empty() ? std::string::npos : prompt.rfind(tail);
  if (at == std::string::npos) {
    throw invalid_value(
        "continue_final_message",
        "'continue_final_message' needs a last message with text that the chat template prints as it is.");
  }
  // The text as it was given, white space at its end included, where the template kept it.
  std::size_t end = at + tail.size();
  std::string_view space = text.substr(static_cast<std::size_t>(tail.data() - text.data()) + tail.size());
  while (!space.empty() && end < prompt.size() && prompt[end] == space.front()) {
    ++end;
    space.remove_prefix(1);
  }
  prompt.resize(end);
}

}  // namespace

std::string render_chat_prompt(const json::object& body, const ServedModel& model) {
  const FieldReader fields(body);
  json::array messages = checked_messages(body);
  const json::array* tools = checked_tools(body);
  if (tools != nullptr && tools->empty()) tools = nullptr;
  if (model.chat_template == nullptr) {
    throw ApiError(400, "no_chat_template",
                   "The model '" + model.runtime->describe().id + "' cannot chat: " + model.chat_template_error +
                       " Use /v1/completions with a prompt of your own.",
                   "messages");
  }
  RenderOptions options;
  options.bos_token = model.bos_token;
  options.eos_token = model.eos_token;
  const bool continue_final = fields.boolean("continue_final_message").value_or(false);
  const auto add_prompt = fields.boolean("add_generation_prompt");
  if (continue_final && add_prompt.value_or(false)) {
    throw invalid_value(
        "continue_final_message",
        "'continue_final_message' and 'add_generation_prompt' exclude each other; set one of them to false.");
  }
  options.add_generation_prompt = add_prompt.value_or(!continue_final);
  if (const auto* kwargs = fields.object("chat_template_kwargs")) options.extra = *kwargs;
  if (const auto effort = fields.string("reasoning_effort")) options.extra["reasoning_effort"] = *effort;
  if (const auto* documents = fields.array("documents")) options.extra["documents"] = *documents;
  if (model.chat_template->source().find("developer") == std::string::npos) rename_developer_role(messages);
  try {
    const auto normal = normalize_messages(messages, model.chat_template->content_format());
    std::string prompt = model.chat_template->render(normal, tools, options);
    if (continue_final) cut_after_final_message(prompt, messages);
    return prompt;
  } catch (const InvalidArgument& error) {
    throw invalid_value("messages", std::string("The chat template refused the conversation: ") + error.what());
  }
}

GenerationRequest parse_chat_request(const json::object& body, const ServedModel& model) {
  const FieldReader fields(body);
  fields.check_unknown(kKnown);
  GenerationRequest request;
  request.chat = true;
  parse_common_fields(body, model, request);

  const auto limit = std::numeric_limits<std::int32_t>::max();
  const auto old_limit = fields.integer("max_tokens", 1, limit);
  const auto new_limit = fields.integer("max_completion_tokens", 1, limit);
  if (old_limit && new_limit && *old_limit != *new_limit) {
    throw invalid_value("max_tokens", "'max_tokens' and 'max_completion_tokens' differ; give one of them.");
  }
  request.max_tokens = static_cast<std::int32_t>(new_limit.value_or(old_limit.value_or(0)));

  const bool logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, kMaxTopLogprobs);
  if (top && *top > 0 && !logprobs) {
    throw invalid_value("top_logprobs", "'top_logprobs' is only allowed when 'logprobs' is true.");
  }
  if (logprobs) request.sampling.logprobs = static_cast<std::int32_t>(top.value_or(0));
  if (fields.boolean("echo").value_or(false)) throw unsupported("echo", "'echo' is only supported by /v1/completions.");
  if (fields.integer("best_of", 1, 128).value_or(request.n) != request.n) {
    throw unsupported("best_of", "'best_of' must equal 'n'.");
  }

  const Tokenizer& tokenizer = require_tokenizer(model);
  const std::string prompt = render_chat_prompt(body, model);
  // Templates print the start token themselves.
  const bool add_special = fields.boolean("add_special_tokens").value_or(false);
  request.prompts.push_back(tokenizer.encode(prompt, {.add_special = add_special, .parse_special = true}));
  check_context(request, model);
  return request;
}

}  // namespace cairn
