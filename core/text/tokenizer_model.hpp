// What cuts one pre-tokenised word into ids: BPE, Unigram, WordPiece or WordLevel. Made by the loaders, called by
// Tokenizer::encode.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/tokenizer_vocab.hpp"

namespace cairn {

// Immutable; any thread.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the ids of `word`: valid UTF-8, or raw bytes for a byte-level BPE model.
  virtual void encode_word(std::string_view word, std::vector<std::int32_t>& out) const = 0;
};

// The bytes of a GPT-2 byte-level alphabet: every byte has a printable character.
char32_t byte_level_char(unsigned char byte);
// The byte of such a character, or -1.
int byte_level_byte(char32_t c);
// The bytes that a spelling in that alphabet stands for, or nothing when a character is not in it.
std::optional<std::string> byte_level_decode(std::string_view spelling);

// The byte of a "<0x4F>" token's spelling, or -1.
int byte_token_value(std::string_view spelling);

struct BpeConfig {
  std::vector<std::pair<std::int32_t, std::int32_t>> merges;  // best first
  std::optional<std::int32_t> unk_id;
  std::string continuing_subword_prefix;
  std::string end_of_word_suffix;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;  // a word that is a token is that token
  bool byte_level = false;     // words come as raw bytes, spellings are in the byte-level alphabet
  // A run of newlines that is a token is that token (vocabularies whose merges cannot spell a newline).
  bool whole_newline_runs = false;
  // Instead of merges: a SentencePiece vocabulary's scores; any two neighbours that together are a token may merge,
  // best score first. One score per id.
  std::vector<float> scores;
  static constexpr float kNeverMerged = -std::numeric_limits<float>::infinity();  // the score of no text token
  std::string key;  // the merges' place in the file, for messages
};

// `vocab` outlives the model. Throws BadFile for merges whose parts or result are not in the vocabulary.
std::unique_ptr<TokenModel> make_bpe_model(const Vocabulary& vocab, BpeConfig config);

inline constexpr double kNotText = -std::numeric_limits<double>::infinity();

struct UnigramConfig {
  std::vector<double> scores;  // log probabilities, one per id; kNotText keeps a token out of text
  std::optional<std::int32_t> unk_id;
  bool byte_fallback = false;
  std::optional<double> unk_score;  // of an unknown character; without one, the worst token's less 10
  std::string key;
};
std::unique_ptr<TokenModel> make_unigram_model(const Vocabulary& vocab, UnigramConfig config);

struct WordPieceConfig {
  std::optional<std::int32_t> unk_id;
  std::string continuing_subword_prefix = "##";
  std::size_t max_input_chars_per_word = 100;
};
std::unique_ptr<TokenModel> make_wordpiece_model(const Vocabulary& vocab, WordPieceConfig config);

// Whole words only.
std::unique_ptr<TokenModel> make_wordlevel_model(const Vocabulary& vocab, std::optional<std::int32_t> unk_id);

}  // namespace cairn
