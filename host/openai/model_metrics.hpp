// The metrics of one served model, under the names that gateways and dashboards read from vLLM. Request ends are
// accounted in one place (request_ended); gauges and running totals are read from the runtime at each scrape.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "core/base/metrics.hpp"
#include "core/runtime/model_runtime.hpp"

namespace cairn {

enum class RequestEnd { kStop, kLength, kAbort, kError };

class ModelMetrics {
 public:
  ModelMetrics(MetricsRegistry& registry, const std::string& model);

  void first_token(double seconds) { time_to_first_token_.observe(seconds); }
  // `tokens` arrived together, `seconds` after the one before them.
  void next_tokens(double seconds, std::int64_t tokens);
  // Exactly once for every request that a runtime took.
  void request_ended(RequestEnd end, std::int64_t prompt_tokens, std::int64_t generation_tokens, double seconds);
  // At a scrape.
  void refresh(const RuntimeStats& stats);

 private:
  Gauge& running_;
  Gauge& waiting_;
  Gauge& kv_usage_;
  Gauge& gpu_cache_usage_;
  Gauge& open_requests_;
  Gauge& kv_pages_used_;
  Gauge& live_tensors_;
  Counter& prompt_tokens_;
  Counter& generation_tokens_;
  Counter& preemptions_;
  Counter& steps_;
  Counter& success_stop_;
  Counter& success_length_;
  Counter& success_abort_;
  Counter& success_error_;
  Histogram& time_to_first_token_;
  Histogram& inter_token_;
  Histogram& per_output_token_;
  Histogram& end_to_end_;
  Histogram& request_prompt_tokens_;
  Histogram& request_generation_tokens_;
};

}  // namespace cairn
