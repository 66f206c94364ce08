// Compares the template engine, byte for byte, with what jinja2 gives for the same template and variables. The expected
// texts in data/templates were written by tests/tools/template_reference.py.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/base/error.hpp"
#include "core/text/template/chat_template.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

const fs::path kData = CAIRN_TEMPLATE_DATA;
constexpr int64_t kNow = 1735787045;  // 2025-01-02 03:04:05

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

boost::json::array read_rows(const fs::path& path) {
  return boost::json::parse(read_file(path)).as_array();
}

std::string text_of(const boost::json::value& value) {
  return boost::json::value_to<std::string>(value);
}

struct Outcome {
  std::string text;
  std::string error;
};

template <class Render>
Outcome outcome_of(Render render) {
  try {
    return {render(), ""};
  } catch (const InvalidArgument& error) {
    return {"", error.what()};
  }
}

TEST(ChatTemplateReference, EveryFamilyGivesThePromptThatJinjaGives) {
  std::map<std::string, boost::json::array> conversations;
  for (const auto& row : read_rows(kData / "conversations.json")) {
    conversations[text_of(row.at("name"))] = row.at("messages").as_array();
  }
  const boost::json::array tools = read_rows(kData / "tools.json");
  const boost::json::array extras = read_rows(kData / "extras.json");
  size_t families = 0;
  size_t cases = 0;
  for (const auto& entry : fs::directory_iterator(kData)) {
    if (entry.path().extension() != ".jinja") continue;
    ++families;
    const ChatTemplate chat_template(read_file(entry.path()), entry.path().stem().string());
    for (const auto& row : read_rows(fs::path(entry.path()).replace_extension(".json"))) {
      RenderOptions options;
      options.bos_token = "<s>";
      options.eos_token = "</s>";
      options.now_unix = kNow;
      options.extra = extras.at(row.at("extra").to_number<size_t>()).as_object();
      const Outcome outcome = outcome_of([&] {
        return chat_template.render(conversations.at(text_of(row.at("conversation"))),
                                    row.at("tools").as_bool() ? &tools : nullptr, options);
      });
      ++cases;
      const auto& object = row.as_object();
      if (object.contains("out")) {
        EXPECT_EQ(outcome.text, text_of(object.at("out"))) << entry.path() << " " << boost::json::serialize(row);
        EXPECT_EQ(outcome.error, "") << entry.path() << " " << boost::json::serialize(row);
      } else {
        EXPECT_TRUE(outcome.error.ends_with(text_of(object.at("raises"))))
            << entry.path() << " " << boost::json::serialize(row) << " but: " << outcome.error << outcome.text;
      }
    }
  }
  EXPECT_GE(families, 24U);
  EXPECT_GE(cases, 2000U);
}

TEST(ChatTemplateReference, EveryExpressionAndStatementGivesWhatJinjaGives) {
  const boost::json::array rows = read_rows(kData / "expressions.json");
  RenderOptions options;
  options.now_unix = kNow;
  size_t texts = 0;
  for (const auto& row : rows) {
    const std::string source = text_of(row.at(0));
    const bool raises = row.at(1).is_null();
    try {
      const ChatTemplate compiled(source);
      const Outcome outcome = outcome_of([&] { return compiled.render_value({}, options); });
      if (raises) {
        EXPECT_EQ(text_of(row.at(2)), "render") << source << " loads here but not in jinja2";
        EXPECT_NE(outcome.error, "") << source << " gave: " << outcome.text;
      } else {
        ++texts;
        EXPECT_EQ(outcome.error, "") << source;
        EXPECT_EQ(outcome.text, text_of(row.at(1))) << source;
      }
    } catch (const BadFile& error) {
      EXPECT_TRUE(raises && text_of(row.at(2)) == "load") << source << " does not load: " << error.what();
    }
  }
  EXPECT_GE(texts, 4000U);
}

}  // namespace
}  // namespace cairn
