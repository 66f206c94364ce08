// Everything a tokenizer is made of. Filled by the GGUF and JSON loaders, read by Tokenizer and IncrementalDecoder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/text/tokenizer_added.hpp"
#include "core/text/tokenizer_decoder.hpp"
#include "core/text/tokenizer_model.hpp"
#include "core/text/tokenizer_normalizer.hpp"
#include "core/text/tokenizer_pretokenizer.hpp"
#include "core/text/tokenizer_vocab.hpp"

namespace cairn {

struct TokenizerParts {
  Vocabulary vocab;  // the model's own tokens
  std::unordered_map<std::int32_t, AddedToken> added;
  std::unordered_map<std::string, std::int32_t> added_ids;

  AddedTokenMatcher before_normalizing{{}};
  NormalizerList normalizers;
  AddedTokenMatcher after_normalizing{{}};
  PreTokenizerList pre_tokenizers;
  std::unique_ptr<TokenModel> model;
  std::vector<std::int32_t> prefix;  // what add_special puts before and behind
  std::vector<std::int32_t> suffix;
  DecoderConfig decoder;

  bool raw_bytes = false;  // the byte tokenizer: no UTF-8, no parts above
  std::string refusal;     // why text cannot be encoded, as a sentence; empty when it can
  std::optional<std::int32_t> bos, eos, eot, pad, unk;
  std::vector<std::int32_t> ends;
  std::int32_t size = 0;  // largest id plus one

  std::string token_bytes;                    // of all ids, one after the other
  std::vector<std::uint32_t> token_bytes_at;  // size + 1 offsets

  // An added token may take the place of a model's token of the same id.
  std::string_view spelling(std::int64_t id) const;
  std::optional<std::int32_t> find(std::string_view spelling) const;
  bool is_special(std::int64_t id) const;
  // What the decoder gets for `id`; nothing for an unknown id or a special one to skip.
  std::optional<std::string_view> output_spelling(std::int64_t id, bool skip_special) const;

  // Takes `token` in: under its id, in the table of contents. Its id is checked as a vocabulary's. Throws BadFile,
  // naming `key`, when the id or the content is another token's.
  void add(AddedToken token, std::string_view key);
  // Called by the loaders last: builds the matchers, the byte table, the size and the set of end tokens.
  void complete();
};

// Known spellings of the tokens that end a turn or a text, whatever the file's metadata says.
bool is_end_of_turn_spelling(std::string_view spelling);

}  // namespace cairn
