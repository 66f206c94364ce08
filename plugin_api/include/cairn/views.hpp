// Thin conversions between the ABI's strings and spans and C++'s. Used by every SDK header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cairn/abi.h"

namespace cairn {

inline std::string_view text(cairn_str value) noexcept {
  return {value.data, value.data == nullptr ? 0 : static_cast<std::size_t>(value.size)};
}
inline cairn_str str(std::string_view value) noexcept {
  return {value.data(), value.size()};
}

// A read-only range over an ABI span; honours the writer's stride.
template <class T>
class Elements {
 public:
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const char* at, std::uint64_t stride) : at_(at), stride_(stride) {}
    const T& operator*() const noexcept { return *reinterpret_cast<const T*>(at_); }
    const T* operator->() const noexcept { return reinterpret_cast<const T*>(at_); }
    Iterator& operator++() noexcept { return at_ += stride_, *this; }
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }

   private:
    const char* at_ = nullptr;
    std::uint64_t stride_ = 0;
  };

  Elements(const T* data, std::uint64_t count, std::uint64_t stride)
      : data_(reinterpret_cast<const char*>(data)), count_(count), stride_(stride == 0 ? sizeof(T) : stride) {}
  std::size_t size() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  const T& operator[](std::uint64_t i) const noexcept { return *reinterpret_cast<const T*>(data_ + stride_ * i); }
  Iterator begin() const noexcept { return {data_, stride_}; }
  Iterator end() const noexcept { return {count_ == 0 ? data_ : data_ + stride_ * count_, stride_}; }

 private:
  const char* data_;
  std::uint64_t count_;
  std::uint64_t stride_;
};

// elements(span): the range of any cairn_*_span.
template <class Span>
requires requires(const Span& span) {
  span.stride;
}
auto elements(const Span& span) noexcept {
  using T = std::remove_cv_t<std::remove_pointer_t<decltype(span.data)>>;
  return Elements<T>(span.data, span.count, span.stride);
}
inline std::span<const std::uint32_t> elements(const cairn_u32_span& span) noexcept {
  return {span.data, span.count};
}
inline std::span<const std::int32_t> elements(const cairn_i32_span& span) noexcept {
  return {span.data, span.count};
}
inline std::span<const std::int64_t> elements(const cairn_i64_span& span) noexcept {
  return {span.data, span.count};
}

// A span over `count` elements laid out one after the other.
template <class Span, class T>
Span span_of(const T* data, std::size_t count) noexcept {
  if constexpr (requires(Span span) { span.stride; }) {
    return Span{data, count, sizeof(T)};
  } else {
    return Span{data, count};
  }
}

}  // namespace cairn
