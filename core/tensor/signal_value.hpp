// The tensors that travel under one signal. No tensors: a signal-only edge, which counts as present.
// Used by graph state, the conductor and the worker's routing.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

#include "core/tensor/tensor.hpp"

namespace cairn {

// A contiguous list of tensors; a single one, which is nearly always the case, needs no heap. clear() keeps capacity.
class SignalValue {
 public:
  SignalValue() = default;
  SignalValue(std::initializer_list<TensorPtr> tensors) {
    for (const TensorPtr& tensor : tensors) push_back(tensor);
  }
  explicit SignalValue(TensorPtr tensor) { push_back(std::move(tensor)); }
  SignalValue(const SignalValue&) = default;
  SignalValue& operator=(const SignalValue& other) {
    if (this == &other) return *this;
    clear();
    for (const TensorPtr& tensor : other) push_back(tensor);
    return *this;
  }
  SignalValue(SignalValue&& other) noexcept { swap(other); }
  SignalValue& operator=(SignalValue&& other) noexcept {
    if (this == &other) return *this;
    clear();
    swap(other);
    return *this;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const TensorPtr* begin() const noexcept { return size_ > 1 ? many_.data() : &one_; }
  const TensorPtr* end() const noexcept { return begin() + size_; }
  TensorPtr* begin() noexcept { return size_ > 1 ? many_.data() : &one_; }
  TensorPtr* end() noexcept { return begin() + size_; }
  const TensorPtr& operator[](std::size_t i) const noexcept { return begin()[i]; }
  TensorPtr& operator[](std::size_t i) noexcept { return begin()[i]; }
  const TensorPtr& front() const noexcept { return begin()[0]; }

  void push_back(TensorPtr tensor) {
    if (size_ == 0) {
      one_ = std::move(tensor);
    } else {
      if (size_ == 1) {
        many_.reserve(4);  // first, so that a failure leaves everything as it was
        many_.push_back(std::move(one_));
      }
      many_.push_back(std::move(tensor));
    }
    ++size_;
  }
  // As of standard containers; `at` must be end().
  void insert([[maybe_unused]] const TensorPtr* at, const TensorPtr* first, const TensorPtr* last) {
    for (; first != last; ++first) push_back(*first);
  }
  void clear() noexcept {
    one_ = TensorPtr();
    many_.clear();
    size_ = 0;
  }
  void swap(SignalValue& other) noexcept {
    std::swap(one_, other.one_);
    many_.swap(other.many_);
    std::swap(size_, other.size_);
  }

 private:
  TensorPtr one_;                // the only tensor
  std::vector<TensorPtr> many_;  // all of them, when there are several
  std::size_t size_ = 0;
};

}  // namespace cairn
