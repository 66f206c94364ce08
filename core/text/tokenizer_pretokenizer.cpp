// The pre-tokenizer steps. Splitting steps only move piece borders; the byte map and Metaspace rewrite the text.
#include "core/text/tokenizer_pretokenizer.hpp"

#include <array>

#include "core/base/error.hpp"
#include "core/text/tokenizer_model.hpp"
#include "core/text/tokenizer_normalizer.hpp"
#include "core/text/tokenizer_regex.hpp"
#include "core/text/unicode.hpp"

namespace cairn {

namespace {

using Piece = PieceText::Piece;

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Here the reference's words are those of Rust's dialect, to which joiners belong.
constexpr std::string_view kWordsAndOthers = R"([\w\x{200c}\x{200d}]+|[^\w\s\x{200c}\x{200d}]+)";

// Collects the alternating matches and gaps of one piece, and applies the behaviour.
class Splitter {
 public:
  Splitter(SplitBehavior behavior, bool invert, std::vector<Piece>& out)
      : behavior_(behavior), invert_(invert), out_(out), first_(out.size()) {}

  void add(std::uint32_t begin, std::uint32_t end, bool is_match) {
    if (invert_) is_match = !is_match;
    switch (behavior_) {
      case SplitBehavior::kRemoved:
        if (!is_match) push(begin, end);
        break;
      case SplitBehavior::kIsolated:
        push(begin, end);
        break;
      case SplitBehavior::kMergedWithPrevious:
        if (is_match && !last_match_ && out_.size() > first_) {
          out_.back().end = end;
        } else {
          push(begin, end);
        }
        break;
      case SplitBehavior::kMergedWithNext:
        // A match waits for the text behind it; a match in front of another match stands alone.
        if (waiting_) {
          if (is_match) {
            push(wait_begin_, begin);
            wait_begin_ = begin;
          } else {
            push(wait_begin_, end);
            waiting_ = false;
          }
        } else if (is_match) {
          waiting_ = true;
          wait_begin_ = begin;
        } else {
          push(begin, end);
        }
        wait_end_ = end;
        break;
      case SplitBehavior::kContiguous:
        if (any_ && is_match == last_match_ && out_.size() > first_) {
          out_.back().end = end;
        } else {
          push(begin, end);
        }
        break;
    }
    last_match_ = is_match;
    any_ = true;
  }

  void finish() {
    if (waiting_) push(wait_begin_, wait_end_);
  }

 private:
  void push(std::uint32_t begin, std::uint32_t end) {
    if (begin < end) out_.push_back({begin, end});
  }

  SplitBehavior behavior_;
  bool invert_;
  std::vector<Piece>& out_;
  std::size_t first_;  // where this piece's parts begin in out_
  bool last_match_ = false;
  bool any_ = false;
  bool waiting_ = false;
  std::uint32_t wait_begin_ = 0;
  std::uint32_t wait_end_ = 0;
};

// A step that looks at one piece at a time: `split(view, add)` calls add(begin, end, is_match) over the whole piece.
template <class F>
class SplitStep final : public PreTokenizer {
 public:
  SplitStep(SplitBehavior behavior, bool invert, F f) : behavior_(behavior), invert_(invert), f_(std::move(f)) {}

  void apply(PieceText& t) const override {
    std::vector<Piece> out;
    out.reserve(t.pieces.size() + t.text.size() / 4);
    bool first_kept = true;
    for (std::size_t i = 0; i < t.pieces.size(); ++i) {
      const Piece p = t.pieces[i];
      const std::size_t before = out.size();
      Splitter splitter(behavior_, invert_, out);
      f_(t.view(p), [&](std::size_t begin, std::size_t end, bool is_match) {
        splitter.add(p.begin + static_cast<std::uint32_t>(begin), p.begin + static_cast<std::uint32_t>(end), is_match);
      });
      splitter.finish();
      if (i == 0) first_kept = out.size() > before && out[before].begin == p.begin;
    }
    t.at_start = t.at_start && first_kept;
    t.pieces = std::move(out);
  }

