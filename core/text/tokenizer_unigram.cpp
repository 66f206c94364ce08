// SentencePiece's Unigram model: the segmentation with the highest sum of log probabilities (Viterbi over a byte trie),
// in the reference's order of comparison, so that ties fall the same way.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "core/text/tokenizer_merge_table.hpp"
#include "core/text/tokenizer_model.hpp"
#include "core/text/unicode.hpp"

namespace cairn {

namespace {

// Encoding takes (bytes of text) x (longest token) steps at worst.
constexpr std::size_t kMaxUnigramToken = 2048;
constexpr double kUnknownPenalty = 10.0;  // an unknown character scores this much below the worst token

class UnigramModel final : public TokenModel {
 public:
  UnigramModel(const Vocabulary& vocab, UnigramConfig config)
      : vocab_(vocab), config_(std::move(config)), children_(count_nodes()) {
    double lowest = std::numeric_limits<double>::infinity();
    for (std::int32_t id = 0; id < vocab_.size(); ++id) {
      const std::string_view s = vocab_.spelling(id);
      if (s.size() > kMaxUnigramToken) {
        throw BadFile(config_.key + ": token " + std::to_string(id) + " is " + std::to_string(s.size()) +
                      " bytes long; a Unigram token may have " + std::to_string(kMaxUnigramToken) + ".");
      }
      const double score = config_.scores[static_cast<std::size_t>(id)];
      if (score == kNotText) continue;
      if (!std::isfinite(score)) {
        throw BadFile(config_.key + ": the score of token " + std::to_string(id) + " is not finite.");
      }
      lowest = std::min(lowest, score);
      insert(s);
    }
    unk_score_ = config_.unk_score.value_or(lowest - kUnknownPenalty);
    for (unsigned b = 0; b < 256; ++b) {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      const std::string name{'<', '0', 'x', kHex[b >> 4], kHex[b & 15], '>'};
      byte_ids_[b] = config_.byte_fallback ? vocab_.find(name).value_or(-1) : -1;
    }
  }

  void encode_word(std::string_view word, std::vector<std::int32_t>& out) const override {
    if (word.empty()) return;
    std::vector<Best> best(word.size() + 1);
    best[0].score = 0;
    for (std::size_t start = 0; start < word.size();) {
      const std::size_t char_bytes = unicode::length_of(word[start]);
      const double so_far = best[start].score;
      bool whole_char = false;
      std::int32_t node = 0;
      for (std::size_t end = start; end < word.size();) {
        node = children_.find(node, static_cast<unsigned char>(word[end])).id;
        if (node < 0) break;
        ++end;
        const std::int32_t id = token_at_[static_cast<std::size_t>(node)];
        if (id < 0) continue;
        offer(best[end], so_far + config_.scores[static_cast<std::size_t>(id)], start, id);
        whole_char = whole_char || end - start == char_bytes;
      }
      if (!whole_char) offer(best[start + char_bytes], so_far + unk_score_, start, kUnknown);
      start += char_bytes;
    }
    emit(word, best, out);
  }

 private:
  static constexpr std::int32_t kUnknown = -2;
  static constexpr std::int32_t kNone = -1;

  struct Best {
    double score = -std::numeric_limits<double>::infinity();
    std::uint32_t start = 0;
    std::int32_t id = kNone;
  };

  static void offer(Best& place, double score, std::size_t start, std::int32_t id) {
    if (place.id == kNone || score > place.score) place = {score, static_cast<std::uint32_t>(start), id};
  }

  // The best path backwards, then its pieces in order. Neighbouring unknowns are one piece.
  void emit(std::string_view word, const std::vector<Best>& best, std::vector<std::int32_t>& out) const {
    const auto is_unknown = [&](std::int32_t id) {
      return id == kUnknown || (config_.unk_id && id == *config_.unk_id);
    };
    struct Piece {
      std::size_t begin;
      std::size_t end;
      std::int32_t id;
    };
    std::vector<Piece> pieces;
    for (std::size_t end = word.size(); end > 0; end = best[end].start) {
      const Best& b = best[end];
      if (is_unknown(b.id) && !pieces.empty() && is_unknown(pieces.back().id) && config_.unk_id) {
        pieces.back().begin = b.start;
      } else {
        pieces.push_back({b.start, end, b.id});
      }
    }
    for (auto it = pieces.rbegin(); it != pieces.rend(); ++it) {
      const std::string_view piece = word.substr(it->begin, it->end - it->begin);
      if (!is_unknown(it->id)) {
        out.push_back(it->id);
      } else if (const auto id = vocab_.find(piece)) {  // the spelling of the unknown token itself, written out
        out.push_back(*id);
      } else if (has_all_bytes(piece)) {
        for (const char c : piece) out.push_back(byte_ids_[static_cast<unsigned char>(c)]);
      } else if (config_.unk_id) {
        out.push_back(*config_.unk_id);
      } else {
        throw InvalidArgument("The text holds " + quote_token(piece) +
                              ", which this model's vocabulary cannot spell: it has no unknown token.");
      }
    }
  }

  bool has_all_bytes(std::string_view piece) const {
    return std::all_of(piece.begin(), piece.end(),
                       [&](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; });
  }

  // Distinct prefixes of all spellings.
  std::size_t count_nodes() const {
    std::vector<std::string_view> sorted;
    sorted.reserve(static_cast<std::size_t>(vocab_.size()));
    for (std::int32_t id = 0; id < vocab_.size(); ++id) sorted.push_back(vocab_.spelling(id));
    std::sort(sorted.begin(), sorted.end());
    std::size_t count = 1;
    std::string_view last;
    for (const std::string_view s : sorted) {
      const auto common = std::mismatch(s.begin(), s.end(), last.begin(), last.end()).first - s.begin();
      count += s.size() - static_cast<std::size_t>(common);
      last = s;
    }
    return count;
  }

  void insert(std::string_view spelling) {
    if (spelling.empty()) return;
    if (token_at_.empty()) token_at_.push_back(-1);
    std::int32_t node = 0;
    for (const char c : spelling) {
      const auto byte = static_cast<unsigned char>(c);
      std::int32_t child = children_.find(node, byte).id;
      if (child < 0) {
        child = static_cast<std::int32_t>(token_at_.size());
        token_at_.push_back(-1);
        children_.set(node, byte, {0, child});
      }
      node = child;
    }
    token_at_[static_cast<std::size_t>(node)] = vocab_.find(spelling).value_or(-1);
  }

  const Vocabulary& vocab_;
  UnigramConfig config_;
  MergeTable children_;                 // (node, byte) -> child node
  std::vector<std::int32_t> token_at_;  // the token that ends at each node, or -1
  std::array<std::int32_t, 256> byte_ids_{};
  double unk_score_ = 0;
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram_model(const Vocabulary& vocab, UnigramConfig config) {
  return std::make_unique<UnigramModel>(vocab, std::move(config));
}

}  // namespace cairn
