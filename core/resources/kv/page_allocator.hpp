// Page ids of one KV pool. Page 0 is the sink, where padding rows write; it is never handed out. Device thread only.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn {

inline constexpr std::int32_t kSinkPage = 0;

class PageAllocator {
 public:
  // `pages` in all, the sink included.
  explicit PageAllocator(std::int64_t pages) {
    free_.reserve(static_cast<std::size_t>(pages));
    for (std::int64_t page = pages - 1; page > kSinkPage; --page) free_.push_back(static_cast<std::int32_t>(page));
    capacity_ = pages - 1;
  }

  std::int64_t capacity() const { return capacity_; }
  std::int64_t used() const { return capacity_ - static_cast<std::int64_t>(free_.size()); }
  std::int64_t reserved() const { return reserved_; }

  // Sets `pages` aside; taking a reserved page later cannot fail. False when fewer are neither used nor reserved.
  bool reserve(std::int64_t pages) {
    if (pages > static_cast<std::int64_t>(free_.size()) - reserved_) return false;
    reserved_ += pages;
    return true;
  }
  void unreserve(std::int64_t pages) { reserved_ -= pages; }

  // One of the reserved pages; the most recently freed first, for its warm memory.
  std::int32_t take_reserved() {
    const std::int32_t page = free_.back();
    free_.pop_back();
    --reserved_;
    return page;
  }
  void give_back(std::int32_t page) { free_.push_back(page); }

 private:
  std::vector<std::int32_t> free_;
  std::int64_t capacity_ = 0;
  std::int64_t reserved_ = 0;
};

}  // namespace cairn
