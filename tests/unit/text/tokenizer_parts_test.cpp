// Single parts of the tokenizers: pattern translation, pre-tokenizer steps, added tokens, character maps, decoders.
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/text/tokenizer_added.hpp"
#include "core/text/tokenizer_decoder.hpp"
#include "core/text/tokenizer_normalizer.hpp"
#include "core/text/tokenizer_pre_names.hpp"
#include "core/text/tokenizer_pretokenizer.hpp"
#include "core/text/tokenizer_regex.hpp"

namespace cairn {
namespace {

using Words = std::vector<std::string>;

Words matches(std::string_view pattern, std::string_view text) {
  Words found;
  Regex(pattern, "test").for_each(text, [&](std::size_t b, std::size_t e) {
    found.emplace_back(text.substr(b, e - b));
  });
  return found;
}

TEST(Regex, WhiteSpaceIsUnicodes) {
  EXPECT_EQ(matches(R"(\s)", "a\u180e\u00a0\u0085\u2003b\u200b"), (Words{"\u00a0", "\u0085", "\u2003"}));
  EXPECT_EQ(matches(R"([^\S])", "a\u180e b"), (Words{" "}));
}

TEST(Regex, ScriptsAreNotScriptExtensions) {
  // U+3001 is used with Han (its extensions say so), but its script is Common.
  EXPECT_EQ(matches(R"(\p{Han}+)", "\u6f22\u3001\u5b57"), (Words{"\u6f22", "\u5b57"}));
}

TEST(Regex, SetsIntersectAndNest) {
  EXPECT_EQ(matches(R"([a-f&&[^c]]+)", "abcdefg"), (Words{"ab", "def"}));
  EXPECT_EQ(matches(R"([a[x-z]]+)", "abxyz"), (Words{"a", "xyz"}));
  EXPECT_EQ(matches(R"([^a-f&&[^c]]+)", "abcxd"), (Words{"cx"}));
}

TEST(Regex, PlusBehindAnIntervalRepeats) {
  EXPECT_EQ(matches(R"(b?\d{1,2}+)", "b12345"), (Words{"b12345"}));
}

TEST(Regex, DollarMatchesAtEveryLineEnd) {
  EXPECT_EQ(matches(R"(\w$)", "ab\ncd\n"), (Words{"b", "d"}));
  EXPECT_EQ(matches(R"(\s+$)", "a  \n  b  "), (Words{"  ", "  "}));
}

TEST(Regex, EmptyMatchesDoNotRepeat) {
  Words found;
  Regex("x*", "test").for_each("axxb", [&](std::size_t b, std::size_t e) {
    found.push_back(std::to_string(b) + "-" + std::to_string(e));
  });
  EXPECT_EQ(found, (Words{"0-0", "1-3", "4-4"}));
}

TEST(Regex, ACatastrophicPatternEndsInAnError) {
  const Regex regex("(?:a+)+$", "test");
  EXPECT_THROW(regex.find(std::string(60, 'a') + "b", 0), InvalidArgument);
}

TEST(Regex, QuadraticTimeEndsInAnError) {
  const Regex regex("a*[bc]|a", "test");
  EXPECT_THROW(regex.for_each(std::string(300'000, 'a'), [](std::size_t, std::size_t) {}), InvalidArgument);
}

TEST(Regex, FindsAMatchFarBehindTheStart) {
  const std::string text = std::string(200'000, 'a') + "\u00e9" + std::string(200'000, 'b') + "c";
  EXPECT_EQ(Regex("\u00e9|c", "test").find(text, 0), std::pair(std::size_t{200'000}, std::size_t{200'002}));
  EXPECT_EQ(Regex("c", "test").find(text, 0), std::pair(text.size() - 1, text.size()));
  EXPECT_EQ(Regex("x", "test").find(text, 0), std::nullopt);
}

Words split(const PreTokenizer& step, const std::string& text) {
  PieceText t;
  t.text = text;
  t.pieces = {{0, static_cast<std::uint32_t>(text.size())}};
  t.at_start = true;
  step.apply(t);
  Words words;
  for (const auto piece : t.pieces) words.emplace_back(t.view(piece));
  return words;
}

TEST(PreTokenizer, SplitBehaviours) {
  const auto with = [](SplitBehavior b) { return split(*make_split("-", b, false, "test"), "-a--b-"); };
  EXPECT_EQ(with(SplitBehavior::kRemoved), (Words{"a", "b"}));
  EXPECT_EQ(with(SplitBehavior::kIsolated), (Words{"-", "a", "-", "-", "b", "-"}));
  EXPECT_EQ(with(SplitBehavior::kMergedWithPrevious), (Words{"-", "a-", "-", "b-"}));
  EXPECT_EQ(with(SplitBehavior::kMergedWithNext), (Words{"-a", "-", "-b", "-"}));
  EXPECT_EQ(with(SplitBehavior::kContiguous), (Words{"-", "a", "--", "b", "-"}));
}

TEST(PreTokenizer, UnicodeScriptsCutWhereTheScriptChanges) {
  // Kana count as Han; a space belongs to what is before it; leading spaces are dropped.
  EXPECT_EQ(split(*make_unicode_scripts(), " \u3069\u3053 \u6771\u4eac apple \u0416"),
            (Words{"\u3069\u3053 \u6771\u4eac ", "apple ", "\u0416"}));
}

TEST(PreTokenizer, DigitGroupsCountFromTheEnd) {
  EXPECT_EQ(split(*make_digit_groups(DigitGroups::kAlone), "ab1234567x"), (Words{"ab", "1", "234", "567", "x"}));
  EXPECT_EQ(split(*make_digit_groups(DigitGroups::kBeforeBoundary), "1234 5678x"), (Words{"1", "234", " 5678x"}));
  EXPECT_EQ(split(*make_digit_groups(DigitGroups::kCutsOnly), "ab1234567x"), (Words{"ab1", "234", "567x"}));
}

TEST(PreTokenizer, EveryPublishedFamilyCompilesAndCoversAText) {
  const std::string text =
      "Hello, World's 1234567 \u4f60\u597d \u0627\u0644\n\n  x_y=z();\t<|a|> \u0915\u094d\u0937 end";
  std::string names = known_pre_tokenizer_names() + ", ";
  int count = 0;
  for (std::size_t from = 0; from < names.size();) {
    const std::size_t comma = names.find(", ", from);
    const std::string name = names.substr(from, comma - from);
    from = comma + 2;
    ++count;
    const PreTokenizerFamily* family = find_pre_tokenizer_family(name);
    ASSERT_NE(family, nullptr) << name;
    PieceText t;
    t.text = text;
    t.pieces = {{0, static_cast<std::uint32_t>(text.size())}};
    for (const auto pattern : family->patterns) make_split(pattern, SplitBehavior::kIsolated, false, name)->apply(t);
    std::string joined;
    for (const auto piece : t.pieces) joined += t.view(piece);
    EXPECT_EQ(joined, text) << name;
    EXPECT_GE(t.pieces.size(), 3U) << name;
  }
  EXPECT_GT(count, 80);
  EXPECT_EQ(find_pre_tokenizer_family("no-such-name"), nullptr);
}

TEST(Metaspace, PrependsToTheFirstPieceOnlyWhenToldSo) {
  EXPECT_EQ(split(*make_metaspace(U'_', PrependScheme::kFirst, true), "a b"), (Words{"_a", "_b"}));
  EXPECT_EQ(split(*make_metaspace(U'_', PrependScheme::kNever, true), "a b"), (Words{"a", "_b"}));
  PieceText later;
  later.text = "a b";
  later.pieces = {{0, 3}};
  make_metaspace(U'_', PrependScheme::kFirst, false)->apply(later);
  EXPECT_EQ(later.text, "a_b");
}

TEST(AddedTokens, LongestAtTheLeftmostPlaceWins) {
  const auto token = [](std::string text, std::int32_t id) {
    return AddedTokenMatcher::Pattern{text, AddedToken{.content = text, .id = id}};
  };
  const AddedTokenMatcher matcher({token("ab", 1), token("abcd", 2), token("bc", 3)});
  std::vector<AddedTokenMatcher::Part> parts;
  matcher.split("xabcabcdbc", true, parts);
  std::vector<std::int32_t> ids;
  for (const auto& p : parts) ids.push_back(p.id);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{-1, 1, -1, 2, 3}));
}

std::string apply(const Normalizer& normalizer, std::string text) {
  normalizer.apply(text);
  return text;
}

// A character map with the one entry "a" -> "bc", laid out by hand.
std::string small_charsmap() {
  std::vector<std::uint32_t> trie(256 * 3);
  trie[0] = 256u << 10;                        // the root's children lie at 256 ^ byte
  trie[256 ^ 'a'] = 'a' | 1u << 8 | 1u << 10;  // "a" ends here; its value lies at (256 ^ 'a') ^ 1
  trie[(256 ^ 'a') ^ 1] = 1u << 31 | 0;        // value: text at offset 0
  std::string out;
  const auto put = [&](std::uint32_t v) { out.append(reinterpret_cast<const char*>(&v), 4); };
  put(static_cast<std::uint32_t>(trie.size() * 4));
  for (const auto unit : trie) put(unit);
  return out + std::string("bc\0", 3);
}

TEST(Charsmap, ReplacesByTheTrie) {
  for (const bool longest : {false, true}) {
    EXPECT_EQ(apply(*make_charsmap(small_charsmap(), longest, "test"), "xa\u00e9a"), "xbc\u00e9bc");
  }
}

TEST(Charsmap, RandomBytesNeverReadOutside) {
  std::uint32_t seed = 1;
  for (int round = 0; round < 300; ++round) {
    std::string map = small_charsmap();
    for (int i = 0; i < 40; ++i) {
      seed = seed * 1664525 + 1013904223;
      map[4 + seed % (map.size() - 8)] = static_cast<char>(seed >> 24);
    }
    try {
      const auto normalizer = make_charsmap(map, round % 2 == 0, "test");
      const std::string out = apply(*normalizer, "the quick brown \u6f22\u5b57 fox a");
      EXPECT_EQ(unicode::valid_prefix(out), out.size());
    } catch (const BadFile&) {
    }
  }
}

TEST(Normalizers, CollapseSpacesAndStrip) {
  EXPECT_EQ(apply(*make_collapse_spaces(), "  a   b "), "a b");
  EXPECT_EQ(apply(*make_strip(true, false), " \u3000a "), "a ");
  EXPECT_EQ(apply(*make_strip(true, true), "   "), "");
  EXPECT_EQ(apply(*make_lowercase(), "\u0130A\u03a3"), "i\u0307a\u03c3");
}

std::string decode(std::vector<DecodeStep> steps, const Words& tokens) {
  DecoderConfig config;
  config.steps = std::move(steps);
  DecodeStream stream(config);
  std::string out;
  for (const auto& token : tokens) stream.push(token, out);
  stream.flush(out);
  return out;
}

TEST(Decoders, StripTakesTheEndsOfTheWholeTextBehindFuse) {
  using Kind = DecodeStep::Kind;
  EXPECT_EQ(decode({{.kind = Kind::kFuse}, {.kind = Kind::kStrip, .what = "_", .start = 2, .stop = 2}},
                   {"_", "__a", "_", "_b_", "_", "_"}),
            "_a__b_");
  EXPECT_EQ(decode({{.kind = Kind::kStrip, .what = "_", .start = 1, .stop = 1}}, {"__a__", "_b"}), "_a_b");
}

TEST(Decoders, CtcDropsRepeatsAndPads) {
  EXPECT_EQ(decode({{.kind = DecodeStep::Kind::kCtc, .what = "<pad>", .with = "|", .flag = true}},
                   {"<pad>", "h", "h", "e", "<pad>", "l", "<pad>", "l", "o", "|", "|", "w"}),
            "hello w");
}

TEST(Decoders, BpeSuffixIsASpaceButAtTheEnd) {
  EXPECT_EQ(decode({{.kind = DecodeStep::Kind::kBpeSuffix, .what = "</w>"}}, {"th", "e</w>", "end</w>"}), "the end");
}

}  // namespace
}  // namespace cairn
