// How a host finds out what a template wants, and brings messages into that form.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "core/base/error.hpp"
#include "core/text/template/chat_template.hpp"

namespace cairn {
namespace {

using boost::json::array;
using boost::json::object;

boost::json::array parse(const char* text) {
  return boost::json::parse(text).as_array();
}

TEST(ChatTemplateNeeds, PlainTextTemplatesWantText) {
  EXPECT_FALSE(ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}").wants_typed_content());
  EXPECT_FALSE(ChatTemplate("{% for m in messages %}{{ '<' + m.content + '>' }}{% endfor %}").wants_typed_content());
}

TEST(ChatTemplateNeeds, TemplatesThatOnlyWalkPartsWantParts) {
  const ChatTemplate walks(
      "{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% "
      "endfor %}");
  EXPECT_TRUE(walks.wants_typed_content());
}

TEST(ChatTemplateNeeds, TemplatesThatTakeBothAreGivenText) {
  const ChatTemplate both(
      "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{{ m.content[0].text }}{% endif "
      "%}{% endfor %}");
  EXPECT_FALSE(both.wants_typed_content());
}

TEST(ChatTemplateNeeds, UsesToolsOnlyWhenTheVariableIsRead) {
  EXPECT_TRUE(ChatTemplate("{% if tools %}x{% endif %}").uses_tools());
  EXPECT_FALSE(ChatTemplate("tools {# tools #}{% set tools = 1 %}").uses_tools());
  EXPECT_TRUE(ChatTemplate("{{ enable_thinking }}").uses_variable("enable_thinking"));
}

TEST(ChatTemplateVariables, ExtraVariablesWinOverTheDefaultsButNotOverMessages) {
  const ChatTemplate shows(
      "{{ bos_token }}|{{ add_generation_prompt }}|{{ messages|length }}|{{ tools }}|{{ documents }}");
  RenderOptions options;
  options.bos_token = "<s>";
  EXPECT_EQ(shows.render({}, nullptr, options), "<s>|True|0|None|None");
  options.extra = object{{"bos_token", "B"}, {"messages", "no"}, {"documents", array{1}}};
  EXPECT_EQ(shows.render({}, nullptr, options), "B|True|0|None|[1]");
}

TEST(NormalizeMessages, TextPartsAreJoinedForTextTemplates) {
  const auto messages = parse(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
  EXPECT_EQ(normalize_messages(messages, ContentFormat::kText), parse(R"([{"role":"user","content":"a\nb"}])"));
  EXPECT_EQ(normalize_messages(messages, ContentFormat::kParts), messages);
}

TEST(NormalizeMessages, OtherPartsAreRefusedForTextTemplates) {
  const auto messages = parse(R"([{"role":"user","content":"x"},{"role":"user","content":[{"type":"image"}]}])");
  try {
    normalize_messages(messages, ContentFormat::kText);
    FAIL() << "an image was accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "message 1 has a content part of type 'image', but this model's chat template takes text only");
    EXPECT_EQ(error.param(), "messages");
  }
}

TEST(NormalizeMessages, TextBecomesAPartBesidesOtherParts) {
  const auto mixed = parse(R"([{"role":"system","content":"s"},{"role":"user","content":[{"type":"image"}]}])");
  EXPECT_EQ(
      normalize_messages(mixed, ContentFormat::kParts),
      parse(
          R"([{"role":"system","content":[{"type":"text","text":"s"}]},{"role":"user","content":[{"type":"image"}]}])"));
}

TEST(NormalizeMessages, ArgumentsAsTextBecomeTheObjectTheyHold) {
  const auto messages = parse(
      R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\": 1}"}},{"function":{"arguments":"[1"}},5]}])");
  EXPECT_EQ(
      normalize_messages(messages, ContentFormat::kText),
      parse(
          R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},{"function":{"arguments":"[1"}},5]}])"));
}

}  // namespace
}  // namespace cairn
