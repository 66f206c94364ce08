// Damaged and hostile vocabularies: an error that names the place and the value, never a crash. And hostile texts:
// long words take no quadratic time (the sizes here would take hours).
#include <gtest/gtest.h>

#include <limits>

#include "core/base/error.hpp"
#include "core/text/tokenizer.hpp"
#include "tests/unit/text/tokenizer_fixture.hpp"
#include "tests/unit/text/tokenizer_gguf_writer.hpp"

namespace cairn::test {
namespace {

template <class Error = BadFile>
void expect_error(const std::string& json, const std::vector<std::string>& parts) {
  try {
    Tokenizer::from_json(json);
    FAIL() << "accepted: " << json;
  } catch (const Error& e) {
    for (const std::string& part : parts) EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

std::string bpe(const std::string& vocab, const std::string& merges, const std::string& rest = "") {
  return R"({"model":{"type":"BPE","vocab":)" + vocab + R"(,"merges":)" + merges + "}" + rest + "}";
}

TEST(HostileJson, IsNotJson) {
  expect_error("", {"tokenizer.json", "not valid JSON"});
  expect_error("{\"model\":", {"not valid JSON"});
  expect_error(std::string(100000, '['), {"not valid JSON"});
  expect_error("[]", {"is not an object"});
  expect_error("{}", {"tokenizer.json.model", "missing"});
}

TEST(HostileJson, IdsOutOfRange) {
  expect_error(bpe(R"({"a":-1})", "[]"), {"model.vocab", "\"a\"", "-1"});
  expect_error(bpe(R"({"a":4194304})", "[]"), {"4194304"});
  expect_error(bpe(R"({"a":18446744073709551615})", "[]"), {"18446744073709551615"});
  expect_error(bpe(R"({"a":1e300})", "[]"), {"\"a\"", "not an integer"});
  expect_error(bpe(R"({"a":0,"b":0})", "[]"), {"id 0", "\"a\"", "\"b\""});
}

TEST(HostileJson, MergesOfMissingParts) {
  expect_error(bpe(R"({"a":0,"b":1})", R"(["a b"])"), {"merges", "\"ab\"", "not in the vocabulary"});
  expect_error(bpe(R"({"a":0,"ab":1})", R"(["a b"])"), {"merges[0]", "\"b\""});
  expect_error(bpe(R"({"a":0})", R"(["a"])"), {"merges[0]", "two parts"});
  expect_error(bpe(R"({"a":0})", R"([["a"]])"), {"merges[0]", "1 parts"});
  expect_error(bpe(R"({"a":0})", R"([7])"), {"merges[0]", "not a string"});
}

TEST(HostileJson, AddedTokens) {
  const auto added = [](const std::string& list) { return bpe(R"({"a":0})", "[]", ",\"added_tokens\":" + list); };
  expect_error(added(R"([{"id":99999999999,"content":"x"}])"), {"added_tokens[0].id", "99999999999"});
  expect_error(added(R"([{"id":-5,"content":"x"}])"), {"added_tokens[0].id", "-5"});
  expect_error(added(R"([{"id":1,"content":"x"},{"id":1,"content":"y"}])"), {"added_tokens[1]", "\"x\"", "\"y\""});
  expect_error(added(R"([{"id":1,"content":"x"},{"id":2,"content":"x"}])"), {"added_tokens[1]", "twice"});
  expect_error(added(R"([{"id":1}])"), {"added_tokens[0].content", "missing"});
  expect_error(added(R"([{"id":1,"content":")" + std::string(20000, 'x') + "\"}]"), {"added_tokens[0]", "20000"});
}

TEST(HostileJson, Sections) {
  const auto with = [](const std::string& section) { return bpe(R"({"a":0})", "[]", "," + section); };
  expect_error<NotSupported>(with(R"("normalizer":{"type":"Magic"})"), {"tokenizer.json.normalizer", "\"Magic\""});
  expect_error(with(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"})"),
               {"pre_tokenizer.pattern", "\"(a\"", "does not compile"});
  expect_error(with(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"[a"},"behavior":"Isolated"})"), {"no end"});
  expect_error(with(R"("pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"Sideways"})"),
               {"\"Sideways\""});
  expect_error(with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="})"),
               {"precompiled_charsmap"});
  expect_error(with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"!!!!"})"), {"base64"});
  expect_error(with(R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],)"
                    R"("special_tokens":{"x":{"ids":[7]}}})"),
               {"ids[0]", "7"});
  expect_error(with(R"("post_processor":{"type":"BertProcessing","sep":["a",0],"cls":["b",5]})"), {"cls[1]", "5"});
  std::string deep = R"({"type":"Lowercase"})";
  for (int i = 0; i < 25; ++i) deep = R"({"type":"Sequence","normalizers":[)" + deep + "]}";
  expect_error(with("\"normalizer\":" + deep), {"deep"});
  std::string many = R"({"type":"Sequence","normalizers":[{"type":"Lowercase"})";
  for (int i = 0; i < 400; ++i) many += R"(,{"type":"Lowercase"})";
  expect_error(with("\"normalizer\":" + many + "]}"), {"256 steps"});
}

TEST(HostileJson, Unigram) {
  const auto unigram = [](const std::string& rest) { return R"({"model":{"type":"Unigram",)" + rest + "}}"; };
  expect_error(unigram(R"("vocab":[["a",0]],"unk_id":3)"), {"unk_id", "3"});
  expect_error(unigram(R"("vocab":[["a"]])"), {"vocab[0]"});
  expect_error(unigram(R"("vocab":[["a",1e999]])"), {"tokenizer.json"});
  expect_error(unigram(R"("vocab":[[")" + std::string(3000, 'x') + R"(",0]])"), {"3000"});
}

