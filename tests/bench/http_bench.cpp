// Requests per second of /health and tokens per second of SSE streams, against a running server.
//   http_bench --port 8000 [--connections 8] [--streams 8] [--seconds 3] [--tokens 2000] [--model echo]
// The streams expect the echo plugin: a prompt of --tokens bytes comes back one token per event.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int port = 8000;
  int connections = 8;
  int streams = 8;
  double seconds = 3;
  int tokens = 2000;
  std::string model = "echo";
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("connect");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void send_all(int fd, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) fail("send");
    sent += static_cast<std::size_t>(n);
  }
}

// One answer with a Content-Length, read whole.
void read_answer(int fd, std::string& buffer) {
  buffer.clear();
  char chunk[8192];
  std::size_t wanted = std::string::npos;
  while (buffer.size() < wanted) {
    const ssize_t n = recv(fd, chunk, sizeof chunk, 0);
    if (n <= 0) fail("recv");
    buffer.append(chunk, static_cast<std::size_t>(n));
    const std::size_t head = buffer.find("\r\n\r\n");
    if (wanted != std::string::npos || head == std::string::npos) continue;
    const std::size_t length = buffer.find("Content-Length: ");
    if (length == std::string::npos || length > head) {
      std::fprintf(stderr, "the answer has no Content-Length\n");
      std::exit(1);
    }
    wanted = head + 4 + std::strtoul(buffer.c_str() + length + 16, nullptr, 10);
  }
}

void bench_health(const Options& options) {
  std::atomic<std::int64_t> requests{0};
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  std::vector<std::thread> threads;
  for (int i = 0; i < options.connections; ++i) {
    threads.emplace_back([&] {
      const int fd = connect_to(options.port);
      std::string buffer;
      while (Clock::now() < end) {
        send_all(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
        read_answer(fd, buffer);
        requests.fetch_add(1, std::memory_order_relaxed);
      }
      close(fd);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("/health: %.0f requests/s over %d connections\n", static_cast<double>(requests.load()) / options.seconds,
              options.connections);
}

void bench_streams(const Options& options) {
  const std::string body = R"({"model":")" + options.model + R"(","stream":true,"max_tokens":)" +
                           std::to_string(options.tokens) + R"(,"prompt":")" +
                           std::string(static_cast<std::size_t>(options.tokens), 'a') + R"("})";
  const std::string request =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Connection: close\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  std::atomic<std::int64_t> bytes{0};
  std::atomic<std::int64_t> complete{0};
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < options.streams; ++i) {
    threads.emplace_back([&] {
      const int fd = connect_to(options.port);
      send_all(fd, request);
      std::string tail;
      char chunk[65536];
      for (ssize_t n = 0; (n = recv(fd, chunk, sizeof chunk, 0)) > 0;) {
        bytes.fetch_add(n, std::memory_order_relaxed);
        tail.append(chunk, static_cast<std::size_t>(n));
        if (tail.size() > 256) tail.erase(0, tail.size() - 256);
      }
      if (tail.find("[DONE]") != std::string::npos) complete.fetch_add(1, std::memory_order_relaxed);
      close(fd);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (complete.load() != options.streams) {
    std::fprintf(stderr, "only %lld of %d streams came to their end\n", static_cast<long long>(complete.load()),
                 options.streams);
    std::exit(1);
  }
  std::printf("SSE: %.0f tokens/s over %d streams of %d tokens, %.1f MB/s\n",
              static_cast<double>(options.streams) * options.tokens / seconds, options.streams, options.tokens,
              static_cast<double>(bytes.load()) / seconds / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--port")
      options.port = std::atoi(argv[i + 1]);
    else if (name == "--connections")
      options.connections = std::atoi(argv[i + 1]);
    else if (name == "--streams")
      options.streams = std::atoi(argv[i + 1]);
    else if (name == "--seconds")
      options.seconds = std::atof(argv[i + 1]);
    else if (name == "--tokens")
      options.tokens = std::atoi(argv[i + 1]);
    else if (name == "--model")
      options.model = argv[i + 1];
    else {
      std::fprintf(stderr, "unknown option %s; see the top of http_bench.cpp\n", argv[i]);
      return 2;
    }
  }
  bench_health(options);
  bench_streams(options);
  return 0;
}
