// The sampler resource: which rows need logits, what is drawn, and what it remembers between steps.
#include "core/resources/sampler/sampler.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.hpp"
#include "step_fixture.hpp"

namespace cairn {
namespace {

using testing::FloatTensor;
using testing::IntTensor;
using testing::needs;
using testing::small_pool;
using testing::StepFixture;

constexpr RequestHandle kA = (RequestHandle{1} << 32) | 0;
constexpr RequestHandle kB = (RequestHandle{1} << 32) | 1;
constexpr std::int64_t kVocab = 50;

class SamplerTest : public ::testing::Test {
 protected:
  SamplerTest() : pool("kv", 0, small_pool(16)), sampler("sampler", 1, {kVocab, true, true, 8}, pool) {
    std::string why;
    pool.reserve(kA, needs(100, 0), why);
    pool.reserve(kB, needs(100, 0), why);
  }
  void ingest(RequestHandle request, const SamplingParams& params, std::span<const std::int32_t> prompt = {}) {
    RequestNeeds request_needs = needs(10, 10);
    request_needs.sampling = &params;
    request_needs.prompt_ids = prompt;
    sampler.ingest_request(request, request_needs, nullptr);
  }
  void plan(StepFixture& step) {
    pool.admit(step.step(), step.context());
    pool.plan(step.step(), step.context());
    sampler.plan({step.step().segments, nullptr}, step.context());
  }
  void commit(StepFixture& step) {
    pool.commit(step.step(), step.context());
    sampler.commit(step.step(), step.context());
  }
  // One decode step of request A over these logits; the token.
  std::int32_t draw(const std::vector<float>& logits) {
    StepFixture step({kA}, {1});
    plan(step);
    FloatTensor tensor(1, kVocab);
    tensor.values.assign(logits.begin(), logits.end());
    tensor.view.data = tensor.values.data();
    IntTensor out(1);
    sampler.sample(&tensor.view, &out.view, step.context());
    commit(step);
    return out.values[0];
  }
  KvPool pool;
  Sampler sampler;
};

std::vector<float> flat_with(std::int64_t token, float value) {
  std::vector<float> logits(kVocab, 0.0F);
  logits[static_cast<std::size_t>(token)] = value;
  return logits;
}

TEST_F(SamplerTest, GreedyTakesTheLargestAndTheLowestIndexOnATie) {
  SamplingParams params;
  params.temperature = 0.0F;
  ingest(kA, params);
  EXPECT_EQ(draw(flat_with(17, 1.0F)), 17);
  std::vector<float> tie = flat_with(30, 2.0F);
  tie[12] = 2.0F;
  EXPECT_EQ(draw(tie), 12);
}

TEST_F(SamplerTest, NonFinalChunksNeedNoLogitsAndDoNotSample) {
  SamplingParams params;
  ingest(kA, params);
  ingest(kB, params);
  StepFixture step({kA, kB}, {5, 3});
  step.rows()[0].last_chunk = false;
  plan(step);
  EXPECT_EQ(sampler.num_logit_rows(), 1);
  FloatTensor hidden(8, 4);
  for (int t = 0; t < 8; ++t) hidden.values[static_cast<std::size_t>(t) * 4] = static_cast<float>(t);
  FloatTensor selected(1, 4);
  sampler.select_hidden(&hidden.view, &selected.view);
  EXPECT_EQ(selected.values[0], 7.0F);  // the last token of B
  FloatTensor logits(1, kVocab);
  logits.values[9] = 5.0F;
  IntTensor out(2);
  sampler.sample(&logits.view, &out.view, step.context());
  EXPECT_EQ(out.values[0], -1);
  EXPECT_GE(out.values[1], 0);
  EXPECT_EQ(sampler.sampled(0), nullptr);
}

TEST_F(SamplerTest, ADrawDependsOnTheRequestAloneNotOnItsNeighbours) {
  SamplingParams params;
  params.seed = 99;
  ingest(kA, params);
  std::vector<std::int32_t> alone;
  for (int i = 0; i < 10; ++i) alone.push_back(draw(flat_with(i, 1.5F)));
  sampler.remove_request(kA);
  SamplingParams other;
  other.seed = 5;
  ingest(kA, params);
  ingest(kB, other);
  for (int i = 0; i < 10; ++i) {
    StepFixture step({kB, kA}, {1, 1});
    plan(step);
    FloatTensor logits(2, kVocab);
    logits.values[kVocab + static_cast<std::size_t>(i)] = 1.5F;
    IntTensor out(2);
    sampler.sample(&logits.view, &out.view, step.context());
    commit(step);
    EXPECT_EQ(out.values[1], alone[static_cast<std::size_t>(i)]) << i;
  }
}

TEST_F(SamplerTest, AStepThatDoesNotCommitDrawsTheSameAgain) {
  SamplingParams params;
  params.seed = 3;
  ingest(kA, params);
  const std::vector<float> logits(kVocab, 0.0F);
  StepFixture abandoned({kA}, {1});
  plan(abandoned);
  FloatTensor tensor(1, kVocab);
  IntTensor out(1);
  sampler.sample(&tensor.view, &out.view, abandoned.context());
  EXPECT_EQ(draw(logits), out.values[0]);
}

TEST_F(SamplerTest, RepetitionPenaltyCountsPromptAndOutputTokens) {
  SamplingParams params;
  params.temperature = 0.0F;
  params.repetition_penalty = 2.0F;
  ingest(kA, params);
  StepFixture prompt({kA}, {1});
  IntTensor ids(1);
  ids.values[0] = 20;
  const cairn_tracked_tokens tracked{kA, ids.view};
  cairn_sampler_step detail{};
  detail.struct_size = sizeof(detail);
  detail.prefill_tracked_tokens = {&tracked, 1, sizeof(tracked)};
  pool.admit(prompt.step(), prompt.context());
  pool.plan(prompt.step(), prompt.context());
  sampler.plan({prompt.step().segments, &detail}, prompt.context());
  FloatTensor logits(1, kVocab);
  logits.values[20] = 3.0F;
  logits.values[21] = 2.0F;
  IntTensor out(1);
  sampler.sample(&logits.view, &out.view, prompt.context());
  commit(prompt);
  EXPECT_EQ(out.values[0], 21);  // 3 / 2 is below 2
  std::vector<float> next(kVocab, 0.0F);
  next[21] = 3.0F;
  next[22] = 2.0F;
  EXPECT_EQ(draw(next), 22);
}

TEST_F(SamplerTest, FrequencyPenaltyCountsOutputTokensOnly) {
  SamplingParams params;
  params.temperature = 0.0F;
  params.frequency_penalty = 0.6F;
  ingest(kA, params);
  std::vector<float> logits = flat_with(5, 1.0F);
  EXPECT_EQ(draw(logits), 5);  // 1.0 against 0
  EXPECT_EQ(draw(logits), 5);  // 0.4
  EXPECT_EQ(draw(logits), 0);  // -0.2: the lowest index of the rest
}

TEST_F(SamplerTest, AStepMayLeaveThePenaltiesOut) {
  SamplingParams params;
  params.temperature = 0.0F;
  params.frequency_penalty = 2.0F;
  ingest(kA, params);
  const std::vector<float> logits = flat_with(5, 1.0F);
  EXPECT_EQ(draw(logits), 5);
  StepFixture step({kA}, {1});
  cairn_sampler_step detail{};
  detail.struct_size = sizeof(detail);
  detail.no_penalty = 1;
  pool.admit(step.step(), step.context());
  pool.plan(step.step(), step.context());
  sampler.plan({step.step().segments, &detail}, step.context());
  FloatTensor tensor(1, kVocab);
  tensor.values.assign(logits.begin(), logits.end());
  tensor.view.data = tensor.values.data();
  IntTensor out(1);
  sampler.sample(&tensor.view, &out.view, step.context());
  commit(step);
  EXPECT_EQ(out.values[0], 5);
  EXPECT_EQ(draw(logits), 0);  // the next step applies them again
}

TEST_F(SamplerTest, EndTokensAreBannedUntilMinTokens) {
  SamplingParams params;
  params.temperature = 0.0F;
  const std::int32_t end[] = {7};
  RequestNeeds request_needs = needs(10, 10);
  request_needs.sampling = &params;
  request_needs.end_tokens = end;
  request_needs.min_tokens = 2;
  sampler.ingest_request(kA, request_needs, nullptr);
  std::vector<float> logits = flat_with(7, 5.0F);
  logits[8] = 1.0F;
  EXPECT_EQ(draw(logits), 8);
  EXPECT_EQ(draw(logits), 8);
  EXPECT_EQ(draw(logits), 7);
}

TEST_F(SamplerTest, LogitBiasMovesTheChoiceAndNotTheLogprobs) {
  SamplingParams params;
  params.temperature = 0.0F;
  params.logit_bias = {{3, 100.0F}};
  params.logprobs = 2;
  ingest(kA, params);
  StepFixture step({kA}, {1});
  plan(step);
  FloatTensor logits(1, kVocab);
  logits.values[9] = 2.0F;
  IntTensor out(1);
  sampler.sample(&logits.view, &out.view, step.context());
  EXPECT_EQ(out.values[0], 3);
  const TokenRecord* record = sampler.sampled(0);
  ASSERT_NE(record, nullptr);
  const double total = std::log(49.0 + std::exp(2.0));
  EXPECT_NEAR(record->logprob, -total, 1e-5);
  ASSERT_EQ(record->top_count, 2);
  EXPECT_EQ(record->top[0].token, 9);
  EXPECT_NEAR(record->top[0].logprob, 2.0 - total, 1e-5);
  EXPECT_EQ(record->top[1].token, 0);
}

TEST_F(SamplerTest, ScoresEveryPromptTokenButTheFirstAcrossChunks) {
  SamplingParams params;
  params.temperature = 0.0F;
  params.prompt_logprobs = 0;
  const std::vector<std::int32_t> prompt = {4, 8, 15, 16};
  ingest(kA, params, prompt);
  StepFixture first({kA}, {2});
  first.rows()[0] = {kA, 0, 2, true, false};
  plan(first);
  ASSERT_EQ(sampler.num_logit_rows(), 2);
  FloatTensor logits(2, kVocab);
  logits.values[8] = 1.0F;            // predicts token 8 after 4
  logits.values[kVocab + 15] = 2.0F;  // and 15 after 8
  IntTensor out(1);
  sampler.sample(&logits.view, &out.view, first.context());
  commit(first);
  auto scored = sampler.scored(kA);
  ASSERT_EQ(scored.size(), 3U);
  EXPECT_EQ(scored[0].token, 4);
  EXPECT_FALSE(scored[0].has_logprob);
  EXPECT_EQ(scored[1].token, 8);
  EXPECT_NEAR(scored[1].logprob, 1.0 - std::log(49.0 + std::exp(1.0)), 1e-5);
  EXPECT_NEAR(scored[2].logprob, 2.0 - std::log(49.0 + std::exp(2.0)), 1e-5);
  sampler.clear_scored(kA);
  StepFixture last({kA}, {2});
  last.rows()[0] = {kA, 2, 4, true, true};
  plan(last);
  ASSERT_EQ(sampler.num_logit_rows(), 2);  // one to sample from, one to score with
  FloatTensor more(2, kVocab);
  more.values[33] = 9.0F;
  IntTensor token(1);
  sampler.sample(&more.view, &token.view, last.context());
  EXPECT_EQ(token.values[0], 33);
  scored = sampler.scored(kA);
  ASSERT_EQ(scored.size(), 1U);  // 16; what follows the prompt is sampled, not scored
  EXPECT_EQ(scored[0].token, 16);
}

TEST_F(SamplerTest, RefusesMinPWhereTheModelHasNone) {
  Sampler plain("plain", 2, {kVocab, true, false, 8}, pool);
  SamplingParams params;
  params.min_p = 0.1F;
  RequestNeeds request_needs = needs(1, 1);
  request_needs.sampling = &params;
  EXPECT_THROW(plain.ingest_request(kA, request_needs, nullptr), InvalidArgument);
}

TEST_F(SamplerTest, RowsOfNothingButNanAreAnErrorNotAToken) {
  SamplingParams params;
  params.temperature = 0.0F;
  ingest(kA, params);
  EXPECT_THROW(draw(std::vector<float>(kVocab, std::nanf(""))), InternalError);
}

}  // namespace
}  // namespace cairn
