// Speed of the CPU kernels on SmolLM2-135M's shapes. Run: cairn_kernels_bench [--benchmark_filter=...]; the counters
// give GB/s of weights (m = 1) and GMAC/s. CAIRN_BENCH_THREADS sets the threads (default: all cores).
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>

#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/linear.hpp"
#include "kernels/cpu/norm.hpp"
#include "kernels/cpu/rope.hpp"
#include "kernels/cpu/sampling.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "tests/unit/kernels/kernel_test_util.hpp"

namespace cairn::kernels {
namespace {

ThreadPool& pool() {
  static ThreadPool instance([] {
    const char* threads = std::getenv("CAIRN_BENCH_THREADS");
    return threads != nullptr ? std::atoi(threads) : static_cast<int>(std::thread::hardware_concurrency());
  }());
  return instance;
}

PackedMatrix matrix(WeightType type, std::int64_t rows, std::int64_t cols) {
  const auto data = random_weights(type, rows, cols, 1);
  const MatrixSource source{type, data.data(), rows, 0};
  return PackedMatrix::pack({&source, 1}, cols, pool().parallel());
}

void report(benchmark::State& state, double bytes, double macs) {
  const auto n = static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(bytes * n * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GMAC/s"] = benchmark::Counter(macs * n * 1e-9, benchmark::Counter::kIsRate);
}

// Args: type, rows, cols, m. Many copies of the matrix are walked in turn so that weights come from memory.
void BM_Linear(benchmark::State& state) {
  const auto type = static_cast<WeightType>(state.range(0));
  const std::int64_t rows = state.range(1);
  const std::int64_t cols = state.range(2);
  const std::int64_t m = state.range(3);
  std::vector<PackedMatrix> copies;
  std::size_t total = 0;
  while (total < (std::size_t{96} << 20)) {
    copies.push_back(matrix(type, rows, cols));
    total += copies.back().bytes();
  }
  const auto x = random_floats(static_cast<std::size_t>(m * cols), 2);
  std::vector<float> y(static_cast<std::size_t>(m * rows));
  std::vector<std::uint8_t> scratch(linear_scratch_bytes(copies[0], m, pool().threads()));
  std::size_t next = 0;
  for (auto _ : state) {
    linear(copies[next], x.data(), m, cols, y.data(), rows, nullptr, scratch.data(), pool().parallel());
    next = (next + 1) % copies.size();
  }
  state.SetLabel(weight_type_name(type));
  report(state, static_cast<double>(copies[0].bytes()), static_cast<double>(m * rows * cols));
}

void linear_args(benchmark::internal::Benchmark* b) {
  const auto q4_1 = static_cast<int>(WeightType::kQ4_1);
  for (const int m : {1, 4, 16, 128, 512}) {
    b->Args({q4_1, 960, 576, m});   // q, k, v
    b->Args({q4_1, 576, 576, m});   // attention output
    b->Args({q4_1, 3072, 576, m});  // gate, up
    b->Args({q4_1, 576, 1536, m});  // down
  }
  for (const int m : {1, 16}) b->Args({static_cast<int>(WeightType::kQ8_0), 49152, 576, m});
  for (int type = 0; type < kWeightTypeCount; ++type) {
    for (const int m : {1, 128}) b->Args({type, 2048, 2048, m});
  }
}
BENCHMARK(BM_Linear)->Apply(linear_args)->UseRealTime()->MinTime(0.1)->Unit(benchmark::kMicrosecond);

// Every matrix product of one SmolLM2-135M forward pass (30 layers and the head on one row), in order: the bound that
// the kernels set on tokens per second.
void BM_SmolLm2Matrices(benchmark::State& state) {
  const std::int64_t m = state.range(0);
  struct Layer {
    PackedMatrix qkv, out, gate_up, down;
  };
  std::vector<Layer> layers;
  const auto q4 = WeightType::kQ4_1;
  std::size_t bytes = 0;
  for (int i = 0; i < 30; ++i) {
    const auto gate = random_weights(q4, 1536, 576, 1);
    const MatrixSource g{q4, gate.data(), 1536, 0};
    layers.push_back({matrix(q4, 960, 576), matrix(q4, 576, 576), PackedMatrix::pack_glu(g, g, 576, pool().parallel()),
                      matrix(q4, 576, 1536)});
    const Layer& l = layers.back();
    bytes += l.qkv.bytes() + l.out.bytes() + l.gate_up.bytes() + l.down.bytes();
  }
  const PackedMatrix head = matrix(WeightType::kQ8_0, 49152, 576);
  bytes += head.bytes();
  const auto x = random_floats(static_cast<std::size_t>(m * 1536), 2);
  std::vector<float> y(static_cast<std::size_t>(m * 3072));
  std::vector<float> logits(static_cast<std::size_t>(std::min<std::int64_t>(m, 16) * 49152));
  const std::int64_t logit_rows = m <= 16 ? m : 1;  // prefill needs one row of logits
  std::vector<std::uint8_t> scratch(linear_scratch_bytes(layers[0].down, m, pool().threads()));
  const Parallel parallel = pool().parallel();
  for (auto _ : state) {
    for (const Layer& l : layers) {
      linear(l.qkv, x.data(), m, 576, y.data(), 960, nullptr, scratch.data(), parallel);
      linear_add(l.out, x.data(), m, 576, y.data(), 576, nullptr, scratch.data(), parallel);
      linear_swiglu(l.gate_up, x.data(), m, 576, y.data(), 1536, scratch.data(), parallel);
      linear_add(l.down, x.data(), m, 1536, y.data(), 576, nullptr, scratch.data(), parallel);
    }
    linear(head, x.data(), logit_rows, 576, logits.data(), 49152, nullptr, scratch.data(), parallel);
  }
  report(state, static_cast<double>(bytes), static_cast<double>(m) * 106.2e6);
  state.counters["tok/s"] = benchmark::Counter(static_cast<double>(m * static_cast<std::int64_t>(state.iterations())),
                                               benchmark::Counter::kIsRate);
}
BENCHMARK(BM_SmolLm2Matrices)
    ->Arg(1)
    ->Arg(4)
    ->Arg(16)
    ->Arg(128)
    ->Arg(512)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Args: queries, context. 9 heads on 3 kv heads of 64, as SmolLM2-135M; one row, or with queries < 0 that many
// decode rows.
void BM_Attention(benchmark::State& state) {
  const std::int64_t queries = std::abs(state.range(0));
  const std::int64_t context = state.range(1);
  const KvLayout layout{3, 64, 32, KvType::kF16};
  const AttentionParams params{9, 0.125F, 0.0F, 0, true};
  const std::int64_t row_count = state.range(0) < 0 ? queries : 1;
  const std::int64_t pages = (context + 31) / 32;
  const std::size_t stride = kv_page_bytes(layout);
  std::vector<std::uint8_t> memory(static_cast<std::size_t>(row_count * pages) * stride + 64, 0);
  auto* base = reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  std::vector<std::int32_t> table(static_cast<std::size_t>(row_count * pages));
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i);
  std::vector<AttentionRow> rows;
  for (std::int64_t r = 0; r < row_count; ++r) {
    rows.push_back({r, queries / row_count, context, table.data() + r * pages});
  }
  const auto q = random_floats(static_cast<std::size_t>(queries * 576), 3);
  std::vector<float> out(q.size());
  std::vector<std::uint8_t> scratch(attention_scratch_bytes(layout, 9, row_count, queries, context, pool().threads()));
  for (auto _ : state) {
    attention(layout, base, stride, params, rows.data(), row_count, q.data(), 576, out.data(), 576, scratch.data(),
              pool().parallel());
  }
  report(state, static_cast<double>(row_count * pages) * static_cast<double>(stride), 0.0);
}
BENCHMARK(BM_Attention)
    ->Args({1, 64})
    ->Args({1, 512})
    ->Args({1, 2048})
    ->Args({1, 16384})
    ->Args({-16, 512})
    ->Args({128, 128})
    ->Args({512, 512})
    ->Args({512, 2048})
    ->UseRealTime()
    ->MinTime(0.1)
    ->Unit(benchmark::kMicrosecond);

void BM_Dispatch(benchmark::State& state) {
  const Parallel parallel = pool().parallel();
  for (auto _ : state) parallel.for_each(2, [](int, int) {});
}
BENCHMARK(BM_Dispatch)->UseRealTime();

void BM_RmsNorm(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const auto x = random_floats(static_cast<std::size_t>(rows * 576), 4);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    rms_norm(x.data(), 576, rows, 576, x.data(), 1e-5F, false, y.data(), 576, pool().parallel());
  }
}
BENCHMARK(BM_RmsNorm)->Arg(1)->Arg(512)->UseRealTime();

// Arg: 0 greedy, 1 temperature, 2 top-p 0.9, 3 top-k 40 and top-p, 4 top-p on a flat distribution. 16 rows.
void BM_Sample(benchmark::State& state) {
  const std::int64_t vocab = 49152;
  const auto logits = random_floats(static_cast<std::size_t>(16 * vocab), 5, state.range(0) == 4 ? 0.01F : 3.0F);
  std::vector<SamplingRow> rows(16);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].temperature = state.range(0) == 0 ? 0.0F : 0.8F;
    if (state.range(0) >= 2) rows[i].top_p = 0.9F;
    if (state.range(0) == 3) rows[i].top_k = 40;
    rows[i].seed = i;
  }
  std::vector<std::int32_t> tokens(16);
  std::vector<std::uint8_t> scratch(sampling_scratch_bytes(vocab, 1));
  std::uint64_t position = 0;
  for (auto _ : state) {
    for (SamplingRow& row : rows) row.position = position;
    ++position;
    sample(logits.data(), vocab, 16, vocab, rows.data(), tokens.data(), scratch.data(), serial());
  }
}
BENCHMARK(BM_Sample)->DenseRange(0, 4)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace cairn::kernels

BENCHMARK_MAIN();
