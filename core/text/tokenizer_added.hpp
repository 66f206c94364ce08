// Finds added and special tokens in text, before and after normalisation. Used by Tokenizer::encode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/tokenizer_merge_table.hpp"

namespace cairn {

struct AddedToken {
  std::string content;
  std::string output;  // what the decoder gets: the normalised content where it is looked for that way
  std::int32_t id = -1;
  bool special = false;      // recognised only with parse_special; left out when decoding with skip_special
  bool normalized = false;   // looked for in the normalised text, in its normalised spelling
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and behind it
};

// Leftmost-longest search for one set of tokens. Immutable; any thread.
class AddedTokenMatcher {
 public:
  // A token and the text to look for; empty texts are never found.
  struct Pattern {
    std::string text;
    AddedToken token;
  };
  explicit AddedTokenMatcher(std::vector<Pattern> patterns);

  struct Part {
    std::size_t begin;
    std::size_t end;
    std::int32_t id;  // -1: text between tokens
  };
  // Appends the parts of `text` in order. Without parse_special a special token's text is passed over unmatched.
  void split(std::string_view text, bool parse_special, std::vector<Part>& parts) const;

  bool empty() const { return patterns_.empty(); }

 private:
  struct Match {
    std::size_t end;
    std::size_t pattern;
  };
  std::optional<Match> longest_at(std::string_view text, std::size_t begin) const;

  std::vector<Pattern> patterns_;
  MergeTable children_;                   // (node, byte) -> node
  std::vector<std::int32_t> pattern_at_;  // by node
  std::vector<bool> starts_;              // by first byte
};

}  // namespace cairn
