// One IO thread with its own event loop. Connections and the request state behind them belong to one IO thread each, so
// they need no locks; other threads reach them through post() and wake(). Used by the server and by token channels.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

namespace boost::asio {
class io_context;
}

namespace cairn {

// Something that other threads feed and the IO thread empties.
class Wakeable {
 public:
  virtual ~Wakeable() = default;
  // On the IO thread, once for any number of wake() calls before it.
  virtual void on_wake() = 0;

 private:
  friend class IoThread;
  std::atomic<bool> queued_{false};
};

// Shared, because output of a runtime may still arrive when the server is gone.
class IoThread {
 public:
  IoThread();
  ~IoThread();  // stop() and join
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void start();
  // Ends the loop after the handler that runs now; what is still queued is destroyed with this object.
  void stop();
  // Waits for the thread. Later wakes do nothing.
  void join();

  // Any thread. Runs `task` on this thread, after everything posted before it.
  void post(std::function<void()> task);
  // Any thread, cheap and without heap allocation in the steady state: many wakes, of one or of many objects, cost one
  // wake-up of the thread until it has run.
  void wake(const std::shared_ptr<Wakeable>& target);

  boost::asio::io_context& context();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn
