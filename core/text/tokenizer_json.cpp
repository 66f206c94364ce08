// Builds a tokenizer from Hugging Face's tokenizer.json, with the special tokens' roles from tokenizer_config.json and
// generation_config.json. The file's truncation and padding settings are not used: the server decides about lengths.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/text/tokenizer.hpp"
#include "core/text/tokenizer_json_steps.hpp"
#include "core/text/unicode.hpp"
#include "core/weights/gguf.hpp"
#include "core/weights/weights_file.hpp"

namespace cairn {

namespace {

constexpr std::size_t kMaxJsonBytes = 256u << 20;
constexpr std::size_t kMaxSpecialIds = 64;  // that a template puts around a text

boost::json::value parse(std::string_view text, const std::string& name, boost::json::storage_ptr storage) {
  if (text.size() > kMaxJsonBytes) {
    throw BadFile(name + " is " + std::to_string(text.size()) + " bytes long, more than the " +
                  std::to_string(kMaxJsonBytes) + " allowed.");
  }
  boost::json::parse_options options;
  options.max_depth = 64;
  boost::system::error_code error;
  boost::json::stream_parser parser(std::move(storage), options);
  const std::size_t used = parser.write(text.data(), text.size(), error);
  if (!error) parser.finish(error);
  if (error)
    throw BadFile(name + " is not valid JSON: " + error.message() + " near byte " + std::to_string(used) + ".");
  return parser.release();
}

class JsonTokenizer {
 public:
  explicit JsonTokenizer(const boost::json::value& root) : root_(&root, "tokenizer.json") {}

  std::unique_ptr<TokenizerParts> build() {
    TokenizerParts& p = *parts_;
    read_normalizer(root_.get("normalizer"), p.normalizers);
    bool byte_map_due = false;
    read_pre_tokenizer(root_.get("pre_tokenizer"), p.pre_tokenizers, byte_map_due);
    read_decoder(root_.get("decoder"), p.decoder);
    const JsonPlace model = root_.need("model");
    const std::string kind = kind_of(model);
    const bool fallback = model.boolean("byte_fallback", false);
    const bool affixes =
        !model.string("continuing_subword_prefix", "").empty() || !model.string("end_of_word_suffix", "").empty();
    // A BPE model can take raw bytes and look the alphabet up itself, which saves rewriting the text.
    const bool model_maps_bytes = byte_map_due && kind == "BPE" && !fallback && !affixes;
    if (byte_map_due && !model_maps_bytes) p.pre_tokenizers.push_back(make_byte_map());
    if (kind == "BPE") {
      build_bpe(model, model_maps_bytes);
    } else if (kind == "Unigram") {
      build_unigram(model);
    } else if (kind == "WordPiece") {
      build_wordpiece(model);
    } else if (kind == "WordLevel") {
      read_vocab(model.need("vocab"));
      p.unk = named_unknown(model);
      p.model = make_wordlevel_model(p.vocab, p.unk);
    } else {
      throw NotSupported(model.path() + " is of type " + quote_token(kind) +
                         "; known are BPE, Unigram, WordPiece and WordLevel.");
    }
    read_added_tokens();
    post_processor(root_.get("post_processor"), 0);
    return std::move(parts_);
  }

