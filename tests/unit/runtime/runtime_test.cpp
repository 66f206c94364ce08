// What requests get when nothing goes wrong: tokens whatever the chunking, limits, queues, order of admission,
// draining.
#include "tests/unit/runtime/scripted_runtime.hpp"

namespace cairn::testing {
namespace {

using namespace std::chrono_literals;

DeploymentConfig budget(std::int64_t tokens) {
  DeploymentConfig deployment;
  deployment.max_batch_tokens = tokens;
  return deployment;
}

// Room for `pages` pages of 16 tokens.
DeploymentConfig pages(std::int64_t count) {
  DeploymentConfig deployment;
  deployment.resources = ValueMap{{"kv", ValueMap{{"page_size", std::int64_t{16}}, {"max_num_pages", count}}}};
  return deployment;
}

// The first prompt whose continuation ends by itself after 3 to 20 tokens.
std::vector<std::int32_t> ending_prompt() {
  for (int seed = 0;; ++seed) {
    const auto prompt = prompt_of(5, seed);
    const std::size_t length = continuation(prompt, 30).size();
    if (length >= 3 && length <= 20) return prompt;
  }
}

TEST(Runtime, EveryBudgetGivesTheTokensOfTheModel) {
  const std::vector<std::size_t> lengths{1, 2, 7, 16, 17, 33, 64, 100};
  for (const std::int64_t tokens : {1, 2, 3, 5, 8, 16, 31, 64, 4096}) {
    ScriptedRuntime runtime(budget(tokens), true);
    std::vector<Request> requests;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      requests.push_back(runtime.submit(prompt_of(lengths[i], static_cast<int>(i)), 12));
    }
    runtime.run_all();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto expected = continuation(prompt_of(lengths[i], static_cast<int>(i)), 12);
      EXPECT_EQ(requests[i].record->ids(), expected) << "budget " << tokens << ", prompt of " << lengths[i];
    }
    runtime.expect_nothing_held();
  }
}

TEST(Runtime, PromptLogprobsAreTheSameAtEveryBudget) {
  std::vector<TokenRecord> whole;
  const auto prompt = prompt_of(50, 3);
  for (const std::int64_t tokens : {4096, 1, 7, 16, 49, 50}) {
    ScriptedRuntime runtime(budget(tokens), true);
    RequestSpec spec = ScriptedRuntime::spec(prompt, 2);
    spec.sampling.prompt_logprobs = 3;
    const Request request = runtime.submit(std::move(spec));
    runtime.submit(prompt_of(20, 4), 5);  // somebody else's tokens in between
    runtime.run_all();
    const auto scored = request.record->prompt();
    ASSERT_EQ(scored.size(), prompt.size());
    EXPECT_FALSE(scored[0].has_logprob);
    if (whole.empty()) whole = scored;
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < scored.size(); ++i) {
      EXPECT_EQ(scored[i].token, prompt[i]);
      EXPECT_EQ(scored[i].logprob, whole[i].logprob) << "budget " << tokens << ", position " << i;
      if (i > 0) {
        // Against a plain softmax in double precision.
        double total = 0;
        for (std::int32_t t = 0; t < SCRIPTED_VOCAB; ++t) total += std::exp(double{scripted_logit(sum, t)});
        EXPECT_NEAR(scored[i].logprob, scripted_logit(sum, prompt[i]) - std::log(total), 1e-4);
        EXPECT_EQ(scored[i].top_count, 3);
      }
      sum = scripted_sum(sum, static_cast<std::int64_t>(i), prompt[i]);
    }
  }
}

TEST(Runtime, EndTokenEndsAndIsNotDelivered) {
  ScriptedRuntime runtime({}, true);
  const auto prompt = ending_prompt();
  const auto expected = continuation(prompt, 30);
  const Request plain = runtime.submit(prompt, 30);
  RequestSpec ignoring = ScriptedRuntime::spec(prompt, 30);
  ignoring.ignore_eos = true;
  const Request ignored = runtime.submit(std::move(ignoring));
  runtime.run_all();
  EXPECT_EQ(plain.record->ids(), expected);
  EXPECT_EQ(plain.record->wait().reason, FinishReason::kStop);
  EXPECT_EQ(plain.record->wait().stop_token, SCRIPTED_END);
  EXPECT_EQ(plain.record->wait().usage.completion_tokens, static_cast<int>(expected.size()));
  EXPECT_EQ(plain.record->wait().usage.prompt_tokens, 5);
  // The model's own loop stops at its end token all the same, so that what follows may be another walk's affair; the
  // token itself is output here.
  ASSERT_GT(ignored.record->ids().size(), expected.size());
  EXPECT_EQ(ignored.record->ids()[expected.size()], SCRIPTED_END);
}

