// One generation request being answered: n choices per prompt, each a request of the runtime, merged into one answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/http/router.hpp"
#include "host/openai/answer_writer.hpp"
#include "host/openai/api_error.hpp"
#include "host/openai/model_metrics.hpp"
#include "host/openai/token_channel.hpp"

namespace cairn {

// Belongs to the exchange's IO thread from begin() on. Lives until every choice has ended or the client is gone; then
// the channels, which keep it alive, let go of it.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  using Clock = std::chrono::steady_clock;
  // `models` keeps `model` alive. `arrival` is when the request was complete on the socket.
  Generation(ExchangePtr exchange, std::shared_ptr<const ModelSet> models, const ServedModel& model,
             GenerationRequest request, ModelMetrics& metrics, Clock::time_point arrival);

  // Submits the choices and watches the client.
  void begin();

 private:
  struct Choice {
    std::size_t prompt = 0;  // index into request_.prompts
    RequestHandle handle = 0;
    std::shared_ptr<TokenChannel> channel;
    ChoiceState state;
    ChoiceDelta delta;
    std::vector<TokenRecord> prompt_records;  // scored prompt tokens, until they are echoed
    std::int64_t text_offset = 0;
    Clock::time_point last_token;
    bool got_token = false;
    bool echo_pending = false;  // the prompt is still to be put before the output
    bool started = false;       // a stream has seen something of it
    bool ended = false;         // accounted
  };

  void submit(std::size_t index);
  void on_output(std::size_t index);
  void observe_tokens(Choice& choice, std::size_t count);
  void emit(std::size_t index);
  void end_choice(std::size_t index, RequestEnd end);
  void complete();
  void fail(const ApiError& error, RequestEnd end);
  void abandon(RequestEnd end);
  void open_stream();
  Usage usage() const;
  ChoiceView view(std::size_t index);

  ExchangePtr exchange_;
  std::shared_ptr<const ModelSet> models_;
  const ServedModel& model_;
  GenerationRequest request_;
  ModelMetrics& metrics_;
  Clock::time_point arrival_;
  std::string id_;
  AnswerWriter writer_;
  std::vector<Choice> choices_;
  std::size_t open_ = 0;  // choices that have not ended
  bool streaming_ = false;
  TokenBatch batch_;     // reused
  std::string scratch_;  // reused
};

}  // namespace cairn
