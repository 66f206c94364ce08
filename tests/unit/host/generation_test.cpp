// What clients get from /v1/chat/completions and /v1/completions: text, streams, stops, log-probabilities, errors.
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "tests/unit/host/test_server.hpp"

namespace cairn::testing {
namespace {

namespace json = boost::json;

constexpr const char kChat[] = "/v1/chat/completions";
constexpr const char kText[] = "/v1/completions";

json::object chat_body(json::object extra = {}) {
  extra["model"] = "fake";
  extra["messages"] = json::array{json::object{{"role", "user"}, {"content", "hi"}}};
  return extra;
}

json::object text_body(json::value prompt, json::object extra = {}) {
  extra["model"] = "fake";
  extra["prompt"] = std::move(prompt);
  return extra;
}

json::value ask(TestServer& server, const char* path, const json::object& body) {
  const auto response = post_once(server.port(), path, json::serialize(body));
  EXPECT_EQ(response.status, 200) << response.body;
  return parsed(response.body);
}

struct Streamed {
  std::map<std::int64_t, std::string> text;
  std::map<std::int64_t, std::string> reason;
  std::map<std::int64_t, json::array> logprobs;
  std::map<std::int64_t, json::array> ids;
  json::value usage;
  std::vector<json::value> events;
  bool done = false;
};

Streamed ask_stream(TestServer& server, const char* path, json::object body) {
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  Streamed result;
  for (const auto& text : stream_events(server.port(), path, json::serialize(body), &result.done)) {
    const json::value event = parsed(text);
    result.events.push_back(event);
    if (!event.at("usage").is_null()) result.usage = event.at("usage");
    for (const auto& choice : event.at("choices").as_array()) {
      const std::int64_t index = choice.at("index").as_int64();
      const auto& object = choice.as_object();
      if (const auto* text_piece = object.if_contains("text")) result.text[index] += text_piece->as_string();
      if (const auto* delta = object.if_contains("delta")) {
        if (const auto* content = delta->as_object().if_contains("content")) result.text[index] += content->as_string();
      }
      if (!choice.at("finish_reason").is_null()) {
        EXPECT_FALSE(result.reason.contains(index)) << "a second finish_reason";
        result.reason[index] = choice.at("finish_reason").as_string();
      }
      if (const auto* logprobs = object.if_contains("logprobs"); logprobs != nullptr && logprobs->is_object()) {
        const auto& list = logprobs->as_object();
        for (const auto& item : (list.contains("content") ? list.at("content") : list.at("tokens")).as_array()) {
          result.logprobs[index].push_back(item);
        }
      }
      if (const auto* ids = object.if_contains("token_ids")) {
        for (const auto& id : ids->as_array()) result.ids[index].push_back(id);
      }
    }
  }
  return result;
}

std::string text_of(const json::value& answer, std::size_t index = 0) {
  const auto& choice = answer.at("choices").at(index).as_object();
  return std::string(choice.contains("text") ? choice.at("text").as_string()
                                             : choice.at("message").at("content").as_string());
}

TEST(Chat, AnswersInOpenAisShape) {
  TestServer server(always("Hello"));
  const auto answer = ask(server, kChat, chat_body());
  EXPECT_EQ(answer.at("object"), "chat.completion");
  EXPECT_TRUE(answer.at("id").as_string().starts_with("chatcmpl-"));
  EXPECT_GT(answer.at("created").as_int64(), 1700000000);
  EXPECT_EQ(answer.at("model"), "fake");
  EXPECT_TRUE(answer.at("system_fingerprint").is_string());
  const auto& choice = answer.at("choices").at(0);
  EXPECT_EQ(choice.at("index"), 0);
  EXPECT_EQ(choice.at("message").at("role"), "assistant");
  EXPECT_EQ(choice.at("message").at("content"), "Hello");
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  EXPECT_TRUE(choice.at("logprobs").is_null());
  // "<user>hi\n<assistant>" has 20 bytes; five tokens and the end token were made.
  EXPECT_EQ(answer.at("usage").at("prompt_tokens"), 20);
  EXPECT_EQ(answer.at("usage").at("completion_tokens"), 6);
  EXPECT_EQ(answer.at("usage").at("total_tokens"), 26);
}

TEST(Chat, PutsTheConversationThroughTheTemplate) {
  TestServer server;
  HttpClient client(server.port());
  client.post(kChat, R"({"model":"fake","messages":[{"role":"developer","content":"be brief"},
      {"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]})");
  const auto ids = server.runtime().spec(server.runtime().wait_submitted()).prompt_ids;
  EXPECT_EQ(std::string(ids.begin(), ids.end()), "<system>be brief\n<user>one\ntwo\n<assistant>");
}

TEST(Chat, ContinuesTheFinalMessage) {
  TestServer server;
  HttpClient client(server.port());
  client.post(kChat, R"({"model":"fake","continue_final_message":true,"messages":[{"role":"user","content":"Count"},
      {"role":"assistant","content":"one, two, "}]})");
  const auto ids = server.runtime().spec(server.runtime().wait_submitted()).prompt_ids;
  EXPECT_EQ(std::string(ids.begin(), ids.end()), "<user>Count\n<assistant>one, two, ");
}

TEST(Chat, SaysWhyAModelCannotChat) {
  TestServer server({}, {}, "");
  const auto response = post_once(server.port(), kChat, json::serialize(chat_body()));
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(parsed(response.body).at("error").at("code"), "no_chat_template");
}

TEST(Chat, PassesTheTemplatesOwnRefusalOn) {
  TestServer server({}, {}, "{{ raise_exception('roles must alternate') }}");
  const auto response = post_once(server.port(), kChat, json::serialize(chat_body()));
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("roles must alternate"), std::string::npos);
}

