// The paged KV pool: admission by what a request can need, page ownership, and the plan's addressing.
#include "core/resources/kv/kv_pool.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "core/base/error.hpp"
#include "step_fixture.hpp"

namespace cairn {
namespace {

using testing::needs;
using testing::run_step;
using testing::small_pool;
using testing::StepFixture;

constexpr RequestHandle kA = (RequestHandle{1} << 32) | 0;
constexpr RequestHandle kB = (RequestHandle{1} << 32) | 1;

TEST(KvPool, RefusesARequestThatCanNeverFitWithTheNumbers) {
  KvPool pool("kv", 0, small_pool(4));
  std::string why;
  EXPECT_EQ(pool.reserve(kA, needs(60, 5), why), ReserveOutcome::kNeverFits);
  EXPECT_NE(why.find("65 tokens"), std::string::npos) << why;
  EXPECT_NE(why.find("4 pages"), std::string::npos) << why;
  EXPECT_EQ(pool.usage().first, 0);
}

TEST(KvPool, MakesTheNextRequestWaitUntilPagesAreGivenBack) {
  KvPool pool("kv", 0, small_pool(4));
  std::string why;
  ASSERT_EQ(pool.reserve(kA, needs(30, 18), why), ReserveOutcome::kReserved);
  EXPECT_EQ(pool.reserve(kB, needs(16, 16), why), ReserveOutcome::kWait);
  pool.remove_request(kA);
  EXPECT_EQ(pool.reserve(kB, needs(16, 16), why), ReserveOutcome::kReserved);
}

TEST(KvPool, ReservingTwiceTakesNothingTwice) {
  KvPool pool("kv", 0, small_pool(4));
  std::string why;
  ASSERT_EQ(pool.reserve(kA, needs(32, 0), why), ReserveOutcome::kReserved);
  ASSERT_EQ(pool.reserve(kA, needs(32, 0), why), ReserveOutcome::kReserved);
  EXPECT_EQ(pool.reserve(kB, needs(32, 0), why), ReserveOutcome::kReserved);
}

TEST(KvPool, AReservedRequestNeverRunsOutOfPages) {
  KvPool pool("kv", 0, small_pool(4));
  std::string why;
  ASSERT_EQ(pool.reserve(kA, needs(40, 24), why), ReserveOutcome::kReserved);
  StepFixture prompt({kA}, {40});
  run_step(pool, prompt);
  for (int i = 0; i < 24; ++i) {
    StepFixture decode({kA}, {1});
    ASSERT_NO_THROW(run_step(pool, decode));
  }
  EXPECT_EQ(pool.stored_len(kA, 0), 64);
  EXPECT_EQ(pool.usage().first, 4);
  pool.remove_request(kA);
  EXPECT_EQ(pool.usage().first, 0);
}

TEST(KvPool, PlanAddressesEveryTokenOnceAndNeverTheSinkPage) {
  KvPool pool("kv", 0, small_pool(8));
  std::string why;
  ASSERT_EQ(pool.reserve(kA, needs(40, 0), why), ReserveOutcome::kReserved);
  ASSERT_EQ(pool.reserve(kB, needs(20, 0), why), ReserveOutcome::kReserved);
  StepFixture first({kA}, {10});
  run_step(pool, first);
  StepFixture step({kA, kB}, {30, 20});
  pool.admit(step.step(), step.context());
  pool.plan(step.step(), step.context());
  const KvLabelPlan& plan = pool.label_plan(0, "test");
  ASSERT_EQ(plan.tokens, 50);
  std::set<std::int64_t> slots(plan.slots.begin(), plan.slots.end());
  EXPECT_EQ(slots.size(), 50U);
  EXPECT_GE(*slots.begin(), 16);  // page 0 is the sink
  EXPECT_EQ(plan.rows[0].kv_len, 40);
  EXPECT_EQ(plan.rows[1].q_start, 30);
  // Position 10 of request A is slot 10 of its first page: the page the first step wrote.
  EXPECT_EQ(plan.slots[0] % 16, 10);
}

TEST(KvPool, AStepThatDoesNotCommitMovesNoLength) {
  KvPool pool("kv", 0, small_pool(8));
  std::string why;
  ASSERT_EQ(pool.reserve(kA, needs(40, 0), why), ReserveOutcome::kReserved);
  StepFixture step({kA}, {20});
  cairn_kv_step detail{};
  detail.struct_size = CAIRN_SIZE(cairn_kv_step, no_commit);
  detail.no_commit = 1;
  step.set_detail(&detail);
  run_step(pool, step);
  EXPECT_EQ(pool.stored_len(kA, 0), 0);
}

TEST(KvPool, AnAbandonedStepIsFoundAgainByTheNextOne) {
  KvPool pool("kv", 0, small_pool(2));
  std::string why;
  ASSERT_EQ(pool.reserve(kA, needs(32, 0), why), ReserveOutcome::kReserved);
  StepFixture abandoned({kA}, {32});
  pool.admit(abandoned.step(), abandoned.context());
  pool.plan(abandoned.step(), abandoned.context());
  EXPECT_EQ(pool.usage().first, 2);
  StepFixture again({kA}, {32});
  run_step(pool, again);
  EXPECT_EQ(pool.usage().first, 2);
  EXPECT_EQ(pool.stored_len(kA, 0), 32);
}

TEST(KvPool, RefusesGrowthOverTheContext) {
  KvPool pool("kv", 0, small_pool(8, 32));
  std::string why;
  ASSERT_EQ(pool.reserve(kA, needs(32, 100), why), ReserveOutcome::kReserved);
  StepFixture step({kA}, {33});
  EXPECT_THROW(pool.admit(step.step(), step.context()), InvalidArgument);
}

TEST(KvPool, AStaleHandleTouchesNothing) {
  KvPool pool("kv", 0, small_pool(4));
  std::string why;
  ASSERT_EQ(pool.reserve(kA, needs(16, 0), why), ReserveOutcome::kReserved);
  pool.remove_request((RequestHandle{2} << 32) | 0);
  StepFixture step({kA}, {16});
  run_step(pool, step);
  EXPECT_EQ(pool.stored_len(kA, 0), 16);
  StepFixture stale({(RequestHandle{2} << 32) | 0}, {1});
  EXPECT_THROW(pool.admit(stale.step(), stale.context()), InvalidArgument);
}

TEST(KvPool, ConservesPagesOverRandomLives) {
  KvPool pool("kv", 0, small_pool(24));
  std::mt19937 random(7);
  std::vector<std::pair<RequestHandle, std::int64_t>> live;  // handle, tokens it may still store
  std::uint32_t generation = 1;
  for (int turn = 0; turn < 3000; ++turn) {
    if (live.size() < 8 && random() % 3 == 0) {
      std::set<std::uint32_t> used;
      for (const auto& entry : live) used.insert(slot_of(entry.first));
      std::uint32_t slot = 0;
      while (used.count(slot) != 0) ++slot;
      const RequestHandle handle = make_handle(slot, ++generation);
      const auto tokens = static_cast<std::int64_t>(1 + random() % 100);
      std::string why;
      if (pool.reserve(handle, needs(tokens, 0), why) == ReserveOutcome::kReserved) live.emplace_back(handle, tokens);
    } else if (!live.empty() && random() % 4 == 0) {
      pool.remove_request(live.back().first);
      live.pop_back();
    } else if (!live.empty()) {
      auto& [handle, left] = live[random() % live.size()];
      if (left == 0) continue;
      const auto span = static_cast<std::int64_t>(1 + random() % static_cast<std::uint64_t>(left));
      StepFixture step({handle}, {span});
      run_step(pool, step);
      left -= span;
    }
    ASSERT_LE(pool.usage().first, pool.usage().second);
  }
  for (const auto& entry : live) pool.remove_request(entry.first);
  EXPECT_EQ(pool.usage().first, 0);
  std::string why;
  EXPECT_EQ(pool.reserve(kA, needs(24 * 16, 0), why), ReserveOutcome::kReserved);
}

TEST(KvPool, ReadsBackWhatWasWritten) {
  KvPool pool("kv", 0, small_pool(4));
  std::string why;
  ASSERT_EQ(pool.reserve(kA, needs(20, 0), why), ReserveOutcome::kReserved);
  StepFixture step({kA}, {20});
  pool.admit(step.step(), step.context());
  pool.plan(step.step(), step.context());
  testing::FloatTensor k(20, 32);
  testing::FloatTensor v(20, 32);
  for (std::size_t i = 0; i < k.values.size(); ++i) {
    k.values[i] = static_cast<float>(i);
    v.values[i] = -static_cast<float>(i);
  }
  pool.write_kv(1, 0, &k.view, &v.view, step.context());
  pool.commit(step.step(), step.context());
  testing::FloatTensor k_read(5, 32);
  testing::FloatTensor v_read(5, 32);
  pool.read_kv(1, kA, 0, 14, 19, &k_read.view, &v_read.view);
  EXPECT_EQ(k_read.values.front(), 14.0F * 32.0F);
  EXPECT_EQ(v_read.values.back(), -(19.0F * 32.0F - 1.0F));
  EXPECT_THROW(pool.read_kv(1, kA, 0, 10, 21, &k_read.view, &v_read.view), InvalidArgument);
  EXPECT_THROW(pool.write_kv(2, 0, &k.view, &v.view, step.context()), InvalidArgument);
}

}  // namespace
}  // namespace cairn
