// A blocking HTTP client on a bare socket, so that tests decide every byte and see every byte. Reads give up after 10 s
// with an exception.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::testing {

struct ClientResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
};

class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port, int receive_buffer_bytes = 0);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void send(std::string_view bytes);
  // A request with a JSON body.
  void post(std::string_view path, std::string_view body, std::string_view extra_headers = {});
  void get(std::string_view path, std::string_view method = "GET", std::string_view extra_headers = {});
  // The next whole response. `head`: it answers HEAD and has no body.
  ClientResponse read_response(bool head = false);
  // Response head only, for streams.
  ClientResponse read_head();
  // What one "data: ..." event of a chunked stream carries; empty at the end of the stream.
  std::string read_event();
  // Whether the server closed the connection (after what was read). Waits for it.
  bool wait_closed();
  void close();
  void shutdown_send();
  // Closes with a reset instead of a goodbye.
  void reset();

 private:
  bool fill();  // false at the end
  std::string line();
  std::string exactly(std::size_t count);
  bool next_chunk();

  int socket_ = -1;
  std::string input_;
  std::string events_;  // of the chunks read so far
  bool stream_over_ = false;
};

// One request on a connection of its own.
ClientResponse post_once(std::uint16_t port, std::string_view path, std::string_view body);
ClientResponse get_once(std::uint16_t port, std::string_view path, std::string_view method = "GET");
// All events of a streamed answer up to and without "[DONE]"; sets `done` when that came.
std::vector<std::string> stream_events(std::uint16_t port, std::string_view path, std::string_view body,
                                       bool* done = nullptr);

}  // namespace cairn::testing
