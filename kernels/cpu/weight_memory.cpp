// Chunked weight memory; see weight_memory.hpp.
#include "kernels/cpu/weight_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>

namespace cairn::kernels {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Small matrices share chunks of this size; at most this much is left unused at the end of one.
constexpr std::size_t kChunk = std::size_t{32} << 20;

std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

std::shared_ptr<std::uint8_t> new_chunk(std::size_t bytes) {
  void* p = std::aligned_alloc(kHugePage, bytes);
  if (p == nullptr) throw std::bad_alloc();
  // A wish: without huge pages everything works, only slower.
  (void)madvise(p, bytes, MADV_HUGEPAGE);
  return {static_cast<std::uint8_t*>(p), [](std::uint8_t* chunk) { std::free(chunk); }};
}

// The chunk being filled. It holds no ownership: a chunk whose matrices are gone is gone.
struct Current {
  std::mutex mutex;
  std::weak_ptr<std::uint8_t> chunk;
  std::size_t used = 0;
};

}  // namespace

std::shared_ptr<std::uint8_t> allocate_weights(std::size_t bytes) {
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), 64);
  if (size > kChunk / 2) return new_chunk(round_up(size, kHugePage));
  static Current current;
  const std::lock_guard lock(current.mutex);
  std::shared_ptr<std::uint8_t> chunk = current.chunk.lock();
  if (chunk == nullptr || kChunk - current.used < size) {
    chunk = new_chunk(kChunk);
    current.chunk = chunk;
    current.used = 0;
  }
  std::uint8_t* p = chunk.get() + current.used;
  current.used += size;
  return {std::move(chunk), p};
}

}  // namespace cairn::kernels
