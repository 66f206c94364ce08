#include "host/http/io_thread.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

#include "core/base/log.hpp"

namespace cairn {
namespace {

constexpr std::size_t kHandlerBytes = 256;

// Memory for the one wake handler that can be queued at a time.
class HandlerSlot {
 public:
  void* allocate(std::size_t bytes) {
    if (bytes <= kHandlerBytes && !used_.exchange(true, std::memory_order_acquire)) return storage_;
    return ::operator new(bytes);
  }
  void deallocate(void* pointer) {
    if (pointer == storage_) {
      used_.store(false, std::memory_order_release);
    } else {
      ::operator delete(pointer);
    }
  }

 private:
  alignas(std::max_align_t) std::byte storage_[kHandlerBytes];
  std::atomic<bool> used_{false};
};

template <class T>
struct SlotAllocator {
  using value_type = T;
  explicit SlotAllocator(HandlerSlot& s) : slot(&s) {}
  template <class U>
  SlotAllocator(const SlotAllocator<U>& other) : slot(other.slot) {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t n) { return static_cast<T*>(slot->allocate(n * sizeof(T))); }
  void deallocate(T* pointer, std::size_t) { slot->deallocate(pointer); }
  template <class U>
  bool operator==(const SlotAllocator<U>& other) const {
    return slot == other.slot;
  }
  HandlerSlot* slot;
};

}  // namespace

struct IoThread::Impl {
  HandlerSlot slot;  // before the context, whose destructor frees a handler that still lies in it
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{context.get_executor()};
  std::thread thread;

  std::mutex ready_mutex;
  std::vector<std::shared_ptr<Wakeable>> ready;  // guarded by ready_mutex
  bool wake_posted = false;                      // guarded by ready_mutex
  bool closed = false;                           // guarded by ready_mutex
  std::vector<std::shared_ptr<Wakeable>> batch;  // the IO thread's

  struct WakeHandler {
    using allocator_type = SlotAllocator<std::byte>;
    allocator_type get_allocator() const noexcept { return allocator_type(impl->slot); }
    void operator()() const { impl->run_ready(); }
    Impl* impl;
  };

  void run_ready() {
    {
      const std::lock_guard lock(ready_mutex);
      batch.swap(ready);
      wake_posted = false;
    }
    for (auto& target : batch) {
      target->queued_.store(false, std::memory_order_release);
      target->on_wake();
    }
    batch.clear();
  }
};

IoThread::IoThread() : impl_(std::make_unique<Impl>()) {
  impl_->ready.reserve(256);
  impl_->batch.reserve(256);
}

IoThread::~IoThread() {
  stop();
  join();
}

void IoThread::start() {
  impl_->thread = std::thread([this] {
    while (!impl_->context.stopped()) {
      try {
        impl_->context.run();
      } catch (const std::exception& error) {  // one connection's trouble must not end the others
        log(LogLevel::kError, "http", std::string("A handler on the IO thread failed: ") + error.what());
      }
    }
  });
}

void IoThread::stop() {
  impl_->context.stop();
}

void IoThread::join() {
  if (impl_->thread.joinable()) impl_->thread.join();
  std::vector<std::shared_ptr<Wakeable>> dropped;  // dies outside the lock: its members may hold this thread
  const std::lock_guard lock(impl_->ready_mutex);
  impl_->closed = true;
  dropped.swap(impl_->ready);
}

void IoThread::post(std::function<void()> task) {
  boost::asio::post(impl_->context, std::move(task));
}

void IoThread::wake(const std::shared_ptr<Wakeable>& target) {
  if (target->queued_.exchange(true, std::memory_order_acq_rel)) return;
  {
    const std::lock_guard lock(impl_->ready_mutex);
    if (impl_->closed) return;
    impl_->ready.push_back(target);
    if (impl_->wake_posted) return;
    impl_->wake_posted = true;
  }
  boost::asio::post(impl_->context, Impl::WakeHandler{impl_.get()});
}

boost::asio::io_context& IoThread::context() {
  return impl_->context;
}

}  // namespace cairn
