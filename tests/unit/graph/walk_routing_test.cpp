// Routing and readiness outside of loops, errors, and plans.
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/unit/graph/walk_harness.hpp"

namespace cairn::testing {
namespace {

using Lines = std::vector<std::string>;
using Nodes = std::vector<std::uint32_t>;
constexpr std::uint32_t kA = 0, kB = 1, kC = 2;

template <class Exception, class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Exception& error) {
    return error.what();
  }
  return "no exception";
}

TEST(WalkRouting, ANodeIsReadyWhenItHasAllInputs) {
  ModelBuilder model({"x", "y"}, {"a"});
  model.walk("walk").node(kA, {0, 1}, {});
  WalkRun run(model);
  EXPECT_TRUE(run.give(kA, 1, 2));
  EXPECT_TRUE(run.ready().empty());
  EXPECT_TRUE(run.state.stalled());
  EXPECT_TRUE(run.give(kA, 0, 1));
  EXPECT_EQ(run.ready(), Nodes{kA});
  EXPECT_FALSE(run.state.stalled());
  EXPECT_EQ(run.input(kA, 0), "1");
  EXPECT_EQ(run.input(kA, 1), "2");
}

TEST(WalkRouting, ASignalWithoutTensorsCounts) {
  ModelBuilder model({"go"}, {"a"});
  model.walk("walk").node(kA, {0}, {});
  WalkRun run(model);
  EXPECT_TRUE(run.state.ingest(kA, 0, SignalValue()));
  EXPECT_EQ(run.ready(), Nodes{kA});
  EXPECT_EQ(run.input(kA, 0), "signal");
}

TEST(WalkRouting, UnknownNodesAndSignalsAreRefusedWithoutAnError) {
  ModelBuilder model({"x", "y"}, {"a", "b"});
  model.walk("walk").node(kA, {0}, {});
  model.walk("other").node(kB, {0}, {});
  WalkRun run(model);
  SignalValue value = number(1);
  EXPECT_FALSE(run.state.ingest(kA, 1, std::move(value)));
  EXPECT_EQ(show(value), "1") << "a refused value stays the caller's";
  EXPECT_FALSE(run.state.ingest(kB, 0, std::move(value)));
  EXPECT_FALSE(run.state.ingest(63, 0, std::move(value)));
  EXPECT_FALSE(run.state.ingest(CAIRN_NONE, 0, std::move(value)));
}

TEST(WalkRouting, ATopLevelNodeRunsOnceAndTakesNothingMore) {
  ModelBuilder model({"x"}, {"a", "b"});
  WalkBuilder& walk = model.walk("walk");
  walk.parallel({walk.node(kA, {0}, {}), walk.node(kB, {0}, {})});
  WalkRun run(model);
  EXPECT_TRUE(run.give(kA, 0, 1));
  EXPECT_FALSE(run.give(kA, 0, 2));
  run.step(kA, {});
  EXPECT_FALSE(run.give(kA, 0, 3)) << "there is no next iteration for it to leak into";
  EXPECT_EQ(run.input(kA, 0), "signal") << "its input is released";
  EXPECT_FALSE(run.state.done());
  run.give(kB, 0, 1);
  run.step(kB, {});
  EXPECT_TRUE(run.state.done());
}

TEST(WalkRouting, ParallelMembersKeepInputsFromOutsideAndFeedEachOther) {
  ModelBuilder model({"x", "y"}, {"a", "b"});
  WalkBuilder& walk = model.walk("walk");
  walk.parallel({walk.node(kA, {0}, {{1, kB}}), walk.node(kB, {0, 1}, {{0, kEmit}})});
  WalkRun run(model);
  run.give(kA, 0, 1);
  run.give(kB, 0, 2);
  EXPECT_EQ(run.ready(), Nodes{kA});
  run.step(kA, {{1, 3}});
  ASSERT_EQ(run.ready(), Nodes{kB});
  EXPECT_EQ(run.input(kB, 0), "2");
  EXPECT_EQ(run.input(kB, 1), "3");
}