struct StreamCase {
  const char* name;
  const char* reply;
  json::object extra;
  std::string text;
  std::string reason;
};

class StreamEqualsWhole : public ::testing::TestWithParam<bool> {};

// Every way an answer can end, on both endpoints: the stream adds up to the whole answer, and both to the text written
// out here.
TEST_P(StreamEqualsWhole, ForEveryEnd) {
  const bool chat = GetParam();
  const std::vector<StreamCase> cases = {
      {"natural end", "Hello world", {}, "Hello world", "stop"},
      {"empty answer", "", {}, "", "stop"},
      {"token limit", "Hello world", {{"max_tokens", 5}}, "Hello", "length"},
      {"limit inside a character", "a\xC3\xA9", {{"max_tokens", 2}}, "a\xEF\xBF\xBD", "length"},
      {"four-byte character", "x\xF0\x9F\x98\x80y", {}, "x\xF0\x9F\x98\x80y", "stop"},
      {"broken bytes",
       "a\xFF"
       "b\xE2\x82",
       {},
       "a\xEF\xBF\xBD"
       "b\xEF\xBF\xBD",
       "stop"},
      {"stop over tokens", "one two three", {{"stop", "two"}}, "one ", "stop"},
      {"the stop that ends first", "one two three", {{"stop", {"three", "o t", "two"}}}, "one ", "stop"},
      {"stop that only begins", "one tw", {{"stop", "two"}}, "one tw", "stop"},
      {"stop begun at the limit", "one two", {{"stop", "two"}, {"max_tokens", 6}}, "one tw", "length"},
      {"stop kept", "one two three", {{"stop", "two"}, {"include_stop_str_in_output", true}}, "one two", "stop"},
      {"stop inside a character's bytes", "caf\xC3\xA9!", {{"stop", "\xC3\xA9"}}, "caf", "stop"},
      {"special characters", "\"\\\n\t\x01", {}, "\"\\\n\t\x01", "stop"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    TestServer server(always(test.reply));
    const char* path = chat ? kChat : kText;
    const json::object body = chat ? chat_body(test.extra) : text_body("p", test.extra);
    const auto whole = ask(server, path, body);
    EXPECT_EQ(text_of(whole), test.text);
    EXPECT_EQ(whole.at("choices").at(0).at("finish_reason").as_string(), test.reason);
    auto streamed = ask_stream(server, path, body);
    EXPECT_TRUE(streamed.done);
    EXPECT_EQ(streamed.text[0], test.text);
    EXPECT_EQ(streamed.reason[0], test.reason);
    EXPECT_EQ(streamed.usage, whole.at("usage"));
  }
}

INSTANTIATE_TEST_SUITE_P(Endpoints, StreamEqualsWhole, ::testing::Values(true, false));

TEST(Stream, BeginsWithTheRoleAndEndsWithTheReason) {
  TestServer server(always("ab"));
  const auto streamed = ask_stream(server, kChat, chat_body());
  ASSERT_GE(streamed.events.size(), 4U);
  const auto& first = streamed.events.front();
  EXPECT_EQ(first.at("object"), "chat.completion.chunk");
  EXPECT_EQ(first.at("choices").at(0).at("delta").at("role"), "assistant");
  EXPECT_TRUE(first.at("usage").is_null());
  const auto& last_choice = streamed.events[streamed.events.size() - 2].at("choices").at(0);
  EXPECT_EQ(last_choice.at("finish_reason"), "stop");
  EXPECT_TRUE(last_choice.at("delta").as_object().empty());
  EXPECT_TRUE(streamed.events.back().at("choices").as_array().empty());
  for (const auto& event : streamed.events) EXPECT_EQ(event.at("id"), first.at("id"));
}

TEST(Stream, LeavesUsageOutUnlessAskedFor) {
  TestServer server(always("ab"));
  json::object body = chat_body({{"stream", true}});
  for (const auto& event : stream_events(server.port(), kChat, json::serialize(body))) {
    EXPECT_FALSE(parsed(event).as_object().contains("usage"));
  }
}

TEST(Stream, CountsUsageInEveryEventWhenAsked) {
  TestServer server(always("ab"));
  json::object body = chat_body({{"stream", true}, {"stream_options", {{"continuous_usage_stats", true}}}});
  std::int64_t last = -1;
  for (const auto& event : stream_events(server.port(), kChat, json::serialize(body))) {
    const std::int64_t now = parsed(event).at("usage").at("completion_tokens").as_int64();
    EXPECT_GE(now, last);
    last = now;
  }
  EXPECT_EQ(last, 3);
}

TEST(Stream, HoldsTextBackOnlyWhileItMayBeAStop) {
  TestServer server;
  HttpClient client(server.port());
  client.post(kText, R"({"model":"fake","prompt":"p","stream":true,"stop":"END"})");
  const auto handle = server.runtime().wait_submitted();
  server.runtime().emit(handle, "aEN");
  client.read_head();
  EXPECT_EQ(parsed(client.read_event()).at("choices").at(0).at("text"), "a");
  server.runtime().emit(handle, "x");
  EXPECT_EQ(parsed(client.read_event()).at("choices").at(0).at("text"), "ENx");
  server.runtime().emit(handle, "EN");
  server.runtime().emit(handle, "D tail");
  const auto last = parsed(client.read_event()).at("choices").at(0);
  EXPECT_EQ(last.at("text"), "");
  EXPECT_EQ(last.at("finish_reason"), "stop");
  server.runtime().wait_cancelled(handle);  // the model need not go on
  EXPECT_EQ(client.read_event(), "[DONE]");
}

TEST(Choices, GetSeedsOfTheirOwnAndKeepTheirOrder) {
  TestServer server;
  HttpClient client(server.port());
  client.post(kText, R"({"model":"fake","prompt":["a","b"],"n":2,"seed":40,"max_tokens":8})");
  std::vector<RequestHandle> handles;
  for (int i = 0; i < 4; ++i) handles.push_back(server.runtime().wait_submitted());
  const std::uint64_t seeds[] = {40, 41, 40, 41};
  const char* prompts[] = {"a", "a", "b", "b"};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto spec = server.runtime().spec(handles[i]);
    EXPECT_TRUE(spec.sampling.has_seed);
    EXPECT_EQ(spec.sampling.seed, seeds[i]);
    EXPECT_EQ(std::string(spec.prompt_ids.begin(), spec.prompt_ids.end()), prompts[i]);
  }
  const char* texts[] = {"w", "xx", "yyy", "zzzz"};
  for (const std::size_t i : {3U, 1U, 0U, 2U}) {  // they end in another order
    server.runtime().emit(handles[i], texts[i]);
    server.runtime().finish(handles[i], FinishReason::kStop);
  }
  const auto answer = parsed(client.read_response().body);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answer.at("choices").at(i).at("index"), i);
    EXPECT_EQ(text_of(answer, i), texts[i]);
  }
  EXPECT_EQ(answer.at("usage").at("prompt_tokens"), 2);
  EXPECT_EQ(answer.at("usage").at("completion_tokens"), 10);
}

