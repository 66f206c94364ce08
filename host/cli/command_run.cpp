// cairn run: a prompt in, streamed text out; without a prompt a conversation.
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <iostream>

#include "core/base/error.hpp"
#include "host/cli/commands.hpp"
#include "host/cli/model_loading.hpp"
#include "host/cli/request_output.hpp"
#include "host/openai/choice_state.hpp"

namespace cairn {
namespace {

namespace json = boost::json;

json::object base_body(const RunOptions& options) {
  json::object body;
  if (options.temperature) body["temperature"] = *options.temperature;
  if (options.top_p) body["top_p"] = *options.top_p;
  if (options.min_p) body["min_p"] = *options.min_p;
  if (options.repetition_penalty) body["repetition_penalty"] = *options.repetition_penalty;
  if (options.top_k) body["top_k"] = *options.top_k;
  if (options.seed) body["seed"] = *options.seed;
  if (!options.stop.empty()) body["stop"] = json::array(options.stop.begin(), options.stop.end());
  return body;
}

json::object message(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

// Prints the answer as it comes and returns it.
std::string generate(const ServedModel& model, const GenerationRequest& request) {
  const auto& prompt = request.prompts.front();
  ChoiceState state(request, prompt, model.tokenizer);
  const auto output = std::make_shared<RequestOutput>();
  RequestSpec spec;
  spec.id = "run";
  spec.prompt_ids = prompt;
  spec.sampling = request.sampling;
  spec.max_tokens = request.max_tokens;
  const RequestHandle handle = model.runtime->submit(std::move(spec), output->make_sink());
  std::string answer;
  ChoiceDelta delta;
  TokenBatch batch;
  while (!batch.result) {
    batch.clear();
    output->wait(batch);
    const bool was_finished = state.finished();
    if (state.push(batch.tokens, delta) && !was_finished) model.runtime->cancel(handle);
    if (batch.result) {
      if (batch.result->reason == FinishReason::kError) throw InternalError(batch.result->error);
      state.finish(*batch.result, delta);
    }
    std::cout << delta.text << std::flush;
    answer += delta.text;
    delta.clear();
  }
  if (answer.empty() || answer.back() != '\n') std::cout << '\n';
  return answer;
}

GenerationRequest chat_request(const RunOptions& options, const json::array& messages, const ServedModel& model) {
  json::object body = base_body(options);
  body["messages"] = messages;
  if (options.max_tokens) body["max_tokens"] = *options.max_tokens;
  return parse_chat_request(body, model);
}

GenerationRequest raw_request(const RunOptions& options, const std::string& prompt, const ServedModel& model) {
  json::object body = base_body(options);
  body["prompt"] = prompt;
  body["max_tokens"] = options.max_tokens.value_or(256);
  return parse_completion_request(body, model);
}

void converse(const RunOptions& options, const ServedModel& model, bool chat) {
  const bool terminal = isatty(STDIN_FILENO) == 1;
  if (terminal) std::cerr << "Type a message; an empty line or Ctrl-D ends the conversation.\n";
  json::array messages;
  if (!options.system.empty()) messages.push_back(message("system", options.system));
  std::string line;
  while (true) {
    if (terminal) std::cerr << "> " << std::flush;
    if (!std::getline(std::cin, line) || line.empty()) return;
    if (!chat) {
      generate(model, raw_request(options, line, model));
      continue;
    }
    messages.push_back(message("user", line));
    messages.push_back(message("assistant", generate(model, chat_request(options, messages, model))));
  }
}

}  // namespace

int run_prompt(const RunOptions& options) {
  const auto models = load_models(options.source);
  if (models.size() != 1) throw InvalidArgument("`cairn run` takes one model; the source names several.", "model");
  const ServedModel& model = models.front();
  if (model.tokenizer == nullptr) throw NotSupported("This model takes no text.");
  const bool chat = !options.raw && model.chat_template != nullptr;
  if (options.prompt.empty()) {
    converse(options, model, chat);
    return 0;
  }
  json::array messages;
  if (!options.system.empty()) messages.push_back(message("system", options.system));
  messages.push_back(message("user", options.prompt));
  generate(model, chat ? chat_request(options, messages, model) : raw_request(options, options.prompt, model));
  return 0;
}

}  // namespace cairn