 private:
  // Old files leave the type out.
  static std::string kind_of(const JsonPlace& model) {
    if (const JsonPlace type = model.get("type")) return std::string(type.string());
    if (model.get("merges")) return "BPE";
    if (model.need("vocab").value().is_array()) return "Unigram";
    return model.get("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
  }

  void read_vocab(const JsonPlace& vocab) {
    for (const auto& [spelling, id] : vocab.object()) {
      if (!id.is_int64()) JsonPlace(&id, vocab.path() + "[" + quote_token(std::string_view(spelling)) + "]").integer();
      parts_->vocab.add(std::string_view(spelling), id.as_int64(), vocab.path());
    }
  }

  std::optional<std::int32_t> named_unknown(const JsonPlace& model) const {
    const JsonPlace name = model.get("unk_token");
    return name ? parts_->vocab.find(name.string()) : std::nullopt;
  }

  // "a b" or ["a", "b"].
  std::pair<std::int32_t, std::int32_t> read_merge(const JsonPlace& merge) const {
    std::string_view left;
    std::string_view right;
    if (merge.value().is_array()) {
      if (merge.array().size() != 2) merge.fail("has " + std::to_string(merge.array().size()) + " parts instead of 2");
      left = merge.item(0).string();
      right = merge.item(1).string();
    } else {
      const std::string_view both = merge.string();
      const std::size_t cut = both.find(' ');
      if (cut == std::string_view::npos || both.find(' ', cut + 1) != std::string_view::npos) {
        merge.fail("is " + quote_token(both) + ", not two parts with one space between");
      }
      left = both.substr(0, cut);
      right = both.substr(cut + 1);
    }
    const auto find = [&](std::string_view part) {
      const auto id = parts_->vocab.find(part);
      if (!id) merge.fail("names " + quote_token(part) + ", which is not in the vocabulary");
      return *id;
    };
    return {find(left), find(right)};
  }

  void build_bpe(const JsonPlace& model, bool byte_level) {
    read_vocab(model.need("vocab"));
    TokenizerParts& p = *parts_;
    BpeConfig config;
    const JsonPlace merges = model.need("merges");
    config.merges.reserve(merges.array().size());
    for (std::size_t i = 0; i < merges.array().size(); ++i) {
      const JsonPlace merge = merges.item(i);
      if (merge.value().is_string() && merge.string().starts_with("#version")) continue;
      config.merges.push_back(read_merge(merge));
    }
    config.key = merges.path();
    p.unk = named_unknown(model);
    config.unk_id = p.unk;
    config.continuing_subword_prefix = model.string("continuing_subword_prefix", "");
    config.end_of_word_suffix = model.string("end_of_word_suffix", "");
    config.fuse_unk = model.boolean("fuse_unk", false);
    config.byte_fallback = model.boolean("byte_fallback", false);
    config.ignore_merges = model.boolean("ignore_merges", false);
    config.byte_level = byte_level;
    p.model = make_bpe_model(p.vocab, std::move(config));
  }

  void build_unigram(const JsonPlace& model) {
    TokenizerParts& p = *parts_;
    const JsonPlace vocab = model.need("vocab");
    UnigramConfig config;
    config.key = vocab.path();
    for (std::size_t i = 0; i < vocab.array().size(); ++i) {
      const JsonPlace entry = vocab.item(i);
      if (entry.array().size() != 2) entry.fail("is not a spelling and a score");
      p.vocab.add_or_replace(entry.item(0).string(), static_cast<std::int64_t>(i), vocab.path());
      config.scores.push_back(entry.item(1).number());
    }
    if (const JsonPlace unk = model.get("unk_id")) {
      if (!p.vocab.contains_id(unk.integer())) {
        unk.fail("is " + std::to_string(unk.integer()) + ", outside the " + std::to_string(p.vocab.size()) + " tokens");
      }
      p.unk = static_cast<std::int32_t>(unk.integer());
    }
    config.unk_id = p.unk;
    config.byte_fallback = model.boolean("byte_fallback", false);
    p.model = make_unigram_model(p.vocab, std::move(config));
  }

  void build_wordpiece(const JsonPlace& model) {
    read_vocab(model.need("vocab"));
    TokenizerParts& p = *parts_;
    p.unk = named_unknown(model);
    WordPieceConfig config;
    config.unk_id = p.unk;
    config.continuing_subword_prefix = model.string("continuing_subword_prefix", "##");
    if (const JsonPlace limit = model.get("max_input_chars_per_word")) {
      const std::int64_t n = limit.integer();
      if (n < 0 || n > 1 << 20) limit.fail("is " + std::to_string(n) + ", outside [0, 1048576]");
      config.max_input_chars_per_word = static_cast<std::size_t>(n);
    }
    p.model = make_wordpiece_model(p.vocab, std::move(config));
  }

  void read_added_tokens() {
    const JsonPlace list = root_.get("added_tokens");
    if (!list) return;
    for (std::size_t i = 0; i < list.array().size(); ++i) {
      const JsonPlace entry = list.item(i);
      AddedToken token;
      token.content = entry.need("content").string();
      if (token.content.empty()) continue;
      const JsonPlace id = entry.need("id");
      const std::int64_t wanted = id.integer();
      if (wanted < 0 || wanted >= Vocabulary::kMaxTokens) {
        id.fail("is " + std::to_string(wanted) + ", outside [0, " + std::to_string(Vocabulary::kMaxTokens) + ")");
      }
      // A token of the model keeps the model's id, as in the reference.
      token.id = parts_->vocab.find(token.content).value_or(static_cast<std::int32_t>(wanted));
      token.special = entry.boolean("special", false);
      token.normalized = entry.boolean("normalized", !token.special);
      token.single_word = entry.boolean("single_word", false);
      token.lstrip = entry.boolean("lstrip", false);
      token.rstrip = entry.boolean("rstrip", false);
      parts_->add(std::move(token), entry.path());
    }
  }

  std::int32_t checked_id(const JsonPlace& place) const {
    const std::int64_t id = place.integer();
    if (parts_->spelling(id).empty()) place.fail("is " + std::to_string(id) + ", no token of the vocabulary");
    return static_cast<std::int32_t>(id);
  }

  // Wraps what earlier processors put around the text.
  void wrap(const JsonPlace& place, const std::vector<std::int32_t>& before, const std::vector<std::int32_t>& behind) {
    TokenizerParts& p = *parts_;
    p.prefix.insert(p.prefix.begin(), before.begin(), before.end());
    p.suffix.insert(p.suffix.end(), behind.begin(), behind.end());
    if (p.prefix.size() + p.suffix.size() > kMaxSpecialIds) {
      place.fail("puts more than " + std::to_string(kMaxSpecialIds) + " tokens around a text");
    }
  }

  void post_processor(const JsonPlace& place, int depth) {
    if (!place) return;
    if (depth > 16) place.fail("nests sequences more than 16 deep");
    const std::string_view kind = place.need("type").string();
    if (kind == "Sequence") {
      const JsonPlace list = place.need("processors");
      for (std::size_t i = 0; i < list.array().size(); ++i) post_processor(list.item(i), depth + 1);
    } else if (kind == "ByteLevel") {
      // Moves offsets only.
    } else if (kind == "BertProcessing" || kind == "RobertaProcessing") {
      const auto id = [&](std::string_view key) {
        const JsonPlace pair = place.need(key);
        if (pair.array().size() != 2) pair.fail("is not a spelling and an id");
        return checked_id(pair.item(1));
      };
      wrap(place, {id("cls")}, {id("sep")});
    } else if (kind == "TemplateProcessing") {
      template_processor(place);
    } else {
      throw NotSupported(place.path() + " is of type " + quote_token(kind) + ", which this build does not know.");
    }
  }

  void template_processor(const JsonPlace& place) {
    const JsonPlace single = place.need("single");
    std::vector<std::int32_t> before;
    std::vector<std::int32_t> behind;
    bool seen_text = false;
    for (std::size_t i = 0; i < single.array().size(); ++i) {
      const JsonPlace piece = single.item(i);
      if (const JsonPlace sequence = piece.get("Sequence")) {
        if (seen_text || sequence.need("id").string() != "A") sequence.fail("does not use the text exactly once");
        seen_text = true;
        continue;
      }
      const JsonPlace name = piece.need("SpecialToken").need("id");
      const JsonPlace ids = place.need("special_tokens").need(name.string()).need("ids");
      for (std::size_t k = 0; k < ids.array().size() && k <= kMaxSpecialIds; ++k) {
        (seen_text ? behind : before).push_back(checked_id(ids.item(k)));
      }
      if (before.size() + behind.size() > kMaxSpecialIds) single.fail("puts too many tokens around a text");
    }
    if (!seen_text) single.fail("leaves the text out");
    wrap(place, before, behind);
  }

  JsonPlace root_;
  std::unique_ptr<TokenizerParts> parts_ = std::make_unique<TokenizerParts>();
};

// "<s>" or {"content": "<s>", ...}.
std::optional<std::int32_t> role(const TokenizerParts& parts, const JsonPlace& config, std::string_view key) {
  const JsonPlace token = config.get(key);
  if (!token) return std::nullopt;
  return parts.find(token.value().is_object() ? token.need("content").string() : token.string());
}

void apply_tokenizer_config(TokenizerParts& parts, const JsonPlace& config) {
  // Tokens that transformers adds to what tokenizer.json has.
  if (const JsonPlace added = config.get("added_tokens_decoder")) {
    for (const auto& [key, value] : added.object()) {
      const std::string_view digits(key);
      const JsonPlace entry(&value, added.path() + "." + std::string(digits));
      const std::string_view content = entry.need("content").string();
      if (content.empty() || parts.find(content)) continue;
      const bool is_id = !digits.empty() && digits.size() < 8 &&
                         std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!is_id) entry.fail("is not under a token id");
      AddedToken token{.content = std::string(content), .id = std::stoi(std::string(digits))};
      token.special = entry.boolean("special", false);
      token.normalized = entry.boolean("normalized", !token.special);
      token.single_word = entry.boolean("single_word", false);
      token.lstrip = entry.boolean("lstrip", false);
      token.rstrip = entry.boolean("rstrip", false);
      parts.add(std::move(token), entry.path());
    }
  }
  parts.bos = role(parts, config, "bos_token");
  parts.eos = role(parts, config, "eos_token");
  parts.pad = role(parts, config, "pad_token");
  if (const auto unk = role(parts, config, "unk_token")) parts.unk = unk;
}

void apply_generation_config(TokenizerParts& parts, const JsonPlace& config) {
  const auto known = [&](const JsonPlace& id) -> std::optional<std::int32_t> {
    const std::int64_t value = id.integer();
    if (parts.spelling(value).empty()) return std::nullopt;
    return static_cast<std::int32_t>(value);
  };
  if (const JsonPlace bos = config.get("bos_token_id"); bos && !parts.bos) parts.bos = known(bos);
  const JsonPlace eos = config.get("eos_token_id");
  if (!eos) return;
  const std::size_t count = eos.value().is_array() ? eos.array().size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = known(eos.value().is_array() ? eos.item(i) : eos);
    if (!id) continue;
    if (!parts.eos) parts.eos = id;
    parts.ends.push_back(*id);
  }
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!in || error) throw BadFile("The file " + path.string() + " cannot be read.");
  if (size > kMaxJsonBytes) {
    throw BadFile("The file " + path.string() + " is " + std::to_string(size) + " bytes long, more than the " +
                  std::to_string(kMaxJsonBytes) + " allowed.");
  }
  std::string text(size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::from_json(std::string_view json, std::string_view tokenizer_config_json,
                                                      std::string_view generation_config_json) {
  std::unique_ptr<TokenizerParts> parts;
  {
    boost::json::monotonic_resource memory;
    const boost::json::value root = parse(json, "tokenizer.json", &memory);
    parts = JsonTokenizer(root).build();
  }
  if (!tokenizer_config_json.empty()) {
    const std::string name = "tokenizer_config.json";
    const boost::json::value root = parse(tokenizer_config_json, name, {});
    apply_tokenizer_config(*parts, {&root, name});
  }
  if (!generation_config_json.empty()) {
    const std::string name = "generation_config.json";
    const boost::json::value root = parse(generation_config_json, name, {});
    apply_generation_config(*parts, {&root, name});
  }
  for (const std::string_view eot : {"<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|end|>", "<turn|>"}) {
    const auto id = parts->find(eot);
    if (!id || id == parts->eos || parts->eot) continue;
    parts->eot = id;
  }
  parts->complete();
  return std::make_shared<const Tokenizer>(std::move(parts));
}

std::shared_ptr<const Tokenizer> Tokenizer::from_weights(const WeightsFile& file) {
  if (const auto* gguf = dynamic_cast<const GgufFile*>(&file)) return from_gguf(*gguf);
  const auto path = file.side_file("tokenizer.json");
  if (!path) {
    throw NotFound("There is no tokenizer.json in " + file.directory().string() +
                   ". Send token ids, or put the model's tokenizer.json there.");
  }
  const auto optional_file = [&](std::string_view name) {
    const auto side = file.side_file(name);
    return side ? read_file(*side) : std::string();
  };
  return from_json(read_file(*path), optional_file("tokenizer_config.json"), optional_file("generation_config.json"));
}

}  // namespace cairn
