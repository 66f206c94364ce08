// Byte-pair encoding as the reference does it: characters (or bytes) first, then the best-ranked neighbouring pair,
// leftmost among equals, until no pair merges. Short words by a scan, long ones with a heap: O(n log n) always.
#include <algorithm>
#include <array>
#include <atomic>
#include <queue>
#include <unordered_map>

#include "core/base/error.hpp"
#include "core/text/tokenizer_merge_table.hpp"
#include "core/text/tokenizer_model.hpp"
#include "core/text/tokenizer_word_cache.hpp"
#include "core/text/unicode.hpp"

namespace cairn {

char32_t byte_level_char(unsigned char byte) {
  // Printable Latin-1 stands for itself; the other 68 bytes follow one another from U+0100.
  static const std::array<char32_t, 256> table = [] {
    std::array<char32_t, 256> t{};
    char32_t next = 256;
    for (unsigned b = 0; b < 256; ++b) {
      const bool itself = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      t[b] = itself ? b : next++;
    }
    return t;
  }();
  return table[byte];
}

int byte_level_byte(char32_t c) {
  static const std::array<std::int16_t, 324> table = [] {
    std::array<std::int16_t, 324> t{};
    t.fill(-1);
    for (unsigned b = 0; b < 256; ++b) t[byte_level_char(static_cast<unsigned char>(b))] = static_cast<std::int16_t>(b);
    return t;
  }();
  return c < table.size() ? table[c] : -1;
}

std::optional<std::string> byte_level_decode(std::string_view spelling) {
  if (unicode::valid_prefix(spelling) != spelling.size()) return std::nullopt;
  std::string bytes;
  for (std::size_t pos = 0; pos < spelling.size();) {
    const int b = byte_level_byte(unicode::next(spelling, pos));
    if (b < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(b));
  }
  return bytes;
}

int byte_token_value(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return -1;
  int value = 0;
  for (const char c : spelling.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

namespace {

constexpr std::string_view kMetaspace = "\xE2\x96\x81";
constexpr std::size_t kMaxScoredToken = 2048;  // trying all splits is quadratic in this
constexpr std::size_t kScanLimit = 48;         // up to this many symbols a scan beats the heap

class BpeModel final : public TokenModel {
 public:
  BpeModel(const Vocabulary& vocab, BpeConfig config)
      : vocab_(vocab), config_(std::move(config)), merges_(merge_count()), serial_(next_serial()) {
    if (config_.scores.empty()) {
      add_listed_merges();
    } else {
      add_scored_merges();
    }
    for (unsigned b = 0; b < 256; ++b) {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      const std::string name{'<', '0', 'x', kHex[b >> 4], kHex[b & 15], '>'};
      byte_ids_[b] = config_.byte_fallback ? vocab_.find(name).value_or(-1) : -1;
      std::string spelling;
      if (config_.byte_level) {
        unicode::append(spelling, byte_level_char(static_cast<unsigned char>(b)));
      } else if (b < 128) {
        spelling.push_back(static_cast<char>(b));
      }
      first_ids_[b] = vocab_.find(spelling).value_or(-1);
    }
    if (config_.byte_level && config_.ignore_merges) {
      for (std::int32_t id = 0; id < vocab_.size(); ++id) {
        if (auto bytes = byte_level_decode(vocab_.spelling(id)); bytes && !bytes->empty())
          whole_words_.emplace(*bytes, id);
      }
    }
    plain_ = config_.continuing_subword_prefix.empty() && config_.end_of_word_suffix.empty();
    cut_at_metaspace_ = plain_ && !config_.byte_level && !config_.ignore_merges &&
                        vocab_.find(kMetaspace).has_value() && no_merge_crosses_into_metaspace();
  }

  void encode_word(std::string_view word, std::vector<std::int32_t>& out) const override {
    if (!cut_at_metaspace_) {
      encode_part(word, out);
      return;
    }
    // No token holds a metaspace behind another character, so no merge crosses such a place: cut there, which makes
    // the parts short and worth caching. The ids are the same.
    std::size_t begin = 0;
    std::size_t from = 0;
    while (true) {
      const std::size_t mark = word.find(kMetaspace, from);
      if (mark == std::string_view::npos) break;
      if (mark > begin && mark != from) {  // not inside a run of them
        encode_part(word.substr(begin, mark - begin), out);
        begin = mark;
      }
      from = mark + kMetaspace.size();
    }
    if (begin < word.size()) encode_part(word.substr(begin), out);
  }

 private:
  struct Candidate {
    std::uint32_t rank;
    std::int32_t pos;
    std::int32_t id;
    bool operator>(const Candidate& o) const { return rank != o.rank ? rank > o.rank : pos > o.pos; }
  };

  static std::uint64_t next_serial() {
    static std::atomic<std::uint64_t> serial{0};
    return ++serial;
  }

  std::size_t merge_count() const {
    if (config_.scores.empty()) return config_.merges.size();
    std::size_t count = 0;
    for_each_scored_split([&](std::int32_t, std::int32_t, std::int32_t) { ++count; });
    return count;
  }

  // Every way to write a token as two tokens.
  template <class F>
  void for_each_scored_split(F&& found) const {
    for (std::int32_t id = 0; id < vocab_.size(); ++id) {
      const std::string_view s = vocab_.spelling(id);
      if (config_.scores[static_cast<std::size_t>(id)] == BpeConfig::kNeverMerged) continue;
      if (s.empty() || vocab_.find(s) != id || unicode::valid_prefix(s) != s.size()) continue;
      for (std::size_t cut = unicode::length_of(s[0]); cut < s.size(); cut += unicode::length_of(s[cut])) {
        const auto left = vocab_.find(s.substr(0, cut));
        if (!left) continue;
        const auto right = vocab_.find(s.substr(cut));
        if (right) found(*left, *right, id);
      }
    }
  }

  void add_listed_merges() {
    for (std::size_t i = 0; i < config_.merges.size(); ++i) {
      const auto [left, right] = config_.merges[i];
      std::string_view rest = vocab_.spelling(right);
      const std::string_view prefix = config_.continuing_subword_prefix;
      const std::string where = config_.key + ": merge " + std::to_string(i) + " of " +
                                quote_token(vocab_.spelling(left)) + " and " + quote_token(vocab_.spelling(right));
      if (rest.size() < prefix.size())
        throw BadFile(where + " has a second part without the prefix " + quote_token(prefix) + ".");
      rest.remove_prefix(prefix.size());
      const std::string merged = std::string(vocab_.spelling(left)) + std::string(rest);
      const auto id = vocab_.find(merged);
      if (!id) throw BadFile(where + " makes " + quote_token(merged) + ", which is not in the vocabulary.");
      merges_.set(left, right, {static_cast<std::uint32_t>(i), *id});
    }
    config_.merges = {};
  }

  void add_scored_merges() {
    if (vocab_.longest() > kMaxScoredToken) {
      throw BadFile(config_.key + ": the vocabulary has a token of " + std::to_string(vocab_.longest()) +
                    " bytes; a SentencePiece vocabulary may have " + std::to_string(kMaxScoredToken) + ".");
    }
    // Equal scores are equal ranks, so that the leftmost pair wins among them.
    std::vector<float> order = config_.scores;
    std::sort(order.begin(), order.end(), std::greater<>());
    order.erase(std::unique(order.begin(), order.end()), order.end());
    for_each_scored_split([&](std::int32_t left, std::int32_t right, std::int32_t id) {
      const float score = config_.scores[static_cast<std::size_t>(id)];
      const auto rank = std::lower_bound(order.begin(), order.end(), score, std::greater<>()) - order.begin();
      merges_.set(left, right, {static_cast<std::uint32_t>(rank), id});
    });
    config_.scores = {};
  }

  bool no_merge_crosses_into_metaspace() const {
    for (std::int32_t id = 0; id < vocab_.size(); ++id) {
      const std::string_view s = vocab_.spelling(id);
      std::size_t i = 0;
      while (s.substr(i).starts_with(kMetaspace)) i += kMetaspace.size();
      if (s.find(kMetaspace, i) != std::string_view::npos) return false;
    }
    return true;
  }

  void encode_part(std::string_view word, std::vector<std::int32_t>& out) const {
    if (word.empty()) return;
    if (word.size() > WordCache::kMaxWord) {
      merge(word, out);
      return;
    }
    WordCache::Entry& e = WordCache::entry(serial_, word);
    if (WordCache::holds(e, serial_, word)) {
      out.insert(out.end(), e.ids.begin(), e.ids.begin() + e.count);
      return;
    }
    const std::size_t before = out.size();
    merge(word, out);
    WordCache::fill(e, serial_, word, out.data() + before, out.size() - before);
  }

  void merge(std::string_view word, std::vector<std::int32_t>& out) const {
    if (config_.ignore_merges) {
      if (config_.byte_level) {
        const auto it = whole_words_.find(std::string(word));
        if (it != whole_words_.end()) {
          out.push_back(it->second);
          return;
        }
      } else if (const auto id = vocab_.find(word)) {
        out.push_back(*id);
        return;
      }
    }
    if (config_.whole_newline_runs && word.find_first_not_of('\n') == std::string_view::npos) {
      if (const auto id = vocab_.find(word)) {
        out.push_back(*id);
        return;
      }
    }
    thread_local std::vector<std::int32_t> symbols;
    symbols.clear();
    split(word, symbols);
    if (symbols.size() <= kScanLimit) {
      merge_by_scan(symbols);
      out.insert(out.end(), symbols.begin(), symbols.end());
    } else {
      merge_by_heap(symbols, out);
    }
    if (symbols.capacity() > kKeepSymbols) std::vector<std::int32_t>().swap(symbols);
  }

  // The word's characters (bytes) as ids, with fall-back and unknowns.
  void split(std::string_view word, std::vector<std::int32_t>& symbols) const {
    std::int32_t unk = -1;  // an unknown not yet added: a run of them may fuse
    const auto add_unknown = [&] {
      if (!config_.unk_id) return;  // dropped, as the reference does
      if (unk >= 0 && !config_.fuse_unk) symbols.push_back(unk);
      unk = *config_.unk_id;
    };
    const auto add = [&](std::int32_t id) {
      if (unk >= 0) symbols.push_back(unk);
      unk = -1;
      symbols.push_back(id);
    };
    if (config_.byte_level) {
      for (const char c : word) {
        const std::int32_t id = first_ids_[static_cast<unsigned char>(c)];
        id >= 0 ? add(id) : add_unknown();
      }
    } else {
      std::string spelled;
      for (std::size_t pos = 0; pos < word.size();) {
        const std::size_t n = unicode::length_of(word[pos]);
        std::string_view piece = word.substr(pos, n);
        std::int32_t id = -1;
        if (plain_) {
          id = n == 1 ? first_ids_[static_cast<unsigned char>(word[pos])] : vocab_.find(piece).value_or(-1);
        } else {
          spelled = pos > 0 ? config_.continuing_subword_prefix : std::string();
          spelled += piece;
          if (pos + n == word.size()) spelled += config_.end_of_word_suffix;
          piece = spelled;
          id = vocab_.find(piece).value_or(-1);
        }
        pos += n;
        if (id >= 0) {
          add(id);
        } else if (has_all_bytes(piece)) {
          // An unknown that waits stays behind these bytes: the reference's order.
          for (const char c : piece) symbols.push_back(byte_ids_[static_cast<unsigned char>(c)]);
        } else {
          add_unknown();
        }
      }
    }
    if (unk >= 0) symbols.push_back(unk);
  }

  bool has_all_bytes(std::string_view piece) const {
    return std::all_of(piece.begin(), piece.end(),
                       [&](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; });
  }

  void merge_by_scan(std::vector<std::int32_t>& s) const {
    std::array<MergeTable::Merge, kScanLimit> pairs;
    for (std::size_t i = 0; i + 1 < s.size(); ++i) pairs[i] = merges_.find(s[i], s[i + 1]);
    while (s.size() > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < s.size(); ++i) {
        if (pairs[i].rank < pairs[best].rank) best = i;
      }
      if (pairs[best].id < 0) return;
      s[best] = pairs[best].id;
      const auto gone = static_cast<std::ptrdiff_t>(best) + 1;
      std::copy(pairs.begin() + gone, pairs.begin() + static_cast<std::ptrdiff_t>(s.size()) - 1,
                pairs.begin() + gone - 1);
      s.erase(s.begin() + gone);
      if (best > 0) pairs[best - 1] = merges_.find(s[best - 1], s[best]);
      if (best + 1 < s.size()) pairs[best] = merges_.find(s[best], s[best + 1]);
    }
  }

  // At most one queue entry per pair that ever was a neighbour: fewer than 3 n.
  void merge_by_heap(std::vector<std::int32_t>& s, std::vector<std::int32_t>& out) const {
    const auto n = static_cast<std::int32_t>(s.size());
    std::vector<std::int32_t> next(s.size());
    std::vector<std::int32_t> prev(s.size());
    std::vector<Candidate> heap;
    heap.reserve(s.size());
    const auto id_at = [&](std::int32_t i) -> std::int32_t& { return s[static_cast<std::size_t>(i)]; };
    const auto next_of = [&](std::int32_t i) -> std::int32_t& { return next[static_cast<std::size_t>(i)]; };
    const auto prev_of = [&](std::int32_t i) -> std::int32_t& { return prev[static_cast<std::size_t>(i)]; };
    for (std::int32_t i = 0; i < n; ++i) {
      next_of(i) = i + 1;
      prev_of(i) = i - 1;
      if (i + 1 == n) break;
      const auto m = merges_.find(id_at(i), id_at(i + 1));
      if (m.id >= 0) heap.push_back({m.rank, i, m.id});
    }
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue(std::greater<>(), std::move(heap));
    const auto offer = [&](std::int32_t left, std::int32_t right) {
      const auto m = merges_.find(id_at(left), id_at(right));
      if (m.id >= 0) queue.push({m.rank, left, m.id});
    };
    while (!queue.empty()) {
      const Candidate top = queue.top();
      queue.pop();
      if (id_at(top.pos) < 0) continue;  // merged into its left neighbour since
      const std::int32_t right = next_of(top.pos);
      if (right >= n || merges_.find(id_at(top.pos), id_at(right)).id != top.id) continue;
      id_at(top.pos) = top.id;
      id_at(right) = -1;
      const std::int32_t after = next_of(right);
      next_of(top.pos) = after;
      if (after < n) prev_of(after) = top.pos;
      if (prev_of(top.pos) >= 0) offer(prev_of(top.pos), top.pos);
      if (after < n) offer(top.pos, after);
    }
    for (std::int32_t i = 0; i < n; i = next_of(i)) out.push_back(id_at(i));
  }

  static constexpr std::size_t kKeepSymbols = 64 * 1024;

  const Vocabulary& vocab_;
  BpeConfig config_;
  MergeTable merges_;
  std::uint64_t serial_;
  std::array<std::int32_t, 256> byte_ids_{};                   // of <0x00> .. <0xFF>, or -1
  std::array<std::int32_t, 256> first_ids_{};                  // of one byte (byte-level) or ASCII character, or -1
  std::unordered_map<std::string, std::int32_t> whole_words_;  // byte-level with ignore_merges: raw bytes to id
  bool plain_ = true;                                          // neither prefix nor suffix
  bool cut_at_metaspace_ = false;
};

}  // namespace

std::unique_ptr<TokenModel> make_bpe_model(const Vocabulary& vocab, BpeConfig config) {
  return std::make_unique<BpeModel>(vocab, std::move(config));
}

}  // namespace cairn
