// Builds a tokenizer from GGUF metadata (the tokenizer.ggml.* keys).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.hpp"
#include "core/text/tokenizer.hpp"
#include "core/text/tokenizer_parts.hpp"
#include "core/text/tokenizer_pre_names.hpp"
#include "core/text/unicode.hpp"
#include "core/weights/gguf.hpp"

namespace cairn {

namespace {

constexpr std::string_view kMetaspace = "\xE2\x96\x81";
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";

// The values of tokenizer.ggml.token_type.
enum TokenType : std::int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

class GgufTokenizer {
 public:
  explicit GgufTokenizer(const GgufFile& file) : file_(file) {}

  std::unique_ptr<TokenizerParts> build() {
    const auto model = file_.str("tokenizer.ggml.model");
    const auto* tokens = file_.string_array(kTokensKey);
    if (!model || *model == "no_vocab" || *model == "none" || tokens == nullptr) {
      throw NotFound("The file " + file_.path().string() + " carries no vocabulary (" + std::string(kTokensKey) +
                     "). Send token ids, or use a file with a tokenizer.");
    }
    tokens_ = tokens;
    read_types();
    read_special_ids();
    if (*model == "gpt2" || *model == "gemma4") {
      build_bpe(*model == "gemma4" ? "gemma4" : file_.str("tokenizer.ggml.pre").value_or("default"));
    } else if (*model == "llama") {
      build_sentencepiece_bpe();
    } else if (*model == "t5") {
      build_unigram();
    } else if (*model == "bert") {
      build_wordpiece();
    } else {
      throw NotSupported("The file " + file_.path().string() + " has tokenizer.ggml.model " + quote_token(*model) +
                         "; known are gpt2, llama, t5, bert and gemma4.");
    }
    return std::move(parts_);
  }

 private:
  std::size_t count() const { return tokens_->size(); }
  bool flag(std::string_view key, bool fallback) const { return file_.boolean(key).value_or(fallback); }

  void read_types() {
    types_.assign(count(), kNormal);
    const auto given = file_.int_array(kTypesKey);
    if (!given) return;
    check_length(kTypesKey, given->size());
    std::copy_n(given->begin(), count(), types_.begin());
    has_types_ = true;
  }

  void check_length(std::string_view key, std::size_t length) const {
    if (length < count()) {
      throw BadFile(std::string(key) + ": it has " + std::to_string(length) + " entries for " +
                    std::to_string(count()) + " tokens.");
    }
  }

  std::optional<std::int32_t> special_id(std::string_view key) const {
    const auto id = file_.i64(key);
    // -1 and other impossible ids stand for "none" in published files.
    if (!id || *id < 0 || *id >= static_cast<std::int64_t>(count())) return std::nullopt;
    return static_cast<std::int32_t>(*id);
  }

  void read_special_ids() {
    TokenizerParts& p = *parts_;
    p.bos = special_id("tokenizer.ggml.bos_token_id");
    p.eos = special_id("tokenizer.ggml.eos_token_id");
    p.eot = special_id("tokenizer.ggml.eot_token_id");
    p.unk = special_id("tokenizer.ggml.unknown_token_id");
    p.pad = special_id("tokenizer.ggml.padding_token_id");
    sep_ = special_id("tokenizer.ggml.seperator_token_id");
    if (!sep_) sep_ = special_id("tokenizer.ggml.separator_token_id");
    if (const auto eom = special_id("tokenizer.ggml.eom_token_id")) p.ends.push_back(*eom);
  }

  // Takes every token into the vocabulary, by `spell` (spelling, id), and the control and user-defined ones into the
  // added tokens as well.
  template <class Spell>
  void add_tokens(Spell&& spell) {
    const std::string_view name = file_.str("general.name").value_or("");
    const bool phi3 = name.find("phi-3") != std::string_view::npos || name.find("Phi-3") != std::string_view::npos ||
                      name.find("phi3") != std::string_view::npos || name.find("Phi3") != std::string_view::npos;
    for (std::size_t i = 0; i < count(); ++i) {
      const std::string spelling = spell((*tokens_)[i], i);
      parts_->vocab.add(spelling, static_cast<std::int64_t>(i), kTokensKey);
      const auto id = static_cast<std::int32_t>(i);
      bool special = types_[i] == kControl || types_[i] == kUnknown;
      if (types_[i] == kNormal) {
        special = is_end_of_turn_spelling(spelling) ||
                  (!has_types_ && (parts_->bos == id || parts_->eos == id || parts_->eot == id));
      }
      if ((!special && types_[i] != kUserDefined) || spelling.empty() ||
          unicode::valid_prefix(spelling) != spelling.size()) {
        continue;
      }
      AddedToken token{.content = spelling, .id = id, .special = special};
      if (phi3 && special) token.rstrip = spelling != "<unk>" && spelling != "<s>" && spelling != "<|endoftext|>";
      if (mask_lstrip_ && (spelling == "<mask>" || spelling == "[MASK]")) token.lstrip = true;
      parts_->add(std::move(token), kTokensKey);
    }
    if (!parts_->eot) {
      for (const std::string_view eot : {"<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|end|>", "<turn|>"}) {
        const auto id = parts_->find(eot);
        if (id && id != parts_->eos) {
          parts_->eot = id;
          break;
        }
      }
    }
  }

