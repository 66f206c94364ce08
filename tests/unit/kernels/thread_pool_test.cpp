// The fork-join pool: every item once, no two items on one thread index at a time, nesting, many small jobs.
#include "kernels/cpu/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace cairn::kernels {
namespace {

TEST(ThreadPool, RunsEveryItemExactlyOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<std::size_t>(count) + 1);
      pool.parallel().for_each(count, [&](int i, int) { ++hits[static_cast<std::size_t>(i)]; });
      for (int i = 0; i < count; ++i) ASSERT_EQ(hits[static_cast<std::size_t>(i)].load(), 1);
      EXPECT_EQ(hits[static_cast<std::size_t>(count)].load(), 0);
    }
  }
}

TEST(ThreadPool, WritesOfItemsAreVisibleAfterRun) {
  ThreadPool pool(4);
  const Parallel parallel = pool.parallel();
  std::vector<long> values(64, 0);
  for (long round = 1; round <= 5000; ++round) {
    parallel.for_each(64, [&](int i, int) { values[static_cast<std::size_t>(i)] += round; });
    if (round % 1000 == 0) {
      for (const long v : values) ASSERT_EQ(v, round * (round + 1) / 2);
    }
  }
}

TEST(ThreadPool, AThreadIndexIsNeverUsedTwiceAtOnce) {
  ThreadPool pool(3);
  std::vector<std::atomic<bool>> in_use(3);
  std::atomic<bool> clash{false};
  for (int round = 0; round < 200; ++round) {
    pool.parallel().for_each(50, [&](int, int thread) {
      if (thread < 0 || thread >= 3 || in_use[static_cast<std::size_t>(thread)].exchange(true)) clash = true;
      in_use[static_cast<std::size_t>(thread)] = false;
    });
  }
  EXPECT_FALSE(clash.load());
}

TEST(ThreadPool, NestedAndConcurrentRunsFinish) {
  ThreadPool pool(3);
  const Parallel parallel = pool.parallel();
  std::atomic<int> inner{0};
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) parallel.for_each(10, [&](int, int) { ++inner; });
  });
  for (int i = 0; i < 100; ++i) {
    parallel.for_each(4, [&](int, int) { parallel.for_each(5, [&](int, int) { ++inner; }); });
  }
  other.join();
  EXPECT_EQ(inner.load(), 100 * 10 + 100 * 4 * 5);
}

TEST(ThreadPool, StartsAndStopsCleanlyWithAndWithoutWork) {
  for (int i = 0; i < 50; ++i) {
    auto pool = std::make_unique<ThreadPool>(4);
    std::atomic<int> ran{0};
    if (i % 2 == 0) pool->parallel().for_each(8, [&](int, int) { ++ran; });
    pool.reset();
    EXPECT_EQ(ran.load(), i % 2 == 0 ? 8 : 0);
  }
}

TEST(Parallel, SerialRunsInOrderOnTheCaller) {
  std::vector<int> order;
  serial().for_each(4, [&](int i, int thread) { order.push_back(i * 10 + thread); });
  EXPECT_EQ(order, (std::vector<int>{0, 10, 20, 30}));
}

}  // namespace
}  // namespace cairn::kernels
