// Every parameter with every kind of wrong value: the status, the code and the `param` that the client gets.
#include <gtest/gtest.h>

#include "tests/unit/host/test_server.hpp"

namespace cairn::testing {
namespace {

struct Wrong {
  const char* field;  // as JSON: "name":value
  const char* code;
  const char* param;
};

constexpr const char kChat[] = R"({"model":"fake","messages":[{"role":"user","content":"hi"}],)";
constexpr const char kText[] = R"({"model":"fake","prompt":"hi",)";

void expect_wrong(TestServer& server, const char* path, const std::string& body, const char* code, const char* param) {
  const auto response = post_once(server.port(), path, body);
  ASSERT_EQ(response.status, 400) << body << "\n" << response.body;
  const auto error = parsed(response.body).at("error");
  EXPECT_EQ(error.at("type"), "invalid_request_error") << body;
  EXPECT_EQ(error.at("code"), code) << body << "\n" << response.body;
  EXPECT_EQ(error.at("param"), param) << body << "\n" << response.body;
  EXPECT_TRUE(error.at("message").as_string().ends_with(".") || error.at("message").as_string().ends_with("?"))
      << response.body;
}

// Both endpoints share these.
constexpr Wrong kShared[] = {
    {R"("temperature":-0.1)", "invalid_value", "temperature"},
    {R"("temperature":2.1)", "invalid_value", "temperature"},
    {R"("temperature":"1")", "invalid_type", "temperature"},
    {R"("temperature":true)", "invalid_type", "temperature"},
    {R"("temperature":1e400)", "invalid_type", "temperature"},
    {R"("top_p":0)", "invalid_value", "top_p"},
    {R"("top_p":1.01)", "invalid_value", "top_p"},
    {R"("top_p":[])", "invalid_type", "top_p"},
    {R"("top_k":-2)", "invalid_value", "top_k"},
    {R"("top_k":1.5)", "invalid_type", "top_k"},
    {R"("top_k":3000000000)", "invalid_value", "top_k"},
    {R"("min_p":-0.5)", "invalid_value", "min_p"},
    {R"("min_p":2)", "invalid_value", "min_p"},
    {R"("repetition_penalty":0)", "invalid_value", "repetition_penalty"},
    {R"("repetition_penalty":11)", "invalid_value", "repetition_penalty"},
    {R"("presence_penalty":2.5)", "invalid_value", "presence_penalty"},
    {R"("presence_penalty":{})", "invalid_type", "presence_penalty"},
    {R"("frequency_penalty":-2.5)", "invalid_value", "frequency_penalty"},
    {R"("seed":1.5)", "invalid_type", "seed"},
    {R"("seed":18446744073709551615)", "invalid_value", "seed"},
    {R"("seed":"7")", "invalid_type", "seed"},
    {R"("n":0)", "invalid_value", "n"},
    {R"("n":129)", "invalid_value", "n"},
    {R"("n":"2")", "invalid_type", "n"},
    {R"("best_of":3)", "unsupported_parameter", "best_of"},
    {R"("max_tokens":-1)", "invalid_value", "max_tokens"},
    {R"("max_tokens":"9")", "invalid_type", "max_tokens"},
    {R"("max_tokens":99999999999999999999)", "invalid_type", "max_tokens"},
    {R"("min_tokens":-1)", "invalid_value", "min_tokens"},
    {R"("min_tokens":5,"max_tokens":4)", "invalid_value", "min_tokens"},
    {R"("stop":5)", "invalid_type", "stop"},
    {R"("stop":"")", "invalid_value", "stop"},
    {R"("stop":["a",1])", "invalid_type", "stop"},
    {R"("stop":["a",""])", "invalid_value", "stop"},
    {R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])", "invalid_value",
     "stop"},
    {R"("stop_token_ids":[256])", "invalid_value", "stop_token_ids"},
    {R"("stop_token_ids":[-1])", "invalid_value", "stop_token_ids"},
    {R"("stop_token_ids":["a"])", "invalid_type", "stop_token_ids"},
    {R"("stop_token_ids":3)", "invalid_type", "stop_token_ids"},
    {R"("stream":"yes")", "invalid_type", "stream"},
    {R"("stream_options":{"include_usage":true})", "invalid_value", "stream_options"},
    {R"("stream":true,"stream_options":[])", "invalid_type", "stream_options"},
    {R"("stream":true,"stream_options":{"include_usage":1})", "invalid_type", "stream_options.include_usage"},
    {R"("stream":true,"stream_options":{"include_usag":true})", "unknown_parameter", "stream_options.include_usag"},
    {R"("logit_bias":{"256":1})", "invalid_value", "logit_bias"},
    {R"("logit_bias":{"-1":1})", "invalid_value", "logit_bias"},
    {R"("logit_bias":{"x":1})", "invalid_value", "logit_bias"},
    {R"("logit_bias":{"5":101})", "invalid_value", "logit_bias.5"},
    {R"("logit_bias":{"5":"1"})", "invalid_type", "logit_bias.5"},
    {R"("logit_bias":{"5":null})", "invalid_type", "logit_bias.5"},
    {R"("logit_bias":[])", "invalid_type", "logit_bias"},
    {R"("ignore_eos":1)", "invalid_type", "ignore_eos"},
    {R"("include_stop_str_in_output":"x")", "invalid_type", "include_stop_str_in_output"},
    {R"("skip_special_tokens":0)", "invalid_type", "skip_special_tokens"},
    {R"("add_special_tokens":"no")", "invalid_type", "add_special_tokens"},
    {R"("return_token_ids":[])", "invalid_type", "return_token_ids"},
    {R"("model_kwargs":[1])", "invalid_type", "model_kwargs"},
    {R"("response_format":{"type":"json_object"})", "unsupported_parameter", "response_format"},
    {R"("response_format":{})", "missing_required_parameter", "response_format.type"},
    {R"("response_format":"text")", "invalid_type", "response_format"},
    {R"("guided_json":{})", "unsupported_parameter", "guided_json"},
    {R"("use_beam_search":true)", "unsupported_parameter", "use_beam_search"},
    {R"("user":5)", "invalid_type", "user"},
    {R"("store":"yes")", "invalid_type", "store"},
    {R"("metadata":[])", "invalid_type", "metadata"},
    {R"("temprature":1)", "unknown_parameter", "temprature"},
    {R"("max_token":1)", "unknown_parameter", "max_token"},
    {R"("top_pp":1)", "unknown_parameter", "top_pp"},
};

