#include "host/http/connection_exchange.hpp"

#include <array>
#include <charconv>

#include "host/http/connection.hpp"

namespace cairn {

void ConnectionExchange::respond(HttpResponse response) {
  const auto connection = std::exchange(connection_, nullptr);
  if (connection == nullptr) return;
  callback_ = nullptr;
  connection->answer(response, request_.method == "HEAD", request_.request_id, route_);
  connection->finish_answer();
}

void ConnectionExchange::start_stream(std::string_view content_type) {
  if (connection_ == nullptr) return;
  chunked_ = !connection_->http_1_0_;  // HTTP/1.0 knows no chunks: the answer ends with the connection
  if (!chunked_) connection_->keep_alive_ = false;
  connection_->append_header(200, content_type, request_.request_id);
  connection_->pending_ +=
      chunked_ ? "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n"
               : "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n\r\n";
  if (connection_->shared_.options.on_response) connection_->shared_.options.on_response(route_, 200);
  connection_->flush();
}

void ConnectionExchange::write(std::string_view bytes) {
  if (connection_ == nullptr || bytes.empty()) return;
  std::string& pending = connection_->pending_;
  if (chunked_) {
    std::array<char, 16> size{};
    const auto end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
    pending.append(size.data(), end).append("\r\n").append(bytes).append("\r\n");
  } else {
    pending.append(bytes);
  }
  if (connection_->backlog() > connection_->shared_.options.limits.stream_backlog_bytes) {
    const auto connection = connection_;  // disconnected() lets go of it
    connection->close();
    return;
  }
  connection_->flush();
}

void ConnectionExchange::end_stream(bool close_connection) {
  const auto connection = std::exchange(connection_, nullptr);
  if (connection == nullptr) return;
  callback_ = nullptr;
  if (chunked_) connection->pending_ += "0\r\n\r\n";
  if (close_connection) connection->keep_alive_ = false;
  connection->finish_answer();
}

void ConnectionExchange::disconnected() {
  gone_.store(true, std::memory_order_release);
  connection_ = nullptr;
  if (const auto callback = std::exchange(callback_, nullptr)) callback();
}

}  // namespace cairn
