// The HTTP server: listens, spreads connections over its IO threads, enforces limits before any work is done.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "host/http/router.hpp"

namespace cairn {

struct HttpLimits {
  std::size_t header_bytes = std::size_t{16} << 10;
  std::size_t body_bytes = std::size_t{8} << 20;
  std::size_t stream_backlog_bytes = std::size_t{1} << 20;  // beyond what the kernel holds for the client
  std::size_t connections = 4096;
  std::chrono::milliseconds read_timeout{30'000};   // from the first byte of a request to its last
  std::chrono::milliseconds idle_timeout{75'000};   // between requests
  std::chrono::milliseconds write_timeout{30'000};  // without the client taking a byte
  int send_buffer_bytes = 0;                        // SO_SNDBUF; 0: the system's default
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;  // 0: the system chooses
  int io_threads = 1;
  HttpLimits limits;
  Handler handler;                   // on the connection's IO thread
  Router::RenderError render_error;  // for requests that never reach the handler
  // Once per answered request, on an IO thread.
  std::function<void(std::string_view route, int status)> on_response;
  // SIGTERM or SIGINT, on an IO thread, with 1 for the first one. Empty: signals are left alone.
  std::function<void(int count)> on_signal;
};

class HttpServer {
 public:
  // Binds and listens; throws InvalidArgument when the address is not one, ResourceExhausted when it is taken.
  explicit HttpServer(HttpServerOptions options);
  ~HttpServer();

  void start();
  std::uint16_t port() const;
  std::int64_t open_connections() const;
  // From now on every answer closes its connection, and connections that wait for a request are closed. Any thread.
  void close_idle();
  // Waits until no connection is open, at most until `deadline`. Returns whether none is.
  bool wait_idle(std::chrono::steady_clock::time_point deadline);
  // Closes everything and ends the threads.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn
