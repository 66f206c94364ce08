// Who gets the tokens of a step: rows that decode take turns, prompts have a share, the oldest prompt comes first, and
// the counters add up.
#include "tests/unit/runtime/scripted_runtime.hpp"

namespace cairn::testing {
namespace {

DeploymentConfig budget(std::int64_t tokens) {
  DeploymentConfig deployment;
  deployment.max_batch_tokens = tokens;
  return deployment;
}

RequestSpec endless(std::vector<std::int32_t> prompt, int max_tokens) {
  RequestSpec spec = ScriptedRuntime::spec(std::move(prompt), max_tokens);
  spec.sampling.logit_bias = {{SCRIPTED_END, -1000.0F}};
  return spec;
}

TEST(Worker, RowsTakeTurnsWhenAStepCannotHoldThemAll) {
  ScriptedRuntime runtime(budget(4), true);
  std::vector<Request> requests;
  for (int i = 0; i < 10; ++i) requests.push_back(runtime.submit(endless(prompt_of(1, i), 500)));
  const auto counts = [&] {
    std::vector<std::size_t> tokens;
    for (const Request& request : requests) tokens.push_back(request.record->ids().size());
    return tokens;
  };
  const auto least = [&] {
    const auto now = counts();
    return *std::min_element(now.begin(), now.end());
  };
  int steps = 0;
  while (least() == 0) {
    ASSERT_TRUE(runtime->run_once());
    ASSERT_LT(++steps, 20);
  }
  const auto before = counts();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(runtime->run_once());  // 200 rows: 20 for each of 10
  const auto after = counts();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_GE(after[i] - before[i], 19U) << i;
    EXPECT_LE(after[i] - before[i], 21U) << i;
  }
}

TEST(Worker, APromptGoesOnBesideMoreRowsThanTheBudget) {
  ScriptedRuntime runtime(budget(8), true);
  for (int i = 0; i < 12; ++i) runtime.submit(endless(prompt_of(1, i), 3000));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(runtime->run_once());
  const Request prompt = runtime.submit(endless(prompt_of(40, 50), 1));
  int steps = 0;
  while (!prompt.record->finished()) {
    ASSERT_TRUE(runtime->run_once());
    ++steps;
  }
  EXPECT_LE(steps, 20);  // a quarter of 8 tokens in each
  EXPECT_EQ(prompt.record->ids(), continuation(prompt_of(40, 50), 1));
}

TEST(Worker, TheOldestPromptComesFirst) {
  ScriptedRuntime runtime(budget(10), true);
  const Request first = runtime.submit(endless(prompt_of(35, 1), 1));
  const Request second = runtime.submit(endless(prompt_of(5, 2), 1));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(runtime->run_once());
  EXPECT_FALSE(first.record->finished());
  EXPECT_FALSE(second.record->finished());
  ASSERT_TRUE(runtime->run_once());  // its last 5 tokens, and 5 of the other
  EXPECT_TRUE(first.record->finished());
  EXPECT_TRUE(second.record->finished());
}

TEST(Worker, CountersAddUp) {
  ScriptedRuntime runtime(budget(16), true);
  std::vector<Request> requests;
  for (int i = 1; i <= 6; ++i) {
    requests.push_back(runtime.submit(prompt_of(static_cast<std::size_t>(i) * 7, i), i * 3));
  }
  EXPECT_EQ(runtime->stats().waiting, 6);
  runtime.run_all();
  std::int64_t generated = 0;
  for (const Request& request : requests) generated += static_cast<std::int64_t>(request.record->ids().size());
  const RuntimeStats stats = runtime->stats();
  EXPECT_EQ(stats.generation_tokens_total, generated);
  EXPECT_EQ(stats.prompt_tokens_total, 7 * (1 + 2 + 3 + 4 + 5 + 6));
  EXPECT_EQ(stats.finished_total[0] + stats.finished_total[1], 6);
  EXPECT_EQ(stats.finished_total[2] + stats.finished_total[3], 0);
  runtime.expect_nothing_held();
}

}  // namespace
}  // namespace cairn::testing
