// SentencePiece's precompiled_charsmap: a little-endian length, a Darts double-array trie of that many bytes, and the
// replacement texts, each ended by a zero byte.
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/base/error.hpp"
#include "core/text/tokenizer_normalizer.hpp"

namespace cairn {

namespace {

class Charsmap final : public Normalizer {
 public:
  Charsmap(std::string_view compiled, bool longest_prefix, std::string_view key) : longest_prefix_(longest_prefix) {
    const auto fail = [&](const std::string& what) { throw BadFile(std::string(key) + ": " + what); };
    if (compiled.empty()) return;
    if (compiled.size() < 4)
      fail("the character map of " + std::to_string(compiled.size()) + " bytes has no length field.");
    const std::uint32_t trie_bytes = read32(compiled.data());
    if (trie_bytes % 4 != 0 || trie_bytes > compiled.size() - 4) {
      fail("the character map says its trie has " + std::to_string(trie_bytes) + " bytes; the map has " +
           std::to_string(compiled.size()) + ".");
    }
    trie_.resize(trie_bytes / 4);
    for (std::size_t i = 0; i < trie_.size(); ++i) trie_[i] = read32(compiled.data() + 4 + 4 * i);
    texts_ = compiled.substr(4 + trie_bytes);
    if (!texts_.empty() && texts_.back() != '\0') fail("the last replacement text of the character map has no end.");
    if (unicode::valid_prefix(texts_) != texts_.size()) fail("a replacement text of the character map is not UTF-8.");
  }

  void apply(std::string& text) const override {
    if (trie_.empty()) return;
    std::string out;
    out.reserve(text.size() + text.size() / 8);
    longest_prefix_ ? by_longest_prefix(text, out) : by_cluster(text, out);
    if (out.size() > kMaxNormalizedBytes) {
      throw InvalidArgument("The text grows beyond " + std::to_string(kMaxNormalizedBytes) +
                            " bytes when the tokenizer normalises it. Send it in smaller parts.");
    }
    text = std::move(out);
  }

 private:
  struct Match {
    std::size_t length;
    std::string_view text;
  };
  enum class Want { kShortest, kLongest };

  static std::uint32_t read32(const char* p) {
    const auto b = [&](int i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i])); };
    return b(0) | b(1) << 8 | b(2) << 16 | b(3) << 24;
  }

  static std::uint32_t base(std::uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

  // A key of the trie that `text` starts with. Every index is checked: the trie came from a file.
  std::optional<Match> find(std::string_view text, Want want) const {
    std::optional<Match> best;
    std::uint32_t node = base(trie_[0]);
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if (byte == 0) break;
      node ^= byte;
      if (node >= trie_.size()) break;
      const std::uint32_t unit = trie_[node];
      if ((unit & (1u << 31 | 0xFF)) != byte) break;
      node ^= base(unit);
      if ((unit >> 8 & 1) == 0) continue;
      if (node >= trie_.size()) break;
      const std::uint32_t offset = trie_[node] & 0x7FFFFFFF;
      if (offset >= texts_.size() || (static_cast<unsigned char>(texts_[offset]) & 0xC0) == 0x80) break;
      best = Match{i + 1, std::string_view(texts_).substr(offset, texts_.find('\0', offset) - offset)};
      if (want == Want::kShortest) break;
    }
    return best;
  }

  // A whole cluster of up to five bytes if any of its prefixes has an entry (the shortest one's is taken), else
  // character by character. That is what the reference does, and its models are trained with it.
  void by_cluster(const std::string& text, std::string& out) const {
    for (std::size_t pos = 0; pos < text.size();) {
      const std::size_t end = unicode::grapheme_end(text, pos);
      const std::string_view cluster = std::string_view(text).substr(pos, end - pos);
      pos = end;
      if (cluster.size() < 6) {
        if (const auto match = find(cluster, Want::kShortest)) {
          out.append(match->text);
          continue;
        }
      }
      for (std::size_t i = 0; i < cluster.size();) {
        const std::string_view one = cluster.substr(i, unicode::length_of(cluster[i]));
        i += one.size();
        const auto match = find(one, Want::kShortest);
        out.append(match ? match->text : one);
      }
    }
  }

  void by_longest_prefix(const std::string& text, std::string& out) const {
    for (std::size_t pos = 0; pos < text.size();) {
      const std::string_view rest = std::string_view(text).substr(pos);
      const auto match = find(rest, Want::kLongest);
      // A hostile map may match the front of a character only: take the whole character then.
      if (match && (match->length == rest.size() || (static_cast<unsigned char>(rest[match->length]) & 0xC0) != 0x80)) {
        out.append(match->text);
        pos += match->length;
      } else {
        const std::size_t n = unicode::length_of(rest[0]);
        out.append(rest.substr(0, n));
        pos += n;
      }
    }
  }

  bool longest_prefix_;
  std::vector<std::uint32_t> trie_;
  std::string texts_;
};

}  // namespace

NormalizerPtr make_charsmap(std::string_view compiled, bool longest_prefix, std::string_view key) {
  return std::make_unique<Charsmap>(compiled, longest_prefix, key);
}

}  // namespace cairn