TEST(HostileJson, EveryPrefixOfARealFileIsAnError) {
  const std::string json = boost::json::serialize(fixture_document("wordlevel"));
  for (std::size_t n = 0; n < json.size(); n += 7) EXPECT_THROW(Tokenizer::from_json(json.substr(0, n)), BadFile) << n;
}

TEST(HostileJson, ATextThatCannotBeSpelledIsTheCallersFault) {
  const auto tokenizer = Tokenizer::from_json(R"({"model":{"type":"Unigram","vocab":[["a",-1.0]]}})");
  EXPECT_EQ(tokenizer->encode("aa"), (std::vector<std::int32_t>{0, 0}));
  EXPECT_THROW(tokenizer->encode("ab"), InvalidArgument);
}

void expect_gguf_error(GgufWriter& writer, const std::vector<std::string>& parts) {
  try {
    Tokenizer::from_gguf(*writer.open());
    FAIL() << "accepted";
  } catch (const BadFile& e) {
    for (const std::string& part : parts) EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

GgufWriter gguf(const std::string& model, const std::vector<std::string>& tokens) {
  GgufWriter writer;
  writer.str("tokenizer.ggml.model", model).str("tokenizer.ggml.pre", "gpt-2").strings("tokenizer.ggml.tokens", tokens);
  return writer;
}

TEST(HostileGguf, ListsThatDoNotFitTogether) {
  expect_gguf_error(gguf("gpt2", {"a", "b"}).strings("tokenizer.ggml.merges", {"a b"}), {"merges", "\"ab\""});
  expect_gguf_error(gguf("gpt2", {"a", "b"}).strings("tokenizer.ggml.merges", {"a c"}), {"merge 0", "\"a c\""});
  expect_gguf_error(gguf("gpt2", {"a"}).strings("tokenizer.ggml.merges", {"ab"}), {"merge 0", "\"ab\""});
  auto no_merges = gguf("gpt2", {"a"});
  expect_gguf_error(no_merges, {"tokenizer.ggml.merges"});
  auto twice = gguf("llama", {"a", "a"});
  expect_gguf_error(twice, {"tokenizer.ggml.tokens", "\"a\"", "twice"});
  auto no_scores = gguf("llama", {"a"});
  expect_gguf_error(no_scores, {"tokenizer.ggml.scores"});
  expect_gguf_error(gguf("llama", {"a", "b"}).floats("tokenizer.ggml.scores", {1}),
                    {"scores", "1 entries", "2 tokens"});
  expect_gguf_error(gguf("llama", {"a"}).floats("tokenizer.ggml.scores", {std::numeric_limits<float>::quiet_NaN()}),
                    {"scores", "token 0"});
  expect_gguf_error(gguf("gpt2", {"a", "b"}).ints("tokenizer.ggml.token_type", {1}), {"token_type", "1 entries"});
}

TEST(HostileGguf, ByteLevelTokensCutInACharacterDecodeAsTheyAre) {
  const auto tokenizer =
      Tokenizer::from_gguf(*gguf("gpt2", {"a\xE2", "\xF0", "b"}).strings("tokenizer.ggml.merges", {}).open());
  EXPECT_EQ(tokenizer->decode(std::vector<std::int32_t>{0, 1, 2}), "a\uFFFD\uFFFDb");
}

TEST(HostileGguf, TokensThatAreNotUtf8Load) {
  const auto tokenizer = Tokenizer::from_gguf(*gguf("llama", {"<unk>", "\xFF\xFE", "a", "\xC3"})
                                                   .floats("tokenizer.ggml.scores", {0, 0, 0, 0})
                                                   .ints("tokenizer.ggml.token_type", {2, 3, 1, 4})
                                                   .open());
  EXPECT_EQ(tokenizer->decode(std::vector<std::int32_t>{1, 2}), "\uFFFD\uFFFDa")
      << "what is not text is no special token";
}

class LongWords : public ::testing::TestWithParam<std::string> {};

TEST_P(LongWords, OfAMegabyteDecodeToThemselves) {
  const auto tokenizer = Tokenizer::from_json(boost::json::serialize(fixture_document(GetParam())));
  const bool keeps_text = GetParam().starts_with("bpe-") && GetParam() != "bpe-suffix" && GetParam() != "bpe-prefix";
  for (const std::string unit : {"a", " ", "1", "!", "\n", "ab", "\u0416", "\u6f22", "e\u0301", " a", "\u0661"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    const auto ids = tokenizer->encode(text, {.add_special = false});
    if (keeps_text && GetParam() != "bpe-qwen2" && GetParam() != "bpe-qwen35") {
      EXPECT_EQ(tokenizer->decode(ids, false), text) << unit;
    }
    EXPECT_LE(ids.size(), text.size() + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LongWords, ::testing::ValuesIn(fixture_names()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(HostileText, IsReadAsReplacementCharacters) {
  const auto tokenizer = Tokenizer::from_json(boost::json::serialize(fixture_document("bpe-llama3")));
  EXPECT_EQ(tokenizer->encode("a\xFF\xC3(\xE2\x82"), tokenizer->encode("a\uFFFD\uFFFD(\uFFFD"));
  EXPECT_EQ(tokenizer->encode(std::string("\0", 1)).size(), 2U) << "the BOS token and the byte";
}

TEST(HostileText, OverTheLimitIsRefused) {
  const std::string text(Tokenizer::kMaxTextBytes + 1, 'a');
  EXPECT_THROW(Tokenizer::bytes()->encode(text), InvalidArgument);
}

}  // namespace
}  // namespace cairn::test