 private:
  SplitBehavior behavior_;
  bool invert_;
  F f_;
};

template <class F>
PreTokenizerPtr make(SplitBehavior behavior, bool invert, F f) {
  return std::make_unique<SplitStep<F>>(behavior, invert, std::move(f));
}

// Matches and gaps of a pattern over the whole piece.
template <class Add>
void cover(const Regex& regex, std::string_view piece, Add&& add) {
  std::size_t prev = 0;
  regex.for_each(piece, [&](std::size_t begin, std::size_t end) {
    if (prev != begin) add(prev, begin, false);
    add(begin, end, true);
    prev = end;
  });
  if (prev != piece.size()) add(prev, piece.size(), false);
}

// Rebuilds the text piece by piece: each(out, piece, index) appends a piece's new text.
template <class F>
void rewrite(PieceText& t, F&& each) {
  std::string out;
  out.reserve(t.text.size() * 2);
  for (std::size_t i = 0; i < t.pieces.size(); ++i) {
    const auto begin = static_cast<std::uint32_t>(out.size());
    each(out, t.view(t.pieces[i]), i);
    if (out.size() > kMaxNormalizedBytes) {
      throw InvalidArgument("The text grows beyond " + std::to_string(kMaxNormalizedBytes) +
                            " bytes when the tokenizer prepares it. Send it in smaller parts.");
    }
    t.pieces[i] = {begin, static_cast<std::uint32_t>(out.size())};
  }
  t.text = std::move(out);
}

class ByteMap final : public PreTokenizer {
 public:
  void apply(PieceText& t) const override {
    rewrite(t, [](std::string& out, std::string_view piece, std::size_t) {
      for (const char c : piece) unicode::append(out, byte_level_char(static_cast<unsigned char>(c)));
    });
  }
};

class PrefixSpace final : public PreTokenizer {
 public:
  explicit PrefixSpace(PreTokenizerPtr next) : next_(std::move(next)) {}
  void apply(PieceText& t) const override {
    rewrite(t, [](std::string& out, std::string_view piece, std::size_t) {
      if (!piece.starts_with(' ')) out.push_back(' ');
      out.append(piece);
    });
    if (next_) next_->apply(t);
  }

 private:
  PreTokenizerPtr next_;
};

class Metaspace final : public PreTokenizer {
 public:
  Metaspace(char32_t replacement, PrependScheme scheme, bool split) : scheme_(scheme) {
    unicode::append(mark_, replacement);
    if (split) split_ = make_literal_split(mark_, SplitBehavior::kMergedWithNext, false);
  }
  void apply(PieceText& t) const override {
    rewrite(t, [&](std::string& out, std::string_view piece, std::size_t index) {
      const bool prepend =
          scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && index == 0 && t.at_start);
      if (prepend && !piece.starts_with(' ') && !piece.starts_with(mark_)) out.append(mark_);
      for (std::size_t from = 0;;) {
        const std::size_t space = piece.find(' ', from);
        out.append(piece.substr(from, space - from));
        if (space == std::string_view::npos) break;
        out.append(mark_);
        from = space + 1;
      }
    });
    if (split_) split_->apply(t);
  }

 private:
  std::string mark_;
  PrependScheme scheme_;
  PreTokenizerPtr split_;
};

// Calls add() for one run of digits, [begin, end), and returns where the text that is not yet given starts.
template <class Add>
std::size_t group_digits(std::string_view piece, std::size_t prev, std::size_t begin, std::size_t end, DigitGroups kind,
                         Add&& add) {
  if (kind == DigitGroups::kBeforeBoundary && end < piece.size()) {
    static const Regex word(R"(\w)", "digit groups");
    const std::string_view behind = piece.substr(end, unicode::length_of(piece[end]));
    if (word.find(behind, 0)) return prev;
  }
  std::vector<std::size_t> starts;
  for (std::size_t pos = begin; pos < end; pos += unicode::length_of(piece[pos])) starts.push_back(pos);
  const bool alone = kind != DigitGroups::kCutsOnly;
  if (alone && prev != begin) add(prev, begin, false);
  std::size_t group = alone ? begin : prev;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if ((starts.size() - i) % 3 != 0 || starts[i] == group) continue;
    add(group, starts[i], alone);
    group = starts[i];
  }
  if (!alone) return group;
  add(group, end, true);
  return end;
}

}  // namespace

