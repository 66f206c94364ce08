// Loading, draining, ending.
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/host/test_server.hpp"

namespace cairn::testing {
namespace {

constexpr const char kStream[] = R"({"model":"fake","stream":true,"messages":[{"role":"user","content":"hi"}]})";
constexpr const char kWhole[] = R"({"model":"fake","messages":[{"role":"user","content":"hi"}]})";

TEST(Life, SaysLoadingUntilModelsAreServed) {
  ServerAppOptions options;
  options.port = 0;
  ServerApp app(options);
  EXPECT_EQ(get_once(app.port(), "/health").status, 200);
  const auto ready = get_once(app.port(), "/ready");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, R"({"status":"loading"})");
  const auto chat = post_once(app.port(), "/v1/chat/completions", kWhole);
  EXPECT_EQ(chat.status, 503);
  EXPECT_EQ(parsed(chat.body).at("error").at("code"), "loading");
  EXPECT_TRUE(chat.headers.contains("retry-after"));
  EXPECT_EQ(get_once(app.port(), "/v1/models").body, R"({"object":"list","data":[]})");
}

TEST(Drain, LetsOpenRequestsEndAndRefusesNewOnes) {
  TestServer server;
  HttpClient open(server.port());
  open.post("/v1/chat/completions", kStream);
  const auto handle = server.runtime().wait_submitted();
  server.runtime().emit(handle, "a");
  open.read_head();

  std::thread runner([&] { server.app().run(); });
  server.app().request_stop();
  server.runtime().wait_draining();

  const auto ready = get_once(server.port(), "/ready");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, R"({"status":"draining"})");
  EXPECT_EQ(get_once(server.port(), "/health").status, 200);
  const auto refused = post_once(server.port(), "/v1/chat/completions", kWhole);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(parsed(refused.body).at("error").at("code"), "shutting_down");
  EXPECT_TRUE(refused.headers.contains("retry-after"));

  server.runtime().emit(handle, "b");
  server.runtime().finish(handle, FinishReason::kStop);
  std::vector<std::string> events;
  for (auto event = open.read_event(); !event.empty(); event = open.read_event()) events.push_back(event);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_TRUE(open.wait_closed());
  runner.join();
}

TEST(Drain, EndsOpenRequestsWithAnErrorAtTheDeadline) {
  TestServer server;
  HttpClient stream(server.port());
  stream.post("/v1/chat/completions", kStream);
  const auto handle = server.runtime().wait_submitted();
  server.runtime().emit(handle, "a");
  stream.read_head();
  stream.read_event();  // role
  stream.read_event();  // "a"
  HttpClient whole(server.port());
  whole.post("/v1/chat/completions", kWhole);
  server.runtime().wait_submitted();

  std::thread runner([&] { server.app().run(); });
  server.app().request_stop();
  server.runtime().wait_draining();
  server.runtime().expire_drain();

  const auto error = parsed(stream.read_event()).at("error");
  EXPECT_EQ(error.at("code"), "shutting_down");
  EXPECT_EQ(stream.read_event(), "");  // the chunked answer ends properly, without [DONE]
  EXPECT_TRUE(stream.wait_closed());
  const auto response = whole.read_response();
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(parsed(response.body).at("error").at("code"), "shutting_down");
  runner.join();
}

TEST(Drain, ClosesIdleConnections) {
  TestServer server;
  HttpClient idle(server.port());
  idle.get("/health");
  idle.read_response();
  std::thread runner([&] { server.app().run(); });
  server.app().request_stop();
  EXPECT_TRUE(idle.wait_closed());
  runner.join();
}

TEST(Life, CancelsWhatIsOpenWhenTheServerEnds) {
  auto server = std::make_unique<TestServer>();
  HttpClient client(server->port());
  client.post("/v1/chat/completions", kStream);
  FakeRuntime& runtime = server->runtime();
  runtime.wait_submitted();
  server.reset();
  EXPECT_TRUE(client.wait_closed());
}

TEST(Ready, FollowsTheRuntime) {
  TestServer server;
  server.runtime().set_health(RuntimeHealth::kLoading);
  EXPECT_EQ(get_once(server.port(), "/ready").body, R"({"status":"loading"})");
  server.runtime().set_health(RuntimeHealth::kFailed);
  EXPECT_EQ(get_once(server.port(), "/ready").status, 503);
  EXPECT_EQ(get_once(server.port(), "/health").status, 503);
  server.runtime().set_health(RuntimeHealth::kReady);
  EXPECT_EQ(get_once(server.port(), "/ready").status, 200);
}

}  // namespace
}  // namespace cairn::testing
