// Per-request configs: translation of sampling parameters, defaults, and checked copies of a plugin's answer.
#include "core/conductor/request_configs.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.hpp"
#include "tests/unit/graph/desc_builder.hpp"

namespace cairn::testing {
namespace {

const std::uint32_t kNode0[] = {0};

class RequestConfigs : public ::testing::Test {
 protected:
  RequestConfigs() : model({"x"}, {"a"}) {
    model.walk("walk").node(0, {0}, {});
    kv.struct_size = sizeof(kv);
    kv.num_layers = kv.num_kv_heads = kv.head_dim = kv.max_seq_len = 1;
    kv.leader = CAIRN_NONE;
    sampler.struct_size = sizeof(sampler);
    sampler.vocab_size = 9;
    model.resources.push_back({text("kv"), CAIRN_RESOURCE_KV, 0, {kNode0, 1}, &kv, {}});
    model.resources.push_back({text("sampler"), CAIRN_RESOURCE_SAMPLER, 0, {kNode0, 1}, &sampler, {}});
    spec = ModelSpec::from_desc(model.desc());
    client.struct_size = sizeof(client);
    client.temperature = 0.5;
  }
  ResourceReqConfigs copy(std::vector<cairn_resource_req_config> configs) {
    return ResourceReqConfigs::copy_of(spec, {configs.data(), configs.size(), 0}, client, 7, 20);
  }
  std::string refusal(std::vector<cairn_resource_req_config> configs) {
    try {
      copy(std::move(configs));
    } catch (const InternalError& error) {
      return error.what();
    }
    return "accepted";
  }

