// The search and the rules around a match: single words, white space taken along.
#include "core/text/tokenizer_added.hpp"

#include <algorithm>

#include "core/text/tokenizer_regex.hpp"
#include "core/text/unicode.hpp"

namespace cairn {

namespace {

bool is_word_char(std::string_view text, std::size_t pos) {
  static const Regex word(R"([\w\x{200c}\x{200d}])", "added_tokens");
  const std::string_view one = text.substr(pos, unicode::length_of(text[pos]));
  return word.find(one, 0).has_value();
}

std::size_t skip_spaces(std::string_view text, std::size_t pos) {
  while (pos < text.size()) {
    std::size_t after = pos;
    if (!unicode::is_white_space(unicode::next(text, after))) break;
    pos = after;
  }
  return pos;
}

// Not before `floor`.
std::size_t skip_spaces_back(std::string_view text, std::size_t pos, std::size_t floor) {
  while (pos > floor) {
    const std::size_t start = unicode::last_char(text.substr(0, pos));
    std::size_t after = start;
    if (!unicode::is_white_space(unicode::next(text, after))) break;
    pos = start;
  }
  return std::max(pos, floor);
}

std::size_t total_bytes(const std::vector<AddedTokenMatcher::Pattern>& patterns) {
  std::size_t total = 0;
  for (const auto& p : patterns) total += p.text.size();
  return total;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<Pattern> patterns)
    : patterns_(std::move(patterns)), children_(total_bytes(patterns_)), pattern_at_(1, -1), starts_(256) {
  for (std::size_t p = 0; p < patterns_.size(); ++p) {
    if (patterns_[p].text.empty()) continue;
    std::int32_t node = 0;
    for (const char c : patterns_[p].text) {
      const auto byte = static_cast<unsigned char>(c);
      std::int32_t child = children_.find(node, byte).id;
      if (child < 0) {
        child = static_cast<std::int32_t>(pattern_at_.size());
        pattern_at_.push_back(-1);
        children_.set(node, byte, {0, child});
      }
      node = child;
    }
    starts_[static_cast<unsigned char>(patterns_[p].text[0])] = true;
    pattern_at_[static_cast<std::size_t>(node)] = static_cast<std::int32_t>(p);
  }
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::longest_at(std::string_view text, std::size_t begin) const {
  std::optional<Match> best;
  std::int32_t node = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    node = children_.find(node, static_cast<unsigned char>(text[i])).id;
    if (node < 0) break;
    const std::int32_t pattern = pattern_at_[static_cast<std::size_t>(node)];
    if (pattern >= 0) best = Match{i + 1, static_cast<std::size_t>(pattern)};
  }
  return best;
}

void AddedTokenMatcher::split(std::string_view text, bool parse_special, std::vector<Part>& parts) const {
  std::size_t done = 0;
  for (std::size_t pos = 0; pos < text.size();) {
    if (!starts_[static_cast<unsigned char>(text[pos])]) {
      ++pos;
      continue;
    }
    const auto match = longest_at(text, pos);
    if (!match) {
      ++pos;
      continue;
    }
    std::size_t begin = pos;
    std::size_t end = match->end;
    pos = match->end;  // a match that is passed over still hides others inside it, as in the reference
    const AddedToken& token = patterns_[match->pattern].token;
    if (token.special && !parse_special) continue;
    if (token.single_word) {
      const bool touches_left = begin > 0 && is_word_char(text, unicode::last_char(text.substr(0, begin)));
      const bool touches_right = end < text.size() && is_word_char(text, end);
      if (touches_left || touches_right) continue;
    }
    if (token.lstrip) begin = skip_spaces_back(text, begin, std::min(done, begin));
    if (token.rstrip) end = skip_spaces(text, end);
    if (done < begin) parts.push_back({done, begin, -1});
    parts.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), -1});
}

}  // namespace cairn
