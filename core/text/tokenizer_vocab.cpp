// The vocabulary table and its checks on what a file claims.
#include "core/text/tokenizer_vocab.hpp"

#include <algorithm>
#include <functional>

#include "core/base/error.hpp"
#include "core/text/unicode.hpp"

namespace cairn {

std::string quote_token(std::string_view spelling) {
  constexpr std::size_t kShown = 60;
  std::string shown;
  unicode::append_sanitized(shown, spelling.substr(0, kShown));
  std::string out = "\"";
  for (const char c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\') {
      constexpr std::string_view kHex = "0123456789abcdef";
      out += "\\x";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  out += spelling.size() > kShown ? "\"..." : "\"";
  return out;
}

std::size_t Vocabulary::slot_of(std::string_view spelling) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = std::hash<std::string_view>{}(spelling)&mask;
  while (slots_[i] >= 0 && this->spelling(slots_[i]) != spelling) i = (i + 1) & mask;
  return i;
}

void Vocabulary::grow() {
  const std::vector<std::int32_t> old = std::move(slots_);
  slots_.assign(std::max<std::size_t>(1024, old.size() * 2), -1);
  for (const std::int32_t id : old) {
    if (id >= 0) slots_[slot_of(spelling(id))] = id;
  }
}

void Vocabulary::store(std::string_view spelling, std::int64_t id, std::string_view key) {
  const std::string where(key);
  if (id < 0 || id >= kMaxTokens) {
    throw BadFile(where + ": token " + quote_token(spelling) + " has id " + std::to_string(id) + ", outside [0, " +
                  std::to_string(kMaxTokens) + ").");
  }
  if (spelling.size() > kMaxTokenBytes) {
    throw BadFile(where + ": token " + std::to_string(id) + " is " + std::to_string(spelling.size()) +
                  " bytes long, more than the " + std::to_string(kMaxTokenBytes) + " allowed.");
  }
  if (arena_.size() + spelling.size() > kMaxTotalBytes) {
    throw BadFile(where + ": the spellings up to token " + std::to_string(id) + " take more than " +
                  std::to_string(kMaxTotalBytes) + " bytes.");
  }
  const auto index = static_cast<std::size_t>(id);
  if (index < entries_.size() && entries_[index].used) {
    throw BadFile(where + ": id " + std::to_string(id) + " is given to both " + quote_token(this->spelling(id)) +
                  " and " + quote_token(spelling) + ".");
  }
  if (index >= entries_.size()) entries_.resize(index + 1);
  entries_[index] = {static_cast<std::uint32_t>(arena_.size()), static_cast<std::uint16_t>(spelling.size()), true};
  arena_.append(spelling);
  longest_ = std::max(longest_, spelling.size());
  if (2 * (filled_ + 1) > slots_.size()) grow();
}

void Vocabulary::add(std::string_view spelling, std::int64_t id, std::string_view key) {
  if (const auto before = find(spelling)) {
    throw BadFile(std::string(key) + ": token " + quote_token(spelling) + " occurs twice, as id " +
                  std::to_string(*before) + " and as id " + std::to_string(id) + ".");
  }
  add_or_replace(spelling, id, key);
}

void Vocabulary::add_or_replace(std::string_view spelling, std::int64_t id, std::string_view key) {
  store(spelling, id, key);
  if (spelling.empty()) return;
  std::int32_t& slot = slots_[slot_of(spelling)];
  if (slot < 0) ++filled_;
  slot = static_cast<std::int32_t>(id);
}

std::optional<std::int32_t> Vocabulary::find(std::string_view spelling) const {
  if (slots_.empty() || spelling.empty()) return std::nullopt;
  const std::int32_t id = slots_[slot_of(spelling)];
  if (id < 0) return std::nullopt;
  return id;
}

std::string_view Vocabulary::spelling(std::int64_t id) const {
  if (id < 0 || id >= size()) return {};
  const Entry& e = entries_[static_cast<std::size_t>(id)];
  return std::string_view(arena_).substr(e.offset, e.length);
}

}  // namespace cairn
