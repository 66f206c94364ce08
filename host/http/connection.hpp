// One client connection: reads requests one after the other, watches for the client going away while a request is being
// answered, writes answers with a bounded backlog. Private to host/http.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "host/http/server.hpp"

namespace cairn {

class ConnectionExchange;

// What all connections of a server share. Outlives them.
struct ServerShared {
  HttpServerOptions options;
  std::atomic<std::int64_t> open{0};
  std::atomic<bool> closing{false};
  std::mutex idle_mutex;
  std::condition_variable idle;  // told when `open` falls to 0
};

// Every method belongs to the IO thread. A read is pending at all times unless the read-ahead is full, so that a close
// is seen at once whatever the connection is doing.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<IoThread> io, boost::asio::ip::tcp::socket socket, ServerShared& shared);
  ~Connection();

  void start();
  // Closes a connection that waits for a request; one that is answering closes after the answer.
  void close_idle();
  void close();

 private:
  friend class ConnectionExchange;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t {
    kReading,    // between requests or inside one
    kAnswering,  // an exchange is open
    kDraining,   // the last answer is being written; then the socket closes
    kLingering,  // all is written and our side shut; reads and discards so that the client gets the answer
    kClosed,
  };

  void read();
  void on_read(boost::beast::error_code error, std::size_t bytes);
  void parse();
  void dispatch();
  void refuse(int status, std::string_view code, std::string_view message);
  void answer(const HttpResponse& response, bool head, const std::string& request_id, std::string_view route);
  void append_header(int status, std::string_view content_type, const std::string& request_id);
  void finish_answer();
  void flush();
  void on_written(boost::beast::error_code error);
  void after_last_write();
  void set_deadline(Clock::duration from_now);
  void clear_deadline() { deadline_ = Clock::time_point::max(); }
  void arm_timer();
  void on_timer(boost::beast::error_code error);
  std::size_t backlog() const { return writing_.size() + pending_.size(); }

  std::shared_ptr<IoThread> io_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  ServerShared& shared_;
  State state_ = State::kReading;
  boost::beast::flat_buffer input_;
  std::optional<Parser> parser_;
  std::shared_ptr<ConnectionExchange> exchange_;
  std::string writing_;  // being written
  std::string pending_;  // written next
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point armed_ = Clock::time_point::max();
  std::size_t discarded_ = 0;
  bool reading_ = false;       // a read is pending
  bool write_active_ = false;  // a write is pending
  bool keep_alive_ = true;
  bool http_1_0_ = false;
  bool continue_sent_ = false;
  bool linger_ = false;  // the client may still be sending: closing at once would reset the answer away
};

}  // namespace cairn
