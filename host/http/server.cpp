#include "host/http/server.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <optional>
#include <set>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "host/http/connection.hpp"

namespace cairn {
namespace {

namespace asio = boost::asio;

asio::ip::tcp::endpoint parse_endpoint(const std::string& host, std::uint16_t port) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (error) {
    throw InvalidArgument("The address '" + host +
                              "' is not an IPv4 or IPv6 address; 127.0.0.1 serves this machine only, "
                              "0.0.0.0 every interface.",
                          "host");
  }
  return {address, port};
}

// The connections of one IO thread; touched by that thread only.
struct Lane {
  std::shared_ptr<IoThread> io = std::make_shared<IoThread>();
  std::set<std::weak_ptr<Connection>, std::owner_less<>> connections;

  void sweep() {
    std::erase_if(connections, [](const auto& connection) { return connection.expired(); });
  }
};

}  // namespace

struct HttpServer::Impl {
  explicit Impl(HttpServerOptions options) { shared.options = std::move(options); }

  // Declared before the lanes: connections that die with a lane still count themselves out.
  ServerShared shared;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::optional<asio::ip::tcp::acceptor> acceptor;
  std::optional<asio::steady_timer> retry;
  std::optional<asio::signal_set> signals;
  std::size_t next_lane = 0;
  int signal_count = 0;
  bool stopped = false;  // set when the threads have ended
  std::uint16_t port = 0;

  void listen() {
    const auto& options = shared.options;
    const auto endpoint = parse_endpoint(options.host, options.port);
    for (int i = 0; i < std::max(1, options.io_threads); ++i) lanes.push_back(std::make_unique<Lane>());
    auto& context = lanes[0]->io->context();
    acceptor.emplace(context);
    retry.emplace(context);
    boost::system::error_code error;
    acceptor->open(endpoint.protocol(), error);
    if (!error) acceptor->set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor->bind(endpoint, error);
    if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      throw ResourceExhausted("Cannot listen on " + options.host + " port " + std::to_string(options.port) + ": " +
                              error.message() + ". Choose another with --port.");
    }
    port = acceptor->local_endpoint().port();
    if (options.on_signal) signals.emplace(context, SIGINT, SIGTERM);
  }

  void accept() {
    Lane& lane = *lanes[next_lane];
    acceptor->async_accept(
        lane.io->context(), [this, &lane](boost::system::error_code error, asio::ip::tcp::socket socket) {
          if (error == asio::error::operation_aborted) return;
          if (error) {
            // Out of descriptors: the ones in use come back, so wait instead of spinning.
            log(LogLevel::kWarning, "http", "Cannot accept a connection: " + error.message() + ".");
            retry->expires_after(std::chrono::milliseconds(100));
            retry->async_wait([this](boost::system::error_code aborted) {
              if (!aborted) accept();
            });
            return;
          }
          next_lane = (next_lane + 1) % lanes.size();
          if (shared.open.load() < static_cast<std::int64_t>(shared.options.limits.connections)) {
            asio::post(lane.io->context(), [this, &lane, moved = std::move(socket)]() mutable {
              if (stopped) return;
              const auto connection = std::make_shared<Connection>(lane.io, std::move(moved), shared);
              if (lane.connections.size() >= 2 * static_cast<std::size_t>(shared.open.load()) + 16) lane.sweep();
              lane.connections.insert(connection);
              connection->start();
            });
          }  // else the socket closes here
          accept();
        });
  }

  void wait_signal() {
    signals->async_wait([this](boost::system::error_code error, int) {
      if (error) return;
      shared.options.on_signal(++signal_count);
      wait_signal();
    });
  }
};

HttpServer::HttpServer(HttpServerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
  impl_->listen();
}

HttpServer::~HttpServer() {
  stop();
}

void HttpServer::start() {
  impl_->accept();
  if (impl_->signals) impl_->wait_signal();
  for (auto& lane : impl_->lanes) lane->io->start();
}

std::uint16_t HttpServer::port() const {
  return impl_->port;
}

std::int64_t HttpServer::open_connections() const {
  return impl_->shared.open.load();
}

void HttpServer::close_idle() {
  impl_->shared.closing.store(true);
  for (auto& lane : impl_->lanes) {
    lane->io->post([this, lane = lane.get()] {
      if (lane == impl_->lanes[0].get()) {
        boost::system::error_code ignored;
        impl_->acceptor->close(ignored);
      }
      for (const auto& weak : lane->connections) {
        if (const auto connection = weak.lock()) connection->close_idle();
      }
    });
  }
}

bool HttpServer::wait_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(impl_->shared.idle_mutex);
  return impl_->shared.idle.wait_until(lock, deadline, [this] { return impl_->shared.open.load() == 0; });
}

void HttpServer::stop() {
  for (auto& lane : impl_->lanes) lane->io->stop();
  for (auto& lane : impl_->lanes) lane->io->join();
  // No thread runs the loops any more. What is still open is closed here, which cancels its requests, and the loops are
  // emptied: a runtime may keep an IO thread's object for longer than this server lives.
  impl_->stopped = true;
  impl_->acceptor.reset();
  impl_->retry.reset();
  impl_->signals.reset();
  for (auto& lane : impl_->lanes) {
    for (const auto& weak : std::exchange(lane->connections, {})) {
      if (const auto connection = weak.lock()) connection->close();
    }
    lane->io->context().restart();
    lane->io->context().poll();
  }
}

}  // namespace cairn
