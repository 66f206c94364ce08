// IncrementalDecoder against Tokenizer::decode, token_bytes, and the rules for incomplete characters.
#include <gtest/gtest.h>

#include <random>

#include "core/text/incremental_decoder.hpp"
#include "core/text/tokenizer.hpp"
#include "core/text/unicode.hpp"
#include "tests/unit/text/tokenizer_fixture.hpp"

namespace cairn::test {
namespace {

class Streams : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const Tokenizer> tokenizer_ =
      Tokenizer::from_json(boost::json::serialize(fixture_document(GetParam())));

  void expect_equal(const std::vector<std::int32_t>& ids, bool skip) {
    IncrementalDecoder decoder(tokenizer_, skip);
    std::string out;
    for (const std::int32_t id : ids) {
      std::string piece;
      decoder.push(id, piece);
      EXPECT_EQ(unicode::valid_prefix(piece), piece.size()) << "a character was cut";
      out += piece;
    }
    decoder.flush(out);
    EXPECT_EQ(out, tokenizer_->decode(ids, skip));
  }
};

TEST_P(Streams, GiveTheSameTextAsDecodingAtOnce) {
  for (const ReferenceCase& c : fixture_cases(GetParam())) {
    expect_equal(c.ids, false);
    expect_equal(c.ids, true);
  }
}

TEST_P(Streams, GiveTheSameTextForRandomIdsAndEveryCut) {
  std::mt19937 rng(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int32_t> ids(rng() % 12);
    for (auto& id : ids)
      id = static_cast<std::int32_t>(rng() % static_cast<unsigned>(tokenizer_->vocab_size() + 2)) - 1;
    for (std::size_t cut = 0; cut <= ids.size(); ++cut) {
      expect_equal({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(cut)}, round % 2 == 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Streams, ::testing::ValuesIn(fixture_names()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Ids of the raw bytes of a byte-level vocabulary.
std::vector<std::int32_t> byte_ids(const Tokenizer& tokenizer, std::string_view bytes) {
  std::vector<std::int32_t> ids;
  for (const char c : bytes) {
    for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      if (tokenizer.token_bytes(id) == std::string_view(&c, 1)) {
        ids.push_back(id);
        break;
      }
    }
  }
  return ids;
}

TEST(IncrementalDecoder, OneReplacementForAnIncompleteEnd) {
  const auto tokenizer = Tokenizer::from_json(boost::json::serialize(fixture_document("bpe-qwen2")));
  const auto ids = byte_ids(*tokenizer, "a\xF0\x9F\x91");
  ASSERT_EQ(ids.size(), 4U);
  IncrementalDecoder decoder(tokenizer);
  std::string out;
  for (const auto id : ids) decoder.push(id, out);
  EXPECT_EQ(out, "a");
  decoder.flush(out);
  EXPECT_EQ(out, "a\uFFFD");
  decoder.push(ids[0], out);
  decoder.flush(out);
  EXPECT_EQ(out, "a\uFFFDa") << "the decoder starts afresh after a flush";
}

TEST(IncrementalDecoder, ReplacesEveryMaximalInvalidSequenceOnce) {
  const auto tokenizer = Tokenizer::from_json(boost::json::serialize(fixture_document("bpe-qwen2")));
  // By the WHATWG rule: E2 82 is cut off by 41; C0, AF and FF stand for nothing each; F0 9F is cut off by the end.
  const auto ids = byte_ids(*tokenizer, "\xE2\x82\x41\xC0\xAF\xFF\xF0\x9F");
  EXPECT_EQ(tokenizer->decode(ids), "\uFFFDA\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(IncrementalDecoder, ByteFallBackReplacesEachByte) {
  const auto tokenizer = Tokenizer::from_json(boost::json::serialize(fixture_document("sp-bpe")));
  const auto byte = [&](int b) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(b));
    return tokenizer->token_id(name).value();
  };
  EXPECT_EQ(tokenizer->decode(std::vector{byte(0xE4), byte(0xBD), byte(0xA0)}), "\u4f60");
  EXPECT_EQ(tokenizer->decode(std::vector{byte(0xE4), byte(0xBD)}), "\uFFFD\uFFFD");
}

TEST(TokenBytes, OfAWholeTextJoinToTheText) {
  for (const char* name : {"bpe-llama3", "sp-bpe", "unigram-bytes"}) {
    const auto tokenizer = Tokenizer::from_json(boost::json::serialize(fixture_document(name)));
    std::string joined;
    const std::string text = "The caf\u00e9 in \u6771\u4eac is open.";
    for (const std::int32_t id : tokenizer->encode(text, {.add_special = false})) joined += tokenizer->token_bytes(id);
    if (joined.starts_with(' ')) joined.erase(0, 1);  // SentencePiece's leading space
    EXPECT_EQ(joined, text) << name;
  }
}

TEST(TokenBytes, OfWordPieceHaveTheSpaceOrTheSuffix) {
  const auto tokenizer = Tokenizer::from_json(boost::json::serialize(fixture_document("bert-uncased")));
  EXPECT_EQ(tokenizer->token_bytes(tokenizer->token_id("the").value()), " the");
  EXPECT_EQ(tokenizer->token_bytes(tokenizer->token_id("##m").value()), "m");
}

TEST(ByteTokenizer, EveryByteIsItsId) {
  const auto tokenizer = Tokenizer::bytes();
  const std::string text("A\0\xFF\xC3\xA9", 5);
  const std::vector<std::int32_t> ids{0x41, 0, 0xFF, 0xC3, 0xA9};
  EXPECT_EQ(tokenizer->encode(text), ids);
  EXPECT_EQ(tokenizer->decode(ids), std::string("A\0\xEF\xBF\xBD\xC3\xA9", 7));
  EXPECT_EQ(tokenizer->token_bytes(0xFF), "\xFF");
  EXPECT_EQ(tokenizer->vocab_size(), 256);
  EXPECT_TRUE(tokenizer->end_token_ids().empty());
  EXPECT_FALSE(tokenizer->adds_bos());
}

}  // namespace
}  // namespace cairn::test
