#include "host/openai/model_metrics.hpp"

#include <vector>

namespace cairn {
namespace {

const std::vector<double> kTtftBounds{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                      1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
const std::vector<double> kTokenBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
                                       0.4,   0.5,    0.75,  1,    2.5,   5,    7.5,   10,  20,   40,  80};
const std::vector<double> kRequestBounds{0.1, 0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,
                                         20,  30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
const std::vector<double> kCountBounds{1,    2,    5,    10,    20,    50,    100,    200,    500,
                                       1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000};

Counter& success(MetricsRegistry& registry, const std::string& model, const char* reason) {
  return registry.counter("vllm:request_success_total", "Requests that ended, by reason.",
                          {{"model_name", model}, {"finished_reason", reason}});
}

}  // namespace

ModelMetrics::ModelMetrics(MetricsRegistry& registry, const std::string& model)
    : running_(registry.gauge("vllm:num_requests_running", "Requests that hold resources.", {{"model_name", model}})),
      waiting_(registry.gauge("vllm:num_requests_waiting", "Requests in the queue.", {{"model_name", model}})),
      kv_usage_(
          registry.gauge("vllm:kv_cache_usage_perc", "KV cache usage; 1 means 100 percent.", {{"model_name", model}})),
      gpu_cache_usage_(registry.gauge("vllm:gpu_cache_usage_perc",
                                      "KV cache usage under its older name; 1 means 100 percent.",
                                      {{"model_name", model}})),
      open_requests_(registry.gauge("cairn_open_requests",
                                    "Requests between submission and end, whether they wait or run.",
                                    {{"model_name", model}})),
      kv_pages_used_(registry.gauge("cairn_kv_pages_used", "Pages of the KV cache in use.", {{"model_name", model}})),
      live_tensors_(
          registry.gauge("cairn_live_tensors", "Tensors the process holds for requests.", {{"model_name", model}})),
      prompt_tokens_(registry.counter("vllm:prompt_tokens_total", "Prompt tokens processed.", {{"model_name", model}})),
      generation_tokens_(
          registry.counter("vllm:generation_tokens_total", "Tokens generated.", {{"model_name", model}})),
      preemptions_(registry.counter("vllm:num_preemptions_total",
                                    "Requests that lost their resources and started over.", {{"model_name", model}})),
      steps_(registry.counter("cairn_steps_total", "Steps the runtime ran.", {{"model_name", model}})),
      success_stop_(success(registry, model, "stop")),
      success_length_(success(registry, model, "length")),
      success_abort_(success(registry, model, "abort")),
      success_error_(success(registry, model, "error")),
      time_to_first_token_(registry.histogram("vllm:time_to_first_token_seconds",
                                              "Time from a request's arrival to its first token.", kTtftBounds,
                                              {{"model_name", model}})),
      inter_token_(registry.histogram("vllm:inter_token_latency_seconds", "Time between a request's tokens.",
                                      kTokenBounds, {{"model_name", model}})),
      per_output_token_(registry.histogram("vllm:time_per_output_token_seconds",
                                           "Time between a request's tokens under its older name.", kTokenBounds,
                                           {{"model_name", model}})),
      end_to_end_(registry.histogram("vllm:e2e_request_latency_seconds", "Time from a request's arrival to its end.",
                                     kRequestBounds, {{"model_name", model}})),
      request_prompt_tokens_(registry.histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.",
                                                kCountBounds, {{"model_name", model}})),
      request_generation_tokens_(registry.histogram("vllm:request_generation_tokens", "Generated tokens of a request.",
                                                    kCountBounds, {{"model_name", model}})) {}

void ModelMetrics::next_tokens(double seconds, std::int64_t tokens) {
  const double each = seconds / static_cast<double>(tokens);
  inter_token_.observe(each, tokens);
  per_output_token_.observe(each, tokens);
}

void ModelMetrics::request_ended(RequestEnd end, std::int64_t prompt_tokens, std::int64_t generation_tokens,
                                 double seconds) {
  switch (end) {
    case RequestEnd::kStop:
      success_stop_.add();
      break;
    case RequestEnd::kLength:
      success_length_.add();
      break;
    case RequestEnd::kAbort:
      success_abort_.add();
      break;
    case RequestEnd::kError:
      success_error_.add();
      break;
  }
  end_to_end_.observe(seconds);
  request_prompt_tokens_.observe(static_cast<double>(prompt_tokens));
  request_generation_tokens_.observe(static_cast<double>(generation_tokens));
}

void ModelMetrics::refresh(const RuntimeStats& stats) {
  running_.set(static_cast<double>(stats.running));
  waiting_.set(static_cast<double>(stats.waiting));
  const double usage = stats.kv_pages_total > 0
                           ? static_cast<double>(stats.kv_pages_used) / static_cast<double>(stats.kv_pages_total)
                           : 0.0;
  kv_usage_.set(usage);
  gpu_cache_usage_.set(usage);
  open_requests_.set(static_cast<double>(stats.open_requests));
  kv_pages_used_.set(static_cast<double>(stats.kv_pages_used));
  live_tensors_.set(static_cast<double>(stats.live_tensors));
  prompt_tokens_.set_total(stats.prompt_tokens_total);
  generation_tokens_.set_total(stats.generation_tokens_total);
  preemptions_.set_total(stats.preemptions_total);
  steps_.set_total(stats.steps_total);
}

}  // namespace cairn
