#include "host/openai/service.hpp"

#include "core/base/log.hpp"
#include "host/openai/field_reader.hpp"
#include "host/openai/generation.hpp"
#include "host/openai/json_writer.hpp"
#include "host/openai/version.hpp"

namespace cairn {
namespace {

constexpr std::string_view kModelRoute = "/v1/models/";

void write_model(JsonWriter& json, const ServedModel& model) {
  const ModelDescription& about = model.runtime->describe();
  json.begin_object().field("id", about.id).field("object", "model").field("created", about.created);
  json.field("owned_by", "cairn").field("root", about.id).field("max_model_len", about.max_seq_len);
  json.field("plugin", about.plugin_id).field("architecture", about.architecture).end_object();
}

ApiError model_not_found(std::string_view name) {
  return {404, "model_not_found",
          "The model '" + std::string(name.substr(0, 256)) + "' is not served here; /v1/models lists those that are.",
          "model"};
}

HttpResponse json_response(std::string body, int status = 200) {
  return {.status = status, .body = std::move(body)};
}

// Gives `response` from a pool thread.
void respond_later(const ExchangePtr& exchange, HttpResponse response) {
  exchange->io()->post([exchange, shared = std::make_shared<HttpResponse>(std::move(response))] {
    exchange->respond(std::move(*shared));
  });
}

void fail_later(const ExchangePtr& exchange, const std::exception& error) {
  const ApiError api = to_api_error(error);
  const std::string& id = exchange->request().request_id;
  if (api.status() >= 500) log(LogLevel::kError, "openai", "Request " + id + " failed: " + error.what());
  respond_later(exchange, error_response(api, id));
}

}  // namespace

const ServedModel& find_model(const ModelSet& models, const boost::json::object& body, bool required) {
  if (!required && !FieldReader(body).has("model") && models.models().size() == 1) return models.models()[0];
  const std::string_view name = requested_model(body);
  const ServedModel* model = models.find(name);
  if (model == nullptr) throw model_not_found(name);
  return *model;
}

OpenAiService::OpenAiService(const ServiceLimits& limits)
    : pool_(limits.work_threads, limits.waiting_bodies, limits.waiting_body_bytes) {
  registry_.gauge("cairn_build_info", "The version that runs; always 1.", {{"version", kVersion}}).set(1);
}

void OpenAiService::add_routes(Router& router) {
  const auto get = [&](const char* path, void (OpenAiService::*method)(const ExchangePtr&) const) {
    router.add("GET", path, [this, method](const ExchangePtr& exchange) { (this->*method)(exchange); });
  };
  get("/health", &OpenAiService::health);
  get("/ready", &OpenAiService::ready);
  get("/v1/models", &OpenAiService::list_models);
  get("/v1/models/*", &OpenAiService::show_model);
  router.add("GET", "/metrics", [this](const ExchangePtr& exchange) { metrics(exchange); });
  router.add("GET", "/version", [](const ExchangePtr& exchange) {
    std::string body;
    JsonWriter(body).begin_object().field("version", kVersion).end_object();
    exchange->respond(json_response(std::move(body)));
  });
  const auto generation = [&](const char* path, Parse parse) {
    router.add("POST", path, [this, parse](const ExchangePtr& exchange) { generate(exchange, parse); });
  };
  generation("/v1/chat/completions", &parse_chat_request);
  generation("/v1/completions", &parse_completion_request);
  const auto text = [&](const char* path, Answer answer) {
    router.add("POST", path, [this, answer](const ExchangePtr& exchange) { answer_from_body(exchange, answer); });
  };
  text("/tokenize", &answer_tokenize);
  text("/detokenize", &answer_detokenize);
  text("/apply-template", &answer_apply_template);
}

void OpenAiService::serve(std::shared_ptr<const ModelSet> models) {
  for (const auto& model : models->models()) {
    const std::string& id = model.runtime->describe().id;
    model_metrics_[id] = std::make_unique<ModelMetrics>(registry_, id);
  }
  models_.store(std::move(models));
}

void OpenAiService::on_response(std::string_view route, int status) {
  registry_
      .counter("cairn_http_requests_total", "HTTP requests answered, by route and status code.",
               {{"route", std::string(route)}, {"code", std::to_string(status)}})
      .add();
}

HttpResponse OpenAiService::render_error(int status, std::string_view code, std::string_view message) {
  return error_response(ApiError(status, std::string(code), std::string(message)), {});
}

ModelMetrics& OpenAiService::metrics_of(const ServedModel& model) {
  return *model_metrics_.at(model.runtime->describe().id);
}

bool OpenAiService::refuse_if_unavailable(const ExchangePtr& exchange) const {
  const bool loading = models_.load() == nullptr;
  if (!loading && !draining_.load()) return false;
  const ApiError error = loading
                             ? ApiError(503, "loading", "The model is still loading; try again shortly.")
                             : ApiError(503, "shutting_down", "The server is shutting down and takes no new requests.");
  exchange->respond(error_response(error, exchange->request().request_id));
  return true;
}

void OpenAiService::run_on_pool(const ExchangePtr& exchange, std::function<void()> task) {
  if (pool_.submit(exchange->request().body.size(), std::move(task))) return;
  const ApiError error(429, "queue_full", "Too many requests are waiting to be read; try again shortly.");
  exchange->respond(error_response(error, exchange->request().request_id));
}

void OpenAiService::generate(const ExchangePtr& exchange, Parse parse) {
  if (refuse_if_unavailable(exchange)) return;
  run_on_pool(exchange, [this, exchange, parse, models = models_.load(), arrival = Generation::Clock::now()] {
    if (exchange->gone()) return;
    try {
      const auto body = parse_body(exchange->request().body);
      const ServedModel& model = find_model(*models, body, true);
      auto request = std::make_shared<GenerationRequest>(parse(body, model));
      exchange->io()->post([this, exchange, models, &model, request, arrival] {
        if (exchange->gone()) return;
        std::make_shared<Generation>(exchange, models, model, std::move(*request), metrics_of(model), arrival)->begin();
      });
    } catch (const std::exception& error) {
      fail_later(exchange, error);
    }
  });
}

void OpenAiService::answer_from_body(const ExchangePtr& exchange, Answer answer) {
  if (refuse_if_unavailable(exchange)) return;
  run_on_pool(exchange, [exchange, answer, models = models_.load()] {
    if (exchange->gone()) return;
    try {
      const auto body = parse_body(exchange->request().body);
      respond_later(exchange, json_response(answer(body, find_model(*models, body, false))));
    } catch (const std::exception& error) {
      fail_later(exchange, error);
    }
  });
}

void OpenAiService::health(const ExchangePtr& exchange) const {
  if (const auto models = models_.load()) {
    for (const auto& model : models->models()) {
      if (model.runtime->health() != RuntimeHealth::kFailed) continue;
      exchange->respond(json_response(R"({"status":"failed"})", 503));
      return;
    }
  }
  exchange->respond(json_response(R"({"status":"ok"})"));
}

void OpenAiService::ready(const ExchangePtr& exchange) const {
  const auto models = models_.load();
  const char* status = models == nullptr ? "loading" : (draining_.load() ? "draining" : "ready");
  if (models != nullptr) {
    for (const auto& model : models->models()) {
      switch (model.runtime->health()) {
        case RuntimeHealth::kReady:
          break;
        case RuntimeHealth::kLoading:
          status = "loading";
          break;
        case RuntimeHealth::kDraining:
          status = "draining";
          break;
        case RuntimeHealth::kFailed:
          status = "failed";
          break;
      }
    }
  }
  const bool is_ready = status == std::string_view("ready");
  HttpResponse response = json_response(std::string(R"({"status":")") + status + "\"}", is_ready ? 200 : 503);
  if (!is_ready) response.headers.emplace_back("Retry-After", "1");
  exchange->respond(std::move(response));
}

void OpenAiService::metrics(const ExchangePtr& exchange) {
  if (const auto models = models_.load()) {
    for (const auto& model : models->models()) metrics_of(model).refresh(model.runtime->stats());
  }
  if (count_connections_) {
    registry_.gauge("cairn_open_connections", "Client connections that are open.")
        .set(static_cast<double>(count_connections_()));
  }
  exchange->respond({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = registry_.expose()});
}

void OpenAiService::list_models(const ExchangePtr& exchange) const {
  std::string body;
  JsonWriter json(body);
  json.begin_object().field("object", "list").key("data").begin_array();
  if (const auto models = models_.load()) {
    for (const auto& model : models->models()) write_model(json, model);
  }
  json.end_array().end_object();
  exchange->respond(json_response(std::move(body)));
}

void OpenAiService::show_model(const ExchangePtr& exchange) const {
  const std::string_view name = std::string_view(exchange->request().path).substr(kModelRoute.size());
  const auto models = models_.load();
  const ServedModel* model = models == nullptr ? nullptr : models->find(name);
  if (model == nullptr) {
    exchange->respond(error_response(model_not_found(name), exchange->request().request_id));
    return;
  }
  std::string body;
  JsonWriter json(body);
  write_model(json, *model);
  exchange->respond(json_response(std::move(body)));
}

}  // namespace cairn
