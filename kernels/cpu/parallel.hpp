// How a kernel asks for threads: a table of one function over a caller-owned pool, so that kernels own no threads.
// Used by every multi-threaded kernel; ThreadPool (thread_pool.hpp) is the implementation that the host uses.
#pragma once

#include <type_traits>

namespace cairn::kernels {

// Runs fn(arg, index, thread) for every index in [0, count), each exactly once, and returns when all are done.
// `thread` is in [0, threads) and no two calls run at the same time with the same `thread`.
struct Parallel {
  void* pool = nullptr;
  int threads = 1;
  void (*run)(void* pool, int count, void (*fn)(void* arg, int index, int thread), void* arg) = nullptr;

  // Calls body(index, thread) for every index; runs here when there is one item or one thread.
  template <class Body>
  void for_each(int count, Body&& body) const {
    using B = std::remove_reference_t<Body>;
    if (threads <= 1 || count <= 1 || run == nullptr) {
      for (int i = 0; i < count; ++i) body(i, 0);
      return;
    }
    run(
        pool, count, [](void* arg, int index, int thread) { (*static_cast<B*>(arg))(index, thread); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }
};

// Everything on the calling thread.
inline Parallel serial() {
  return Parallel{};
}

}  // namespace cairn::kernels
