// The thread-local context and scratch memory.
#include "core/plugin/thread_context.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "core/base/error.hpp"

namespace cairn {

namespace {

constexpr std::size_t kScratchAlignment = 64;
constexpr std::size_t kMaxScratchBytes = std::size_t{1} << 40;

ThreadContext& context() noexcept {
  thread_local ThreadContext current;
  return current;
}

struct Scratch {
  void* data = nullptr;
  std::size_t size = 0;
  ~Scratch() { std::free(data); }
};

}  // namespace

const ThreadContext& current_thread() noexcept {
  return context();
}

const kernels::Parallel& current_parallel() noexcept {
  static const kernels::Parallel serial = kernels::serial();
  const kernels::Parallel* parallel = context().parallel;
  return parallel == nullptr ? serial : *parallel;
}

ThreadScope::ThreadScope(ThreadContext next) noexcept : previous_(std::exchange(context(), std::move(next))) {}

ThreadScope::~ThreadScope() {
  context() = std::move(previous_);
}

void* thread_scratch(std::size_t bytes) {
  thread_local Scratch scratch;
  if (bytes <= scratch.size && scratch.data != nullptr) return scratch.data;
  // Grown by half at least, so that slowly rising demands settle after a few calls.
  std::size_t wanted = bytes < scratch.size + scratch.size / 2 ? scratch.size + scratch.size / 2 : bytes;
  wanted = (wanted + kScratchAlignment) / kScratchAlignment * kScratchAlignment;
  void* data = bytes > kMaxScratchBytes ? nullptr : std::aligned_alloc(kScratchAlignment, wanted);
  if (data == nullptr) {
    throw ResourceExhausted(fmt::format("No memory for {} bytes of scratch space; lower max_batch_tokens.", bytes));
  }
  std::free(scratch.data);
  scratch.data = data;
  scratch.size = wanted;
  return data;
}

}  // namespace cairn
