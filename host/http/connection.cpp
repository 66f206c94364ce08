#include "host/http/connection.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "core/base/log.hpp"
#include "host/http/connection_exchange.hpp"

namespace cairn {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::size_t kReadBytes = std::size_t{16} << 10;
constexpr std::size_t kLingerBytes = std::size_t{64} << 20;
constexpr std::chrono::seconds kLingerTime{2};

}  // namespace

Connection::Connection(std::shared_ptr<IoThread> io, asio::ip::tcp::socket socket, ServerShared& shared)
    : io_(std::move(io)),
      socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      shared_(shared),
      // One whole request may wait behind the one being answered.
      input_(shared.options.limits.header_bytes + shared.options.limits.body_bytes + kReadBytes) {
  shared_.open.fetch_add(1);
}

Connection::~Connection() {
  if (shared_.open.fetch_sub(1) != 1) return;
  const std::lock_guard lock(shared_.idle_mutex);
  shared_.idle.notify_all();
}

void Connection::start() {
  boost::beast::error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (const int bytes = shared_.options.limits.send_buffer_bytes; bytes > 0) {
    socket_.set_option(asio::socket_base::send_buffer_size(bytes), ignored);
  }
  set_deadline(shared_.options.limits.idle_timeout);
  read();
}

void Connection::close_idle() {
  keep_alive_ = false;
  if (state_ == State::kReading && !parser_) close();
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();
  state_ = State::kClosed;
  boost::beast::error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  if (const auto exchange = std::exchange(exchange_, nullptr)) exchange->disconnected();
}

void Connection::read() {
  if (reading_ || state_ == State::kClosed) return;
  const std::size_t room = input_.max_size() - input_.size();
  if (room == 0) return;
  reading_ = true;
  socket_.async_read_some(
      input_.prepare(std::min(room, kReadBytes)),
      [self = shared_from_this()](boost::beast::error_code error, std::size_t bytes) { self->on_read(error, bytes); });
}

void Connection::on_read(boost::beast::error_code error, std::size_t bytes) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) {
    // A half-closed client counts as gone while its answer is being computed; an answer that is already complete is
    // still delivered.
    if (error == asio::error::eof && write_active_ && (state_ == State::kDraining || state_ == State::kReading)) {
      state_ = State::kDraining;
      return;
    }
    close();
    return;
  }
  input_.commit(bytes);
  switch (state_) {
    case State::kReading:
      parse();
      break;
    case State::kAnswering:
      break;
    case State::kDraining:
    case State::kLingering:
      discarded_ += input_.size();
      input_.consume(input_.size());
      if (discarded_ > kLingerBytes) close();
      break;
    case State::kClosed:
      return;
  }
  read();
}

void Connection::parse() {
  if (input_.size() == 0) return;
  if (!parser_) {
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(static_cast<std::uint32_t>(shared_.options.limits.header_bytes));
    parser_->body_limit(shared_.options.limits.body_bytes);
    continue_sent_ = false;
    set_deadline(shared_.options.limits.read_timeout);
  }
  boost::beast::error_code error;
  // put() may stop at the end of the header with input left over.
  while (input_.size() > 0 && !parser_->is_done()) {
    const std::size_t used = parser_->put(input_.data(), error);
    input_.consume(used);
    if (error == http::error::need_more) error = {};
    if (error || used == 0) break;
  }
  if (error == http::error::body_limit) {
    refuse(413, "request_too_large",
           "The request body is over the limit of " + std::to_string(shared_.options.limits.body_bytes) + " bytes.");
    return;
  }
  if (error == http::error::header_limit ||
      (!parser_->is_header_done() && input_.size() >= shared_.options.limits.header_bytes)) {
    refuse(
        431, "header_too_large",
        "The request header is over the limit of " + std::to_string(shared_.options.limits.header_bytes) + " bytes.");
    return;
  }
  if (error) {
    refuse(400, "malformed_request", "The request is not well-formed HTTP/1.1.");
    return;
  }
  if (parser_->is_done()) {
    dispatch();
  } else if (parser_->is_header_done() && !continue_sent_ &&
             boost::beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
    continue_sent_ = true;
    pending_ += "HTTP/1.1 100 Continue\r\n\r\n";
    flush();
  }
}