TEST(Params, SharedOnesAreCheckedOnBothEndpoints) {
  TestServer server;
  for (const auto& wrong : kShared) {
    expect_wrong(server, "/v1/chat/completions", kChat + std::string(wrong.field) + "}", wrong.code, wrong.param);
    expect_wrong(server, "/v1/completions", kText + std::string(wrong.field) + "}", wrong.code, wrong.param);
  }
}

TEST(Params, OfChatAreChecked) {
  TestServer server;
  for (const auto& wrong : std::initializer_list<Wrong>{
           {R"("max_tokens":0)", "invalid_value", "max_tokens"},
           {R"("max_completion_tokens":0)", "invalid_value", "max_completion_tokens"},
           {R"("max_completion_tokens":5,"max_tokens":6)", "invalid_value", "max_tokens"},
           {R"("logprobs":1)", "invalid_type", "logprobs"},
           {R"("top_logprobs":3)", "invalid_value", "top_logprobs"},
           {R"("logprobs":true,"top_logprobs":21)", "invalid_value", "top_logprobs"},
           {R"("logprobs":true,"top_logprobs":-1)", "invalid_value", "top_logprobs"},
           {R"("echo":true)", "unsupported_parameter", "echo"},
           {R"("tools":{})", "invalid_type", "tools"},
           {R"("tools":[1])", "invalid_type", "tools[0]"},
           {R"("tools":[{"type":"x"}])", "invalid_value", "tools[0].type"},
           {R"("tools":[{"type":"function"}])", "missing_required_parameter", "tools[0].function"},
           {R"("tools":[{"type":"function","function":{}}])", "missing_required_parameter", "tools[0].function.name"},
           {R"("tool_choice":5)", "invalid_type", "tool_choice"},
           {R"("tool_choice":"any")", "invalid_value", "tool_choice"},
           {R"("tool_choice":"required")", "unsupported_parameter", "tool_choice"},
           {R"("modalities":["text","audio"])", "unsupported_parameter", "modalities"},
           {R"("audio":{})", "unsupported_parameter", "audio"},
           {R"("functions":[])", "unsupported_parameter", "functions"},
           {R"("chat_template":"x")", "unsupported_parameter", "chat_template"},
           {R"("chat_template_kwargs":[])", "invalid_type", "chat_template_kwargs"},
           {R"("add_generation_prompt":1)", "invalid_type", "add_generation_prompt"},
           {R"("continue_final_message":"x")", "invalid_type", "continue_final_message"},
           {R"("continue_final_message":true,"add_generation_prompt":true)", "invalid_value", "continue_final_message"},
           {R"("reasoning_effort":3)", "invalid_type", "reasoning_effort"},
       }) {
    expect_wrong(server, "/v1/chat/completions", kChat + std::string(wrong.field) + "}", wrong.code, wrong.param);
  }
}

