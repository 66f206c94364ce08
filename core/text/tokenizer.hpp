// Turns text into token ids and back, the way the model's own reference tokenizer does. Built from a GGUF file's
// metadata or a Hugging Face tokenizer.json; used by the front end, the command line and the plugin tokenizer service.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

class GgufFile;
class WeightsFile;
class DecodeStream;
struct TokenizerParts;

struct EncodeOptions {
  bool add_special = true;    // let the post-processor add BOS, EOS, [CLS] and the like
  bool parse_special = true;  // a special token's spelling in the text becomes that token; false: it is plain text
};

// Immutable after construction; every method may be called from any thread.
class Tokenizer {
 public:
  // Any weights file: GGUF metadata, or tokenizer.json (and tokenizer_config.json, generation_config.json) of a
  // Hugging Face directory. Throws BadFile (a damaged vocabulary; the message names the key and the value),
  // NotSupported (a tokenizer kind or pre-tokenizer name this build does not know), NotFound (the file carries none).
  static std::shared_ptr<const Tokenizer> from_weights(const WeightsFile& file);
  static std::shared_ptr<const Tokenizer> from_gguf(const GgufFile& file);
  static std::shared_ptr<const Tokenizer> from_json(std::string_view json, std::string_view tokenizer_config_json = {},
                                                    std::string_view generation_config_json = {});
  // Ids 0..255 are the bytes themselves; no special tokens. For models without a vocabulary.
  static std::shared_ptr<const Tokenizer> bytes();

  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Bytes that are not UTF-8 are read as U+FFFD, one per maximal invalid sequence (WHATWG; what Python's
  // decode(errors="replace") hands to the reference). The byte tokenizer takes every byte as it is.
  // Throws InvalidArgument when the text is over kMaxTextBytes or the pre-tokenizer's pattern hits its work limit.
  std::vector<std::int32_t> encode(std::string_view utf8, EncodeOptions options = {}) const;

  // Always valid UTF-8. Ids outside the vocabulary add nothing.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const;

  // What the token adds to the output in the middle of a text, as raw bytes: maybe a part of a character. Empty for an
  // id outside the vocabulary. Special tokens give their spelling.
  std::string_view token_bytes(std::int32_t id) const;
  // The spelling in the vocabulary, e.g. "\u0120the"; empty for an id outside it.
  std::string token_text(std::int32_t id) const;
  std::optional<std::int32_t> token_id(std::string_view spelling) const;
  bool is_special(std::int32_t id) const;

  // One more than the largest id.
  std::int32_t vocab_size() const;
  std::optional<std::int32_t> bos_id() const;
  std::optional<std::int32_t> eos_id() const;
  std::optional<std::int32_t> eot_id() const;
  std::optional<std::int32_t> pad_id() const;
  std::optional<std::int32_t> unk_id() const;
  // Every token that ends a turn or a text: EOS, EOT and the known end-of-turn spellings. Sorted, no duplicates.
  const std::vector<std::int32_t>& end_token_ids() const;
  // Whether encode() with add_special puts BOS first.
  bool adds_bos() const;

  // The parts, for the incremental decoder.
  const TokenizerParts& parts() const { return *parts_; }

  static constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;

 private:
  std::unique_ptr<const TokenizerParts> parts_;
};

}  // namespace cairn
