// A steady decode loop does not reach the heap: every operator new of this program is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/unit/graph/walk_harness.hpp"

namespace {
std::atomic<std::int64_t> allocations{0};
}  // namespace

// GCC pairs the inlined free with the library's operator new and warns; both are replaced here.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t size) {
  allocations.fetch_add(1);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace cairn::testing {
namespace {

class CountingSink : public RoutedSink {
 public:
  void emit(std::uint32_t, std::uint32_t, const SignalValue& value, bool) override { emitted += value.size(); }
  void persist(std::uint32_t, const SignalValue&) override {}
  std::size_t emitted = 0;
};

TEST(WalkAllocation, ADecodeStepAllocatesNothing) {
  ModelBuilder model({"token", "prompt"}, {"llm"}, {"decode"});
  WalkBuilder& walk = model.walk("decode");
  walk.loop(walk.node(0, {0, 1}, {{0, 0}, {0, kEmit, CAIRN_EDGE_NEW_TOKEN}}), 1'000'000, 0);
  WalkRun run(model);
  CountingSink sink;
  run.give(0, 0, 1);
  run.give(0, 1, 2);
  std::vector<OutputValue> outputs(1);
  const auto step = [&] {
    outputs[0].value = number(7);
    run.state.set_in_flight(0, true);
    run.state.complete(0, outputs, 0, sink);
  };
  for (int i = 0; i < 10; ++i) step();
  const std::int64_t before = allocations.load();
  for (int i = 0; i < 1000; ++i) step();
  EXPECT_EQ(allocations.load() - before, 0);
  EXPECT_EQ(sink.emitted, 1010U);
}

TEST(WalkAllocation, ARestartOfTheSameWalkAllocatesNothing) {
  ModelBuilder model({"x", "all"}, {"a", "b"}, {"loop"});
  WalkBuilder& walk = model.walk("walk");
  const auto loop = walk.loop(walk.node(0, {0}, {{0, 0}}), 4, 0, {}, {{0, 1}});
  walk.sequential({loop, walk.node(1, {0}, {})});
  WalkRun run(model);
  CountingSink sink;
  std::vector<OutputValue> outputs(1);
  const auto pass = [&] {
    run.state.start(run.plan);
    run.give(0, 0, 1);
    for (int i = 0; i < 4; ++i) {
      outputs[0].value = number(i);
      run.state.complete(0, outputs, 0, sink);
    }
    run.state.stop_loop(0);
    run.state.complete(1, {}, 0, sink);
  };
  for (int i = 0; i < 4; ++i) pass();
  const std::int64_t before = allocations.load();
  for (int i = 0; i < 100; ++i) pass();
  EXPECT_EQ(allocations.load() - before, 0);
  EXPECT_TRUE(run.state.done());
}

}  // namespace
}  // namespace cairn::testing
