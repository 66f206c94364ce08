// Tokenizers from GGUF metadata: the same ids as tokenizer.json with the same vocabulary, and SentencePiece's merging
// against a plain quadratic implementation of it.
#include <gtest/gtest.h>

#include <map>

#include "core/base/error.hpp"
#include "core/text/tokenizer.hpp"
#include "tests/unit/text/tokenizer_fixture.hpp"
#include "tests/unit/text/tokenizer_gguf_writer.hpp"

namespace cairn::test {
namespace {

constexpr std::int32_t kNormalToken = 1;
constexpr std::int32_t kUnknownToken = 2;
constexpr std::int32_t kControlToken = 3;
constexpr std::int32_t kUserToken = 4;
constexpr std::int32_t kByteToken = 6;

struct Vocab {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
};

// The model's vocabulary and added tokens of a tokenizer.json, by id.
Vocab vocabulary(const boost::json::value& document) {
  std::map<std::int64_t, std::pair<std::string, std::int32_t>> by_id;
  for (const auto& [spelling, id] : document.at("model").at("vocab").as_object()) {
    by_id[id.as_int64()] = {std::string(std::string_view(spelling)), kNormalToken};
  }
  for (const auto& token : document.at("added_tokens").as_array()) {
    by_id[token.at("id").as_int64()] = {std::string(token.at("content").as_string()),
                                        token.at("special").as_bool() ? kControlToken : kUserToken};
  }
  Vocab v;
  for (const auto& [id, token] : by_id) {
    EXPECT_EQ(id, static_cast<std::int64_t>(v.tokens.size()));
    v.tokens.push_back(token.first);
    v.types.push_back(token.second);
  }
  return v;
}

std::vector<std::string> merges(const boost::json::value& document) {
  std::vector<std::string> out;
  for (const auto& merge : document.at("model").at("merges").as_array()) {
    out.push_back(std::string(merge.at(0).as_string()) + " " + std::string(merge.at(1).as_string()));
  }
  return out;
}

// tokenizer.ggml.pre and the fixture whose patterns it names.
class ByteLevelNames : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(ByteLevelNames, SplitAsTheFamilysTokenizerJsonDoes) {
  const auto& [pre, fixture] = GetParam();
  boost::json::value document = fixture_document(fixture);
  // GGUF has no way to say that a token takes white space along or stands alone.
  for (auto& token : document.at("added_tokens").as_array()) {
    for (const char* key : {"lstrip", "rstrip", "single_word", "normalized"}) token.as_object()[key] = false;
  }
  const auto from_json = Tokenizer::from_json(boost::json::serialize(document));
  const Vocab v = vocabulary(document);
  GgufWriter writer;
  writer.str("tokenizer.ggml.model", "gpt2").str("tokenizer.ggml.pre", pre);
  writer.strings("tokenizer.ggml.tokens", v.tokens).ints("tokenizer.ggml.token_type", v.types);
  writer.strings("tokenizer.ggml.merges", merges(document)).boolean("tokenizer.ggml.add_bos_token", true);
  writer.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
  const auto from_gguf = Tokenizer::from_gguf(*writer.open());
  EXPECT_EQ(from_gguf->token_text(1), "<|im_start|>");
  EXPECT_TRUE(from_gguf->adds_bos());
  for (const std::string& text : fixture_strings()) {
    for (const bool special : {true, false}) {
      const EncodeOptions options{.add_special = special, .parse_special = special};
      const auto ids = from_gguf->encode(text, options);
      EXPECT_EQ(ids, from_json->encode(text, options)) << "text: " << text;
      EXPECT_EQ(from_gguf->decode(ids, false), from_json->decode(ids, false));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Published, ByteLevelNames,
    ::testing::Values(std::pair{"llama-bpe", "bpe-llama3"}, std::pair{"qwen2", "bpe-qwen2"},
                      std::pair{"qwen35", "bpe-qwen35"}, std::pair{"gpt-4o", "bpe-gpt4o"},
                      std::pair{"deepseek-v3", "bpe-deepseek-v3"}, std::pair{"deepseek-coder", "bpe-deepseek-coder"},
                      std::pair{"smollm", "bpe-starcoder"}, std::pair{"falcon", "bpe-falcon"},
                      std::pair{"default", "bpe-default"}, std::pair{"bloom", "bpe-bloom"},
                      std::pair{"bailingmoe", "bpe-bailingmoe"}, std::pair{"seed-coder", "bpe-seed-coder"},
                      std::pair{"exaone-moe", "bpe-exaone-moe"}, std::pair{"superbpe", "bpe-superbpe"},
                      std::pair{"tiny_aya", "bpe-tiny_aya"}, std::pair{"kimi-k2", "bpe-kimi-k2"}));

TEST(GgufTokenizer, TekkenIsGpt4oWithoutContractionsAndWithWholeWords) {
  boost::json::value document = fixture_document("bpe-tekken");
  document.at("model").as_object()["ignore_merges"] = true;
  for (auto& token : document.at("added_tokens").as_array()) {
    for (const char* key : {"lstrip", "rstrip", "single_word", "normalized"}) token.as_object()[key] = false;
  }
  const auto from_json = Tokenizer::from_json(boost::json::serialize(document));
  const Vocab v = vocabulary(document);
  GgufWriter writer;
  writer.str("tokenizer.ggml.model", "gpt2").str("tokenizer.ggml.pre", "tekken");
  writer.strings("tokenizer.ggml.tokens", v.tokens).ints("tokenizer.ggml.token_type", v.types);
  writer.strings("tokenizer.ggml.merges", merges(document)).u32("tokenizer.ggml.bos_token_id", 1);
  const auto from_gguf = Tokenizer::from_gguf(*writer.open());
  for (const std::string& text : fixture_strings()) EXPECT_EQ(from_gguf->encode(text), from_json->encode(text)) << text;
}

TEST(GgufTokenizer, WordPieceIsBertsTokenizerJson) {
  const boost::json::value document = fixture_document("bert-uncased");
  const auto from_json = Tokenizer::from_json(boost::json::serialize(document));
  Vocab v = vocabulary(document);
  for (std::size_t i = 0; i < v.tokens.size(); ++i) {
    std::string& t = v.tokens[i];
    if (v.types[i] == kControlToken || (t.starts_with("[") && t.ends_with("]"))) continue;
    t = t.starts_with("##") ? t.substr(2) : "\u2581" + t;
  }
  GgufWriter writer;
  writer.str("tokenizer.ggml.model", "bert").strings("tokenizer.ggml.tokens", v.tokens);
  writer.ints("tokenizer.ggml.token_type", v.types).u32("tokenizer.ggml.unknown_token_id", 1);
  writer.u32("tokenizer.ggml.bos_token_id", 2).u32("tokenizer.ggml.seperator_token_id", 3);
  const auto from_gguf = Tokenizer::from_gguf(*writer.open());
  for (const std::string& text : fixture_strings()) {
    const auto ids = from_gguf->encode(text);
    EXPECT_EQ(ids, from_json->encode(text)) << text;
    EXPECT_EQ(from_gguf->decode(ids), from_json->decode(ids)) << text;
  }
}

// SentencePiece by definition: again and again the neighbours whose union is the best-scoring token, leftmost first.
std::vector<std::int32_t> merge_plainly(std::string text, const Vocab& v, const std::vector<float>& scores) {
  std::map<std::string, std::int32_t> ids;
  for (std::size_t i = 0; i < v.tokens.size(); ++i) {
    if (v.types[i] == kNormalToken) ids[v.tokens[i]] = static_cast<std::int32_t>(i);
  }
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t n = 1;
    while (i + n < text.size() && (static_cast<unsigned char>(text[i + n]) & 0xC0) == 0x80) ++n;
    pieces.push_back(text.substr(i, n));
    i += n;
  }
  while (true) {
    std::size_t best = pieces.size();
    float best_score = 0;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      const auto it = ids.find(pieces[i] + pieces[i + 1]);
      if (it == ids.end()) continue;
      const float score = scores[static_cast<std::size_t>(it->second)];
      if (best == pieces.size() || score > best_score) {
        best = i;
        best_score = score;
      }
    }
    if (best == pieces.size()) break;
    pieces[best] += pieces[best + 1];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<std::int32_t> out;
  for (const std::string& piece : pieces) {
    const auto it = ids.find(piece);
    if (it != ids.end()) {
      out.push_back(it->second);
      continue;
    }
    for (const char c : piece) out.push_back(3 + static_cast<unsigned char>(c));  // byte tokens follow <unk> <s> </s>
  }
  return out;
}

TEST(GgufTokenizer, SentencePieceMergesByScore) {
  const boost::json::value document = fixture_document("sp-bpe");
  Vocab v = vocabulary(document);
  std::vector<float> scores;
  for (std::size_t i = 0; i < v.tokens.size(); ++i) {
    scores.push_back(-static_cast<float>(i / 3));  // every score three times, so that ties occur
    if (i >= 3 && i < 259) v.types[i] = kByteToken;
    if (v.types[i] == kUserToken) v.types[i] = kControlToken;
  }
  v.types[0] = kUnknownToken;
  GgufWriter writer;
  writer.str("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", v.tokens);
  writer.ints("tokenizer.ggml.token_type", v.types).floats("tokenizer.ggml.scores", scores);
  writer.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
  const auto tokenizer = Tokenizer::from_gguf(*writer.open());
  ASSERT_EQ(tokenizer->token_id("<0x41>"), 3 + 0x41);
  EXPECT_TRUE(tokenizer->adds_bos());
  int tested = 0;
  for (const std::string& text : fixture_strings()) {
    if (text.empty()) continue;
    std::string spelled = "\u2581";
    for (const char c : text) c == ' ' ? spelled.append("\u2581") : spelled.append(1, c);
    const auto ids = tokenizer->encode(text, {.add_special = false, .parse_special = false});
    EXPECT_EQ(ids, merge_plainly(spelled, v, scores)) << text;
    if (text.find("\u2581") == std::string::npos) {
      EXPECT_EQ(tokenizer->decode(ids), text);
    }
    ++tested;
  }
  EXPECT_GT(tested, 300);
}

TEST(GgufTokenizer, UnigramTakesTheBestSumOfScores) {
  // "ab" + "c" (-3) beats "a" + "bc" (-4) and "abc" (-5); "d" is unknown.
  GgufWriter writer;
  writer.str("tokenizer.ggml.model", "t5");
  writer.strings("tokenizer.ggml.tokens", {"<pad>", "</s>", "<unk>", "\u2581", "a", "b", "c", "ab", "bc", "abc"});
  writer.floats("tokenizer.ggml.scores", {0, 0, 0, -1, -2, -2, -1, -2, -2, -5});
  writer.ints("tokenizer.ggml.token_type", {3, 3, 2, 1, 1, 1, 1, 1, 1, 1});
  writer.u32("tokenizer.ggml.eos_token_id", 1).u32("tokenizer.ggml.unknown_token_id", 2);
  writer.boolean("tokenizer.ggml.add_space_prefix", true).boolean("tokenizer.ggml.remove_extra_whitespaces", true);
  const auto tokenizer = Tokenizer::from_gguf(*writer.open());
  EXPECT_EQ(tokenizer->encode("abc"), (std::vector<std::int32_t>{3, 7, 6, 1}));
  EXPECT_EQ(tokenizer->encode("  abc   dd ab "), (std::vector<std::int32_t>{3, 7, 6, 3, 2, 3, 7, 1}));
  EXPECT_EQ(tokenizer->decode(std::vector<std::int32_t>{3, 7, 6, 3, 7, 1}), "abc ab");
}

TEST(GgufTokenizer, AnUnknownPreTokenizerRefusesTextButNotIds) {
  GgufWriter writer;
  writer.str("tokenizer.ggml.model", "gpt2").str("tokenizer.ggml.pre", "quux-9");
  writer.strings("tokenizer.ggml.tokens", {"a", "b", "ab"}).strings("tokenizer.ggml.merges", {"a b"});
  const auto tokenizer = Tokenizer::from_gguf(*writer.open());
  EXPECT_EQ(tokenizer->decode(std::vector<std::int32_t>{2, 0}), "aba");
  try {
    tokenizer->encode("ab");
    FAIL() << "text was encoded";
  } catch (const NotSupported& e) {
    const std::string message = e.what();
    EXPECT_NE(message.find("\"quux-9\""), std::string::npos) << message;
    EXPECT_NE(message.find("llama-bpe"), std::string::npos) << message;
    EXPECT_NE(message.find("qwen2"), std::string::npos) << message;
  }
}

TEST(GgufTokenizer, EndTokensComeFromTheRolesAndTheSpellings) {
  GgufWriter writer;
  writer.str("tokenizer.ggml.model", "gpt2").str("tokenizer.ggml.pre", "gpt-2");
  writer.strings("tokenizer.ggml.tokens", {"a", "</s>", "<|im_end|>", "<|eot_id|>", "<|other|>"});
  writer.ints("tokenizer.ggml.token_type", {1, 3, 3, 4, 3}).strings("tokenizer.ggml.merges", {});
  writer.u32("tokenizer.ggml.eos_token_id", 1);
  const auto tokenizer = Tokenizer::from_gguf(*writer.open());
  EXPECT_EQ(tokenizer->end_token_ids(), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(tokenizer->eos_id(), 1);
  EXPECT_EQ(tokenizer->eot_id(), 3);
  EXPECT_FALSE(tokenizer->bos_id());
  EXPECT_TRUE(tokenizer->is_special(4));
  EXPECT_FALSE(tokenizer->is_special(0));
}

TEST(GgufTokenizer, AFileWithoutVocabularyIsNotFound) {
  GgufWriter writer;
  writer.str("general.architecture", "llama");
  EXPECT_THROW(Tokenizer::from_gguf(*writer.open()), NotFound);
}

}  // namespace
}  // namespace cairn::test