void Connection::dispatch() {
  auto message = parser_->release();
  parser_.reset();
  state_ = State::kAnswering;
  clear_deadline();
  http_1_0_ = message.version() == 10;
  keep_alive_ = message.keep_alive() && !shared_.closing.load();

  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string_view target = message.target();
  const std::size_t question = target.find('?');
  request.path = percent_decode(target.substr(0, question));
  if (question != std::string_view::npos) request.query = std::string(target.substr(question + 1));
  request.content_type = std::string(message[http::field::content_type]);
  request.body = std::move(message.body());
  const std::string_view client_id = message["x-request-id"];
  request.request_id = is_sane_request_id(client_id) ? std::string(client_id) : make_random_id();

  exchange_ = std::make_shared<ConnectionExchange>(shared_from_this(), io_, std::move(request));
  const ExchangePtr exchange = exchange_;
  try {
    shared_.options.handler(exchange);
  } catch (const std::exception& error) {
    log(LogLevel::kError, "http", "Request " + exchange->request().request_id + " failed: " + error.what());
    exchange->respond(shared_.options.render_error(500, "internal_error", "The server failed on this request."));
  }
}

void Connection::refuse(int status, std::string_view code, std::string_view message) {
  parser_.reset();
  keep_alive_ = false;
  linger_ = true;
  http_1_0_ = false;
  answer(shared_.options.render_error(status, code, message), false, make_random_id(), "malformed");
  finish_answer();
}

void Connection::append_header(int status, std::string_view content_type, const std::string& request_id) {
  pending_ += "HTTP/1.1 ";
  pending_ += std::to_string(status);
  pending_ += ' ';
  pending_ += reason_phrase(status);
  pending_ += "\r\nServer: cairn\r\nX-Request-Id: ";
  pending_ += request_id;
  if (!content_type.empty()) pending_.append("\r\nContent-Type: ").append(content_type);
  pending_ += keep_alive_ ? (http_1_0_ ? "\r\nConnection: keep-alive\r\n" : "\r\n") : "\r\nConnection: close\r\n";
}

void Connection::answer(const HttpResponse& response, bool head, const std::string& request_id,
                        std::string_view route) {
  if (shared_.options.on_response) shared_.options.on_response(route, response.status);
  const bool no_content = response.status == 204;
  append_header(response.status, no_content ? std::string_view{} : std::string_view(response.content_type), request_id);
  for (const auto& [name, value] : response.headers) pending_.append(name).append(": ").append(value).append("\r\n");
  if (!no_content) pending_.append("Content-Length: ").append(std::to_string(response.body.size())).append("\r\n");
  pending_ += "\r\n";
  if (!head && !no_content) pending_ += response.body;
}

void Connection::finish_answer() {
  exchange_ = nullptr;
  if (state_ == State::kClosed) return;
  if (!keep_alive_ || shared_.closing.load()) {
    state_ = State::kDraining;
    flush();
    return;
  }
  state_ = State::kReading;
  flush();
  if (!write_active_) set_deadline(shared_.options.limits.idle_timeout);
  if (input_.size() > 0) {
    // Pipelined: through the loop, so that one client can neither deepen the stack nor hold the thread.
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      if (self->state_ == State::kReading) self->parse();
      self->read();
    });
  }
}

void Connection::flush() {
  if (write_active_ || state_ == State::kClosed) return;
  if (pending_.empty()) {
    if (state_ == State::kDraining) after_last_write();
    return;
  }
  write_active_ = true;
  writing_.swap(pending_);
  set_deadline(shared_.options.limits.write_timeout);
  asio::async_write(
      socket_, asio::buffer(writing_),
      [self = shared_from_this()](boost::beast::error_code error, std::size_t) { self->on_written(error); });
}

void Connection::on_written(boost::beast::error_code error) {
  write_active_ = false;
  writing_.clear();
  if (state_ == State::kClosed) return;
  if (error) {
    close();
    return;
  }
  if (state_ == State::kAnswering) {
    clear_deadline();
  } else if (state_ == State::kReading) {
    set_deadline(parser_ ? shared_.options.limits.read_timeout : shared_.options.limits.idle_timeout);
  }
  flush();
}

void Connection::after_last_write() {
  if (!linger_ && input_.size() == 0) {
    close();
    return;
  }
  state_ = State::kLingering;
  boost::beast::error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  input_.consume(input_.size());
  set_deadline(kLingerTime);
  if (!reading_) read();
}

void Connection::set_deadline(Clock::duration from_now) {
  deadline_ = Clock::now() + from_now;
  if (deadline_ < armed_) arm_timer();
}

void Connection::arm_timer() {
  armed_ = deadline_;
  timer_.expires_at(armed_);
  timer_.async_wait([self = shared_from_this()](boost::beast::error_code error) { self->on_timer(error); });
}

void Connection::on_timer(boost::beast::error_code error) {
  if (error || state_ == State::kClosed) return;
  armed_ = Clock::time_point::max();
  if (Clock::now() < deadline_) {
    if (deadline_ != Clock::time_point::max()) arm_timer();
    return;
  }
  if (state_ == State::kReading && parser_) {
    refuse(408, "request_timeout", "The request did not arrive completely in time.");
    return;
  }
  close();
}

}  // namespace cairn
