// What the host knows about the thread a plugin's call comes in on: its thread classes, the kernels' thread pool,
// scratch memory, and whom the model-specific services talk to. The runtime sets it on its threads; the services read
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "cairn/abi.h"
#include "kernels/cpu/parallel.hpp"

namespace cairn {

class MemoryAccount;
class RequestStateStore;

// Hears how far a load is. Called on the loading thread.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // fraction in [0, 1]. Returns false when the load should stop.
  virtual bool report(double fraction, std::string_view what) = 0;
};

// Answers "cairn.request".is_cancelled for one model. Any thread.
class CancellationView {
 public:
  virtual ~CancellationView() = default;
  virtual bool is_cancelled(cairn_request request) const noexcept = 0;
};

// Everything borrowed must outlive the ThreadScope that sets it. A null member: that service has nothing to say here.
struct ThreadContext {
  std::uint32_t classes = 0;                    // CAIRN_THREAD_* bits; 0: a thread the host does not know
  bool loading = false;                         // a plugin is initialised or a model opened: metrics may be defined
  const kernels::Parallel* parallel = nullptr;  // the pool for ops, prepack and parallel_for; null: this thread only
  ProgressSink* progress = nullptr;
  RequestStateStore* request_state = nullptr;      // of the model this thread works for
  const CancellationView* cancellation = nullptr;  // of the same model
  std::shared_ptr<MemoryAccount> memory;           // "cairn.memory" allocations are counted here
};

// This thread's context; all defaults outside of every ThreadScope.
const ThreadContext& current_thread() noexcept;
// The pool to hand to a kernel on this thread.
const kernels::Parallel& current_parallel() noexcept;

// Sets the context for the life of the scope and puts the one before it back. Scopes nest.
class ThreadScope {
 public:
  explicit ThreadScope(ThreadContext context) noexcept;
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  ThreadContext previous_;
};

// At least `bytes` of this thread's scratch memory, 64-byte aligned, kept and only ever grown until the thread ends.
// The contents are lost at the next call. Throws ResourceExhausted.
void* thread_scratch(std::size_t bytes);

}  // namespace cairn
