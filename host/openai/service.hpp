// The OpenAI API and the operators' endpoints over a set of served models: everything the HTTP server routes to.
#pragma once

#include <atomic>
#include <boost/json/object.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/base/metrics.hpp"
#include "host/http/router.hpp"
#include "host/openai/api_error.hpp"
#include "host/openai/generation_request.hpp"
#include "host/openai/model_metrics.hpp"
#include "host/openai/served_model.hpp"
#include "host/openai/work_pool.hpp"

namespace cairn {

struct ServiceLimits {
  int work_threads = 2;
  std::size_t waiting_bodies = 1024;                        // requests between the socket and a runtime
  std::size_t waiting_body_bytes = std::size_t{256} << 20;  // their bodies together
};

// Handlers run on IO threads; /health, /ready, /metrics and the like answer there at once, everything that parses a
// body goes through the work pool.
class OpenAiService {
 public:
  explicit OpenAiService(const ServiceLimits& limits = {});

  void add_routes(Router& router);
  // Before this, the API answers 503 and /ready says "loading". Any thread, once.
  void serve(std::shared_ptr<const ModelSet> models);
  // From now on new work is refused with 503 and /ready says "draining". Any thread.
  void start_draining() { draining_.store(true); }
  // How /metrics learns the number of open connections.
  void count_connections(std::function<std::int64_t()> count) { count_connections_ = std::move(count); }
  void on_response(std::string_view route, int status);
  static HttpResponse render_error(int status, std::string_view code, std::string_view message);

 private:
  using Parse = GenerationRequest (*)(const boost::json::object&, const ServedModel&);
  using Answer = std::string (*)(const boost::json::object&, const ServedModel&);

  void generate(const ExchangePtr& exchange, Parse parse);
  // For endpoints that answer from the body alone, on the work pool.
  void answer_from_body(const ExchangePtr& exchange, Answer answer);
  bool refuse_if_unavailable(const ExchangePtr& exchange) const;
  void run_on_pool(const ExchangePtr& exchange, std::function<void()> task);
  void health(const ExchangePtr& exchange) const;
  void ready(const ExchangePtr& exchange) const;
  void metrics(const ExchangePtr& exchange);
  void list_models(const ExchangePtr& exchange) const;
  void show_model(const ExchangePtr& exchange) const;
  ModelMetrics& metrics_of(const ServedModel& model);

  MetricsRegistry registry_;
  std::atomic<std::shared_ptr<const ModelSet>> models_;
  std::atomic<bool> draining_{false};
  std::function<std::int64_t()> count_connections_;
  std::map<std::string, std::unique_ptr<ModelMetrics>> model_metrics_;  // filled by serve(), then read-only
  WorkPool pool_;                                                       // last: its tasks use the rest
};

// The model a body names, or the only one served when it names none. Throws model_not_found.
const ServedModel& find_model(const ModelSet& models, const boost::json::object& body, bool required);

// Answers of the text endpoints, as JSON.
std::string answer_tokenize(const boost::json::object& body, const ServedModel& model);
std::string answer_detokenize(const boost::json::object& body, const ServedModel& model);
std::string answer_apply_template(const boost::json::object& body, const ServedModel& model);

}  // namespace cairn
