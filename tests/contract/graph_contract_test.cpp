// M* behaviours of the graph and the conductor, by the number of the seed's field or hook (9.B) where it has one.
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/conductor/conductor.hpp"
#include "tests/unit/conductor/fake_model.hpp"

namespace cairn::testing {
namespace {

constexpr RequestHandle kRequest = 9;

// Drives one request over real plans as the worker does: every ready node runs at once and gives the next number.
class Contract : public ::testing::Test {
 protected:
  Contract() : builder(two_walk_model()), spec(ModelSpec::from_desc(builder.desc())), conductor(spec, model) {
    model.spec = &spec;
    for (std::uint32_t walk = 0; walk < spec.walks.size(); ++walk) plans.push_back(WalkPlan::compile(spec, walk));
  }

  class Sink final : public RoutedSink {
   public:
    void emit(std::uint32_t, std::uint32_t, const SignalValue& value, bool) override { client.push_back(show(value)); }
    void persist(std::uint32_t signal, const SignalValue& value) override { persisted.push_back({signal, value}); }
    std::vector<std::string> client;
    std::vector<SignalTensors> persisted;
  };

  void begin(WalkStart start) {
    state.start(plans[start.walk], start.fwd_index);
    for (RoutedInput& input : start.inputs) {
      ASSERT_TRUE(state.ingest(input.node, input.signal, std::move(input.value)));
    }
  }
  // One step of the one node; `stop` is what check_stop says.
  void step(std::int32_t token, bool stop = false) {
    std::vector<OutputValue> outputs(1);
    outputs[0] = {kNewToken, number(token)};
    state.set_in_flight(kLlm, true);
    conductor.info(kRequest, 0).refresh(state, conductor.output_tokens(kRequest, 0) + state.new_tokens());
    if (stop) state.stop_loops(1);
    state.complete(kLlm, outputs, 0, sink);
  }
  Transition finish() {
    return conductor.on_walk_done(kRequest, 0, {sink.persisted, state.new_tokens(), state.routed_signals()});
  }

