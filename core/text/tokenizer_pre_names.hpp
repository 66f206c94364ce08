// What the names under tokenizer.ggml.pre stand for: the pre-tokenizer patterns of the published model families.
// Used by the GGUF loader.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cairn {

struct PreTokenizerFamily {
  std::span<const std::string_view> patterns;  // applied one after the other, each isolating its matches
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
  bool add_sep = false;  // EOS behind the text, as RoBERTa has it
  bool nfc = false;
  bool digit_groups = false;  // first, digit runs are cut in threes from their end
  bool metaspace = false;     // SentencePiece spelling instead of the byte-level alphabet
  bool mask_lstrip = false;   // the mask token takes the space before it along
};

// nullptr for a name that is not known.
const PreTokenizerFamily* find_pre_tokenizer_family(std::string_view name);
// All known names, sorted, for a message.
std::string known_pre_tokenizer_names();

}  // namespace cairn
