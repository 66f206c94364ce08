// Rewrites text before it is split into words: Unicode forms, case, accents, SentencePiece's character maps. Made by
// the loaders, called by Tokenizer::encode on each stretch between added tokens.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/unicode.hpp"

namespace cairn {

// Immutable; any thread.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // `text` is valid UTF-8 before and after.
  virtual void apply(std::string& text) const = 0;
};

using NormalizerPtr = std::unique_ptr<const Normalizer>;
using NormalizerList = std::vector<NormalizerPtr>;

// Text between added tokens may not grow beyond this; a longer result is an InvalidArgument.
inline constexpr std::size_t kMaxNormalizedBytes = std::size_t{256} << 20;

struct BertNormalizerOptions {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};

NormalizerPtr make_unicode_form(unicode::Form form);
NormalizerPtr make_lowercase();
NormalizerPtr make_strip_accents();
NormalizerPtr make_strip(bool left, bool right);
NormalizerPtr make_prepend(std::string prefix);  // to text that is not empty
NormalizerPtr make_replace(std::string what, std::string with);
NormalizerPtr make_regex_replace(std::string_view pattern, std::string with, std::string_view key);
NormalizerPtr make_bert_normalizer(BertNormalizerOptions options);
NormalizerPtr make_nmt();
NormalizerPtr make_byte_level_normalizer();
// SentencePiece's compiled map: a double-array trie and the replacement texts. `longest_prefix` matches as
// SentencePiece does (GGUF files); otherwise by grapheme cluster and character, as the reference for tokenizer.json.
// Throws BadFile for a map whose trie or texts lie outside it.
NormalizerPtr make_charsmap(std::string_view compiled, bool longest_prefix, std::string_view key);
// SentencePiece's white space: each run one space, none at either end.
NormalizerPtr make_collapse_spaces();

}  // namespace cairn
