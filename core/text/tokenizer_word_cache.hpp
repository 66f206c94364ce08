// A bounded cache of short words' ids, one per thread and shared by all tokenizers: text repeats its words. Used by
// the BPE model.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace cairn {

// Direct-mapped: a word replaces the one that lay in its place. 8192 entries of 96 bytes per thread, made at first use.
class WordCache {
 public:
  static constexpr std::size_t kMaxWord = 40;
  static constexpr std::size_t kMaxIds = 10;

  struct Entry {
    std::uint64_t owner = 0;  // the model's serial number; 0 is free
    std::uint8_t length = 0;
    std::uint8_t count = 0;
    std::array<char, kMaxWord> word;
    std::array<std::int32_t, kMaxIds> ids;
  };

  // This thread's entry for `word` (at most kMaxWord bytes), which holds another word or none unless holds() says so.
  static Entry& entry(std::uint64_t owner, std::string_view word) {
    thread_local const std::unique_ptr<Entry[]> entries = std::make_unique<Entry[]>(kEntries);
    const std::size_t hash = std::hash<std::string_view>{}(word) ^ owner * 0x9E3779B97F4A7C15ULL;
    return entries[(hash ^ hash >> 29) % kEntries];
  }
  static bool holds(const Entry& e, std::uint64_t owner, std::string_view word) {
    return e.owner == owner && e.length == word.size() && std::memcmp(e.word.data(), word.data(), word.size()) == 0;
  }
  static void fill(Entry& e, std::uint64_t owner, std::string_view word, const std::int32_t* ids, std::size_t count) {
    if (count > kMaxIds) return;
    e.owner = owner;
    e.length = static_cast<std::uint8_t>(word.size());
    e.count = static_cast<std::uint8_t>(count);
    std::memcpy(e.word.data(), word.data(), word.size());
    std::memcpy(e.ids.data(), ids, count * sizeof(std::int32_t));
  }

 private:
  static constexpr std::size_t kEntries = 8192;
};

}  // namespace cairn
