// Several threads submit and cancel at random, with faults among the requests; every answer is right, and afterwards
// nothing is held. Meant for the sanitizers too.
#include <random>
#include <thread>

#include "tests/unit/runtime/scripted_runtime.hpp"

namespace cairn::testing {
namespace {

struct Sent {
  Request request;
  std::vector<std::int32_t> prompt;
  int max_tokens = 0;
  bool cancelled = false;
  bool faulty = false;
};

void check(Sent& sent) {
  const RequestResult result = sent.request.record->wait();
  EXPECT_EQ(sent.request.record->finishes(), 1);
  const auto ids = sent.request.record->ids();
  EXPECT_EQ(result.usage.completion_tokens, static_cast<int>(ids.size()));
  if (sent.faulty) {
    EXPECT_TRUE(result.reason == FinishReason::kError || (sent.cancelled && result.reason == FinishReason::kCancelled));
    return;
  }
  auto expected = continuation(sent.prompt, static_cast<std::size_t>(sent.max_tokens));
  if (sent.cancelled && result.reason == FinishReason::kCancelled) {
    ASSERT_LE(ids.size(), expected.size());
    expected.resize(ids.size());
  } else {
    EXPECT_TRUE(result.reason == FinishReason::kLength || result.reason == FinishReason::kStop) << result.error;
  }
  EXPECT_EQ(ids, expected);
}

TEST(Stress, RandomSubmitsAndCancelsFromManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kRequests = 60;
  DeploymentConfig deployment;
  deployment.max_concurrent_requests = 12;
  deployment.max_queue = 500;
  deployment.max_batch_tokens = 48;
  deployment.resources =
      ValueMap{{"kv", ValueMap{{"page_size", std::int64_t{16}}, {"max_num_pages", std::int64_t{40}}}}};
  ScriptedRuntime runtime(deployment);
  std::vector<std::vector<Sent>> all(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
      std::vector<Sent>& mine = all[static_cast<std::size_t>(thread)];
      for (int i = 0; i < kRequests; ++i) {
        Sent sent;
        sent.prompt = prompt_of(static_cast<std::size_t>(1 + below(120)), thread * 1000 + i);
        sent.max_tokens = 1 + below(30);
        sent.faulty = below(8) == 0;
        if (sent.faulty) sent.prompt.back() = below(2) == 0 ? SCRIPTED_FAIL_PREPARE : SCRIPTED_FAIL_STOP;
        sent.request = runtime.submit(sent.prompt, sent.max_tokens);
        mine.push_back(std::move(sent));
        // One of those sent so far goes, at whatever point it is.
        if (below(2) == 0) {
          Sent& going = mine[static_cast<std::size_t>(below(static_cast<int>(mine.size())))];
          going.cancelled = true;
          runtime->cancel(going.request.handle);
        }
        if (below(4) == 0) runtime->stats();
        if (below(6) == 0) mine[static_cast<std::size_t>(below(static_cast<int>(mine.size())))].request.record->wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int cancelled = 0;
  for (std::vector<Sent>& mine : all) {
    for (Sent& sent : mine) {
      check(sent);
      cancelled += sent.request.record->wait().reason == FinishReason::kCancelled ? 1 : 0;
    }
  }
  EXPECT_GT(cancelled, 0);
  runtime->drain(std::chrono::steady_clock::now() + std::chrono::seconds(60));
  runtime->wait_drained();
  runtime.expect_nothing_held();
  std::int64_t finished = 0;
  for (const std::int64_t count : runtime->stats().finished_total) finished += count;
  EXPECT_EQ(finished, kThreads * kRequests);
  EXPECT_EQ(runtime.read(&scripted_control::closed), kThreads * kRequests);
}

}  // namespace
}  // namespace cairn::testing
