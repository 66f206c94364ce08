// Building resources from specs: the deployment's overrides and what is refused.
#include "core/resources/factory.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "kernels/cpu/attention.hpp"

namespace cairn {
namespace {

cairn_str str(const char* text) {
  return {text, std::char_traits<char>::length(text)};
}

// The smallest model with one KV pool: one node in one walk.
struct OnePool {
  OnePool() {
    kv.struct_size = sizeof(kv);
    kv.num_layers = 1;
    kv.num_kv_heads = 1;
    kv.head_dim = 16;
    kv.max_seq_len = 128;
    resource.resource_key = str("kv");
    resource.kind = CAIRN_RESOURCE_KV;
    resource.nodes = {&zero, 1};
    resource.config = &kv;
    node.name = str("LLM");
    section.kind = CAIRN_SECTION_NODE;
    section.inputs = {&zero, 1};
    section.loop = CAIRN_NONE;
    walk.name = str("prefill");
    walk.sections = {&section, 1, sizeof(section)};
    desc.struct_size = sizeof(desc);
    desc.name = str("one");
    text = str("text");
    signal = str("ids");
    desc.input_modalities = {&text, 1, sizeof(text)};
    desc.output_modalities = {&text, 1, sizeof(text)};
    desc.signals = {&signal, 1, sizeof(signal)};
    desc.nodes = {&node, 1, sizeof(node)};
    desc.walks = {&walk, 1, sizeof(walk)};
    desc.resources = {&resource, 1, sizeof(resource)};
    desc.max_seq_len = 128;
  }
  ModelSpec spec() const { return ModelSpec::from_desc(desc); }

  std::uint32_t zero = 0;
  cairn_str text{}, signal{};
  cairn_kv_config kv{};
  cairn_resource_spec resource{};
  cairn_node_desc node{};
  cairn_graph_section section{};
  cairn_walk_desc walk{};
  cairn_model_desc desc{};
};

ResourceOptions options() {
  ResourceOptions result;
  result.max_slots = 4;
  result.max_requests = 4;
  result.max_seq_len = 128;
  result.kv_cache_bytes = 1 << 20;
  return result;
}

Value overrides(const char* resource, const char* key, Value value) {
  return ValueMap{{resource, ValueMap{{key, std::move(value)}}}};
}

TEST(ResourceFactory, SizesThePoolByRequestsWhenMemoryAllows) {
  const ModelResources built = build_resources(OnePool().spec(), {}, options());
  EXPECT_EQ(built.all[0]->usage().second, 4 * 128 / 64);
}

TEST(ResourceFactory, SizesThePoolByMemoryWhenThatIsLess) {
  ResourceOptions small = options();
  const auto page_bytes = static_cast<std::int64_t>(kernels::kv_page_bytes({1, 16, 64, kernels::KvType::kF16}));
  small.kv_cache_bytes = 3 * page_bytes + page_bytes / 2;
  const ModelResources built = build_resources(OnePool().spec(), {}, small);
  EXPECT_EQ(built.all[0]->usage().second, 3);
}

TEST(ResourceFactory, TakesTheDeploymentsPagesAndPageSize) {
  const Value set = ValueMap{{"kv", ValueMap{{"max_num_pages", 7}, {"page_size", 16}}}};
  EXPECT_EQ(build_resources(OnePool().spec(), set, options()).all[0]->usage().second, 7);
}

TEST(ResourceFactory, RefusesUnknownResourcesAndKeysNamingWhatThereIs) {
  const auto message = [](const Value& set) -> std::string {
    try {
      build_resources(OnePool().spec(), set, options());
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(message(overrides("kw", "page_size", 16)).find("it has kv"), std::string::npos);
  EXPECT_NE(message(overrides("kv", "page_sice", 16)).find("page_size"), std::string::npos);
  EXPECT_NE(message(overrides("kv", "page_size", 17)).find("multiple of 16"), std::string::npos);
  EXPECT_NE(message(overrides("kv", "page_size", "many")).find("integer"), std::string::npos);
  EXPECT_NE(message(overrides("kv", "dtype", "int8")).find("int8"), std::string::npos);
}

TEST(ResourceFactory, SaysWhatItDoesNotDriveYet) {
  EXPECT_THROW(build_resources(OnePool().spec(), overrides("kv", "cpu_offload_pages", 4), options()), NotSupported);
  OnePool recurrent;
  cairn_slot_state_config config{};
  config.struct_size = sizeof(config);
  config.max_slots = 2;
  const std::int64_t shape = 4;
  cairn_state_block block{};
  block.name = str("state");
  block.dtype = {CAIRN_DTYPE_FLOAT, 32, 1};
  block.shape = {&shape, 1};
  config.tensors = {&block, 1, sizeof(block)};
  recurrent.resource.kind = CAIRN_RESOURCE_SLOT_STATE;
  recurrent.resource.config = &config;
  EXPECT_THROW(build_resources(recurrent.spec(), {}, options()), NotSupported);
}

}  // namespace
}  // namespace cairn
