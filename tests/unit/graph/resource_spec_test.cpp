// Resource specs: copies of configs, the order of dependencies, and refusals.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.hpp"
#include "core/graph/model_spec.hpp"
#include "tests/unit/graph/desc_builder.hpp"

namespace cairn::testing {
namespace {

const std::uint32_t kNode0[] = {0};

cairn_kv_config kv_config() {
  cairn_kv_config config{};
  config.struct_size = sizeof(config);
  config.num_layers = 2;
  config.num_kv_heads = 3;
  config.head_dim = 64;
  config.max_seq_len = 128;
  config.leader = CAIRN_NONE;
  return config;
}

class ResourceSpecs : public ::testing::Test {
 protected:
  ResourceSpecs() : model({"x"}, {"a"}) { model.walk("walk").node(0, {0}, {}); }

  void add(const char* key, std::uint32_t kind, const void* config, cairn_u32_span depends = {}) {
    model.resources.push_back({text(key), kind, 0, {kNode0, 1}, config, depends});
  }
  ModelSpec read() { return ModelSpec::from_desc(model.desc()); }
  std::string refusal() {
    try {
      read();
    } catch (const InvalidArgument& error) {
      return error.what();
    } catch (const NotSupported& error) {
      return std::string("not supported: ") + error.what();
    }
    return "accepted";
  }
  void expect_refusal(std::initializer_list<const char*> parts) {
    const std::string message = refusal();
    for (const char* part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  ModelBuilder model;
  cairn_kv_config kv = kv_config();
};

TEST_F(ResourceSpecs, OwnsWhatAConfigPointsTo) {
  std::string salt = "salt";
  kv.prefix_cache_salt = {salt.data(), salt.size()};
  float factors[] = {1.0F, 2.0F};
  cairn_position_config position{};
  position.struct_size = sizeof(position);
  position.head_dim = 4;
  position.freq_factors = factors;
  add("kv", CAIRN_RESOURCE_KV, &kv);
  add("rope", CAIRN_RESOURCE_POSITION, &position);
  const ModelSpec spec = read();
  salt = "gone";
  factors[1] = -1.0F;
  const auto& kept_kv = spec.resources[0].config.as<cairn_kv_config>();
  EXPECT_EQ(std::string(kept_kv.prefix_cache_salt.data, kept_kv.prefix_cache_salt.size), "salt");
  EXPECT_EQ(kept_kv.num_qo_heads, 3) << "not given: as many as key and value heads";
  const auto& kept_position = spec.resources[1].config.as<cairn_position_config>();
  EXPECT_EQ(kept_position.rotary_dim, 4);
  EXPECT_EQ(kept_position.freq_factors[1], 2.0F);
  EXPECT_EQ(spec.find_resource("rope"), 1U);
}

TEST_F(ResourceSpecs, AMovedSpecKeepsItsConfigs) {
  kv.prefix_cache_salt = text("s");
  add("kv", CAIRN_RESOURCE_KV, &kv);
  ModelSpec spec = read();
  const ModelSpec moved = std::move(spec);
  const auto& kept = moved.resources[0].config.as<cairn_kv_config>();
  EXPECT_EQ(std::string(kept.prefix_cache_salt.data, kept.prefix_cache_salt.size), "s");
}

TEST_F(ResourceSpecs, AreBuiltDependenciesFirstAndByKeyInsideALayer) {
  cairn_sampler_config sampler{};
  sampler.struct_size = sizeof(sampler);
  sampler.vocab_size = 10;
  cairn_attention_config attention{};
  attention.struct_size = sizeof(attention);
  attention.kv_cache = 3;
  const std::uint32_t on_attention[] = {1};
  add("z_sampler", CAIRN_RESOURCE_SAMPLER, &sampler);
  add("attention", CAIRN_RESOURCE_ATTENTION, &attention);
  add("b_sampler", CAIRN_RESOURCE_SAMPLER, &sampler, {on_attention, 1});
  add("kv", CAIRN_RESOURCE_KV, &kv);
  const ModelSpec spec = read();
  EXPECT_EQ(spec.resource_order, (Indices{3, 0, 1, 2}));
  EXPECT_EQ(spec.resources[1].depends_on, Indices{3});
}

TEST_F(ResourceSpecs, RefuseCirclesAndSelfDependencies) {
  cairn_sampler_config sampler{};
  sampler.struct_size = sizeof(sampler);
  sampler.vocab_size = 10;
  const std::uint32_t first[] = {0}, second[] = {1}, third[] = {7};
  add("one", CAIRN_RESOURCE_SAMPLER, &sampler, {second, 1});
  add("two", CAIRN_RESOURCE_SAMPLER, &sampler, {first, 1});
  expect_refusal({"\"one\"", "\"two\"", "circle"});
  model.resources[0].depends_on = {first, 1};
  expect_refusal({"\"one\"", "itself"});
  model.resources[0].depends_on = {third, 1};
  expect_refusal({"\"one\"", "depends_on", "7"});
}

TEST_F(ResourceSpecs, RefuseTwoSpecsOfOneKey) {
  add("kv", CAIRN_RESOURCE_KV, &kv);
  add("kv", CAIRN_RESOURCE_KV, &kv);
  expect_refusal({"resources[1]", "\"kv\"", "taken"});
}

TEST_F(ResourceSpecs, RefuseUnknownKindsAndMissingConfigs) {
  add("odd", 99, &kv);
  expect_refusal({"not supported", "\"odd\"", "99"});
  model.resources[0] = {text("kv"), CAIRN_RESOURCE_KV, 0, {kNode0, 1}, nullptr, {}};
  expect_refusal({"\"kv\"", "config", "missing"});
  model.resources[0] = {text("kv"), CAIRN_RESOURCE_KV, 0, {nullptr, 0}, &kv, {}};
  expect_refusal({"\"kv\"", "nodes", "empty"});
  const std::uint32_t nobody[] = {4};
  model.resources[0] = {text("kv"), CAIRN_RESOURCE_KV, 0, {nobody, 1}, &kv, {}};
  expect_refusal({"\"kv\"", "nodes", "4"});
}

TEST_F(ResourceSpecs, RefuseReferencesToAResourceOfAnotherKind) {
  cairn_attention_config attention{};
  attention.struct_size = sizeof(attention);
  attention.kv_cache = 0;
  add("attention", CAIRN_RESOURCE_ATTENTION, &attention);
  expect_refusal({"\"attention\"", "kv_cache", "does not fit"});
}

TEST_F(ResourceSpecs, RefuseSizesThatMakeNoSense) {
  add("kv", CAIRN_RESOURCE_KV, &kv);
  EXPECT_EQ(refusal(), "accepted");
  kv.num_layers = 0;
  expect_refusal({"\"kv\"", "num_layers", "0"});
  kv = kv_config();
  kv.head_dim = INT64_MAX;
  expect_refusal({"\"kv\"", "head_dim"});
  kv = kv_config();
  kv.num_qo_heads = 4;
  expect_refusal({"\"kv\"", "num_qo_heads", "multiple"});
}

TEST_F(ResourceSpecs, RefusePositionsThatMakeNoSense) {
  cairn_position_config position{};
  const auto reset = [&] {
    position = {};
    position.struct_size = sizeof(position);
    position.head_dim = 8;
  };
  reset();
  add("kv", CAIRN_RESOURCE_KV, &kv);
  add("rope", CAIRN_RESOURCE_POSITION, &position);
  EXPECT_EQ(refusal(), "accepted");
  position.rope_theta = std::nan("");
  expect_refusal({"\"rope\"", "rope_theta"});
  reset();
  position.rotary_dim = 7;
  expect_refusal({"\"rope\"", "rotary_dim", "7"});
  reset();
  position.scaling = 42;
  expect_refusal({"not supported", "\"rope\"", "scaling", "42"});
  reset();
  position.scaling = CAIRN_ROPE_SCALING_LLAMA3;
  position.low_freq_factor = 1.0;
  expect_refusal({"\"rope\"", "low_freq_factor", "all"});
  reset();
  position.scaling = CAIRN_ROPE_SCALING_LONGROPE;
  expect_refusal({"\"rope\"", "longrope"});
  reset();
  const float factors[] = {1.0F, 0.0F, 1.0F, 1.0F};
  position.freq_factors = factors;
  expect_refusal({"\"rope\"", "freq_factors[1]"});
}

TEST_F(ResourceSpecs, ASamplerWithPenaltiesNeedsAVocabulary) {
  cairn_sampler_config sampler{};
  sampler.struct_size = sizeof(sampler);
  add("sampler", CAIRN_RESOURCE_SAMPLER, &sampler);
  expect_refusal({"\"sampler\"", "vocab_size"});
  sampler.no_repetition_penalty = 1;
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(ResourceSpecs, CopyStateBlocksDeeply) {
  std::int64_t shape[] = {4, 2};
  cairn_state_block block{text("conv"), cairn_dtype{CAIRN_DTYPE_FLOAT, 32, 1}, 0, {shape, 2}};
  cairn_slot_state_config config{};
  config.struct_size = sizeof(config);
  config.max_slots = 8;
  config.tensors = {&block, 1, 0};
  add("state", CAIRN_RESOURCE_SLOT_STATE, &config);
  const ModelSpec spec = read();
  shape[0] = 999;
  block.name = text("gone");
  const auto& kept = spec.resources[0].config.as<cairn_slot_state_config>();
  ASSERT_EQ(kept.tensors.count, 1U);
  EXPECT_EQ(std::string(kept.tensors.data[0].name.data, kept.tensors.data[0].name.size), "conv");
  EXPECT_EQ(kept.tensors.data[0].shape.data[0], 4);
  block.dtype.code = 77;
  expect_refusal({"\"state\"", "dtype"});
}

}  // namespace
}  // namespace cairn::testing
