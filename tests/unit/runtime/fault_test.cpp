// A fault of one row ends that request, a fault of a step ends its requests, and the next step works.
#include "tests/unit/runtime/scripted_runtime.hpp"

namespace cairn::testing {
namespace {

std::vector<std::int32_t> with_order(std::int32_t order) {
  auto prompt = prompt_of(12, 77);
  prompt[6] = order;
  return prompt;
}

class FaultOfOneRow : public ::testing::TestWithParam<std::int32_t> {};

TEST_P(FaultOfOneRow, EndsThatRequestOnly) {
  for (const std::int64_t budget : {4096, 5}) {
    DeploymentConfig deployment;
    deployment.max_batch_tokens = budget;
    ScriptedRuntime runtime(deployment, true);
    const Request before = runtime.submit(prompt_of(9, 1), 8);
    const Request faulty = runtime.submit(with_order(GetParam()), 8);
    const Request after = runtime.submit(prompt_of(11, 2), 8);
    runtime.run_all();
    const RequestResult result = faulty.record->wait();
    EXPECT_EQ(result.reason, FinishReason::kError);
    EXPECT_FALSE(result.client_error);
    EXPECT_NE(result.error.find("told to fail"), std::string::npos) << result.error;
    EXPECT_TRUE(faulty.record->ids().empty());
    EXPECT_EQ(before.record->ids(), continuation(prompt_of(9, 1), 8));
    EXPECT_EQ(after.record->ids(), continuation(prompt_of(11, 2), 8));
    EXPECT_EQ(runtime->stats().finished_total[static_cast<std::size_t>(FinishReason::kError)], 1);
    runtime.expect_nothing_held();
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, FaultOfOneRow, ::testing::Values(SCRIPTED_FAIL_PREPARE, SCRIPTED_FAIL_STOP));

TEST(Fault, OfAForwardEndsTheBatchAndTheNextStepWorks) {
  ScriptedRuntime runtime({}, true);
  const Request together = runtime.submit(prompt_of(9, 1), 8);
  const Request faulty = runtime.submit(with_order(SCRIPTED_FAIL_FORWARD), 8);
  runtime.run_all();
  EXPECT_EQ(together.record->wait().reason, FinishReason::kError);
  EXPECT_EQ(faulty.record->wait().reason, FinishReason::kError);
  EXPECT_FALSE(faulty.record->wait().client_error);
  runtime.expect_nothing_held();
  const Request next = runtime.submit(prompt_of(9, 1), 8);
  runtime.run_all();
  EXPECT_EQ(next.record->ids(), continuation(prompt_of(9, 1), 8));
  runtime.expect_nothing_held();
}

TEST(Fault, OfAForwardFreesPagesForThoseWhoWait) {
  DeploymentConfig deployment;
  deployment.max_concurrent_requests = 1;
  ScriptedRuntime runtime(deployment, true);
  const Request faulty = runtime.submit(with_order(SCRIPTED_FAIL_PREPARE), 8);
  const Request waiting = runtime.submit(prompt_of(9, 1), 8);
  runtime.run_all();
  EXPECT_EQ(faulty.record->wait().reason, FinishReason::kError);
  EXPECT_EQ(waiting.record->ids(), continuation(prompt_of(9, 1), 8));
}

TEST(Fault, OfATransitionEndsThatRequestOnly) {
  ScriptedRuntime runtime({}, true);
  RequestSpec spec = ScriptedRuntime::spec(prompt_of(6, 5), 8);
  spec.sampling.logit_bias = {{SCRIPTED_FAIL_TRANSITION, 5000.0F}};
  const Request faulty = runtime.submit(std::move(spec));
  const Request other = runtime.submit(prompt_of(9, 1), 8);
  runtime.run_all();
  EXPECT_EQ(faulty.record->wait().reason, FinishReason::kError);
  EXPECT_EQ(faulty.record->ids(), std::vector<std::int32_t>{SCRIPTED_FAIL_TRANSITION});
  EXPECT_EQ(other.record->ids(), continuation(prompt_of(9, 1), 8));
  runtime.expect_nothing_held();
}

TEST(Fault, ARefusedPromptIsTheClientsAndLeavesNothing) {
  ScriptedRuntime runtime({}, true);
  EXPECT_THROW(runtime.submit(with_order(SCRIPTED_REFUSE_PROMPT), 8), InvalidArgument);
  runtime.expect_nothing_held();
  EXPECT_EQ(runtime.read(&scripted_control::added), 0);
}

TEST(Fault, ARowThatSkipsRunsLaterAndHoldsNobodyUp) {
  ScriptedRuntime runtime;
  runtime.write(&scripted_control::skipping, 1);
  const Request skipping = runtime.submit(with_order(SCRIPTED_SKIP), 8);
  const Request other = runtime.submit(prompt_of(9, 1), 8);
  EXPECT_EQ(other.record->wait().reason, FinishReason::kLength);
  EXPECT_EQ(other.record->ids(), continuation(prompt_of(9, 1), 8));
  EXPECT_FALSE(skipping.record->finished());
  runtime.await(&scripted_control::skipped, runtime.read(&scripted_control::skipped) + 3);  // asked again and again
  runtime.write(&scripted_control::skipping, 0);
  EXPECT_NE(skipping.record->wait().reason, FinishReason::kError);
  EXPECT_EQ(skipping.record->ids(), continuation(with_order(SCRIPTED_SKIP), 8));
}

TEST(Fault, OnlySkippingRowsAreNoStep) {
  ScriptedRuntime runtime({}, true);
  runtime.write(&scripted_control::skipping, 1);
  const Request skipping = runtime.submit(with_order(SCRIPTED_SKIP), 8);
  EXPECT_FALSE(runtime->run_once());
  EXPECT_EQ(runtime->stats().steps_total, 0);
  runtime->cancel(skipping.handle);
  runtime.run_all();
  EXPECT_EQ(skipping.record->wait().reason, FinishReason::kCancelled);
  runtime.expect_nothing_held();
}

}  // namespace
}  // namespace cairn::testing