TEST(Params, MessagesAreChecked) {
  TestServer server;
  for (const auto& wrong : std::initializer_list<Wrong>{
           {R"("messages":"hi")", "invalid_type", "messages"},
           {R"("messages":[])", "invalid_value", "messages"},
           {R"("messages":null)", "missing_required_parameter", "messages"},
           {R"("messages":["hi"])", "invalid_type", "messages[0]"},
           {R"("messages":[{"content":"x"}])", "missing_required_parameter", "messages[0].role"},
           {R"("messages":[{"role":"robot","content":"x"}])", "invalid_value", "messages[0].role"},
           {R"("messages":[{"role":1,"content":"x"}])", "invalid_type", "messages[0].role"},
           {R"("messages":[{"role":"user"}])", "missing_required_parameter", "messages[0].content"},
           {R"("messages":[{"role":"user","content":5}])", "invalid_type", "messages[0].content"},
           {R"("messages":[{"role":"user","content":["x"]}])", "invalid_type", "messages[0].content[0]"},
           {R"("messages":[{"role":"user","content":[{}]}])", "missing_required_parameter",
            "messages[0].content[0].type"},
           {R"("messages":[{"role":"user","content":[{"type":"text"}]}])", "missing_required_parameter",
            "messages[0].content[0].text"},
           {R"("messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}])", "unsupported_parameter",
            "messages[0].content[0].type"},
           {R"("messages":[{"role":"assistant","tool_calls":[{}]}])", "missing_required_parameter",
            "messages[0].tool_calls[0].function"},
       }) {
    expect_wrong(server, "/v1/chat/completions", std::string(R"({"model":"fake",)") + wrong.field + "}", wrong.code,
                 wrong.param);
  }
}

TEST(Params, OfCompletionsAreChecked) {
  TestServer server;
  for (const auto& wrong : std::initializer_list<Wrong>{
           {R"("logprobs":true)", "invalid_type", "logprobs"},
           {R"("logprobs":21)", "invalid_value", "logprobs"},
           {R"("logprobs":-1)", "invalid_value", "logprobs"},
           {R"("echo":"x")", "invalid_type", "echo"},
           {R"("suffix":"x")", "unsupported_parameter", "suffix"},
           {R"("suffix":1)", "invalid_type", "suffix"},
       }) {
    expect_wrong(server, "/v1/completions", kText + std::string(wrong.field) + "}", wrong.code, wrong.param);
  }
  for (const auto& wrong : std::initializer_list<Wrong>{
           {R"("prompt":null)", "missing_required_parameter", "prompt"},
           {R"("prompt":5)", "invalid_type", "prompt"},
           {R"("prompt":"")", "invalid_value", "prompt"},
           {R"("prompt":[])", "invalid_value", "prompt"},
           {R"("prompt":[[]])", "invalid_value", "prompt"},
           {R"("prompt":["a",""])", "invalid_value", "prompt"},
           {R"("prompt":[1,"a"])", "invalid_type", "prompt"},
           {R"("prompt":[1.5])", "invalid_type", "prompt"},
           {R"("prompt":[256])", "invalid_value", "prompt"},
           {R"("prompt":[-1])", "invalid_value", "prompt"},
           {R"("prompt":[{"a":1}])", "invalid_type", "prompt"},
       }) {
    expect_wrong(server, "/v1/completions", std::string(R"({"model":"fake",)") + wrong.field + "}", wrong.code,
                 wrong.param);
  }
}

TEST(Params, TheModelMustBeNamedAndServed) {
  TestServer server;
  expect_wrong(server, "/v1/completions", R"({"prompt":"x"})", "missing_required_parameter", "model");
  expect_wrong(server, "/v1/completions", R"({"model":5,"prompt":"x"})", "invalid_type", "model");
  const auto response = post_once(server.port(), "/v1/completions", R"({"model":"gpt-4","prompt":"x"})");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(parsed(response.body).at("error").at("code"), "model_not_found");
  EXPECT_EQ(parsed(response.body).at("error").at("param"), "model");
}

TEST(Params, ABodyThatIsNoJsonObjectIsRefusedInOurWords) {
  TestServer server;
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("nul"), std::string("{\"a\":NaN}"),
        std::string("{} x"), std::string("{\"a\":\"\xFF\"}"), std::string(100, '[')}) {
    const auto response = post_once(server.port(), "/v1/chat/completions", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_EQ(parsed(response.body).at("error").at("code"), "invalid_json") << body;
  }
}

TEST(Params, NullAndForeignExtensionsAreIgnored) {
  TestServer server(always("ok"));
  EXPECT_EQ(post_once(server.port(), "/v1/completions",
                      kText + std::string(R"("temperature":null,"stop":null,"logit_bias":null,"stream":null,"n":null,
        "suffix":null,"cache_prompt":true,"some_vendors_extension":{"x":1},"user":"me","metadata":{"a":"b"}})"))
                .status,
            200);
}

TEST(Params, BordersAreAllowed) {
  TestServer server(always("ok"));
  for (const char* fields :
       {R"("temperature":0,"top_p":1,"top_k":-1,"min_p":0)", R"("temperature":2,"top_p":1e-9,"min_p":1)",
        R"("presence_penalty":-2,"frequency_penalty":2,"repetition_penalty":10)", R"("seed":-9223372036854775808)",
        R"("seed":9223372036854775807)", R"("logit_bias":{"0":-100,"255":100})", R"("stop_token_ids":[0,255])",
        R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16"])"}) {
    EXPECT_EQ(post_once(server.port(), "/v1/completions", kText + std::string(fields) + "}").status, 200) << fields;
  }
}

}  // namespace
}  // namespace cairn::testing