// (M* defect: destinations of one name were folded into one.)
TEST(WalkRouting, OneOutputReachesEveryDestinationInTheOrderOfTheGraph) {
  ModelBuilder model({"x", "y"}, {"a", "b", "c"});
  WalkBuilder& walk = model.walk("walk");
  walk.sequential({walk.node(kA, {0}, {{1, kEmit, CAIRN_EDGE_PERSIST | CAIRN_EDGE_NEW_TOKEN}, {1, kB}, {1, kC}}),
                   walk.node(kB, {1}, {}), walk.node(kC, {1}, {})});
  WalkRun run(model);
  run.give(kA, 0, 1);
  run.step(kA, {{1, 5}});
  EXPECT_EQ(run.ready(), (Nodes{kB, kC}));
  EXPECT_EQ(run.input(kB, 0), "5");
  EXPECT_EQ(run.input(kC, 0), "5");
  EXPECT_EQ(run.sink.lines, (Lines{"emit 1/0+: 5", "persist 1: 5"}));
  EXPECT_EQ(run.state.new_tokens(), 1);
  EXPECT_EQ(run.state.routed_signals(), 0b10U);
}

TEST(WalkRouting, ATokenOnTwoEdgesCountsOnce) {
  ModelBuilder model({"x"}, {"a"}, {"loop"});
  WalkBuilder& walk = model.walk("walk");
  constexpr std::uint32_t kFlags = CAIRN_EDGE_NEW_TOKEN | CAIRN_EDGE_PERSIST;
  walk.loop(walk.node(kA, {0}, {{0, kA, kFlags}, {0, kEmit, kFlags}}), 2, 0);
  WalkRun run(model);
  run.give(kA, 0, 1);
  run.step(kA, {{0, 5}});
  EXPECT_EQ(run.state.new_tokens(), 1);
  EXPECT_EQ(run.sink.lines, (Lines{"persist 0: 5", "emit 0/0+: 5"}));
}

TEST(WalkRouting, OutputsThatTheGraphDoesNotNameAreIgnored) {
  ModelBuilder model({"x", "debug"}, {"a"});
  model.walk("walk").node(kA, {0}, {{0, kEmit}});
  WalkRun run(model);
  run.give(kA, 0, 1);
  run.step(kA, {{1, 8}, {0, 5}});
  EXPECT_EQ(run.sink.lines, Lines{"emit 0/0: 5"});
  EXPECT_TRUE(run.state.done());
}

TEST(WalkRouting, AMissingOutputNamesNodeAndSignal) {
  ModelBuilder model({"x", "logits"}, {"llm"});
  model.walk("decode").node(kA, {0}, {{1, kEmit}});
  WalkRun run(model);
  run.give(kA, 0, 1);
  const std::string message = message_of<InternalError>([&] { run.step(kA, {{0, 5}}); });
  EXPECT_NE(message.find("\"llm\""), std::string::npos) << message;
  EXPECT_NE(message.find("\"logits\""), std::string::npos) << message;
}

TEST(WalkRouting, AWithheldOutputGoesNowhereAndTheStallSaysWho) {
  ModelBuilder model({"x", "y"}, {"a", "b"});
  WalkBuilder& walk = model.walk("walk");
  walk.sequential({walk.node(kA, {0}, {{1, kB}, {1, kEmit}}), walk.node(kB, {1}, {})});
  WalkRun run(model);
  run.give(kA, 0, 1);
  run.step(kA, {{1, 5}}, 0b10);
  EXPECT_TRUE(run.sink.lines.empty());
  EXPECT_TRUE(run.state.stalled());
  const std::string reason = run.state.stall_reason();
  EXPECT_NE(reason.find("\"b\""), std::string::npos) << reason;
  EXPECT_NE(reason.find("\"y\""), std::string::npos) << reason;
}

TEST(WalkRouting, ANodeInFlightIsNotReadyAndComesBackWhenItIsPutBack) {
  ModelBuilder model({"x"}, {"a"});
  model.walk("walk").node(kA, {0}, {});
  WalkRun run(model);
  run.give(kA, 0, 1);
  run.state.set_in_flight(kA, true);
  EXPECT_TRUE(run.ready().empty());
  EXPECT_FALSE(run.state.stalled());
  run.state.set_in_flight(kA, false);
  EXPECT_EQ(run.ready(), Nodes{kA});
  EXPECT_EQ(run.input(kA, 0), "1");
}

TEST(WalkRouting, CompletingANodeThatDoesNotRunIsAnError) {
  ModelBuilder model({"x"}, {"a"});
  model.walk("walk").node(kA, {0}, {});
  WalkRun run(model);
  EXPECT_THROW(run.state.complete(kA, {}, 0, run.sink), InternalError);
  EXPECT_THROW(run.state.complete(5, {}, 0, run.sink), InternalError);
  run.give(kA, 0, 1);
  run.state.complete(kA, {}, 0, run.sink);
  EXPECT_THROW(run.state.complete(kA, {}, 0, run.sink), InternalError);
}

