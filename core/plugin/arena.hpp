// Host memory behind cairn_arena: bump allocation from a growing list of blocks, given back all at once. The runtime
// owns one per step or call and resets it afterwards; a steady step then reaches the heap no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "cairn/abi.h"
#include "core/tensor/tensor.hpp"

namespace cairn {

// One thread at a time. Not movable: plugins hold table().
class Arena {
 public:
  // `block_bytes`: size of the first block, taken at the first allocation; every further one is as large as all before
  // it.
  explicit Arena(std::size_t block_bytes = std::size_t{64} << 10) noexcept;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  cairn_arena* table() noexcept { return &table_; }

  // Uninitialised; never null, also for size 0. `alignment` is a power of two, at most 64. Throws std::bad_alloc for
  // any other alignment, a size over kMaxBytes in all, or no memory.
  void* alloc(std::size_t size, std::size_t alignment = alignof(std::max_align_t));

  // `count` value-initialised elements.
  template <class T>
  T* array(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 64);
    if (count > kMaxBytes / sizeof(T)) throw std::bad_alloc();
    return new (alloc(count * sizeof(T), alignof(T))) T[count]();
  }
  // A copy of the text, for answers that outlive the original.
  cairn_str copy(cairn_str text);

  // Takes over one reference, which is released at reset() or destruction. Throws std::bad_alloc; the reference is the
  // caller's then.
  void keep(Tensor* tensor);

  // Everything allocated is gone and every kept tensor released; the blocks stay.
  void reset() noexcept;

  // The arena that a plugin's table belongs to, or nullptr when it is none of this host's.
  static Arena* from_table(cairn_arena* table) noexcept;

  std::size_t used() const noexcept;      // bytes handed out since the last reset, alignment included
  std::size_t capacity() const noexcept;  // bytes held from the heap

  static constexpr std::size_t kMaxBytes = std::size_t{1} << 40;

 private:
  struct Table : cairn_arena {
    Arena* self;
  };
  struct Block {
    std::byte* data;
    std::size_t size;
  };

  struct KeptTensor {
    Tensor* tensor;
    KeptTensor* next;
  };
  static void* alloc_for_plugin(cairn_arena* table, std::uint64_t size, std::uint64_t alignment);
  void release_tensors() noexcept;

  std::size_t first_block_bytes_;
  std::vector<Block> blocks_;
  std::size_t block_ = 0;       // the one in use
  std::size_t offset_ = 0;      // within it
  std::size_t full_bytes_ = 0;  // of the blocks before it
  KeptTensor* kept_ = nullptr;  // a list within the blocks
  Table table_;
};

}  // namespace cairn
