// Host time per decode step and heap allocations per steady step, with a plugin whose forward does nothing.
//   step_bench [path/to/null.so]
// Prints one line per batch size: microseconds per step (median and least of the rounds) and allocations per step.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/base/log.hpp"
#include "core/runtime/local_runtime.hpp"

namespace {

std::atomic<std::uint64_t> g_allocations{0};

}  // namespace

// Every malloc of the process is counted, the plugin's included; operator new ends here too.
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_calloc(std::size_t count, std::size_t size);
extern "C" void* __libc_realloc(void* memory, std::size_t size);
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t size);
extern "C" void* malloc(std::size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
extern "C" void* calloc(std::size_t count, std::size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* memory, std::size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, size);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}

namespace {

using Clock = std::chrono::steady_clock;

class CountingSink final : public cairn::OutputSink {
 public:
  explicit CountingSink(std::int64_t& tokens) : tokens_(tokens) {}
  void on_tokens(std::span<const cairn::TokenRecord> tokens) override {
    tokens_ += static_cast<std::int64_t>(tokens.size());
  }
  void on_finish(const cairn::RequestResult&) override {}

 private:
  std::int64_t& tokens_;
};

void measure(const std::shared_ptr<cairn::PluginLibrary>& plugin, int batch) {
  constexpr int kWarmUp = 500;
  constexpr int kRounds = 21;
  constexpr int kSteps = 500;
  cairn::DeploymentConfig deployment;
  deployment.threads = 1;
  deployment.max_concurrent_requests = batch;
  deployment.kv_cache_bytes = std::int64_t{4} << 30;
  cairn::LocalRuntime runtime(plugin, nullptr, deployment, nullptr, cairn::LocalRuntime::Paused{});
  std::int64_t tokens = 0;
  for (int i = 0; i < batch; ++i) {
    cairn::RequestSpec spec;
    spec.id = "bench-" + std::to_string(i);
    spec.prompt_ids = {1, 2, 3, 4};
    spec.max_tokens = kWarmUp + kRounds * kSteps + 1000;
    runtime.submit(std::move(spec), std::make_unique<CountingSink>(tokens));
  }
  for (int i = 0; i < kWarmUp; ++i) runtime.run_once();
  std::vector<double> rounds;
  const std::uint64_t allocations = g_allocations.load();
  rounds.reserve(kRounds);
  const std::uint64_t own = g_allocations.load() - allocations;
  const std::int64_t tokens_before = tokens;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < kSteps; ++i) runtime.run_once();
    rounds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kSteps);
  }
  const double per_step = static_cast<double>(g_allocations.load() - allocations - own) / (kRounds * kSteps);
  if (tokens - tokens_before != std::int64_t{batch} * kRounds * kSteps) {
    std::fprintf(stderr, "batch %d: expected every row in every step, got %lld tokens\n", batch,
                 static_cast<long long>(tokens - tokens_before));
    std::exit(1);
  }
  std::sort(rounds.begin(), rounds.end());
  std::printf("batch %3d: %8.2f us per step (median), %8.2f us (least), %.3f allocations per step\n", batch,
              rounds[kRounds / 2], rounds.front(), per_step);
}

}  // namespace

int main(int argc, char** argv) {
  cairn::configure_logging("error", false);
  const auto plugin = cairn::PluginLibrary::load(argc > 1 ? argv[1] : CAIRN_NULL_PLUGIN);
  for (const int batch : {1, 8, 128}) measure(plugin, batch);
  return 0;
}
