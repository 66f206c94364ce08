// Safe reading of the ABI's structs and spans: only what lies inside struct_size or the stride is read, the rest is
// zero; nothing is assumed about alignment, and a count without data is refused.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "cairn/abi.h"
#include "core/base/error.hpp"

namespace cairn {

// A struct that begins with struct_size. Fields beyond it are zero ("not given"); a null pointer gives all zeros.
template <class T>
T copy_sized(const T* source) {
  static_assert(std::is_trivially_copyable_v<T>);
  T copy{};
  if (source == nullptr) return copy;
  std::uint64_t size = 0;
  std::memcpy(&size, static_cast<const void*>(source), sizeof(size));
  std::memcpy(static_cast<void*>(&copy), static_cast<const void*>(source),
              static_cast<std::size_t>(std::min<std::uint64_t>(size, sizeof(T))));
  return copy;
}

// Element i of a span with a stride (CAIRN_DECLARE_SPAN).
template <class Span>
auto span_element(const Span& span, std::uint64_t i) {
  using T = std::remove_const_t<std::remove_pointer_t<decltype(span.data)>>;
  static_assert(std::is_trivially_copyable_v<T>);
  const std::uint64_t stride = CAIRN_STRIDE(T, span);
  T copy{};
  std::memcpy(static_cast<void*>(&copy), reinterpret_cast<const char*>(span.data) + stride * i,
              static_cast<std::size_t>(std::min<std::uint64_t>(stride, sizeof(T))));
  return copy;
}

// Throws InvalidArgument when a span has more than `limit` elements, or elements and no data.
template <class Span>
void check_span(const Span& span, std::size_t limit, std::string_view what) {
  if (span.count > limit) {
    throw InvalidArgument(std::string(what) + " has " + std::to_string(span.count) + " entries; at most " +
                          std::to_string(limit) + " are supported.");
  }
  if (span.count > 0 && span.data == nullptr) {
    throw InvalidArgument(std::string(what) + " has " + std::to_string(span.count) + " entries and no data.");
  }
}

}  // namespace cairn
