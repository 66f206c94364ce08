// A client that goes frees its request at once, whatever state that is in; a client that does not read is dropped; the
// control plane answers meanwhile.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/host/test_server.hpp"

namespace cairn::testing {
namespace {

constexpr const char kWhole[] = R"({"model":"fake","messages":[{"role":"user","content":"hi"}]})";
constexpr const char kStream[] = R"({"model":"fake","stream":true,"messages":[{"role":"user","content":"hi"}]})";

TEST(Disconnect, CancelsARequestThatIsStillQueued) {
  TestServer server;
  HttpClient client(server.port());
  client.post("/v1/chat/completions", kWhole);
  const auto handle = server.runtime().wait_submitted();
  client.close();
  server.runtime().wait_cancelled(handle);
  EXPECT_EQ(server.runtime().open_requests(), 0);
}

TEST(Disconnect, CancelsAStreamBeforeItsFirstToken) {
  TestServer server;
  HttpClient client(server.port());
  client.post("/v1/chat/completions", kStream);
  const auto handle = server.runtime().wait_submitted();
  client.reset();
  server.runtime().wait_cancelled(handle);
}

TEST(Disconnect, CancelsDuringPrefill) {
  TestServer server;
  HttpClient client(server.port());
  client.post("/v1/completions", R"({"model":"fake","prompt":"abc","echo":true,"logprobs":1})");
  const auto handle = server.runtime().wait_submitted();
  server.runtime().emit_records(handle, {FakeRuntime::record_of('a', -1), FakeRuntime::record_of('b', 1)}, true);
  client.close();
  server.runtime().wait_cancelled(handle);
}

TEST(Disconnect, CancelsARunningStream) {
  TestServer server;
  HttpClient client(server.port());
  client.post("/v1/chat/completions", kStream);
  const auto handle = server.runtime().wait_submitted();
  server.runtime().emit(handle, "a");
  client.read_head();
  EXPECT_NE(client.read_event().find("assistant"), std::string::npos);
  client.close();
  server.runtime().wait_cancelled(handle);
}

TEST(Disconnect, CancelsARequestThatAnswersWholeWhileTokensFlow) {
  TestServer server;
  HttpClient client(server.port());
  client.post("/v1/chat/completions", kWhole);
  const auto handle = server.runtime().wait_submitted();
  server.runtime().emit(handle, "some text");
  client.close();
  server.runtime().wait_cancelled(handle);
}

TEST(Disconnect, CancelsEveryChoice) {
  TestServer server;
  HttpClient client(server.port());
  client.post("/v1/completions", R"({"model":"fake","prompt":["a","b"],"n":2})");
  std::vector<RequestHandle> handles;
  for (int i = 0; i < 4; ++i) handles.push_back(server.runtime().wait_submitted());
  server.runtime().emit(handles[0], "x");
  server.runtime().finish(handles[0], FinishReason::kLength);
  client.close();
  for (int i = 1; i < 4; ++i) server.runtime().wait_cancelled(handles[static_cast<std::size_t>(i)]);
}

TEST(Disconnect, LeavesOthersAlone) {
  TestServer server;
  HttpClient staying(server.port());
  staying.post("/v1/chat/completions", kStream);
  const auto kept = server.runtime().wait_submitted();
  HttpClient leaving(server.port());
  leaving.post("/v1/chat/completions", kWhole);
  const auto lost = server.runtime().wait_submitted();
  server.runtime().emit(kept, "a");
  leaving.close();
  server.runtime().wait_cancelled(lost);
  server.runtime().emit(kept, "b");
  server.runtime().finish(kept, FinishReason::kLength);
  staying.read_head();
  std::string text;
  for (auto event = staying.read_event(); event != "[DONE]"; event = staying.read_event()) {
    const auto delta = parsed(event).at("choices").at(0).at("delta");
    if (const auto* content = delta.as_object().if_contains("content")) text += content->as_string();
  }
  EXPECT_EQ(text, "ab");
  EXPECT_FALSE(server.runtime().was_cancelled(kept));
}

// The promise is 20 ms. This waits on the event and only guards against a whole class of mistakes (noticing a close at
// the next timer or write); the figure itself is measured in the benchmarks.
TEST(Disconnect, IsNoticedWithoutAnyOtherEvent) {
  TestServer server;
  for (int i = 0; i < 20; ++i) {
    HttpClient client(server.port());
    client.post("/v1/chat/completions", kWhole);
    const auto handle = server.runtime().wait_submitted();
    const auto begin = std::chrono::steady_clock::now();
    client.close();
    server.runtime().wait_cancelled(handle);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  }
}

TEST(SlowClient, IsDroppedWhenItsBacklogIsFull) {
  ServerAppOptions options;
  options.http.stream_backlog_bytes = 64 << 10;
  options.http.send_buffer_bytes = 4096;
  TestServer server({.max_seq_len = 1 << 30}, options);
  HttpClient client(server.port(), 4096);
  client.post("/v1/chat/completions", kStream);
  const auto handle = server.runtime().wait_submitted();
  const std::string text(1000, 'x');
  // Never read: the kernel's buffers fill, then ours. Bounded by far more than both.
  for (int i = 0; i < 20000 && !server.runtime().was_cancelled(handle); ++i) server.runtime().emit(handle, text);
  server.runtime().wait_cancelled(handle);
}

TEST(ControlPlane, AnswersWhileRequestsHang) {
  TestServer server;
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 32; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    clients.back()->post("/v1/chat/completions", kWhole);
    server.runtime().wait_submitted();
  }
  EXPECT_EQ(get_once(server.port(), "/health").status, 200);
  EXPECT_EQ(get_once(server.port(), "/ready").status, 200);
  const auto metrics = get_once(server.port(), "/metrics");
  EXPECT_NE(metrics.body.find("vllm:num_requests_running{model_name=\"fake\"} 32\n"), std::string::npos);
}

}  // namespace
}  // namespace cairn::testing
