// Threads for work that is too long for an IO thread: parsing a large body, rendering a template, tokenising.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cairn {

// Bounded by count and by bytes, so that a flood of large requests is told "too busy" instead of filling the memory.
class WorkPool {
 public:
  WorkPool(int threads, std::size_t max_tasks, std::size_t max_bytes);
  // Drops what has not begun and waits for what has.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // Any thread. False when the pool is full; `bytes` is what the task holds in memory until it has run. An exception
  // that leaves a task is logged and ends that task only.
  bool submit(std::size_t bytes, std::function<void()> task);

 private:
  struct Task {
    std::size_t bytes;
    std::function<void()> run;
  };
  void work();

  const std::size_t max_tasks_;
  const std::size_t max_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // guarded by mutex_
  std::size_t bytes_ = 0;   // queued and running; guarded by mutex_
  bool stopping_ = false;   // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace cairn
