// What hostile templates and conversations meet: every limit, and errors that say where.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "core/text/template/chat_template.hpp"

namespace cairn {
namespace {

std::string render(const std::string& source, const RenderOptions& options = {}) {
  return ChatTemplate(source).render_value({}, options);
}

std::string error_of(const std::string& source, const RenderOptions& options = {}) {
  try {
    render(source, options);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

std::string load_error_of(const std::string& source) {
  try {
    const ChatTemplate compiled(source, "model.jinja");
  } catch (const BadFile& error) {
    return error.what();
  }
  return "";
}

std::string times(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
}

TEST(ChatTemplateLimits, ALoopThatRunsTooLongIsStoppedByTheClock) {
  RenderOptions options;
  options.limits.time = std::chrono::milliseconds(50);
  const std::string loop = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
  expect_contains(error_of(loop, options), "limit of 50 ms");
}

TEST(ChatTemplateLimits, StepsAreCounted) {
  RenderOptions options;
  options.limits.steps = 1000;
  expect_contains(error_of("{% for a in range(2000) %}{{ a }}{% endfor %}", options), "limit of 1000 steps");
}

TEST(ChatTemplateLimits, OutputIsBounded) {
  RenderOptions options;
  options.limits.output_bytes = 100;
  EXPECT_EQ(render("{{ 'a' * 100 }}", options).size(), 100U);
  expect_contains(error_of("{{ 'a' * 101 }}", options), "limit of 100 bytes");
}

TEST(ChatTemplateLimits, LargeValuesAreRefusedBeforeTheyAreMade) {
  RenderOptions options;
  options.limits.memory_bytes = size_t{8} << 20;
  options.limits.time = std::chrono::minutes(2);  // so that the clock of a slow machine is not what stops these
  for (const char* source :
       {"{{ ('a' * 1000000000)|length }}", "{{ ([1] * 1000000000)|length }}", "{{ 'a'.center(1000000000)|length }}",
        "{{ 'a'|indent(1000000000) }}", "{{ [1]|batch(1000000000, 0)|list }}", "{{ [1]|slice(1000000000)|list }}",
        "{{ ('a' * 100000).replace('a', 'b' * 100000) }}", "{{ ('ab' * 2000000)|list }}",
        "{% set ns = namespace(s='a') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(64) %}{% set ns.l = ns.l + ns.l %}{% endfor %}"}) {
    expect_contains(error_of(source, options), "bytes of memory");
  }
  expect_contains(error_of("{{ range(100001) }}"), "Range too big");
  expect_contains(error_of("{{ '%1000000000d' % 1 }}"), "too large");
  expect_contains(error_of("{{ 9223372036854775807 + 1 }}"), "64 bits");
  expect_contains(error_of("{{ 10 ** 100 }}"), "64 bits");
}

TEST(ChatTemplateLimits, RecursionIsBounded) {
  expect_contains(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "deeper than its limit");
  expect_contains(error_of("{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}"), "deeper than its limit");
  expect_contains(error_of("{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = [n.l] %}{% endfor %}"),
                  "nested deeper");
  expect_contains(error_of("{% set n = namespace() %}{% set n.n = n %}{{ n }}"), "deeper than its limit");
}

TEST(ChatTemplateLimits, DeepSourceIsRefusedWhenLoaded) {
  for (const std::string& source :
       {"{{ " + times("(", 5000) + "1" + times(")", 5000) + " }}", "{{ " + times("[", 5000) + times("]", 5000) + " }}",
        "{{ " + times("not ", 5000) + "1 }}", "{{ " + times("-", 5000) + "1 }}", "{{ 1" + times(" + 1", 5000) + " }}",
        "{{ a" + times(".a", 5000) + " }}", "{{ a" + times("|upper", 5000) + " }}",
        times("{% if 1 %}", 5000) + times("{% endif %}", 5000),
        "{% set " + times("(", 5000) + "a" + times(")", 5000) + " = 1 %}"}) {
    expect_contains(load_error_of(source), "nested deeper");
  }
}

TEST(ChatTemplateLimits, ValuesThatHoldOneAnotherAreReleased) {
  // Run under the address sanitizer, this finds leaks.
  EXPECT_EQ(render("{% set n = namespace() %}{% set n.n = n %}{% set n.l = [n] %}"
                   "{% for i in range(3) %}{% set p = n.f %}{% macro f() %}{{ p }}{% endmacro %}{% set n.f = f %}"
                   "{{ loop.changed(loop) }}{% set n.loop = loop %}{% endfor %}"),
            "TrueFalseFalse");
}

TEST(ChatTemplateErrors, ALoadErrorNamesFileLineColumnAndText) {
  const std::string error = load_error_of("line one\n{% if x %}\n  {{ y + }}\n{% endif %}");
  expect_contains(error, "'model.jinja', line 3, column 10");
  expect_contains(error, "{{ y + }}");
  expect_contains(load_error_of("{% include 'x' %}"), "not supported in chat templates");
  expect_contains(load_error_of("{% extends 'x' %}"), "not supported in chat templates");
  expect_contains(load_error_of("{{ 1|nosuch }}"), "no filter named 'nosuch'");
  expect_contains(load_error_of("{% if x %}"), "needs 'endif'");
  expect_contains(load_error_of("\xff"), "not valid UTF-8");
}

TEST(ChatTemplateErrors, ARenderErrorNamesTheLine) {
  expect_contains(error_of("a\nb\n{{ x.y }}"), "line 3: 'x' is undefined");
  expect_contains(error_of("{% set l = [] %}\n{{ l.append(1) }}"),
                  "line 2: access to attribute 'append' of 'list' object");
  expect_contains(error_of("{{ ''.__class__.__mro__ }}"), "is unsafe");
  expect_contains(error_of("{{ [1, 2]|random }}"), "not supported in chat templates");
  expect_contains(error_of("{{ lipsum() }}"), "not supported in chat templates");
}

TEST(ChatTemplateErrors, TheTemplatesOwnMessageIsPassedOnUnchanged) {
  EXPECT_EQ(error_of("x\n{{ raise_exception('Roles must alternate!') }}"), "Roles must alternate!");
}

TEST(ChatTemplateErrors, ABadConversationIsTheCallersFault) {
  const ChatTemplate echo("{{ messages }}");
  boost::json::array messages{boost::json::string("\xff")};
  EXPECT_THROW(echo.render(messages, nullptr, {}), InvalidArgument);
  boost::json::value nested = boost::json::array{};
  for (int i = 0; i < 1000; ++i) nested = boost::json::array{nested};
  messages = {nested};
  EXPECT_THROW(echo.render(messages, nullptr, {}), InvalidArgument);
  messages = {boost::json::value(UINT64_MAX)};
  EXPECT_THROW(echo.render(messages, nullptr, {}), InvalidArgument);
}

TEST(ChatTemplate, ManyThreadsRenderOneTemplateAtOnce) {
  const ChatTemplate shared(
      "{% macro m(x) %}<{{ x }}>{% endmacro %}{% for m2 in messages %}{{ m(m2.content) }}{% endfor %}");
  std::vector<std::string> prompts(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < prompts.size(); ++t) {
    threads.emplace_back([&, t] {
      const boost::json::array messages{{{"role", "user"}, {"content", std::to_string(t)}}};
      for (int i = 0; i < 200; ++i) prompts[t] = shared.render(messages, nullptr, {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < prompts.size(); ++t) EXPECT_EQ(prompts[t], "<" + std::to_string(t) + ">");
}

}  // namespace
}  // namespace cairn
