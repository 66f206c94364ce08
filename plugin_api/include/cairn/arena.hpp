// The step's or call's memory: every variable-size answer of a plugin is built here and freed by the host. Used by
// thunks and by nodes that fill the batch-shaped hooks themselves.
#pragma once

#include <cstring>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include "cairn/abi.h"
#include "cairn/views.hpp"

namespace cairn {

// A pointer to the host's arena; copying it is free. Memory lives until the end of the step (node hooks) or call (model
// hooks).
class Arena {
 public:
  explicit Arena(cairn_arena* arena) noexcept : arena_(arena) {}
  cairn_arena* raw() const noexcept { return arena_; }

  void* allocate(std::size_t size, std::size_t alignment) const {
    void* memory = arena_ == nullptr ? nullptr : arena_->alloc(arena_, size, alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  // `count` zeroed objects.
  template <class T>
  std::span<T> make(std::size_t count) const {
    std::span<T> made = make_uninitialized<T>(count);
    if (count != 0) std::memset(static_cast<void*>(made.data()), 0, made.size_bytes());
    return made;
  }
  template <class T>
  std::span<T> make_uninitialized(std::size_t count) const {
    static_assert(std::is_trivially_destructible_v<T> && std::is_trivially_copyable_v<T>,
                  "the arena runs no destructor");
    if (count == 0) return {};
    return {static_cast<T*>(allocate(sizeof(T) * count, alignof(T) < 8 ? 8 : alignof(T))), count};
  }
  template <class T>
  T* make_one() const {
    return make<T>(1).data();
  }
  template <class T>
  std::span<T> copy(std::span<const T> values) const {
    std::span<T> made = make_uninitialized<T>(values.size());
    if (!values.empty()) std::memcpy(static_cast<void*>(made.data()), values.data(), values.size_bytes());
    return made;
  }
  cairn_str copy(std::string_view value) const {
    return str({copy(std::span<const char>(value.data(), value.size())).data(), value.size()});
  }
  // An ABI span over an arena copy of `values`.
  template <class Span, class T>
  Span span(const std::vector<T>& values) const {
    return span_of<Span>(copy(std::span<const T>(values)).data(), values.size());
  }

  // A compact tensor of step memory, uninitialised and 64-byte aligned.
  cairn_tensor_view tensor(cairn_dtype dtype, std::initializer_list<std::int64_t> shape) const {
    return tensor(dtype, std::span<const std::int64_t>(shape.begin(), shape.size()));
  }
  cairn_tensor_view tensor(cairn_dtype dtype, std::span<const std::int64_t> shape) const {
    std::size_t bytes = dtype.bits / 8;
    for (std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
    cairn_tensor_view view{};
    view.data = bytes == 0 ? nullptr : allocate(bytes, 64);
    view.device = {CAIRN_DEVICE_CPU, 0};
    view.ndim = static_cast<std::int32_t>(shape.size());
    view.dtype = dtype;
    view.shape = copy(shape).data();
    return view;
  }

 private:
  cairn_arena* arena_;
};

}  // namespace cairn
