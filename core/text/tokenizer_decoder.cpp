// The decoder pipeline. Every step keeps its own buffers, so that a steady stream of tokens allocates nothing.
#include "core/text/tokenizer_decoder.hpp"

#include <algorithm>
#include <utility>

#include "core/text/tokenizer_model.hpp"
#include "core/text/unicode.hpp"

namespace cairn {

namespace {

using Kind = DecodeStep::Kind;

// In place; a replacement no longer than what it replaces allocates nothing.
void replace_all(std::string& text, std::string_view what, std::string_view with) {
  if (what.empty()) return;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

void tidy_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [what, with] : kRules) replace_all(text, what, with);
}

// Whether this step, behind a joining step, has to see the whole text.
bool needs_whole_text(Kind kind) {
  return kind == Kind::kWordPiece || kind == Kind::kReplace || kind == Kind::kRegexReplace ||
         kind == Kind::kBpeSuffix || kind == Kind::kCtc || kind == Kind::kByteFallback || kind == Kind::kByteLevel;
}

}  // namespace

DecodeStream::DecodeStream(const DecoderConfig& config) : config_(config), states_(config.steps.size()) {
  bool joined = false;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    states_[i].one_stream = joined;
    const Kind kind = config.steps[i].kind;
    joined = joined || kind == Kind::kByteLevel || kind == Kind::kFuse;
  }
}

void DecodeStream::reset() {
  for (State& s : states_) {
    s.first = true;
    s.stripped = 0;
    s.held.clear();
  }
  tail_.clear();
}

void DecodeStream::push(std::string_view token, std::string& out) {
  out_ = &out;
  feed(0, token);
}

void DecodeStream::flush(std::string& out) {
  out_ = &out;
  finish(0);
  replace_tail();
  reset();
}

void DecodeStream::raw_bytes(std::string_view token, std::string& out) {
  reset();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    states_[i].first = false;
    states_[i].stripped = config_.steps[i].start;
  }
  raw_ = true;
  out_ = &out;
  feed(0, token);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].held.empty()) continue;
    // Something follows: a held token is not the last one.
    const std::string held = std::exchange(states_[i].held, {});
    transform(i, held, false);
  }
  raw_ = false;
  reset();
}

void DecodeStream::feed(std::size_t step, std::string_view token) {
  if (step == states_.size()) {
    sink(token);
    return;
  }
  State& s = states_[step];
  const DecodeStep& d = config_.steps[step];
  if (s.one_stream && needs_whole_text(d.kind)) {
    s.held.append(token);
  } else if (s.one_stream && d.kind == Kind::kStrip) {
    strip_stream(step, token);
  } else if (d.kind == Kind::kBpeSuffix) {
    // The last token is treated otherwise, so each waits for the next.
    if (!s.first) {
      std::swap(s.held, s.buffer);
      s.held.assign(token);
      std::string& previous = s.buffer;
      replace_all(previous, d.what, " ");
      feed(step + 1, previous);
    } else {
      s.held.assign(token);
    }
    s.first = false;
  } else {
    transform(step, token, false);
  }
}

void DecodeStream::finish(std::size_t step) {
  if (step == states_.size()) return;
  State& s = states_[step];
  const DecodeStep& d = config_.steps[step];
  if (s.one_stream && d.kind == Kind::kStrip) {
    if (s.held.size() > d.stop * d.what.size()) {
      s.held.resize(s.held.size() - d.stop * d.what.size());
      feed(step + 1, s.held);
    }
  } else if (!s.held.empty() || (d.kind == Kind::kBpeSuffix && !s.first)) {
    transform(step, s.held, true);
  }
  s.held.clear();
  finish(step + 1);
}

