// Our ids and texts against the reference implementation's, on trained vocabularies of every kind.
#include <gtest/gtest.h>

#include "core/text/tokenizer.hpp"
#include "tests/unit/text/tokenizer_fixture.hpp"

namespace cairn::test {
namespace {

class Reference : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const Tokenizer> tokenizer_ =
      Tokenizer::from_json(boost::json::serialize(fixture_document(GetParam())));
};

TEST_P(Reference, EncodesEveryStringToTheSameIds) {
  const auto cases = fixture_cases(GetParam());
  ASSERT_GE(cases.size(), 100U);
  for (const ReferenceCase& c : cases) {
    EXPECT_EQ(tokenizer_->encode(c.text, {.add_special = c.add_special, .parse_special = c.parse_special}), c.ids)
        << "text: " << c.text;
  }
}

TEST_P(Reference, DecodesTheIdsToTheSameText) {
  for (const ReferenceCase& c : fixture_cases(GetParam())) {
    EXPECT_EQ(fnv1a(tokenizer_->decode(c.ids, false)), c.decoded) << "text: " << c.text;
    EXPECT_EQ(fnv1a(tokenizer_->decode(c.ids, true)), c.decoded_skipped) << "text: " << c.text;
  }
}

TEST_P(Reference, GivesTheSameIdsAgainFromAWarmCache) {
  for (const ReferenceCase& c : fixture_cases(GetParam())) {
    const EncodeOptions options{.add_special = c.add_special, .parse_special = c.parse_special};
    tokenizer_->encode(c.text, options);
    EXPECT_EQ(tokenizer_->encode(c.text, options), c.ids) << "text: " << c.text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Reference, ::testing::ValuesIn(fixture_names()), [](const auto& param) {
  std::string name = param.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

}  // namespace
}  // namespace cairn::test