  ModelBuilder model;
  cairn_kv_config kv{};
  cairn_sampler_config sampler{};
  ModelSpec spec;
  cairn_sampling_req_config client{};
};

TEST_F(RequestConfigs, DefaultsCoverEverySamplerAndPool) {
  const auto configs = ResourceReqConfigs::defaults(spec, client, 7, 20);
  ASSERT_NE(configs.sampling(1), nullptr);
  EXPECT_EQ(configs.sampling(1)->temperature, 0.5);
  EXPECT_EQ(configs.sampling(0), nullptr) << "that is a pool";
  ASSERT_NE(configs.kv(0), nullptr);
  EXPECT_EQ(configs.kv(0)->max_tokens, 20);
  ASSERT_EQ(configs.kv(0)->prompt_slots.count, 1U);
  EXPECT_EQ(configs.kv(0)->prompt_slots.data[0].tokens, 7);
  EXPECT_EQ(configs.kv(0)->prompt_slots.data[0].decodes, 1U);
}

TEST_F(RequestConfigs, WhatThePluginDoesNotMentionGetsTheDefault) {
  cairn_sampling_req_config mine{};
  mine.struct_size = sizeof(mine);
  mine.temperature = 0.25;
  const auto configs = copy({{1, CAIRN_RESOURCE_SAMPLER, &mine}});
  EXPECT_EQ(configs.sampling(1)->temperature, 0.25);
  EXPECT_EQ(configs.kv(0)->max_tokens, 20);
}

TEST_F(RequestConfigs, CopiesListsDeeply) {
  std::int32_t stops[] = {3, 4};
  std::int32_t tokens[] = {5};
  float biases[] = {1.5F};
  cairn_sampling_req_config mine{};
  mine.struct_size = sizeof(mine);
  mine.stop_tokens = {stops, 2};
  mine.bias_tokens = tokens;
  mine.bias_values = biases;
  mine.bias_count = 1;
  std::uint32_t labels[] = {0};
  cairn_needed_labels rule{CAIRN_NONE, 0, {labels, 1}};
  cairn_kv_req_config pool{};
  pool.struct_size = sizeof(pool);
  pool.needed_labels = {&rule, 1, 0};
  const auto configs = copy({{1, CAIRN_RESOURCE_SAMPLER, &mine}, {0, CAIRN_RESOURCE_KV, &pool}});
  stops[1] = tokens[0] = -1;
  biases[0] = 0.0F;
  labels[0] = 99;
  rule.walk = 99;
  EXPECT_EQ(configs.sampling(1)->stop_tokens.data[1], 4);
  EXPECT_EQ(configs.sampling(1)->bias_tokens[0], 5);
  EXPECT_EQ(configs.sampling(1)->bias_values[0], 1.5F);
  EXPECT_EQ(configs.kv(0)->needed_labels.data[0].walk, 0U);
  EXPECT_EQ(configs.kv(0)->needed_labels.data[0].labels.data[0], 0U);
}

TEST_F(RequestConfigs, AnOlderPluginsShorterStructReadsAsZerosBeyondIt) {
  cairn_sampling_req_config mine{};
  mine.temperature = 0.25;
  mine.logprobs = -7;
  mine.struct_size = CAIRN_SIZE(cairn_sampling_req_config, temperature);
  const auto configs = copy({{1, CAIRN_RESOURCE_SAMPLER, &mine}});
  EXPECT_EQ(configs.sampling(1)->logprobs, 0);
}

TEST_F(RequestConfigs, RefusesWhatDoesNotFit) {
  cairn_sampling_req_config mine{};
  mine.struct_size = sizeof(mine);
  EXPECT_NE(refusal({{5, CAIRN_RESOURCE_SAMPLER, &mine}}).find("resource 5"), std::string::npos);
  EXPECT_NE(refusal({{0, CAIRN_RESOURCE_SAMPLER, &mine}}).find("\"kv\""), std::string::npos);
  EXPECT_NE(refusal({{1, CAIRN_RESOURCE_SAMPLER, nullptr}}).find("no config"), std::string::npos);
  EXPECT_NE(refusal({{1, CAIRN_RESOURCE_SAMPLER, &mine}, {1, CAIRN_RESOURCE_SAMPLER, &mine}}).find("twice"),
            std::string::npos);
  mine.temperature = std::nan("");
  EXPECT_NE(refusal({{1, CAIRN_RESOURCE_SAMPLER, &mine}}).find("temperature"), std::string::npos);
  mine.temperature = 1.0;
  mine.top_p = 1.5;
  EXPECT_NE(refusal({{1, CAIRN_RESOURCE_SAMPLER, &mine}}).find("top_p"), std::string::npos);
  mine.top_p = 1.0;
  mine.stop_tokens = {nullptr, 3};
  EXPECT_NE(refusal({{1, CAIRN_RESOURCE_SAMPLER, &mine}}).find("stop_tokens"), std::string::npos);
  const std::uint32_t labels[] = {3};
  cairn_needed_labels rule{CAIRN_NONE, CAIRN_NONE, {labels, 1}};
  cairn_kv_req_config pool{};
  pool.struct_size = sizeof(pool);
  pool.needed_labels = {&rule, 1, 0};
  EXPECT_NE(refusal({{0, CAIRN_RESOURCE_KV, &pool}}).find("labels"), std::string::npos);
}

TEST(RequestSamplingTest, TranslatesTheClientsParameters) {
  SamplingParams params;
  params.temperature = 0.5F;
  params.top_k = 40;
  params.top_p = 0.75F;
  params.logit_bias = {{11, -2.5F}};
  params.logprobs = 0;
  const RequestSampling sampling(params, 99, {1, 2}, 4, true);
  const cairn_sampling_req_config& view = sampling.view();
  EXPECT_EQ(view.temperature, 0.5);
  EXPECT_EQ(view.top_k, 40);
  EXPECT_EQ(view.top_p, 0.75);
  EXPECT_EQ(view.seed, 99U);
  EXPECT_EQ(view.ignore_eos, 1U);
  EXPECT_EQ(view.logprobs, 1) << "the chosen token alone";
  EXPECT_EQ(view.prompt_logprobs, 0) << "none";
  EXPECT_EQ(view.bias_count, 1U);
  EXPECT_EQ(view.bias_tokens[0], 11);
  EXPECT_EQ(view.bias_values[0], -2.5F);
  EXPECT_EQ(view.stop_tokens.count, 2U);
  EXPECT_EQ(view.min_tokens, 4);
}

}  // namespace
}  // namespace cairn::testing
