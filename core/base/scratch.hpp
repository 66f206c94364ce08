// A grow-only, 64-byte aligned buffer for kernel scratch. One per thread that runs kernels; contents do not survive get().
#pragma once

#include <cstddef>
#include <new>

namespace cairn {

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { free_block(); }

  // At least `bytes` bytes; grows by half more than asked, so that a rising need settles quickly.
  void* get(std::size_t bytes) {
    if (bytes > capacity_) {
      free_block();
      capacity_ = 0;
      const std::size_t wanted = (bytes + bytes / 2 + 4095) & ~std::size_t{4095};
      block_ = ::operator new(wanted, std::align_val_t{64});
      capacity_ = wanted;
    }
    return block_;
  }

 private:
  void free_block() noexcept {
    if (block_ != nullptr) ::operator delete(block_, std::align_val_t{64});
    block_ = nullptr;
  }

  void* block_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace cairn
