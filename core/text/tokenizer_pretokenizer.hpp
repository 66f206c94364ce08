// Cuts normalised text into the words that the model encodes one by one. Made by the loaders, called by
// Tokenizer::encode on each stretch between added tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn {

// A stretch of text and its pieces, in order and without gaps or overlaps unless a step removed some.
struct PieceText {
  struct Piece {
    std::uint32_t begin;
    std::uint32_t end;
  };
  std::string text;  // valid UTF-8; under 2 GiB
  std::vector<Piece> pieces;
  bool at_start = false;  // the first piece starts at the very beginning of what the caller gave

  std::string_view view(Piece p) const { return std::string_view(text).substr(p.begin, p.end - p.begin); }
};

// One step. Immutable; any thread.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(PieceText& t) const = 0;
};

using PreTokenizerPtr = std::unique_ptr<const PreTokenizer>;
using PreTokenizerList = std::vector<PreTokenizerPtr>;

// What becomes of the text that a pattern matches.
enum class SplitBehavior : std::uint8_t { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

enum class PrependScheme : std::uint8_t { kAlways, kFirst, kNever };

// Splits at matches of a pattern in Ruby's dialect; `invert` exchanges matches and the text between them.
PreTokenizerPtr make_split(std::string_view pattern, SplitBehavior behavior, bool invert, std::string_view key);
PreTokenizerPtr make_literal_split(std::string text, SplitBehavior behavior, bool invert);
// Splits at every character for which `is` holds.
PreTokenizerPtr make_char_split(bool (*is)(char32_t), SplitBehavior behavior);
PreTokenizerPtr make_whitespace();  // words and runs of other characters; spaces vanish
PreTokenizerPtr make_delimiter_split(char32_t delimiter);
PreTokenizerPtr make_fixed_length(std::size_t characters);
PreTokenizerPtr make_unicode_scripts();
PreTokenizerPtr make_metaspace(char32_t replacement, PrependScheme scheme, bool split);
// GPT-2's word pattern and leading space. The bytes are mapped by make_byte_map, or by the model itself.
PreTokenizerPtr make_byte_level_words(bool add_prefix_space, bool use_regex);
PreTokenizerPtr make_byte_map();
// Digit runs in groups of three counted from their end, in linear time.
enum class DigitGroups : std::uint8_t {
  kAlone,           // each group is a piece
  kBeforeBoundary,  // the same, unless a word character follows the run: "\d{1,3}(?=(?:\d{3})*\b)"
  kCutsOnly,        // only a border before each full group: "(?=(\d{3})+(?!\d))"
};
PreTokenizerPtr make_digit_groups(DigitGroups kind);

}  // namespace cairn
