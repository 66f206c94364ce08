// The HTTP server by itself: framing, limits, methods, keep-alive. Handlers here need no model.
#include <gtest/gtest.h>

#include "tests/unit/host/test_server.hpp"

namespace cairn::testing {
namespace {

ServerAppOptions small_limits() {
  ServerAppOptions options;
  options.http.body_bytes = 1000;
  options.http.header_bytes = 2000;
  return options;
}

TEST(Http, AnswersHealthAndKeepsTheConnection) {
  TestServer server;
  HttpClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.get("/health");
    const auto response = client.read_response();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, R"({"status":"ok"})");
    EXPECT_FALSE(response.headers.contains("connection"));
  }
}

TEST(Http, ClosesAfterTheAnswerWhenAskedTo) {
  TestServer server;
  HttpClient client(server.port());
  client.get("/health", "GET", "Connection: close\r\n");
  EXPECT_EQ(client.read_response().headers.at("connection"), "close");
  EXPECT_TRUE(client.wait_closed());
}

TEST(Http, AnswersPipelinedRequestsInOrder) {
  TestServer server(always("x"));
  HttpClient client(server.port());
  const std::string body = R"({"model":"fake","prompt":"p","max_tokens":1})";
  std::string bytes;
  for (int i = 0; i < 20; ++i) {
    bytes += "GET /version HTTP/1.1\r\nHost: t\r\n\r\n";
    bytes += "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
             body;
    bytes += "GET /nothing HTTP/1.1\r\nHost: t\r\n\r\n";
  }
  client.send(bytes);
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(client.read_response().body.find("version"), std::string::npos);
    EXPECT_NE(client.read_response().body.find("text_completion"), std::string::npos);
    EXPECT_EQ(client.read_response().status, 404);
  }
}

TEST(Http, ReadsARequestThatArrivesByteByByte) {
  TestServer server(always("x"));
  HttpClient client(server.port());
  const std::string body = R"({"model":"fake","prompt":"p"})";
  const std::string bytes =
      "POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  for (const char c : bytes) client.send(std::string_view(&c, 1));
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(Http, ReadsAChunkedBody) {
  TestServer server(always("x"));
  HttpClient client(server.port());
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
      "10\r\n{\"model\":\"fake\",\r\n"
      "d\r\n\"prompt\":\"p\"}\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(Http, RefusesALargeBodyBeforeItIsSent) {
  TestServer server({}, small_limits());
  HttpClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 1001\r\n\r\n");
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 413);
  EXPECT_NE(response.body.find("1000 bytes"), std::string::npos);
  EXPECT_EQ(parsed(response.body).at("error").at("code"), "request_too_large");
}

TEST(Http, RefusesALargeChunkedBody) {
  TestServer server({}, small_limits());
  HttpClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" +
              std::string(1001, 'x'));
  EXPECT_EQ(client.read_response().status, 413);
}

TEST(Http, TakesABodyOfExactlyTheLimit) {
  TestServer server(always("x"), small_limits());
  std::string body = R"({"model":"fake","prompt":"p"})";
  body.resize(1000, ' ');
  EXPECT_EQ(post_once(server.port(), "/v1/completions", body).status, 200);
}

TEST(Http, RefusesALargeHeader) {
  TestServer server({}, small_limits());
  HttpClient client(server.port());
  client.get("/health", "GET", "X-Long: " + std::string(3000, 'a') + "\r\n");
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 431);
  EXPECT_NE(response.body.find("2000 bytes"), std::string::npos);
}