PreTokenizerPtr make_split(std::string_view pattern, SplitBehavior behavior, bool invert, std::string_view key) {
  if (behavior == SplitBehavior::kIsolated && !invert) {
    if (pattern == R"(\d{1,3}(?=(?:\d{3})*\b))") return make_digit_groups(DigitGroups::kBeforeBoundary);
    if (pattern == R"((?=(\d{3})+(?!\d)))") return make_digit_groups(DigitGroups::kCutsOnly);
  }
  return make(behavior, invert,
              [regex = Regex(pattern, key)](std::string_view piece, auto&& add) { cover(regex, piece, add); });
}

PreTokenizerPtr make_literal_split(std::string text, SplitBehavior behavior, bool invert) {
  if (text.empty()) return make_split("(?:)", behavior, invert, "Split");  // matches between all characters
  return make(behavior, invert, [text = std::move(text)](std::string_view piece, auto&& add) {
    std::size_t prev = 0;
    for (std::size_t at = 0; (at = piece.find(text, prev)) != std::string_view::npos;) {
      if (prev != at) add(prev, at, false);
      add(at, at + text.size(), true);
      prev = at + text.size();
    }
    if (prev != piece.size()) add(prev, piece.size(), false);
  });
}

PreTokenizerPtr make_char_split(bool (*is)(char32_t), SplitBehavior behavior) {
  return make(behavior, false, [is](std::string_view piece, auto&& add) {
    std::size_t gap = 0;
    for (std::size_t pos = 0; pos < piece.size();) {
      const std::size_t begin = pos;
      if (!is(unicode::next(piece, pos))) continue;
      if (gap != begin) add(gap, begin, false);
      add(begin, pos, true);
      gap = pos;
    }
    if (gap != piece.size()) add(gap, piece.size(), false);
  });
}

PreTokenizerPtr make_whitespace() {
  return make(
      SplitBehavior::kRemoved, true,
      [regex = Regex(kWordsAndOthers, "Whitespace")](std::string_view piece, auto&& add) { cover(regex, piece, add); });
}

PreTokenizerPtr make_delimiter_split(char32_t delimiter) {
  std::string text;
  unicode::append(text, delimiter);
  return make_literal_split(std::move(text), SplitBehavior::kRemoved, false);
}

PreTokenizerPtr make_fixed_length(std::size_t characters) {
  return make(SplitBehavior::kIsolated, false, [characters](std::string_view piece, auto&& add) {
    std::size_t begin = 0;
    std::size_t count = 0;
    for (std::size_t pos = 0; pos < piece.size();) {
      pos += unicode::length_of(piece[pos]);
      if (++count < characters && pos < piece.size()) continue;
      add(begin, pos, true);
      begin = pos;
      count = 0;
    }
  });
}

PreTokenizerPtr make_metaspace(char32_t replacement, PrependScheme scheme, bool split) {
  return std::make_unique<Metaspace>(replacement, scheme, split);
}

PreTokenizerPtr make_byte_level_words(bool add_prefix_space, bool use_regex) {
  PreTokenizerPtr words = use_regex ? make_split(kGpt2Pattern, SplitBehavior::kIsolated, false, "ByteLevel") : nullptr;
  if (add_prefix_space) return std::make_unique<PrefixSpace>(std::move(words));
  return words;
}

PreTokenizerPtr make_byte_map() {
  return std::make_unique<ByteMap>();
}

PreTokenizerPtr make_digit_groups(DigitGroups kind) {
  return make(SplitBehavior::kIsolated, false,
              [kind, run = Regex(R"(\p{Nd}+)", "digit groups")](std::string_view piece, auto&& add) {
                std::size_t prev = 0;
                run.for_each(piece, [&](std::size_t begin, std::size_t end) {
                  prev = group_digits(piece, prev, begin, end, kind, add);
                });
                if (prev != piece.size()) add(prev, piece.size(), false);
              });
}

}  // namespace cairn
