#include "host/openai/generation.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"

namespace cairn {
namespace {

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Generation::Generation(ExchangePtr exchange, std::shared_ptr<const ModelSet> models, const ServedModel& model,
                       GenerationRequest request, ModelMetrics& metrics, Clock::time_point arrival)
    : exchange_(std::move(exchange)),
      models_(std::move(models)),
      model_(model),
      request_(std::move(request)),
      metrics_(metrics),
      arrival_(arrival),
      id_((request_.chat ? "chatcmpl-" : "cmpl-") + make_random_id()),
      writer_(request_, model_.tokenizer, id_, model_.runtime->describe().id, unix_seconds()) {}

void Generation::begin() {
  const auto n = static_cast<std::size_t>(request_.n);
  choices_.reserve(request_.prompts.size() * n);
  for (std::size_t i = 0; i < request_.prompts.size() * n; ++i) {
    choices_.push_back({.prompt = i / n,
                        .channel = std::make_shared<TokenChannel>(exchange_->io()),
                        .state = ChoiceState(request_, request_.prompts[i / n], model_.tokenizer),
                        .echo_pending = request_.echo});
  }
  exchange_->on_disconnect([self = shared_from_this()] { self->abandon(RequestEnd::kAbort); });
  try {
    for (std::size_t i = 0; i < choices_.size(); ++i) submit(i);
  } catch (const std::exception& error) {
    ApiError api = to_api_error(error);
    if (api.status() >= 500)
      log(LogLevel::kError, "openai", "Request " + exchange_->request().request_id + ": " + error.what());
    if (api.status() == 429 && model_.runtime->health() == RuntimeHealth::kDraining) {
      api = ApiError(503, "shutting_down", "The server is shutting down and takes no new requests.");
    }
    fail(api, RequestEnd::kError);
  }
}

void Generation::submit(std::size_t index) {
  Choice& choice = choices_[index];
  RequestSpec spec;
  spec.id = choices_.size() == 1 ? id_ : id_ + "-" + std::to_string(index);
  spec.prompt_ids = request_.prompts[choice.prompt];
  spec.sampling = request_.sampling;
  // The choices of one prompt draw differently, and the same for the same seed.
  if (spec.sampling.has_seed) spec.sampling.seed += index % static_cast<std::size_t>(request_.n);
  spec.max_tokens = request_.max_tokens;
  spec.min_tokens = request_.min_tokens;
  spec.stop_token_ids = request_.stop_token_ids;
  spec.ignore_eos = request_.ignore_eos;
  spec.model_kwargs = request_.model_kwargs;
  choice.handle = model_.runtime->submit(std::move(spec), choice.channel->make_sink());
  ++open_;
  choice.channel->listen([self = shared_from_this(), index] { self->on_output(index); });
}

void Generation::on_output(std::size_t index) {
  Choice& choice = choices_[index];
  if (choice.ended) return;
  batch_.clear();
  choice.channel->take(batch_);
  if (choice.echo_pending) {
    // Scored prompt tokens may come in several pieces, all of them before the first generated token.
    choice.prompt_records.insert(choice.prompt_records.end(), batch_.prompt.begin(), batch_.prompt.end());
    if (batch_.tokens.empty() && !batch_.result) return;
    choice.echo_pending = false;
    choice.state.echo_prompt(request_.prompts[choice.prompt], choice.prompt_records, choice.delta);
  }
  if (!batch_.tokens.empty()) observe_tokens(choice, batch_.tokens.size());
  const bool stopped = choice.state.push(batch_.tokens, choice.delta);
  if (stopped && !batch_.result) model_.runtime->cancel(choice.handle);
  if (!stopped && batch_.result) {
    const RequestResult& result = *batch_.result;
    if (result.reason == FinishReason::kError) {
      if (!result.client_error) {
        log(LogLevel::kError, "openai",
            "Request " + exchange_->request().request_id + " (" + id_ + ") failed: " + result.error);
      }
      fail(result.client_error ? ApiError(400, "invalid_request", result.error)
                               : ApiError(500, "internal_error", "The model failed on this request."),
           RequestEnd::kError);
      return;
    }
    if (result.reason == FinishReason::kCancelled) {  // not by us: the drain's deadline passed
      fail(ApiError(503, "shutting_down", "The server is shutting down before this request could be completed."),
           RequestEnd::kAbort);
      return;
    }
    choice.state.finish(result, choice.delta);
  }
  if (request_.stream) emit(index);
  if (choice.ended || !choice.state.finished()) return;  // ended: the client went while we wrote
  const bool by_length = choice.state.finish_reason() == std::string_view("length");
  end_choice(index, by_length ? RequestEnd::kLength : RequestEnd::kStop);
  if (open_ == 0) complete();
}

void Generation::observe_tokens(Choice& choice, std::size_t count) {
  const auto now = Clock::now();
  if (!choice.got_token) {
    metrics_.first_token(seconds_between(arrival_, now));
    if (count > 1) metrics_.next_tokens(0, static_cast<std::int64_t>(count) - 1);
  } else {
    metrics_.next_tokens(seconds_between(choice.last_token, now), static_cast<std::int64_t>(count));
  }
  choice.got_token = true;
  choice.last_token = now;
}

ChoiceView Generation::view(std::size_t index) {
  Choice& choice = choices_[index];
  return {.index = static_cast<std::int64_t>(index),
          .prompt = request_.prompts[choice.prompt],
          .text_offset = &choice.text_offset,
          .finish_reason = choice.state.finish_reason(),
          .first = !choice.started};
}

void Generation::open_stream() {
  if (streaming_) return;
  streaming_ = true;
  exchange_->start_stream("text/event-stream; charset=utf-8");
}

void Generation::emit(std::size_t index) {
  Choice& choice = choices_[index];
  const bool finished = choice.state.finished();
  if (choice.delta.empty() && !finished) return;
  open_stream();
  Usage so_far;
  if (request_.continuous_usage) so_far = usage();
  const Usage* shown = request_.continuous_usage ? &so_far : nullptr;
  scratch_.clear();
  if (!choice.started && request_.chat) writer_.role_event(scratch_, view(index), shown);
  ChoiceView now = view(index);
  if (finished && !choice.delta.empty() && request_.chat) {
    // Chat clients expect the reason in an event of its own.
    now.finish_reason = nullptr;
    writer_.delta_event(scratch_, now, choice.delta, shown);
    choice.delta.clear();
    now = view(index);
  }
  writer_.delta_event(scratch_, now, choice.delta, shown);
  choice.delta.clear();
  choice.started = true;
  exchange_->write(scratch_);
}

void Generation::end_choice(std::size_t index, RequestEnd end) {
  Choice& choice = choices_[index];
  if (choice.ended) return;
  choice.ended = true;
  --open_;
  metrics_.request_ended(end, static_cast<std::int64_t>(request_.prompts[choice.prompt].size()),
                         choice.state.completion_tokens(), seconds_between(arrival_, Clock::now()));
  choice.channel->listen({});
}

Usage Generation::usage() const {
  Usage usage;
  for (const auto& prompt : request_.prompts) usage.prompt_tokens += static_cast<std::int64_t>(prompt.size());
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    usage.completion_tokens += choices_[i].state.completion_tokens();
    if (i % static_cast<std::size_t>(request_.n) == 0) usage.cached_tokens += choices_[i].state.cached_tokens();
  }
  return usage;
}

void Generation::complete() {
  if (request_.stream) {
    scratch_.clear();
    if (request_.include_usage) writer_.usage_event(scratch_, usage());
    AnswerWriter::done_event(scratch_);
    exchange_->write(scratch_);
    exchange_->end_stream(false);
    return;
  }
  HttpResponse response;
  writer_.begin_whole(response.body);
  for (std::size_t i = 0; i < choices_.size(); ++i) writer_.whole_choice(response.body, view(i), choices_[i].delta);
  writer_.end_whole(response.body, request_.prompts[0], usage());
  exchange_->respond(std::move(response));
}

void Generation::abandon(RequestEnd end) {
  const auto self = shared_from_this();  // the listeners that end here may be the last to hold us
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].handle == 0 || choices_[i].ended) continue;
    model_.runtime->cancel(choices_[i].handle);
    end_choice(i, end);
  }
}

void Generation::fail(const ApiError& error, RequestEnd end) {
  abandon(end);
  const std::string& request_id = exchange_->request().request_id;
  if (!streaming_) {
    exchange_->respond(error_response(error, request_id));
    return;
  }
  scratch_.clear();
  AnswerWriter::error_event(scratch_, error_json(error, request_id));
  exchange_->write(scratch_);
  exchange_->end_stream(true);
}

}  // namespace cairn