TEST(Http, RefusesWhatIsNotHttp) {
  TestServer server;
  for (const char* bytes : {"\x16\x03\x01\x02\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
                            "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    HttpClient client(server.port());
    client.send(bytes);
    const auto response = client.read_response();
    EXPECT_EQ(response.status, 400) << bytes;
    EXPECT_EQ(parsed(response.body).at("error").at("code"), "malformed_request");
    EXPECT_EQ(response.headers.at("connection"), "close");
  }
}

TEST(Http, TellsAClientThatWaitsToGoOn) {
  TestServer server(always("x"));
  HttpClient client(server.port());
  const std::string body = R"({"model":"fake","prompt":"p"})";
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(client.read_head().status, 100);
  client.send(body);
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(Http, GivesUpOnARequestThatDoesNotEnd) {
  ServerAppOptions options;
  options.http.read_timeout = std::chrono::milliseconds(50);
  TestServer server({}, options);
  HttpClient client(server.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Le");
  EXPECT_EQ(client.read_response().status, 408);
}

TEST(Http, ClosesAnIdleConnection) {
  ServerAppOptions options;
  options.http.idle_timeout = std::chrono::milliseconds(50);
  TestServer server({}, options);
  HttpClient client(server.port());
  EXPECT_TRUE(client.wait_closed());
}

TEST(Http, AnswersAClientThatHasClosedItsSide) {
  TestServer server;
  HttpClient client(server.port());
  client.get("/metrics");
  client.shutdown_send();
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(Http, NamesTheAllowedMethods) {
  TestServer server;
  const auto wrong = get_once(server.port(), "/v1/chat/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.at("allow"), "POST, OPTIONS");
  const auto post = post_once(server.port(), "/health", "{}");
  EXPECT_EQ(post.status, 405);
  EXPECT_EQ(post.headers.at("allow"), "GET, HEAD, OPTIONS");
  const auto options = get_once(server.port(), "/health", "OPTIONS");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.headers.at("allow"), "GET, HEAD, OPTIONS");
  EXPECT_EQ(get_once(server.port(), "*", "OPTIONS").status, 204);
}

TEST(Http, AnswersHeadWithoutABody) {
  TestServer server;
  HttpClient client(server.port());
  client.get("/health", "HEAD");
  const auto head = client.read_response(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), "15");
  client.get("/version");  // the next answer begins right after the header
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(Http, AnswersAnUnknownPathInJson) {
  TestServer server;
  const auto response = get_once(server.port(), "/v2/nothing");
  EXPECT_EQ(response.status, 404);
  const auto error = parsed(response.body).at("error");
  EXPECT_EQ(error.at("code"), "unknown_url");
  EXPECT_EQ(error.at("type"), "invalid_request_error");
  EXPECT_TRUE(error.at("param").is_null());
}

TEST(Http, RepeatsASaneRequestIdAndReplacesAnother) {
  TestServer server;
  HttpClient client(server.port());
  client.get("/health", "GET", "X-Request-Id: trace-42.a:b_c\r\n");
  EXPECT_EQ(client.read_response().headers.at("x-request-id"), "trace-42.a:b_c");
  client.get("/health", "GET", "X-Request-Id: a b\"c\r\n");
  EXPECT_EQ(client.read_response().headers.at("x-request-id").size(), 32U);
  client.get("/health");
  EXPECT_EQ(client.read_response().headers.at("x-request-id").size(), 32U);
}

TEST(Http, EndsAStreamWithTheConnectionForHttp10) {
  TestServer server(always("ok"));
  HttpClient client(server.port());
  const std::string body = R"({"model":"fake","prompt":"p","stream":true})";
  client.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  const auto head = client.read_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_FALSE(head.headers.contains("transfer-encoding"));
  EXPECT_TRUE(client.wait_closed());
}

TEST(Http, TakesModelNamesWithEscapes) {
  TestServer server({.id = "org/name with space"});
  const auto response = get_once(server.port(), "/v1/models/org%2Fname%20with%20space");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(parsed(response.body).at("id"), "org/name with space");
}

TEST(Http, SaysThatAPortIsTaken) {
  TestServer server;
  ServerAppOptions options;
  options.port = server.port();
  EXPECT_THROW(ServerApp second(options), std::runtime_error);
}

}  // namespace
}  // namespace cairn::testing
