#include "tests/unit/host/http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <stdexcept>

namespace cairn::testing {

HttpClient::HttpClient(std::uint16_t port, int receive_buffer_bytes) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  if (receive_buffer_bytes > 0) {
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  }
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect");
  }
}

HttpClient::~HttpClient() {
  close();
}

void HttpClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void HttpClient::shutdown_send() {
  ::shutdown(socket_, SHUT_WR);
}

void HttpClient::reset() {
  const linger hard{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close();
}

void HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) throw std::runtime_error("cannot send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void HttpClient::post(std::string_view path, std::string_view body, std::string_view extra_headers) {
  send("POST " + std::string(path) + " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: " +
       std::to_string(body.size()) + "\r\n" + std::string(extra_headers) + "\r\n" + std::string(body));
}

void HttpClient::get(std::string_view path, std::string_view method, std::string_view extra_headers) {
  send(std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n" + std::string(extra_headers) +
       "\r\n");
}

bool HttpClient::fill() {
  char buffer[16384];
  const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) throw std::runtime_error("nothing arrived in time");
  if (got <= 0) return false;
  input_.append(buffer, static_cast<std::size_t>(got));
  return true;
}

std::string HttpClient::line() {
  std::size_t end = 0;
  while ((end = input_.find("\r\n")) == std::string::npos) {
    if (!fill()) throw std::runtime_error("the connection ended inside a line");
  }
  std::string text = input_.substr(0, end);
  input_.erase(0, end + 2);
  return text;
}

std::string HttpClient::exactly(std::size_t count) {
  while (input_.size() < count) {
    if (!fill()) throw std::runtime_error("the connection ended inside a body");
  }
  std::string bytes = input_.substr(0, count);
  input_.erase(0, count);
  return bytes;
}

ClientResponse HttpClient::read_head() {
  ClientResponse response;
  response.status = std::stoi(line().substr(9, 3));
  for (std::string text = line(); !text.empty(); text = line()) {
    const auto colon = text.find(": ");
    std::string name = text.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    response.headers[name] = text.substr(colon + 2);
  }
  events_.clear();
  stream_over_ = false;
  return response;
}

bool HttpClient::next_chunk() {
  if (stream_over_) return false;
  const std::size_t size = std::stoul(line(), nullptr, 16);
  events_ += exactly(size);
  exactly(2);
  stream_over_ = size == 0;
  return !stream_over_;
}

ClientResponse HttpClient::read_response(bool head) {
  ClientResponse response = read_head();
  if (head) return response;
  if (response.headers.contains("transfer-encoding")) {
    while (next_chunk()) {
    }
    response.body = events_;
  } else if (response.headers.contains("content-length")) {
    response.body = exactly(std::stoul(response.headers["content-length"]));
  }
  return response;
}

std::string HttpClient::read_event() {
  std::size_t end = 0;
  while ((end = events_.find("\n\n")) == std::string::npos) {
    if (!next_chunk()) return {};
  }
  std::string event = events_.substr(0, end);
  events_.erase(0, end + 2);
  return event.substr(6);  // "data: "
}

bool HttpClient::wait_closed() {
  while (fill()) {
  }
  return true;
}

ClientResponse post_once(std::uint16_t port, std::string_view path, std::string_view body) {
  HttpClient client(port);
  client.post(path, body);
  return client.read_response();
}

ClientResponse get_once(std::uint16_t port, std::string_view path, std::string_view method) {
  HttpClient client(port);
  client.get(path, method);
  return client.read_response(method == "HEAD");
}

std::vector<std::string> stream_events(std::uint16_t port, std::string_view path, std::string_view body, bool* done) {
  HttpClient client(port);
  client.post(path, body);
  client.read_head();
  std::vector<std::string> events;
  if (done != nullptr) *done = false;
  for (std::string event = client.read_event(); !event.empty(); event = client.read_event()) {
    if (event == "[DONE]") {
      if (done != nullptr) *done = true;
    } else {
      events.push_back(event);
    }
  }
  return events;
}

}  // namespace cairn::testing
