// Spellings to ids and back: one arena of bytes and an open-addressing table. Used by every tokenizer model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

// Ids may have holes. Filled by one thread, then immutable.
class Vocabulary {
 public:
  static constexpr std::int32_t kMaxTokens = 1 << 22;        // four times the largest published vocabulary
  static constexpr std::size_t kMaxTokenBytes = 16 * 1024;   // one spelling
  static constexpr std::size_t kMaxTotalBytes = 512u << 20;  // all of them

  // Throws BadFile, naming `key` of the file, for an id outside [0, kMaxTokens), a spelling over the limits, and for a
  // spelling or an id that was there before. An empty spelling takes up its id and is never found.
  void add(std::string_view spelling, std::int64_t id, std::string_view key);
  // As add(), but a spelling that was there before is found under the new id from now on.
  void add_or_replace(std::string_view spelling, std::int64_t id, std::string_view key);

  std::optional<std::int32_t> find(std::string_view spelling) const;
  bool contains_id(std::int64_t id) const {
    return id >= 0 && id < size() && entries_[static_cast<std::size_t>(id)].used;
  }
  // Empty for a hole or an id outside.
  std::string_view spelling(std::int64_t id) const;
  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }  // largest id plus one
  std::size_t longest() const { return longest_; }

 private:
  struct Entry {
    std::uint32_t offset = 0;
    std::uint16_t length = 0;
    bool used = false;
  };
  void store(std::string_view spelling, std::int64_t id, std::string_view key);
  std::size_t slot_of(std::string_view spelling) const;  // its slot, or the free one where it belongs
  void grow();

  std::string arena_;
  std::vector<Entry> entries_;
  std::vector<std::int32_t> slots_;  // ids; -1 is free; size is a power of two
  std::size_t filled_ = 0;
  std::size_t longest_ = 0;
};

// How a token's spelling looks in a message: shortened, control characters escaped.
std::string quote_token(std::string_view spelling);

}  // namespace cairn
