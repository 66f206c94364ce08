// The HTTP server and the API service put together, with the life of the process: loading, serving, draining. Used by
// `cairn serve` and by tests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "host/http/server.hpp"
#include "host/openai/service.hpp"

namespace cairn {

struct ServerAppOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;
  int io_threads = 1;
  HttpLimits http;
  ServiceLimits service;
  std::chrono::milliseconds drain_timeout{30'000};
  bool handle_signals = false;  // SIGTERM and SIGINT: the first drains, the second ends the process at once
};

class ServerApp {
 public:
  // Binds and answers from now on: /health says ok, /ready says loading.
  explicit ServerApp(const ServerAppOptions& options);
  ~ServerApp();

  std::uint16_t port() const { return server_->port(); }
  void serve(std::shared_ptr<const ModelSet> models);
  // What the first signal does. Any thread.
  void request_stop();
  // Waits for the stop, refuses new work, lets open requests end until the drain timeout, ends the rest with an error,
  // closes every connection. Returns when no thread of the server runs any more.
  void run();

 private:
  void on_signal(int count);

  ServerAppOptions options_;
  OpenAiService service_;
  Router router_;
  std::unique_ptr<HttpServer> server_;
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_requested_ = false;             // guarded by mutex_
  std::shared_ptr<const ModelSet> models_;  // guarded by mutex_
};

}  // namespace cairn
