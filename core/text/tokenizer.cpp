// Encoding and decoding over a tokenizer's parts; the byte tokenizer.
#include "core/text/tokenizer.hpp"

#include "core/base/error.hpp"
#include "core/text/tokenizer_parts.hpp"
#include "core/text/unicode.hpp"

namespace cairn {

namespace {

// One stretch of normalised text between added tokens.
void encode_text(const TokenizerParts& parts, std::string_view text, bool at_start, std::vector<std::int32_t>& out) {
  if (text.empty()) return;
  PieceText t;
  t.text = text;
  t.pieces = {{0, static_cast<std::uint32_t>(text.size())}};
  t.at_start = at_start;
  for (const auto& step : parts.pre_tokenizers) step->apply(t);
  for (const PieceText::Piece piece : t.pieces) {
    if (piece.begin < piece.end) parts.model->encode_word(t.view(piece), out);
  }
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

std::shared_ptr<const Tokenizer> Tokenizer::bytes() {
  auto parts = std::make_unique<TokenizerParts>();
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    const std::string name{
        '<', '0', 'x', kHex[static_cast<unsigned>(byte) >> 4], kHex[static_cast<unsigned>(byte) & 15], '>'};
    parts->vocab.add(name, byte, "bytes");
  }
  parts->raw_bytes = true;
  parts->decoder.steps.push_back({.kind = DecodeStep::Kind::kByteFallback});
  parts->complete();
  return std::make_shared<const Tokenizer>(std::move(parts));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8, EncodeOptions options) const {
  const TokenizerParts& p = *parts_;
  if (!p.refusal.empty()) throw NotSupported(p.refusal);
  if (utf8.size() > kMaxTextBytes) {
    throw InvalidArgument("The text is " + std::to_string(utf8.size()) + " bytes long; at most " +
                          std::to_string(kMaxTextBytes) + " can be tokenised at once.");
  }
  std::vector<std::int32_t> out;
  out.reserve(utf8.size() / 3 + 8);
  if (p.raw_bytes) {
    for (const char c : utf8) out.push_back(static_cast<unsigned char>(c));
    return out;
  }
  std::string repaired;
  if (unicode::valid_prefix(utf8) != utf8.size()) {
    unicode::append_sanitized(repaired, utf8);
    utf8 = repaired;
  }
  if (options.add_special) out = p.prefix;
  std::vector<AddedTokenMatcher::Part> outer;
  std::vector<AddedTokenMatcher::Part> inner;
  p.before_normalizing.split(utf8, options.parse_special, outer);
  for (const auto& part : outer) {
    if (part.id >= 0) {
      out.push_back(part.id);
      continue;
    }
    std::string text(utf8.substr(part.begin, part.end - part.begin));
    for (const auto& normalizer : p.normalizers) normalizer->apply(text);
    inner.clear();
    p.after_normalizing.split(text, options.parse_special, inner);
    for (const auto& piece : inner) {
      if (piece.id >= 0) {
        out.push_back(piece.id);
      } else {
        const bool at_start = part.begin == 0 && piece.begin == 0;
        encode_text(p, std::string_view(text).substr(piece.begin, piece.end - piece.begin), at_start, out);
      }
    }
  }
  if (options.add_special) out.insert(out.end(), p.suffix.begin(), p.suffix.end());
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  DecodeStream stream(parts_->decoder);
  std::string out;
  for (const std::int32_t id : ids) {
    if (const auto token = parts_->output_spelling(id, skip_special)) stream.push(*token, out);
  }
  stream.flush(out);
  return out;
}

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  if (id < 0 || id >= parts_->size) return {};
  const auto i = static_cast<std::size_t>(id);
  const std::uint32_t begin = parts_->token_bytes_at[i];
  return std::string_view(parts_->token_bytes).substr(begin, parts_->token_bytes_at[i + 1] - begin);
}

std::string Tokenizer::token_text(std::int32_t id) const {
  return std::string(parts_->spelling(id));
}
std::optional<std::int32_t> Tokenizer::token_id(std::string_view spelling) const {
  return parts_->find(spelling);
}
bool Tokenizer::is_special(std::int32_t id) const {
  return parts_->is_special(id);
}
std::int32_t Tokenizer::vocab_size() const {
  return parts_->size;
}
std::optional<std::int32_t> Tokenizer::bos_id() const {
  return parts_->bos;
}
std::optional<std::int32_t> Tokenizer::eos_id() const {
  return parts_->eos;
}
std::optional<std::int32_t> Tokenizer::eot_id() const {
  return parts_->eot;
}
std::optional<std::int32_t> Tokenizer::pad_id() const {
  return parts_->pad;
}
std::optional<std::int32_t> Tokenizer::unk_id() const {
  return parts_->unk;
}
const std::vector<std::int32_t>& Tokenizer::end_token_ids() const {
  return parts_->ends;
}
bool Tokenizer::adds_bos() const {
  return parts_->bos && !parts_->prefix.empty() && parts_->prefix[0] == *parts_->bos;
}

}  // namespace cairn
