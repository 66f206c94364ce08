#include "host/openai/server_app.hpp"

#include <cstdlib>

#include "core/base/log.hpp"

namespace cairn {
namespace {

// For the last bytes of the last answers to reach slow clients.
constexpr std::chrono::seconds kCloseTime{3};

}  // namespace

ServerApp::ServerApp(const ServerAppOptions& options)
    : options_(options), service_(options.service), router_(&OpenAiService::render_error) {
  service_.add_routes(router_);
  HttpServerOptions http;
  http.host = options.host;
  http.port = options.port;
  http.io_threads = options.io_threads;
  http.limits = options.http;
  http.handler = [this](const ExchangePtr& exchange) { router_.dispatch(exchange); };
  http.render_error = &OpenAiService::render_error;
  http.on_response = [this](std::string_view route, int status) { service_.on_response(route, status); };
  if (options.handle_signals) http.on_signal = [this](int count) { on_signal(count); };
  server_ = std::make_unique<HttpServer>(std::move(http));
  service_.count_connections([this] { return server_->open_connections(); });
  server_->start();
}

ServerApp::~ServerApp() {
  server_->stop();
}

void ServerApp::serve(std::shared_ptr<const ModelSet> models) {
  service_.serve(models);
  const std::lock_guard lock(mutex_);
  models_ = std::move(models);
}

void ServerApp::on_signal(int count) {
  bool serving = false;
  {
    const std::lock_guard lock(mutex_);
    serving = models_ != nullptr;
  }
  if (count > 1) {
    log(LogLevel::kWarning, "serve", "Second signal: ending at once.");
    std::_Exit(1);
  }
  if (!serving) std::_Exit(0);  // still loading: nobody has anything to lose
  log(LogLevel::kInfo, "serve",
      "Stopping: open requests may end within " + std::to_string(options_.drain_timeout.count() / 1000) +
          " s; a second signal ends at once.");
  request_stop();
}

void ServerApp::request_stop() {
  service_.start_draining();
  {
    const std::lock_guard lock(mutex_);
    stop_requested_ = true;
  }
  stop_changed_.notify_all();
}

void ServerApp::run() {
  std::shared_ptr<const ModelSet> models;
  {
    std::unique_lock lock(mutex_);
    stop_changed_.wait(lock, [this] { return stop_requested_; });
    models = models_;
  }
  const auto deadline = std::chrono::steady_clock::now() + options_.drain_timeout;
  if (models != nullptr) {
    for (const auto& model : models->models()) model.runtime->drain(deadline);
    for (const auto& model : models->models()) model.runtime->wait_drained();
  }
  server_->close_idle();
  server_->wait_idle(std::chrono::steady_clock::now() + kCloseTime);
  server_->stop();
}

}  // namespace cairn