TEST(Runtime, StopTokenIdsAndMinTokens) {
  ScriptedRuntime runtime({}, true);
  const auto prompt = prompt_of(9, 1);
  const auto full = continuation(prompt, 12);
  RequestSpec stopping = ScriptedRuntime::spec(prompt, 12);
  stopping.stop_token_ids = {full[4]};
  const auto at = static_cast<std::size_t>(std::find(full.begin(), full.end(), full[4]) - full.begin());
  const Request stopped = runtime.submit(std::move(stopping));
  RequestSpec patient = ScriptedRuntime::spec(prompt, 12);
  patient.stop_token_ids = {full[0]};
  patient.min_tokens = 4;
  const Request waited = runtime.submit(std::move(patient));
  runtime.run_all();
  EXPECT_EQ(stopped.record->ids(), std::vector<std::int32_t>(full.begin(), full.begin() + static_cast<long>(at)));
  EXPECT_EQ(stopped.record->wait().stop_token, full[4]);
  ASSERT_GE(waited.record->ids().size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NE(waited.record->ids()[i], full[0]);
}

TEST(Runtime, MaxTokensAndTheContextLimitTheOutput) {
  DeploymentConfig deployment;
  deployment.max_seq_len = 40;
  ScriptedRuntime runtime(deployment, true);
  const Request one = runtime.submit(prompt_of(10, 2), 1);
  RequestSpec endless = ScriptedRuntime::spec(prompt_of(30, 2), 0);
  endless.ignore_eos = true;
  endless.sampling.logit_bias = {{SCRIPTED_END, -1000.0F}};
  const Request all = runtime.submit(std::move(endless));
  runtime.run_all();
  EXPECT_EQ(one.record->ids().size(), 1U);
  EXPECT_EQ(one.record->wait().reason, FinishReason::kLength);
  EXPECT_EQ(all.record->ids().size(), 10U);
  EXPECT_EQ(all.record->wait().reason, FinishReason::kLength);
  EXPECT_THROW(runtime.submit(prompt_of(40, 2), 1), InvalidArgument);
  EXPECT_THROW(runtime.submit({}, 1), InvalidArgument);
  EXPECT_THROW(runtime.submit({SCRIPTED_VOCAB}, 1), InvalidArgument);
  EXPECT_THROW(runtime.submit({-1}, 1), InvalidArgument);
  runtime.expect_nothing_held();
}

TEST(Runtime, QueueIsLimited) {
  DeploymentConfig deployment;
  deployment.max_concurrent_requests = 2;
  deployment.max_queue = 3;
  ScriptedRuntime runtime(deployment, true);
  std::vector<Request> requests;
  for (int i = 0; i < 5; ++i) requests.push_back(runtime.submit(prompt_of(4, i), 3));
  EXPECT_THROW(runtime.submit(prompt_of(4, 9), 3), ResourceExhausted);
  runtime->run_once();
  EXPECT_EQ(runtime->stats().running, 2);
  EXPECT_EQ(runtime->stats().waiting, 3);
  EXPECT_EQ(runtime->stats().open_requests, 5);
  runtime.run_all();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(requests[static_cast<std::size_t>(i)].record->ids(), continuation(prompt_of(4, i), 3));
  }
  runtime.submit(prompt_of(4, 9), 3);  // there is room again
  runtime.run_all();
  runtime.expect_nothing_held();
}

