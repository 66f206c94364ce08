// Lookups across the model's and the added tokens, and what is derived once after loading.
#include "core/text/tokenizer_parts.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.hpp"

namespace cairn {

bool is_end_of_turn_spelling(std::string_view spelling) {
  // As published models name them. "</s>" and "<|endoftext|>" end texts, the others turns.
  constexpr std::array kNames = {
      std::string_view("<|eot_id|>"),
      std::string_view("<|im_end|>"),
      std::string_view("<|end|>"),
      std::string_view("<end_of_turn>"),
      std::string_view("<turn|>"),
      std::string_view("<|endoftext|>"),
      std::string_view("<|end_of_text|>"),
      std::string_view("<|eom_id|>"),
      std::string_view("<EOT>"),
      std::string_view("_<EOT>"),
      std::string_view("[EOT]"),
      std::string_view("<|eot|>"),
      std::string_view("<|end_of_turn|>"),
      std::string_view("<|endofturn|>"),
      std::string_view("[|endofturn|]"),
      std::string_view("<|END_OF_TURN_TOKEN|>"),
      std::string_view("<end_of_utterance>"),
      std::string_view("<|return|>"),
      std::string_view("<|call|>"),
      std::string_view("<\xEF\xBD\x9C"
                       "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"),
  };
  return std::find(kNames.begin(), kNames.end(), spelling) != kNames.end();
}

std::string_view TokenizerParts::spelling(std::int64_t id) const {
  if (id < 0 || id >= Vocabulary::kMaxTokens) return {};
  const auto it = added.find(static_cast<std::int32_t>(id));
  return it != added.end() ? std::string_view(it->second.content) : vocab.spelling(id);
}

std::optional<std::int32_t> TokenizerParts::find(std::string_view wanted) const {
  const auto it = added_ids.find(std::string(wanted));
  if (it != added_ids.end()) return it->second;
  return vocab.find(wanted);
}

bool TokenizerParts::is_special(std::int64_t id) const {
  if (id < 0 || id >= Vocabulary::kMaxTokens) return false;
  const auto it = added.find(static_cast<std::int32_t>(id));
  return it != added.end() && it->second.special;
}

std::optional<std::string_view> TokenizerParts::output_spelling(std::int64_t id, bool skip_special) const {
  if (id < 0 || id >= size) return std::nullopt;
  const auto it = added.find(static_cast<std::int32_t>(id));
  if (it != added.end()) {
    if (skip_special && it->second.special) return std::nullopt;
    return it->second.output;
  }
  if (!vocab.contains_id(id)) return std::nullopt;
  return vocab.spelling(id);
}

void TokenizerParts::add(AddedToken token, std::string_view key) {
  const std::string where(key);
  if (token.id < 0 || token.id >= Vocabulary::kMaxTokens) {
    throw BadFile(where + ": token " + quote_token(token.content) + " has id " + std::to_string(token.id) +
                  ", outside [0, " + std::to_string(Vocabulary::kMaxTokens) + ").");
  }
  if (token.content.size() > Vocabulary::kMaxTokenBytes) {
    throw BadFile(where + ": token " + std::to_string(token.id) + " is " + std::to_string(token.content.size()) +
                  " bytes long, more than the " + std::to_string(Vocabulary::kMaxTokenBytes) + " allowed.");
  }
  const std::string_view before = spelling(token.id);
  if (!before.empty() && before != token.content) {
    throw BadFile(where + ": id " + std::to_string(token.id) + " is given to both " + quote_token(before) + " and " +
                  quote_token(token.content) + ".");
  }
  const auto [it, fresh] = added_ids.emplace(token.content, token.id);
  if (!fresh && it->second != token.id) {
    throw BadFile(where + ": token " + quote_token(token.content) + " occurs twice, as id " +
                  std::to_string(it->second) + " and as id " + std::to_string(token.id) + ".");
  }
  token.output = token.content;
  added.insert_or_assign(token.id, std::move(token));
}

void TokenizerParts::complete() {
  size = vocab.size();
  std::vector<AddedTokenMatcher::Pattern> raw;
  std::vector<AddedTokenMatcher::Pattern> normalized;
  std::vector<const AddedToken*> ordered;
  for (const auto& [id, token] : added) ordered.push_back(&token);
  std::sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  for (const AddedToken* token : ordered) {
    size = std::max(size, token->id + 1);
    if (!token->normalized) {
      raw.push_back({token->content, *token});
      continue;
    }
    std::string text = token->content;
    for (const auto& normalizer : normalizers) normalizer->apply(text);
    added.at(token->id).output = text;
    normalized.push_back({std::move(text), *token});
  }
  before_normalizing = AddedTokenMatcher(std::move(raw));
  after_normalizing = AddedTokenMatcher(std::move(normalized));

  DecodeStream stream(decoder);
  token_bytes_at.assign(1, 0);
  for (std::int32_t id = 0; id < size; ++id) {
    if (const auto token = output_spelling(id, false)) stream.raw_bytes(*token, token_bytes);
    token_bytes_at.push_back(static_cast<std::uint32_t>(token_bytes.size()));
  }

  for (const auto& end : {eos, eot}) {
    if (end) ends.push_back(*end);
  }
  // Where <|return|> and <|call|> end turns, <|end|> ends one message of several.
  const bool message_ends = added_ids.contains("<|return|>") && added_ids.contains("<|call|>");
  for (const AddedToken* token : ordered) {
    if (message_ends && token->content == "<|end|>") continue;
    if (is_end_of_turn_spelling(token->content)) ends.push_back(token->id);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

}  // namespace cairn