// One whole token through one step, and on to the next.
void DecodeStream::transform(std::size_t step, std::string_view token, bool last) {
  State& s = states_[step];
  const DecodeStep& d = config_.steps[step];
  const bool first = std::exchange(s.first, false);
  std::string& b = s.buffer;
  switch (d.kind) {
    case Kind::kFuse:
      feed(step + 1, token);
      return;
    case Kind::kByteLevel: {
      b.clear();
      for (std::size_t pos = 0; pos < token.size();) {
        // A vocabulary's spelling need not be UTF-8 to its end.
        const bool whole = pos + unicode::length_of(token[pos]) <= token.size();
        const int byte = whole ? byte_level_byte(unicode::next(token, pos)) : -1;
        if (byte < 0) {  // not in the alphabet: an added token, as it is
          b.assign(token);
          break;
        }
        b.push_back(static_cast<char>(byte));
      }
      break;
    }
    case Kind::kByteFallback: {
      const int byte = byte_token_value(token);
      if (byte >= 0) {
        b.assign(1, static_cast<char>(byte));
      } else {
        b.assign(token);
      }
      break;
    }
    case Kind::kMetaspace:
      b.assign(token);
      // Behind a joining step everything is the first token.
      if (s.one_stream) s.first = first;
      replace_all(b, d.what, first && d.flag ? "" : " ");
      break;
    case Kind::kWordPiece:
      if (first) {
        b.assign(token);
      } else if (token.starts_with(d.what)) {
        b.assign(token.substr(d.what.size()));
      } else {
        b.assign(1, ' ').append(token);
      }
      if (d.flag) tidy_up(b);
      break;
    case Kind::kStrip: {
      std::size_t cut = 0;
      while (cut < d.start && token.starts_with(d.what)) token.remove_prefix(d.what.size()), ++cut;
      cut = 0;
      while (cut < d.stop && token.ends_with(d.what)) token.remove_suffix(d.what.size()), ++cut;
      b.assign(token);
      break;
    }
    case Kind::kReplace:
      b.assign(token);
      replace_all(b, d.what, d.with);
      break;
    case Kind::kRegexReplace: {
      if (unicode::valid_prefix(token) != token.size()) {  // a byte of a character: patterns see characters
        b.assign(token);
        break;
      }
      b.clear();
      std::size_t from = 0;
      d.regex->for_each(token, [&](std::size_t begin, std::size_t end) {
        b.append(token.substr(from, begin - from)).append(d.with);
        from = end;
      });
      b.append(token.substr(from));
      break;
    }
    case Kind::kBpeSuffix:
      b.assign(token);
      replace_all(b, d.what, last ? "" : " ");
      break;
    case Kind::kCtc:
      if (!first && s.previous == token) return;
      s.previous.assign(token);
      b.assign(token);
      replace_all(b, d.what, "");
      if (d.flag) {
        tidy_up(b);
        replace_all(b, d.with, " ");
      }
      break;
    case Kind::kJoin:
      b.clear();
      if (!first) b.push_back(' ');
      b.append(token);
      break;
  }
  feed(step + 1, b);
}

// Strip behind a joining step: the ends are those of the whole text.
void DecodeStream::strip_stream(std::size_t step, std::string_view chunk) {
  State& s = states_[step];
  const DecodeStep& d = config_.steps[step];
  while (s.stripped < d.start && chunk.starts_with(d.what)) {
    chunk.remove_prefix(d.what.size());
    ++s.stripped;
  }
  if (chunk.empty()) return;
  s.stripped = d.start;
  if (d.stop == 0) {
    feed(step + 1, chunk);
    return;
  }
  // Up to `stop` of them at the end wait: more text may follow.
  s.buffer.assign(s.held).append(chunk);
  std::size_t keep = 0;
  while (keep < d.stop &&
         std::string_view(s.buffer).substr(0, s.buffer.size() - keep * d.what.size()).ends_with(d.what)) {
    ++keep;
  }
  const std::size_t held = keep * d.what.size();
  s.held.assign(s.buffer, s.buffer.size() - held, held);
  s.buffer.resize(s.buffer.size() - held);
  if (!s.buffer.empty()) feed(step + 1, s.buffer);
}

void DecodeStream::replace_tail() {
  const std::size_t count = config_.replace_each_byte ? tail_.size() : (tail_.empty() ? 0 : 1);
  for (std::size_t i = 0; i < count; ++i) out_->append(unicode::kReplacementUtf8);
  tail_.clear();
}

// Bytes to whole characters.
void DecodeStream::sink(std::string_view bytes) {
  if (raw_) {
    out_->append(bytes);
    return;
  }
  while (!bytes.empty()) {
    if (tail_.empty()) {
      const std::size_t good = unicode::valid_prefix(bytes);
      out_->append(bytes.substr(0, good));
      bytes.remove_prefix(good);
      if (bytes.empty()) return;
    }
    // At most three bytes wait, so one more decides about them or makes them one longer.
    tail_.push_back(bytes[0]);
    const unicode::ScanResult r = unicode::scan(tail_);
    if (r.state == unicode::Scan::kIncomplete) {
      bytes.remove_prefix(1);
    } else if (r.state == unicode::Scan::kComplete) {
      out_->append(tail_);
      tail_.clear();
      bytes.remove_prefix(1);
    } else {
      // The invalid sequence ends before the new byte, unless that is all there is.
      if (tail_.size() > 1) {
        tail_.pop_back();
      } else {
        bytes.remove_prefix(1);
      }
      replace_tail();
    }
  }
}

}  // namespace cairn
