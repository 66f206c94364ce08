#include "host/openai/work_pool.hpp"

#include <exception>
#include <string>
#include <utility>

#include "core/base/log.hpp"

namespace cairn {

WorkPool::WorkPool(int threads, std::size_t max_tasks, std::size_t max_bytes)
    : max_tasks_(max_tasks), max_bytes_(max_bytes) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

WorkPool::~WorkPool() {
  std::deque<Task> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(tasks_);
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

bool WorkPool::submit(std::size_t bytes, std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || tasks_.size() >= max_tasks_ || bytes_ + bytes > max_bytes_) return false;
    tasks_.push_back({bytes, std::move(task)});
    bytes_ += bytes;
  }
  changed_.notify_one();
  return true;
}

void WorkPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    try {
      task.run();
    } catch (const std::exception& error) {
      log(LogLevel::kError, "work", std::string("A task failed: ") + error.what());
    }
    task.run = nullptr;
    lock.lock();
    bytes_ -= task.bytes;
  }
}

}  // namespace cairn