TEST(Choices, InterleaveInAStream) {
  TestServer server(always("abc"));
  auto streamed = ask_stream(server, kChat, chat_body({{"n", 3}}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(streamed.text[i], "abc");
    EXPECT_EQ(streamed.reason[i], "stop");
  }
}

TEST(Request, HandsEveryParameterToTheRuntime) {
  TestServer server;
  HttpClient client(server.port());
  client.post(kText, R"({"model":"fake","prompt":[1,2,3],"temperature":0.5,"top_p":0.25,"top_k":7,"min_p":0.125,
      "repetition_penalty":1.5,"presence_penalty":-1,"frequency_penalty":2,"logit_bias":{"5":-100,"9":1.5},"seed":-1,
      "max_tokens":9,"min_tokens":3,"stop_token_ids":[4,250],"ignore_eos":true,"logprobs":4,"model_kwargs":{"a":[1,"x"]}})");
  const auto spec = server.runtime().spec(server.runtime().wait_submitted());
  EXPECT_EQ(spec.prompt_ids, (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(spec.sampling.temperature, 0.5F);
  EXPECT_EQ(spec.sampling.top_p, 0.25F);
  EXPECT_EQ(spec.sampling.top_k, 7);
  EXPECT_EQ(spec.sampling.min_p, 0.125F);
  EXPECT_EQ(spec.sampling.repetition_penalty, 1.5F);
  EXPECT_EQ(spec.sampling.presence_penalty, -1.0F);
  EXPECT_EQ(spec.sampling.frequency_penalty, 2.0F);
  EXPECT_EQ(spec.sampling.logit_bias, (std::vector<std::pair<std::int32_t, float>>{{5, -100.0F}, {9, 1.5F}}));
  EXPECT_EQ(spec.sampling.seed, ~std::uint64_t{0});
  EXPECT_EQ(spec.sampling.logprobs, 4);
  EXPECT_EQ(spec.sampling.prompt_logprobs, -1);
  EXPECT_EQ(spec.max_tokens, 9);
  EXPECT_EQ(spec.min_tokens, 3);
  EXPECT_EQ(spec.stop_token_ids, (std::vector<std::int32_t>{4, 250}));
  EXPECT_TRUE(spec.ignore_eos);
  ASSERT_NE(spec.model_kwargs.find("a"), nullptr);
  EXPECT_EQ(*spec.model_kwargs.find("a"), Value(ValueList{Value(1), Value("x")}));
}

TEST(Request, HasOpenAisDefaults) {
  TestServer server;
  HttpClient client(server.port());
  client.post(kText, R"({"model":"fake","prompt":"p"})");
  auto spec = server.runtime().spec(server.runtime().wait_submitted());
  EXPECT_EQ(spec.max_tokens, 16);
  EXPECT_EQ(spec.sampling.temperature, 1.0F);
  EXPECT_EQ(spec.sampling.top_p, 1.0F);
  EXPECT_FALSE(spec.sampling.has_seed);
  EXPECT_EQ(spec.sampling.logprobs, -1);
  HttpClient chat(server.port());
  chat.post(kChat, json::serialize(chat_body()));
  spec = server.runtime().spec(server.runtime().wait_submitted());
  EXPECT_EQ(spec.max_tokens, 0);
  EXPECT_FALSE(spec.ignore_eos);
}

TEST(Logprobs, OfChatHaveTokensBytesAndAlternatives) {
  TestServer server(always("A\xC3\xA9"));
  const json::object body = chat_body({{"logprobs", true}, {"top_logprobs", 2}});
  const auto answer = ask(server, kChat, body);
  const auto& content = answer.at("choices").at(0).at("logprobs").at("content").as_array();
  ASSERT_EQ(content.size(), 3U);
  EXPECT_EQ(content[0].at("token"), "A");
  EXPECT_EQ(content[0].at("logprob"), -1.25);
  EXPECT_EQ(content[0].at("bytes"), json::array{65});
  EXPECT_EQ(content[0].at("top_logprobs").at(0).at("token"), "B");
  EXPECT_EQ(content[0].at("top_logprobs").at(0).at("logprob"), -1);
  EXPECT_EQ(content[0].at("top_logprobs").at(1).at("token"), "A");
  EXPECT_EQ(content[1].at("token"), "\xEF\xBF\xBD");  // half a character: the bytes tell
  EXPECT_EQ(content[1].at("bytes"), json::array{0xC3});
  EXPECT_EQ(content[2].at("bytes"), json::array{0xA9});
  EXPECT_EQ(ask_stream(server, kChat, body).logprobs[0], content);
}

TEST(Logprobs, OfChatWithoutAlternativesHaveEmptyLists) {
  TestServer server(always("A"));
  const auto answer = ask(server, kChat, chat_body({{"logprobs", true}}));
  EXPECT_TRUE(answer.at("choices").at(0).at("logprobs").at("content").at(0).at("top_logprobs").as_array().empty());
}

TEST(Logprobs, OfTextHaveTheOldShape) {
  TestServer server(
      always("A\xC3\xA9"
             "b"));
  const json::object body = text_body("p", {{"logprobs", 1}});
  const auto answer = ask(server, kText, body);
  const auto& logprobs = answer.at("choices").at(0).at("logprobs");
  EXPECT_EQ(logprobs.at("tokens"), (json::array{"A", "bytes:\\xc3", "bytes:\\xa9", "b"}));
  EXPECT_EQ(logprobs.at("token_logprobs"), (json::array{-1.25, -1.25, -1.25, -1.25}));
  EXPECT_EQ(logprobs.at("text_offset"), (json::array{0, 1, 2, 2}));
  // The best alternative, and the chosen token beside it.
  EXPECT_EQ(logprobs.at("top_logprobs").at(0), (json::object{{"B", -1}, {"A", -1.25}}));
  EXPECT_EQ(ask_stream(server, kText, body).logprobs[0], logprobs.at("tokens").as_array());
}

// As lm-evaluation-harness scores a continuation: token_logprobs[context:-1] must be the continuation's.
TEST(Echo, ScoresAPromptForEvaluationHarnesses) {
  TestServer server(always("Z"));
  for (const int max_tokens : {0, 1}) {
    const auto answer = ask(
        server, kText, text_body({{97, 98, 99}, {120}}, {{"echo", true}, {"logprobs", 2}, {"max_tokens", max_tokens}}));
    const auto& first = answer.at("choices").at(0);
    EXPECT_EQ(first.at("text"), max_tokens == 0 ? "abc" : "abcZ");
    EXPECT_EQ(first.at("finish_reason"), "length");
    json::array tokens{"a", "b", "c"};
    json::array values{nullptr, -1.25, -1.25};
    if (max_tokens == 1) {
      tokens.push_back("Z");
      values.push_back(-1.25);
    }
    EXPECT_EQ(first.at("logprobs").at("tokens"), tokens);
    EXPECT_EQ(first.at("logprobs").at("token_logprobs"), values);
    EXPECT_TRUE(first.at("logprobs").at("top_logprobs").at(0).is_null());
    EXPECT_EQ(first.at("logprobs").at("top_logprobs").at(1), (json::object{{"c", -1}, {"b", -1.25}}));
    EXPECT_EQ(answer.at("choices").at(1).at("logprobs").at("tokens").at(0), "x");
    EXPECT_EQ(answer.at("usage").at("completion_tokens"), 2 * max_tokens);
  }
}

TEST(Echo, DoesNotLetAnEndTokenShortenTheArrays) {
  TestServer server;
  HttpClient client(server.port());
  client.post(kText, R"({"model":"fake","prompt":"ab","echo":true,"logprobs":1,"max_tokens":1})");
  EXPECT_TRUE(server.runtime().spec(server.runtime().wait_submitted()).ignore_eos);
}

TEST(Echo, PutsThePromptBeforeTheText) {
  TestServer server(always("cd"));
  const json::object body = text_body("ab", {{"echo", true}, {"stop", "b"}});  // a stop in the prompt does not count
  EXPECT_EQ(text_of(ask(server, kText, body)), "abcd");
  EXPECT_EQ(ask_stream(server, kText, body).text[0], "abcd");
}

TEST(Completion, TakesEveryKindOfPrompt) {
  TestServer server(
      {.script = [](const RequestSpec& spec) { return std::string(spec.prompt_ids.begin(), spec.prompt_ids.end()); }});
  EXPECT_EQ(text_of(ask(server, kText, text_body("abc"))), "abc");
  EXPECT_EQ(text_of(ask(server, kText, text_body({97, 98}))), "ab");
  const auto texts = ask(server, kText, text_body({"x", "yz"}));
  EXPECT_EQ(text_of(texts, 0), "x");
  EXPECT_EQ(text_of(texts, 1), "yz");
  const auto lists = ask(server, kText, text_body({{97}, {98, 99}}));
  EXPECT_EQ(text_of(lists, 0), "a");
  EXPECT_EQ(text_of(lists, 1), "bc");
}

TEST(Completion, FinishesACharacterThatThePromptBegan) {
  TestServer server(always("\xA9!"));
  EXPECT_EQ(text_of(ask(server, kText, text_body({0x61, 0xC3}))), "\xC3\xA9!");
}

TEST(TokenIds, ComeWithPromptAndEndToken) {
  TestServer server(always("ab"));
  const auto text = ask(server, kText, text_body("p", {{"return_token_ids", true}}));
  EXPECT_EQ(text.at("choices").at(0).at("token_ids"), (json::array{97, 98, 0}));
  EXPECT_EQ(text.at("choices").at(0).at("prompt_token_ids"), json::array{112});
  const auto chat = ask(server, kChat, chat_body({{"return_token_ids", true}, {"max_tokens", 1}}));
  EXPECT_EQ(chat.at("choices").at(0).at("token_ids"), json::array{97});
  EXPECT_EQ(chat.at("prompt_token_ids").as_array().size(), 20U);
  EXPECT_EQ(ask_stream(server, kText, text_body("p", {{"return_token_ids", true}})).ids[0], (json::array{97, 98, 0}));
}

TEST(Errors, OfARuntimeAreAnsweredBeforeAStreamBegins) {
  TestServer server;
  for (const bool stream : {false, true}) {
    for (const bool client_error : {false, true}) {
      HttpClient client(server.port());
      client.post(kChat, json::serialize(chat_body({{"stream", stream}})));
      server.runtime().finish(server.runtime().wait_submitted(), FinishReason::kError, "the image is too large",
                              client_error);
      const auto response = client.read_response();
      EXPECT_EQ(response.status, client_error ? 400 : 500);
      const auto error = parsed(response.body).at("error");
      if (client_error) {
        EXPECT_EQ(error.at("message"), "the image is too large");
      } else {
        // Our fault: the text stays in the log, the client gets the id to ask about.
        EXPECT_EQ(response.body.find("too large"), std::string::npos);
        EXPECT_NE(std::string(error.at("message").as_string()).find(response.headers.at("x-request-id")),
                  std::string::npos);
      }
    }
  }
}

TEST(Errors, InsideAStreamAreAnEvent) {
  TestServer server;
  HttpClient client(server.port());
  client.post(kChat, json::serialize(chat_body({{"stream", true}, {"n", 2}})));
  const auto first = server.runtime().wait_submitted();
  const auto second = server.runtime().wait_submitted();
  server.runtime().emit(first, "a");
  EXPECT_EQ(client.read_head().status, 200);
  client.read_event();  // role
  client.read_event();  // "a"
  server.runtime().finish(first, FinishReason::kError, "boom");
  EXPECT_EQ(parsed(client.read_event()).at("error").at("code"), "internal_error");
  EXPECT_EQ(client.read_event(), "");
  EXPECT_TRUE(client.wait_closed());
  server.runtime().wait_cancelled(second);
}

TEST(Errors, FullQueueIs429AndTakesNothing) {
  TestServer server({.max_open = 3});
  const auto response = post_once(server.port(), kText, R"({"model":"fake","prompt":["a","b"],"n":2})");
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(parsed(response.body).at("error").at("code"), "queue_full");
  EXPECT_TRUE(response.headers.contains("retry-after"));
  EXPECT_EQ(server.runtime().open_requests(), 0);
}

TEST(Errors, ContextOverflowGivesTheNumbers) {
  TestServer server({.max_seq_len = 32});
  const auto response =
      post_once(server.port(), kText, json::serialize(text_body(json::string(30, 'a'), {{"max_tokens", 3}})));
  EXPECT_EQ(response.status, 400);
  const auto error = parsed(response.body).at("error");
  EXPECT_EQ(error.at("code"), "context_length_exceeded");
  for (const char* number : {"32", "30", "3"})
    EXPECT_NE(std::string(error.at("message").as_string()).find(number), std::string::npos);
  TestServer fits({.max_seq_len = 32, .script = [](const RequestSpec&) { return std::string("ab"); }});
  EXPECT_EQ(
      post_once(fits.port(), kText, json::serialize(text_body(json::string(30, 'a'), {{"max_tokens", 2}}))).status,
      200);
}

TEST(Metrics, CountEachRequestEndOnce) {
  TestServer server(always("abc"));
  ask(server, kText, text_body("pp"));
  ask(server, kText, text_body("pp", {{"max_tokens", 1}, {"n", 2}}));
  ask(server, kText, text_body("pp", {{"stop", "b"}}));
  const std::string metrics = get_once(server.port(), "/metrics").body;
  const auto has = [&](const std::string& line) {
    EXPECT_NE(metrics.find(line + "\n"), std::string::npos) << line << "\n" << metrics;
  };
  has(R"(vllm:request_success_total{model_name="fake",finished_reason="stop"} 2)");
  has(R"(vllm:request_success_total{model_name="fake",finished_reason="length"} 2)");
  has(R"(vllm:request_success_total{model_name="fake",finished_reason="abort"} 0)");
  has(R"(vllm:e2e_request_latency_seconds_count{model_name="fake"} 4)");
  has(R"(vllm:time_to_first_token_seconds_count{model_name="fake"} 4)");
  has(R"(vllm:request_prompt_tokens_sum{model_name="fake"} 8)");
  has(R"(vllm:prompt_tokens_total{model_name="fake"} 8)");
  has(R"(vllm:num_requests_running{model_name="fake"} 0)");
  has(R"(vllm:kv_cache_usage_perc{model_name="fake"} 0)");
  has(R"(cairn_http_requests_total{route="/v1/completions",code="200"} 3)");
}

TEST(TextRoutes, FollowVllmAndLlamaCpp) {
  TestServer server;
  const auto post = [&](const char* path, const char* body) {
    return parsed(post_once(server.port(), path, body).body);
  };
  EXPECT_EQ(post("/tokenize", R"({"prompt":"ab"})").at("tokens"), (json::array{97, 98}));
  EXPECT_EQ(post("/tokenize", R"({"model":"fake","content":"ab"})").at("count"), 2);
  EXPECT_EQ(
      post("/tokenize", R"({"messages":[{"role":"user","content":"x"}],"add_generation_prompt":false})").at("count"),
      8);
  EXPECT_EQ(post("/detokenize", R"({"tokens":[104,105]})").at("prompt"), "hi");
  EXPECT_EQ(post("/detokenize", R"({"tokens":[195]})").at("content"), "\xEF\xBF\xBD");
  EXPECT_EQ(post("/detokenize", R"({"tokens":[256]})").at("error").at("param"), "tokens");
  EXPECT_EQ(post("/apply-template", R"({"messages":[{"role":"user","content":"x"}]})").at("prompt"),
            "<user>x\n<assistant>");
}

}  // namespace
}  // namespace cairn::testing
