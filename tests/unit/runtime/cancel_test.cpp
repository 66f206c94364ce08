// Cancelling a request in every state it can be in, and what the others notice of it: nothing.
#include "tests/unit/runtime/scripted_runtime.hpp"

namespace cairn::testing {
namespace {

std::vector<std::int32_t> blocking_prompt(std::size_t length) {
  auto prompt = prompt_of(length, 50);
  prompt[length - 1] = SCRIPTED_BLOCK;
  return prompt;
}

TEST(Cancel, WhileQueued) {
  DeploymentConfig deployment;
  deployment.max_concurrent_requests = 1;
  ScriptedRuntime runtime(deployment, true);
  const Request first = runtime.submit(prompt_of(5, 1), 6);
  const Request second = runtime.submit(prompt_of(5, 2), 6);
  const Request third = runtime.submit(prompt_of(5, 3), 6);
  runtime->run_once();
  runtime->cancel(second.handle);
  runtime->run_once();
  EXPECT_EQ(second.record->wait().reason, FinishReason::kCancelled);
  EXPECT_EQ(runtime->stats().waiting, 1);
  runtime.run_all();
  EXPECT_TRUE(second.record->ids().empty());
  EXPECT_EQ(first.record->ids(), continuation(prompt_of(5, 1), 6));
  EXPECT_EQ(third.record->ids(), continuation(prompt_of(5, 3), 6));
  runtime.expect_nothing_held();
}

TEST(Cancel, BeforeTheRuntimeSawIt) {
  ScriptedRuntime runtime({}, true);
  const Request request = runtime.submit(prompt_of(5, 1), 6);
  runtime->cancel(request.handle);
  EXPECT_FALSE(runtime->run_once());
  EXPECT_EQ(request.record->wait().reason, FinishReason::kCancelled);
  runtime.expect_nothing_held();
}

TEST(Cancel, WhileDecoding) {
  ScriptedRuntime runtime({}, true);
  const Request request = runtime.submit(prompt_of(5, 1), 60);
  const Request other = runtime.submit(prompt_of(6, 2), 60);
  for (int i = 0; i < 5; ++i) runtime->run_once();
  runtime->cancel(request.handle);
  runtime.run_all();
  const auto full = continuation(prompt_of(5, 1), 60);
  EXPECT_EQ(request.record->ids(), std::vector<std::int32_t>(full.begin(), full.begin() + 5));
  EXPECT_EQ(request.record->wait().reason, FinishReason::kCancelled);
  EXPECT_EQ(request.record->wait().usage.completion_tokens, 5);
  EXPECT_EQ(other.record->ids(), continuation(prompt_of(6, 2), 60));
  runtime.expect_nothing_held();
}

TEST(Cancel, BetweenChunksOfThePrompt) {
  DeploymentConfig deployment;
  deployment.max_batch_tokens = 8;
  ScriptedRuntime runtime(deployment, true);
  const Request request = runtime.submit(prompt_of(100, 1), 6);
  const Request other = runtime.submit(prompt_of(30, 2), 6);
  for (int i = 0; i < 3; ++i) runtime->run_once();
  runtime->cancel(request.handle);
  runtime.run_all();
  EXPECT_TRUE(request.record->ids().empty());
  EXPECT_EQ(other.record->ids(), continuation(prompt_of(30, 2), 6));
  runtime.expect_nothing_held();
}

// The step with the long prompt is in flight and would never end; the cancellation gives it up, and the row that
// decoded beside it goes on with the very tokens it would have had.
TEST(Cancel, GivesUpTheStepInFlight) {
  ScriptedRuntime runtime;
  runtime.write(&scripted_control::blocking, 1);
  const Request other = runtime.submit(prompt_of(6, 2), 600);
  other.record->wait_tokens(3);
  const Request prompt = runtime.submit(blocking_prompt(40), 6);
  runtime.await(&scripted_control::blocked, 1);
  runtime->cancel(prompt.handle);
  EXPECT_EQ(prompt.record->wait().reason, FinishReason::kCancelled);
  EXPECT_TRUE(prompt.record->ids().empty());
  other.record->wait();
  EXPECT_EQ(other.record->ids(), continuation(prompt_of(6, 2), 600));
  runtime->drain(std::chrono::steady_clock::now() + std::chrono::seconds(60));
  runtime->wait_drained();
  runtime.expect_nothing_held();
}

// The one who goes is not the one whose prompt makes the step long.
TEST(Cancel, OfAnotherGivesUpTheStepAndThePromptRunsAgain) {
  DeploymentConfig deployment;
  deployment.max_concurrent_requests = 2;
  ScriptedRuntime runtime(deployment, true);
  runtime.write(&scripted_control::blocking, 1);
  const Request decoding = runtime.submit(prompt_of(6, 2), 2000);
  ASSERT_TRUE(runtime->run_once());
  ASSERT_EQ(decoding.record->ids().size(), 1U);
  const Request prompt = runtime.submit(blocking_prompt(40), 6);
  std::thread device([&] { runtime.run_all(); });
  runtime.await(&scripted_control::blocked, 1);
  const Request queued = runtime.submit(prompt_of(4, 3), 6);
  runtime->cancel(queued.handle);
  EXPECT_EQ(queued.record->wait().reason, FinishReason::kCancelled);
  runtime.await(&scripted_control::blocked, 2);
  runtime->cancel(decoding.handle);
  EXPECT_EQ(decoding.record->wait().reason, FinishReason::kCancelled);
  runtime.write(&scripted_control::blocking, 0);
  device.join();
  EXPECT_EQ(prompt.record->ids(), continuation(blocking_prompt(40), 6));
}

// Steps that complete pay for those that are given up: here for four of 64 tokens, and, once the half of the prompt
// that fits a short step is through, for one of 32. The sixth runs to its end whoever goes.
TEST(Cancel, CannotKeepAPromptFromRunning) {
  DeploymentConfig deployment;
  deployment.max_batch_tokens = 64;
  ScriptedRuntime runtime(deployment);
  runtime.write(&scripted_control::blocking, 1);
  const Request prompt = runtime.submit(blocking_prompt(64), 3);
  for (int blocked = 1; blocked <= 5; ++blocked) {
    runtime.await(&scripted_control::blocked, blocked);
    const Request going = runtime.submit(prompt_of(4, blocked), 5);
    runtime->cancel(going.handle);
    EXPECT_EQ(going.record->wait().reason, FinishReason::kCancelled);
  }
  runtime.await(&scripted_control::blocked, 6);
  const Request last = runtime.submit(prompt_of(4, 6), 5);
  runtime->cancel(last.handle);
  runtime.write(&scripted_control::blocking, 0);
  prompt.record->wait();
  EXPECT_EQ(last.record->wait().reason, FinishReason::kCancelled);
  EXPECT_EQ(prompt.record->ids(), continuation(blocking_prompt(64), 3));
  EXPECT_EQ(runtime.read(&scripted_control::blocked), 6);
}

TEST(Cancel, IsIdempotentAndStaleHandlesDoNothing) {
  DeploymentConfig deployment;
  deployment.max_concurrent_requests = 1;
  deployment.max_queue = 0;
  ScriptedRuntime runtime(deployment, true);
  const Request first = runtime.submit(prompt_of(5, 1), 6);
  runtime->cancel(first.handle);
  runtime->cancel(first.handle);
  runtime.run_all();
  EXPECT_EQ(first.record->finishes(), 1);
  const Request second = runtime.submit(prompt_of(5, 2), 6);  // takes the same slot
  for (const RequestHandle handle : {first.handle, RequestHandle{0}, RequestHandle{-1}, RequestHandle{1} << 40}) {
    runtime->cancel(handle);
  }
  runtime.run_all();
  EXPECT_EQ(second.record->ids(), continuation(prompt_of(5, 2), 6));
  EXPECT_EQ(second.record->wait().reason, FinishReason::kLength);
}

}  // namespace
}  // namespace cairn::testing
