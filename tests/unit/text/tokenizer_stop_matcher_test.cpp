// StopMatcher: against a search in the whole text, for every way to cut the text in pieces.
#include "core/text/stop_matcher.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cairn {
namespace {

struct Outcome {
  std::string text;
  bool stopped;
  bool operator==(const Outcome&) const = default;
};

// The definition: the stop string that is complete first; of those complete at the same byte, the longest.
Outcome search_whole(const std::string& text, const std::vector<std::string>& stops, bool include) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      if (!stop.empty() && std::string_view(text).substr(0, end).ends_with(stop))
        longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, include ? end : end - longest), true};
  }
  return {text, false};
}

Outcome feed(const std::vector<std::string>& pieces, const std::vector<std::string>& stops, bool include) {
  StopMatcher matcher(stops, include);
  std::size_t longest = 1;
  for (const std::string& stop : stops) longest = std::max(longest, stop.size());
  std::string out;
  for (const std::string& piece : pieces) {
    matcher.push(piece, out);
    EXPECT_LE(matcher.held_back(), longest - 1);
  }
  matcher.flush(out);
  return {out, matcher.stopped()};
}

TEST(StopMatcher, FindsAStopThatSpansPieces) {
  StopMatcher matcher({"STOP"});
  std::string out;
  EXPECT_FALSE(matcher.push("hello S", out));
  EXPECT_EQ(out, "hello ");
  EXPECT_FALSE(matcher.push("TO", out));
  EXPECT_TRUE(matcher.push("P and more", out));
  EXPECT_EQ(out, "hello ");
  EXPECT_EQ(matcher.matched(), "STOP");
  matcher.flush(out);
  EXPECT_TRUE(matcher.push("later", out));
  EXPECT_EQ(out, "hello ");
}

TEST(StopMatcher, ReleasesWhatTurnsOutToBeNoStop) {
  StopMatcher matcher({"\n\nUser:"});
  std::string out;
  matcher.push("a\n", out);
  EXPECT_EQ(out, "a");
  matcher.push("\nUse", out);
  EXPECT_EQ(out, "a");
  matcher.push("d", out);
  EXPECT_EQ(out, "a\n\nUsed");
}

TEST(StopMatcher, FlushGivesBackTheHeldText) {
  StopMatcher matcher({"<end>"});
  std::string out;
  matcher.push("x<en", out);
  EXPECT_EQ(out, "x");
  matcher.flush(out);
  EXPECT_EQ(out, "x<en");
}

TEST(StopMatcher, WithoutStopsEverythingPassesAtOnce) {
  StopMatcher matcher({"", ""});
  std::string out;
  EXPECT_FALSE(matcher.push("anything", out));
  EXPECT_EQ(out, "anything");
  EXPECT_EQ(matcher.held_back(), 0U);
}

TEST(StopMatcher, AgreesWithASearchInTheWholeTextHoweverItIsCut) {
  std::mt19937 rng(5);
  const auto random_text = [&](std::size_t longest) {
    std::string text(rng() % (longest + 1), ' ');
    for (char& c : text) c = static_cast<char>('a' + rng() % 3);
    return text;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops(1 + rng() % 4);
    for (std::string& stop : stops) stop = random_text(5);
    const std::string text = random_text(24);
    std::vector<std::string> pieces;
    for (std::size_t pos = 0; pos < text.size();) {
      const std::size_t n = 1 + rng() % 4;
      pieces.push_back(text.substr(pos, n));
      pos += n;
    }
    const bool include = rng() % 2 == 0;
    const Outcome want = search_whole(text, stops, include);
    const Outcome got = feed(pieces, stops, include);
    ASSERT_EQ(got.text, want.text) << text;
    ASSERT_EQ(got.stopped, want.stopped) << text;
  }
}

}  // namespace
}  // namespace cairn
