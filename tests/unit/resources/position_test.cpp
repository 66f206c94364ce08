// Positions: counting per stream, explicit advances, and the rotation at the plan's positions.
#include "core/resources/position/position.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.hpp"
#include "step_fixture.hpp"

namespace cairn {
namespace {

using testing::needs;
using testing::small_pool;
using testing::StepFixture;

constexpr RequestHandle kA = (RequestHandle{1} << 32) | 0;
constexpr RequestHandle kB = (RequestHandle{1} << 32) | 1;

class PositionTest : public ::testing::Test {
 protected:
  PositionTest() : pool("kv", 0, small_pool(16)) {
    config.rope_config.head_dim = 16;
    std::string why;
    pool.reserve(kA, needs(100, 0), why);
    pool.reserve(kB, needs(100, 0), why);
  }
  std::vector<std::int64_t> ids(Position& position, StepFixture& step) {
    pool.admit(step.step(), step.context());
    position.admit(step.step(), step.context());
    pool.plan(step.step(), step.context());
    position.plan(step.step(), step.context());
    cairn_tensor_view view{};
    position.pos_ids(0, &view, step.context());
    const auto* data = static_cast<const std::int64_t*>(view.data);
    std::vector<std::int64_t> result(data, data + view.shape[0]);
    pool.commit(step.step(), step.context());
    position.commit(step.step(), step.context());
    return result;
  }
  KvPool pool;
  PositionConfig config;
};

TEST_F(PositionTest, CountsEveryStreamOnItsOwn) {
  Position position("rope", 1, config, pool);
  StepFixture first({kA, kB}, {3, 2});
  EXPECT_EQ(ids(position, first), (std::vector<std::int64_t>{0, 1, 2, 0, 1}));
  StepFixture second({kB, kA}, {1, 2});
  EXPECT_EQ(ids(position, second), (std::vector<std::int64_t>{2, 3, 4}));
}

TEST_F(PositionTest, BlockSchemeGivesASegmentOnePosition) {
  config.block = true;
  config.block_step = 5;
  Position position("rope", 1, config, pool);
  StepFixture first({kA}, {3});
  EXPECT_EQ(ids(position, first), (std::vector<std::int64_t>{0, 0, 0}));
  StepFixture second({kA}, {1});
  EXPECT_EQ(ids(position, second), (std::vector<std::int64_t>{5}));
}

TEST_F(PositionTest, ExplicitAdvanceReplacesTheSpan) {
  Position position("rope", 1, config, pool);
  StepFixture first({kA}, {4});
  const std::int64_t advance = 2;
  cairn_position_step detail{};
  detail.struct_size = sizeof(detail);
  detail.advance = {&advance, 1};
  first.set_detail(&detail);
  pool.admit({first.step().segments, nullptr}, first.context());
  position.admit(first.step(), first.context());
  pool.plan({first.step().segments, nullptr}, first.context());
  position.plan(first.step(), first.context());
  pool.commit({first.step().segments, nullptr}, first.context());
  position.commit(first.step(), first.context());
  StepFixture second({kA}, {1});
  EXPECT_EQ(ids(position, second), (std::vector<std::int64_t>{2}));
}

TEST_F(PositionTest, ARemovedRequestStartsAgainAtZero) {
  Position position("rope", 1, config, pool);
  StepFixture first({kA}, {3});
  ids(position, first);
  position.remove_request(kA);
  StepFixture second({kA}, {1});
  EXPECT_EQ(ids(position, second), (std::vector<std::int64_t>{0}));
}

TEST_F(PositionTest, RotatesTheTwoHalvesAtThePlansPosition) {
  Position position("rope", 1, config, pool);
  StepFixture warm({kA}, {7});
  ids(position, warm);
  StepFixture step({kA}, {1});
  pool.admit(step.step(), step.context());
  pool.plan(step.step(), step.context());
  position.plan(step.step(), step.context());
  testing::FloatTensor q(1, 16, 1.0F);
  testing::FloatTensor k(1, 16, 1.0F);
  position.apply_qk(0, &q.view, &k.view, step.context());
  for (int i = 0; i < 8; ++i) {
    const double angle = 7.0 * std::pow(10000.0, -2.0 * i / 16.0);
    EXPECT_NEAR(q.values[static_cast<std::size_t>(i)], std::cos(angle) - std::sin(angle), 1e-5);
    EXPECT_NEAR(k.values[static_cast<std::size_t>(i) + 8], std::cos(angle) + std::sin(angle), 1e-5);
  }
}

TEST_F(PositionTest, RefusesRowsThatAreNoWholeHeads) {
  Position position("rope", 1, config, pool);
  StepFixture step({kA}, {1});
  pool.admit(step.step(), step.context());
  pool.plan(step.step(), step.context());
  position.plan(step.step(), step.context());
  testing::FloatTensor q(1, 20);
  EXPECT_THROW(position.apply_qk(0, &q.view, &q.view, step.context()), InvalidArgument);
  EXPECT_THROW(position.apply_qk(1, &q.view, &q.view, step.context()), InvalidArgument);
}

}  // namespace
}  // namespace cairn