  void add_bos_and_eos(bool bos_default, bool eos_default) {
    TokenizerParts& p = *parts_;
    if (flag("tokenizer.ggml.add_bos_token", bos_default) && p.bos) p.prefix.push_back(*p.bos);
    if (flag("tokenizer.ggml.add_eos_token", eos_default) && p.eos) p.suffix.push_back(*p.eos);
  }

  static std::string as_is(std::string_view spelling, std::size_t) { return std::string(spelling); }

  std::vector<std::pair<std::int32_t, std::int32_t>> read_merges() const {
    const auto* merges = file_.string_array(kMergesKey);
    if (merges == nullptr) throw BadFile(std::string(kMergesKey) + ": a BPE vocabulary has none.");
    std::vector<std::pair<std::int32_t, std::int32_t>> out;
    out.reserve(merges->size());
    for (std::size_t i = 0; i < merges->size(); ++i) {
      const std::string_view merge = (*merges)[i];
      // The second character on: a part may begin with the space itself in vocabularies without the byte alphabet.
      const std::size_t cut = merge.find(' ', 1);
      const auto left = cut == std::string_view::npos ? std::nullopt : parts_->vocab.find(merge.substr(0, cut));
      const auto right = cut == std::string_view::npos ? std::nullopt : parts_->vocab.find(merge.substr(cut + 1));
      if (!left || !right) {
        throw BadFile(std::string(kMergesKey) + ": merge " + std::to_string(i) + " " + quote_token(merge) +
                      " is not two tokens of the vocabulary.");
      }
      out.emplace_back(*left, *right);
    }
    return out;
  }

  void build_bpe(std::string_view pre) {
    const PreTokenizerFamily* family = find_pre_tokenizer_family(pre);
    if (family == nullptr) {
      parts_->refusal =
          "The vocabulary of " + file_.path().string() + " has the pre-tokenizer " + quote_token(pre) +
          ", which this build does not know, so text cannot be turned into tokens; token ids work. Known: " +
          known_pre_tokenizer_names() + ".";
      family = find_pre_tokenizer_family("default");
    }
    mask_lstrip_ = family->mask_lstrip;
    add_tokens(as_is);
    TokenizerParts& p = *parts_;
    BpeConfig config;
    config.merges = read_merges();
    config.key = kMergesKey;
    config.unk_id = family->metaspace ? p.unk : std::nullopt;
    config.ignore_merges = family->ignore_merges;
    config.byte_level = !family->metaspace;
    config.byte_fallback = family->metaspace;
    config.whole_newline_runs = family->metaspace;
    p.model = make_bpe_model(p.vocab, std::move(config));
    if (family->nfc) p.normalizers.push_back(make_unicode_form(unicode::Form::kNfc));
    if (family->metaspace) p.normalizers.push_back(make_replace(" ", std::string(kMetaspace)));
    if (family->digit_groups) p.pre_tokenizers.push_back(make_digit_groups(DigitGroups::kAlone));
    for (const std::string_view pattern : family->patterns) {
      p.pre_tokenizers.push_back(make_split(pattern, SplitBehavior::kIsolated, false, pre));
    }
    if (family->metaspace) {
      p.decoder.steps.push_back({.kind = DecodeStep::Kind::kReplace, .what = std::string(kMetaspace), .with = " "});
      p.decoder.steps.push_back({.kind = DecodeStep::Kind::kByteFallback});
      p.decoder.replace_each_byte = true;
    } else {
      p.decoder.steps.push_back({.kind = DecodeStep::Kind::kByteLevel});
    }
    add_bos_and_eos(family->add_bos, false);
    const auto sep = sep_ ? sep_ : p.eos;
    if (flag("tokenizer.ggml.add_sep_token", family->add_sep) && sep) p.suffix.push_back(*sep);
  }

  std::vector<float> read_scores() const {
    const auto scores = file_.float_array(kScoresKey);
    if (!scores) throw BadFile(std::string(kScoresKey) + ": a SentencePiece vocabulary has none.");
    check_length(kScoresKey, scores->size());
    return {scores->begin(), scores->begin() + static_cast<std::ptrdiff_t>(count())};
  }

  void build_sentencepiece_bpe() {
    add_tokens(as_is);
    TokenizerParts& p = *parts_;
    BpeConfig config;
    config.scores = read_scores();
    for (std::size_t i = 0; i < count(); ++i) {
      if (std::isnan(config.scores[i])) {
        throw BadFile(std::string(kScoresKey) + ": the score of token " + std::to_string(i) + " is not a number.");
      }
      const bool from_text = types_[i] != kControl && types_[i] != kUnknown && types_[i] != kByte;
      if (!from_text) config.scores[i] = BpeConfig::kNeverMerged;
    }
    config.key = kScoresKey;
    config.unk_id = p.unk;
    config.fuse_unk = true;
    config.byte_fallback = true;
    p.model = make_bpe_model(p.vocab, std::move(config));
    const bool prefix = flag("tokenizer.ggml.add_space_prefix", true);
    if (prefix) p.normalizers.push_back(make_prepend(std::string(kMetaspace)));
    p.normalizers.push_back(make_replace(" ", std::string(kMetaspace)));
    set_sentencepiece_decoder(prefix);
    add_bos_and_eos(true, false);
  }