TEST(WalkRouting, ANodeWithoutInputsStartsByItself) {
  ModelBuilder model({"x"}, {"a", "b"});
  WalkBuilder& walk = model.walk("walk");
  walk.sequential({walk.node(kA, {}, {{0, kB}}), walk.node(kB, {0}, {})});
  WalkRun run(model);
  EXPECT_EQ(run.ready(), Nodes{kA});
  run.step(kA, {{0, 1}});
  EXPECT_EQ(run.ready(), Nodes{kB});
}

TEST(WalkRouting, OneStateServesWalksOfAnyShape) {
  ModelBuilder model({"x", "y"}, {"a", "b"}, {"loop"});
  model.walk("small").node(kA, {0}, {});
  WalkBuilder& large = model.walk("large");
  large.loop(large.parallel({large.node(kA, {0}, {{0, kA}}), large.node(kB, {1}, {{1, kB}})}), 2, 0);
  WalkRun run(model, 1);
  const WalkPlan small = WalkPlan::compile(run.spec, 0);
  run.give(kA, 0, 1);
  run.give(kB, 1, 1);
  run.step(kA, {{0, 2}});
  run.state.start(small);
  EXPECT_TRUE(run.ready().empty()) << "nothing of the other walk is left";
  EXPECT_TRUE(run.give(kA, 0, 7));
  EXPECT_FALSE(run.give(kB, 1, 7));
  run.step(kA, {});
  EXPECT_TRUE(run.state.done());
  run.state.start(run.plan);
  EXPECT_TRUE(run.ready().empty());
  EXPECT_FALSE(run.state.done());
}

TEST(WalkPlan, ListsTheSignalsOfANode) {
  ModelBuilder model({"x", "y", "z"}, {"a"});
  model.walk("walk").node(kA, {2, 0}, {{1, kEmit}, {0, kNowhere}, {1, kNowhere}});
  WalkRun run(model);
  const auto inputs = run.plan.input_signals(kA);
  EXPECT_EQ(Nodes(inputs.begin(), inputs.end()), (Nodes{2, 0}));
  const auto outputs = run.plan.output_signals(kA);
  EXPECT_EQ(Nodes(outputs.begin(), outputs.end()), (Nodes{1, 0}));
  EXPECT_TRUE(run.plan.input_signals(9).empty());
}

TEST(WalkPlan, AnEdgeThatLeadsBackNeedsALoop) {
  ModelBuilder model({"x"}, {"a"});
  model.walk("walk").node(kA, {0}, {{0, kA}});
  const std::string message = message_of<InvalidArgument>([&] { ModelSpec::from_desc(model.desc()); });
  EXPECT_NE(message.find("outside of every loop"), std::string::npos) << message;
  EXPECT_NE(message.find("\"a\""), std::string::npos) << message;
}

TEST(WalkPlan, AnEdgeOutOfALoopMustBeDeclaredByTheLoop) {
  const auto build = [](Edges loop_outputs) {
    ModelBuilder model({"x"}, {"a", "b"}, {"loop"});
    WalkBuilder& walk = model.walk("walk");
    const auto loop = walk.loop(walk.node(kA, {0}, {{0, kA}, {0, kB}}), 2, 0, std::move(loop_outputs));
    walk.sequential({loop, walk.node(kB, {0}, {})});
    return model;
  };
  ModelBuilder undeclared = build({});
  const std::string message = message_of<InvalidArgument>([&] { ModelSpec::from_desc(undeclared.desc()); });
  EXPECT_NE(message.find("leaves its loop"), std::string::npos) << message;

  ModelBuilder declared = build({{0, kB}});
  WalkRun run(declared);
  run.give(kA, 0, 1);
  run.step(kA, {{0, 2}});
  EXPECT_EQ(run.ready(), Nodes{kA}) << "b gets the value of the last iteration only";
  run.step(kA, {{0, 3}});
  ASSERT_EQ(run.ready(), Nodes{kB});
  EXPECT_EQ(run.input(kB, 0), "3");
}

TEST(WalkPlan, ALoopOutputNeedsASourceInTheLoop) {
  ModelBuilder model({"x", "y"}, {"a"}, {"loop"});
  WalkBuilder& walk = model.walk("walk");
  walk.loop(walk.node(kA, {0}, {{0, kA}}), 2, 0, {{1, kEmit}});
  const std::string message = message_of<InvalidArgument>([&] { ModelSpec::from_desc(model.desc()); });
  EXPECT_NE(message.find("\"y\""), std::string::npos) << message;
}

}  // namespace
}  // namespace cairn::testing
