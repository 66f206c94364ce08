// The exchange of one request on a connection. Private to host/http.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "host/http/exchange.hpp"

namespace cairn {

class Connection;

// Holds its connection until the answer is complete or the client is gone.
class ConnectionExchange final : public Exchange {
 public:
  ConnectionExchange(std::shared_ptr<Connection> connection, std::shared_ptr<IoThread> io, HttpRequest request)
      : connection_(std::move(connection)), io_(std::move(io)), request_(std::move(request)) {}

  const HttpRequest& request() const override { return request_; }
  const std::shared_ptr<IoThread>& io() const override { return io_; }
  bool gone() const override { return gone_.load(std::memory_order_acquire); }
  void respond(HttpResponse response) override;
  void start_stream(std::string_view content_type) override;
  void write(std::string_view bytes) override;
  void end_stream(bool close_connection) override;
  void on_disconnect(std::function<void()> callback) override { callback_ = std::move(callback); }
  void set_route(std::string_view route) override { route_ = route; }

  // The connection found that the client is gone.
  void disconnected();
  std::string_view route() const { return route_; }

 private:
  std::shared_ptr<Connection> connection_;  // null once answered or gone
  std::shared_ptr<IoThread> io_;
  HttpRequest request_;
  std::string_view route_ = "unknown";
  std::function<void()> callback_;
  std::atomic<bool> gone_{false};
  bool chunked_ = true;
};

}  // namespace cairn