TEST(Runtime, TheHeadWaitsForItsPagesAndNobodyPasses) {
  ScriptedRuntime runtime(pages(8), true);
  const Request small = runtime.submit(prompt_of(40, 1), 20);   // 4 pages
  const Request large = runtime.submit(prompt_of(100, 2), 10);  // 7 pages: waits for the first
  const Request tiny = runtime.submit(prompt_of(4, 3), 4);      // 1 page, which is free, and waits all the same
  runtime->run_once();
  EXPECT_EQ(runtime->stats().running, 1);
  EXPECT_EQ(runtime->stats().waiting, 2);
  while (!small.record->finished()) {
    EXPECT_TRUE(large.record->ids().empty());
    EXPECT_TRUE(tiny.record->ids().empty());
    ASSERT_TRUE(runtime->run_once());
  }
  runtime->run_once();
  EXPECT_EQ(runtime->stats().running, 2);  // both at once: 7 and 1 pages
  runtime.run_all();
  EXPECT_EQ(large.record->ids(), continuation(prompt_of(100, 2), 10));
  EXPECT_EQ(tiny.record->ids(), continuation(prompt_of(4, 3), 4));
  runtime.expect_nothing_held();
}

TEST(Runtime, WhatNeverFitsIsRefusedWithNumbersAndHoldsNobodyUp) {
  ScriptedRuntime runtime(pages(4), true);
  const Request never = runtime.submit(prompt_of(60, 1), 20);
  const Request next = runtime.submit(prompt_of(8, 2), 4);
  runtime.run_all();
  const RequestResult result = never.record->wait();
  EXPECT_EQ(result.reason, FinishReason::kError);
  EXPECT_TRUE(result.client_error);
  for (const char* number : {"80 tokens", "5 pages", "4 pages", "16 tokens"}) {
    EXPECT_NE(result.error.find(number), std::string::npos) << result.error;
  }
  EXPECT_EQ(next.record->ids(), continuation(prompt_of(8, 2), 4));
  runtime.expect_nothing_held();
}

TEST(Runtime, RowsRunTogether) {
  ScriptedRuntime runtime({}, true);
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i) requests.push_back(runtime.submit(prompt_of(3, i), 30));
  runtime.run_all();
  EXPECT_EQ(runtime.read(&scripted_control::largest_batch), 20);
  EXPECT_LE(runtime->stats().steps_total, 30);
}

TEST(Runtime, DrainLetsRequestsEndAndTakesNoMore) {
  ScriptedRuntime runtime;
  const Request request = runtime.submit(prompt_of(10, 1), 200);
  runtime->drain(std::chrono::steady_clock::now() + 60s);
  EXPECT_EQ(runtime->health(), RuntimeHealth::kDraining);
  EXPECT_THROW(runtime.submit(prompt_of(4, 2), 1), ResourceExhausted);
  runtime->wait_drained();
  EXPECT_EQ(request.record->ids(), continuation(prompt_of(10, 1), 200));
  runtime.expect_nothing_held();
}

TEST(Runtime, DrainDeadlineCancelsWhatIsOpen) {
  DeploymentConfig deployment;
  deployment.max_concurrent_requests = 1;
  ScriptedRuntime runtime(deployment, true);
  RequestSpec endless = ScriptedRuntime::spec(prompt_of(4, 1), 0);
  endless.ignore_eos = true;
  const Request running = runtime.submit(std::move(endless));
  const Request queued = runtime.submit(prompt_of(4, 2), 5);
  runtime->run_once();
  runtime->drain(std::chrono::steady_clock::now());
  runtime->run_once();
  runtime->wait_drained();
  EXPECT_EQ(running.record->wait().reason, FinishReason::kCancelled);
  EXPECT_EQ(queued.record->wait().reason, FinishReason::kCancelled);
  EXPECT_EQ(running.record->ids().size(), 1U);
  runtime.expect_nothing_held();
}

TEST(Runtime, DestructionEndsWhatIsOpen) {
  for (const bool paused : {false, true}) {
    ScriptedRuntime runtime({}, paused);
    std::vector<Request> requests;
    for (int i = 0; i < 5; ++i) requests.push_back(runtime.submit(prompt_of(2000, i), 2000));
    runtime.destroy();
    for (const Request& request : requests) EXPECT_EQ(request.record->finishes(), 1);
  }
}

}  // namespace
}  // namespace cairn::testing
