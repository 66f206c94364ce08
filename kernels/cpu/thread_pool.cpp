// The fork-join pool; see thread_pool.hpp.
//
// One 64-bit ticket holds the job's generation and the next unclaimed index. A thread claims an index with a
// compare-and-swap on the whole ticket, so a worker that wakes late can never take an item of a job it has not read:
// the job's fields are read between loading the ticket and swapping it, and are not written again before every item
// of that generation is done.
#include "kernels/cpu/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace cairn::kernels {
namespace {

using ItemFunction = void (*)(void* arg, int index, int thread);

constexpr int kIndexBits = 24;
constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kIndexBits) - 1;
constexpr int kMaxItems = static_cast<int>(kIndexMask);
// Longer than the gaps between the kernels of one forward pass, shorter than anything a neighbour would notice.
constexpr std::chrono::microseconds kSpin{20};
constexpr int kPausesPerClockRead = 16;

void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// Spins until ready() or for kSpin; returns whether it became ready.
template <class Ready>
bool spin_until(Ready&& ready) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (ready()) return true;
      cpu_pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return ready();
}

}  // namespace

struct ThreadPool::State {
  int threads = 1;
  // Written by the caller of run() while no item is outstanding.
  std::atomic<ItemFunction> function{nullptr};
  std::atomic<void*> arg{nullptr};
  std::atomic<int> count{0};
  std::atomic<int> base{0};  // added to the claimed index, for runs of more than kMaxItems
  alignas(64) std::atomic<std::uint64_t> ticket{kIndexMask};
  alignas(64) std::atomic<int> done{0};
  std::atomic<int> caller_sleeps{0};
  alignas(64) std::atomic<int> sleepers{0};
  std::atomic<int> wake{0};
  std::atomic<bool> stop{false};
  alignas(64) std::atomic<bool> busy{false};
  std::vector<std::thread> workers;

  bool has_items() const {
    const std::uint64_t t = ticket.load(std::memory_order_seq_cst);
    return static_cast<int>(t & kIndexMask) < count.load(std::memory_order_relaxed);
  }

  // Claims and runs items until none is left; returns how many this thread ran. A `count` of another generation than
  // the ticket makes the swap fail or the loop end early; both are harmless, the caller always drains the job.
  int run_items(int thread) {
    int ran = 0;
    std::uint64_t t = ticket.load(std::memory_order_acquire);
    for (;;) {
      const int index = static_cast<int>(t & kIndexMask);
      if (index >= count.load(std::memory_order_relaxed)) return ran;
      const ItemFunction f = function.load(std::memory_order_relaxed);
      void* const a = arg.load(std::memory_order_relaxed);
      const int first = base.load(std::memory_order_relaxed);
      if (!ticket.compare_exchange_weak(t, t + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      f(a, first + index, thread);
      ++ran;
      t = ticket.load(std::memory_order_acquire);
    }
  }

  void work(int thread) {
    while (!stop.load(std::memory_order_acquire)) {
      const int ran = run_items(thread);
      if (ran > 0) {
        const int total = done.fetch_add(ran, std::memory_order_seq_cst) + ran;
        if (caller_sleeps.load(std::memory_order_seq_cst) != 0 && total >= count.load(std::memory_order_relaxed)) {
          done.notify_all();
        }
      }
      if (spin_until([&] { return has_items() || stop.load(std::memory_order_relaxed); })) continue;
      const int seen = wake.load(std::memory_order_seq_cst);
      sleepers.fetch_add(1, std::memory_order_seq_cst);
      if (!has_items() && !stop.load(std::memory_order_seq_cst)) wake.wait(seen, std::memory_order_seq_cst);
      sleepers.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

  void wake_sleepers() {
    if (sleepers.load(std::memory_order_seq_cst) == 0) return;
    wake.fetch_add(1, std::memory_order_seq_cst);
    wake.notify_all();
  }

  void run_job(int first, int n, ItemFunction f, void* a) {
    // The ticket is exhausted here (index >= count), so no worker can claim while the fields change: the generation
    // moves first, with an index that no count reaches.
    const std::uint64_t generation = (ticket.load(std::memory_order_relaxed) >> kIndexBits) + 1;
    ticket.store((generation << kIndexBits) | kIndexMask, std::memory_order_seq_cst);
    function.store(f, std::memory_order_relaxed);
    arg.store(a, std::memory_order_relaxed);
    base.store(first, std::memory_order_relaxed);
    count.store(n, std::memory_order_relaxed);
    done.store(0, std::memory_order_relaxed);
    ticket.store((generation + 1) << kIndexBits, std::memory_order_seq_cst);
    wake_sleepers();
    const int ran = run_items(0);
    int total = done.fetch_add(ran, std::memory_order_seq_cst) + ran;
    const auto all_done = [&] { return (total = done.load(std::memory_order_seq_cst)) >= n; };
    if (total >= n || spin_until(all_done)) return;
    caller_sleeps.store(1, std::memory_order_seq_cst);
    while (!all_done()) done.wait(total, std::memory_order_seq_cst);
    caller_sleeps.store(0, std::memory_order_seq_cst);
  }

  static void run(void* pool, int count, ItemFunction f, void* arg) {
    State& state = *static_cast<State*>(pool);
    if (count <= 0) return;
    if (state.threads == 1 || state.busy.exchange(true, std::memory_order_acquire)) {
      for (int i = 0; i < count; ++i) f(arg, i, 0);
      return;
    }
    for (int first = 0; first < count; first += std::min(kMaxItems - 1, count - first)) {
      state.run_job(first, std::min(kMaxItems - 1, count - first), f, arg);
    }
    state.busy.store(false, std::memory_order_release);
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  state_->threads = std::max(threads, 1);
  for (int i = 1; i < state_->threads; ++i) {
    state_->workers.emplace_back([state = state_.get(), i] { state->work(i); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true, std::memory_order_seq_cst);
  state_->wake.fetch_add(1, std::memory_order_seq_cst);
  state_->wake.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::threads() const {
  return state_->threads;
}

Parallel ThreadPool::parallel() {
  return Parallel{state_.get(), state_->threads, &State::run};
}

}  // namespace cairn::kernels
