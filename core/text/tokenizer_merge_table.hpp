// (left id, right id) -> (rank, merged id): the open-addressing table in the inner loop of BPE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn {

class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = UINT32_MAX;
    std::int32_t id = -1;  // -1: the pair does not merge
  };

  explicit MergeTable(std::size_t expected) {
    std::size_t size = 64;
    while (size * 3 < expected * 4 + 4) size *= 2;
    slots_.resize(size);
  }

  // Later entries for the same pair replace earlier ones, as in the reference. At most `expected` calls.
  void set(std::int32_t left, std::int32_t right, Merge merge) {
    Slot& s = slots_[place(key(left, right))];
    s = {key(left, right), merge};
  }
  Merge find(std::int32_t left, std::int32_t right) const { return slots_[place(key(left, right))].merge; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge;
  };
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return (static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right)) + 1;
  }
  std::size_t place(std::uint64_t k) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = (k * 0x9E3779B97F4A7C15ULL >> 20) & mask;
    while (slots_[i].key != 0 && slots_[i].key != k) i = (i + 1) & mask;
    return i;
  }
  std::vector<Slot> slots_;
};

}  // namespace cairn
