// WordPiece (BERT): the longest token first, again and again; a word that cannot be spelled is one unknown. And
// WordLevel: a word is a token or unknown.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/text/tokenizer_model.hpp"
#include "core/text/unicode.hpp"

namespace cairn {

namespace {

InvalidArgument no_unknown(std::string_view word) {
  return InvalidArgument("The text holds " + quote_token(word) +
                         ", which this model's vocabulary cannot spell: it has no unknown token.");
}

class WordPieceModel final : public TokenModel {
 public:
  WordPieceModel(const Vocabulary& vocab, WordPieceConfig config) : vocab_(vocab), config_(std::move(config)) {}

  void encode_word(std::string_view word, std::vector<std::int32_t>& out) const override {
    const std::size_t before = out.size();
    if (count_chars(word) > config_.max_input_chars_per_word || !spell(word, out)) {
      out.resize(before);
      if (!config_.unk_id) throw no_unknown(word);
      out.push_back(*config_.unk_id);
    }
  }

 private:
  static std::size_t count_chars(std::string_view word) {
    return static_cast<std::size_t>(
        std::count_if(word.begin(), word.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  }

  bool spell(std::string_view word, std::vector<std::int32_t>& out) const {
    std::string candidate;
    for (std::size_t start = 0; start < word.size();) {
      // No token is longer than the longest one.
      std::size_t end = std::min(word.size(), start + vocab_.longest());
      while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) --end;
      std::optional<std::int32_t> id;
      while (start < end) {
        candidate = start > 0 ? config_.continuing_subword_prefix : std::string();
        candidate += word.substr(start, end - start);
        id = vocab_.find(candidate);
        if (id) break;
        end = start + unicode::last_char(word.substr(start, end - start));
      }
      if (!id) return false;
      out.push_back(*id);
      start = end;
    }
    return true;
  }

  const Vocabulary& vocab_;
  WordPieceConfig config_;
};

class WordLevelModel final : public TokenModel {
 public:
  WordLevelModel(const Vocabulary& vocab, std::optional<std::int32_t> unk_id) : vocab_(vocab), unk_id_(unk_id) {}

  void encode_word(std::string_view word, std::vector<std::int32_t>& out) const override {
    auto id = vocab_.find(word);
    if (!id) id = unk_id_;
    if (!id) throw no_unknown(word);
    out.push_back(*id);
  }

 private:
  const Vocabulary& vocab_;
  std::optional<std::int32_t> unk_id_;
};

}  // namespace

std::unique_ptr<TokenModel> make_wordpiece_model(const Vocabulary& vocab, WordPieceConfig config) {
  return std::make_unique<WordPieceModel>(vocab, std::move(config));
}

std::unique_ptr<TokenModel> make_wordlevel_model(const Vocabulary& vocab, std::optional<std::int32_t> unk_id) {
  return std::make_unique<WordLevelModel>(vocab, unk_id);
}

}  // namespace cairn