  void set_sentencepiece_decoder(bool strip_first_space) {
    DecoderConfig& d = parts_->decoder;
    d.steps.push_back({.kind = DecodeStep::Kind::kReplace, .what = std::string(kMetaspace), .with = " "});
    d.steps.push_back({.kind = DecodeStep::Kind::kByteFallback});
    d.steps.push_back({.kind = DecodeStep::Kind::kFuse});
    if (strip_first_space) d.steps.push_back({.kind = DecodeStep::Kind::kStrip, .what = " ", .start = 1});
    d.replace_each_byte = true;
  }

  void build_unigram() {
    add_tokens(as_is);
    TokenizerParts& p = *parts_;
    const std::vector<float> scores = read_scores();
    UnigramConfig config;
    double lowest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < count(); ++i) {
      const bool from_text = types_[i] == kNormal || types_[i] == kUserDefined || types_[i] == kUnused;
      if (types_[i] == kNormal) lowest = std::min(lowest, static_cast<double>(scores[i]));
      config.scores.push_back(!from_text ? kNotText : types_[i] == kUserDefined ? 0.0 : scores[i]);
    }
    config.unk_id = p.unk;
    config.unk_score = lowest - 10.0;
    config.key = kScoresKey;
    p.model = make_unigram_model(p.vocab, std::move(config));
    if (const auto map = file_.byte_array("tokenizer.ggml.precompiled_charsmap"); map && !map->empty()) {
      p.normalizers.push_back(make_charsmap({reinterpret_cast<const char*>(map->data()), map->size()}, true,
                                            "tokenizer.ggml.precompiled_charsmap"));
    }
    const bool collapse = flag("tokenizer.ggml.remove_extra_whitespaces", false);
    const bool prefix = collapse || flag("tokenizer.ggml.add_space_prefix", false);
    if (collapse) p.normalizers.push_back(make_collapse_spaces());
    if (prefix) p.normalizers.push_back(make_prepend(std::string(kMetaspace)));
    p.normalizers.push_back(make_replace(" ", std::string(kMetaspace)));
    set_sentencepiece_decoder(prefix);
    p.decoder.replace_each_byte = false;
    add_bos_and_eos(false, true);
  }

  void build_wordpiece() {
    // The file spells a word's first token with a metaspace and the others bare; "##" is the usual way round.
    const bool phantom =
        std::any_of(tokens_->begin(), tokens_->end(), [](auto t) { return t.starts_with(kMetaspace); });
    add_tokens([&](std::string_view spelling, std::size_t i) -> std::string {
      if (!phantom || types_[i] != kNormal || (spelling.starts_with('[') && spelling.ends_with(']')))
        return std::string(spelling);
      if (spelling.starts_with(kMetaspace)) return std::string(spelling.substr(kMetaspace.size()));
      return "##" + std::string(spelling);
    });
    TokenizerParts& p = *parts_;
    if (!p.unk) p.unk = p.vocab.find("[UNK]");
    if (!p.bos) p.bos = special_id("tokenizer.ggml.cls_token_id");
    if (!p.bos) p.bos = p.vocab.find("[CLS]");
    if (!sep_) sep_ = p.vocab.find("[SEP]");
    if (!p.eos) p.eos = sep_;
    p.model = make_wordpiece_model(p.vocab, {.unk_id = p.unk});
    const bool lowercase = flag("tokenizer.ggml.normalizer.lowercase", true);
    p.normalizers.push_back(make_bert_normalizer(
        {.strip_accents = flag("tokenizer.ggml.normalizer.strip_accents", lowercase), .lowercase = lowercase}));
    p.pre_tokenizers.push_back(make_char_split(&unicode::is_white_space, SplitBehavior::kRemoved));
    p.pre_tokenizers.push_back(make_char_split(&unicode::is_punctuation, SplitBehavior::kIsolated));
    p.decoder.steps.push_back({.kind = DecodeStep::Kind::kWordPiece, .what = "##", .flag = true});
    add_bos_and_eos(true, false);
    if (flag("tokenizer.ggml.add_sep_token", true) && sep_) p.suffix.push_back(*sep_);
  }

  const GgufFile& file_;
  const std::vector<std::string_view>* tokens_ = nullptr;
  std::vector<std::int32_t> types_;
  bool has_types_ = false;
  bool mask_lstrip_ = false;
  std::optional<std::int32_t> sep_;
  std::unique_ptr<TokenizerParts> parts_ = std::make_unique<TokenizerParts>();
};

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::from_gguf(const GgufFile& file) {
  std::unique_ptr<TokenizerParts> parts = GgufTokenizer(file).build();
  parts->complete();
  return std::make_shared<const Tokenizer>(std::move(parts));
}

}  // namespace cairn
