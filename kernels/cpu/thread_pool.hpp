// A small fork-join pool for kernels: the caller works too, items are claimed one by one, idle workers spin for a
// bounded few microseconds and then sleep. Used by the host's step loop, tests and benchmarks.
#pragma once

#include <memory>

#include "kernels/cpu/parallel.hpp"

namespace cairn::kernels {

class ThreadPool {
 public:
  // `threads` counts the calling thread; values below 1 mean 1. Starts threads - 1 workers.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;
  // The view that kernels take; valid as long as the pool. One run() at a time: a run() from a second thread, or from
  // inside an item, executes all its items on the thread that called it, under thread index 0 of that nested run.
  Parallel parallel();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::kernels
