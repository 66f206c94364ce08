// Ids' spellings back to text, one token at a time: the decoder steps of tokenizer.json as a pipeline of small state
// machines. Used by Tokenizer::decode and IncrementalDecoder, which therefore give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/tokenizer_regex.hpp"

namespace cairn {

struct DecodeStep {
  enum class Kind : std::uint8_t {
    kByteLevel,     // byte-level alphabet to bytes; from here on the text is one stream
    kByteFallback,  // "<0x4F>" to its byte
    kFuse,          // from here on the text is one stream
    kMetaspace,     // `what` to a space; dropped in the first token when `flag`
    kWordPiece,     // prefix `what` joins to the token before, others get a space; `flag`: tidy up punctuation
    kStrip,         // up to `start` and `stop` characters `what` off the ends
    kReplace,       // `what` to `with`
    kRegexReplace,  // `regex` to `with`
    kBpeSuffix,     // end-of-word suffix `what` to a space, to nothing in the last token
    kCtc,           // repeats once, pad token `what` dropped, delimiter `with` to a space when `flag` (tidy up)
    kJoin,          // a space between tokens: what the reference does without a decoder
  };
  Kind kind;
  std::string what;
  std::string with;
  std::size_t start = 0;
  std::size_t stop = 0;
  bool flag = false;
  std::shared_ptr<const Regex> regex;
};

struct DecoderConfig {
  std::vector<DecodeStep> steps;
  // An invalid or incomplete sequence gives one U+FFFD per byte (vocabularies with byte fall-back), else one for each
  // maximal invalid sequence. A run of byte tokens that holds both whole characters and invalid bytes keeps the
  // characters; the reference replaces all of it, which cannot be known while the run is still going on.
  bool replace_each_byte = false;
};

// The state of one text. One thread. `config` outlives it.
class DecodeStream {
 public:
  explicit DecodeStream(const DecoderConfig& config);

  // Appends the whole characters that this token completes.
  void push(std::string_view token, std::string& out);
  // The end of the text: what was held back comes out, and the stream starts afresh.
  void flush(std::string& out);

  // What `token` adds in the middle of a text, as raw bytes. Leaves the stream fresh.
  void raw_bytes(std::string_view token, std::string& out);

 private:
  struct State {
    bool first = true;
    bool one_stream = false;  // tokens arrive joined: a whole-text rule waits for the end
    std::size_t stripped = 0;
    std::string buffer;    // this step's output for the current token
    std::string held;      // text or token that waits for what follows
    std::string previous;  // the token before, where repeats count once
  };
  void reset();
  void feed(std::size_t step, std::string_view token);
  void finish(std::size_t step);
  void transform(std::size_t step, std::string_view token, bool last);
  void strip_stream(std::size_t step, std::string_view chunk);
  void sink(std::string_view bytes);
  void replace_tail();

  const DecoderConfig& config_;
  std::vector<State> states_;
  std::string tail_;            // the beginning of a character, at most 3 bytes
  std::string* out_ = nullptr;  // during a call
  bool raw_ = false;
};

}  // namespace cairn