  ModelBuilder builder;
  ModelSpec spec;
  FakeModel model;
  RequestSpec request;
  Conductor conductor;
  std::vector<WalkPlan> plans;
  WalkState state;
  Sink sink;
};

// 101, 105: prefill, then a decode loop that end-of-sequence stops; counts and walk numbers as M*'s conductor keeps
// them.
TEST_F(Contract, N105_PrefillThenDecodeUntilEndOfSequence) {
  auto walks = conductor.start_request({kRequest, request, {}, 100, 1, {}});
  begin(std::move(walks.at(0)));
  step(10);
  ASSERT_TRUE(state.done());
  model.answers.push_back(start_walk(kDecode, kNewToken, 10));
  Transition next = finish();
  sink.persisted.clear();
  begin(std::move(next.next));
  const cairn_forward_info* info = conductor.info(kRequest, 0).view();
  for (int i = 0; i < 4; ++i) {
    step(11 + i, i == 3);
    EXPECT_EQ(info->output_tokens, 1 + i);
    ASSERT_EQ(info->dynamic_loop_iter_counts.count, 1U);
  }
  EXPECT_TRUE(state.done());
  EXPECT_EQ(info->fwd_index, 1);
  model.answers.push_back(done_args());
  EXPECT_EQ(finish().kind, Transition::Kind::kRequestDone);
  EXPECT_EQ(sink.client, (std::vector<std::string>{"10", "11", "12", "13", "14"}));
  EXPECT_EQ(model.transitions, (std::vector<std::string>{"walk 0 fwd 0 tokens 1 outputs 1 persisted 1=10",
                                                         "walk 1 fwd 1 tokens 5 outputs 1 persisted 1=10"}));
}

// 101: dynamic_loop_iter_counts is the iteration a step runs in, counted from 0, and starts over with every walk.
TEST_F(Contract, N101_LoopCountsAreThoseOfTheRunningIteration) {
  model.initial = start_walk(kDecode, kNewToken, 1);
  auto walks = conductor.start_request({kRequest, request, {}, 100, 1, {}});
  begin(std::move(walks.at(0)));
  const cairn_forward_info* info = conductor.info(kRequest, 0).view();
  for (int i = 0; i < 3; ++i) {
    conductor.info(kRequest, 0).refresh(state, i);
    EXPECT_EQ(info->dynamic_loop_iter_counts.data[0].loop, 0U);
    EXPECT_EQ(info->dynamic_loop_iter_counts.data[0].iterations, i);
    step(2, i == 2);
  }
  model.answers.push_back(start_walk(kDecode, kNewToken, 1));
  begin(finish().next);
  conductor.info(kRequest, 0).refresh(state, 0);
  EXPECT_EQ(info->dynamic_loop_iter_counts.data[0].iterations, 0);
}

// 102: stop times are there after a stop and gone with the next walk (clear_loop_stop_info).
TEST_F(Contract, N102_StopTimesAreClearedWithTheWalk) {
  model.initial = start_walk(kDecode, kNewToken, 1);
  auto walks = conductor.start_request({kRequest, request, {}, 100, 1, {}});
  begin(std::move(walks.at(0)));
  step(2);
  step(3, true);
  conductor.info(kRequest, 0).refresh(state, 2);
  const cairn_forward_info* info = conductor.info(kRequest, 0).view();
  ASSERT_EQ(info->loop_stop_times.count, 1U);
  EXPECT_EQ(info->loop_stop_times.data[0].indices.data[0].iterations, 1);
  model.answers.push_back(start_walk(kDecode, kNewToken, 1));
  begin(finish().next);
  conductor.info(kRequest, 0).refresh(state, 0);
  EXPECT_EQ(info->loop_stop_times.count, 0U);
  EXPECT_EQ(info->dynamic_loop_iter_counts.count, 1U);
}

// 104: without partitions there is one, named "default", with every walk.
TEST_F(Contract, N104_TheDefaultPartitionHasEveryWalk) {
  ASSERT_EQ(spec.partitions.size(), 1U);
  EXPECT_EQ(spec.partitions[0].name, "default");
  EXPECT_EQ(spec.partitions[0].graph_walks, (Indices{kPrefill, kDecode}));
  EXPECT_EQ(spec.partitions[0].initial_walk, CAIRN_NONE);
}

// T24: what was sent to a walk stays alive in the walk after unpersist dropped the conductor's own reference.
TEST_F(Contract, T24_UnpersistDoesNotTakeTensorsFromARunningWalk) {
  const std::int64_t before = Tensor::live_count() - 1;  // the fake model's prepared input
  PromptResult prompt;
  prompt.tensors.push_back({kIds, number(42)});
  model.initial.inputs[0].value = prompt.tensors[0].value;
  model.initial.unpersist = {kIds};
  auto walks = conductor.start_request({kRequest, request, std::move(prompt), 100, 1, {}});
  begin(std::move(walks.at(0)));
  EXPECT_EQ(show(state.input(kLlm, 0)), "42");
  step(1);
  sink.client.clear();
  sink.persisted.clear();
  conductor.end_request(kRequest);
  state.clear();
  EXPECT_EQ(Tensor::live_count(), before);
}

// Every end gives everything back: in the middle of a walk, too.
TEST_F(Contract, ARequestThatEndsInTheMiddleLeavesNothing) {
  const std::int64_t before = Tensor::live_count() - 1;  // the fake model's prepared input
  auto walks = conductor.start_request({kRequest, request, {}, 100, 1, {}});
  begin(std::move(walks.at(0)));
  EXPECT_GT(Tensor::live_count(), before);
  conductor.end_request(kRequest);
  state.clear();
  EXPECT_EQ(Tensor::live_count(), before);
  EXPECT_EQ(conductor.open_requests(), 0U);
}

}  // namespace
}  // namespace cairn::testing
