// The deployment file: what it means, and what is said about every kind of mistake.
#include "host/config/deployment_yaml.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "host/config/nearest_name.hpp"

namespace cairn {
namespace {

std::vector<DeploymentConfig> parse(const std::string& text) {
  return parse_deployment(text, "d.yaml", "/base");
}

std::string fault(const std::string& text) {
  try {
    parse(text);
  } catch (const BadFile& error) {
    return error.what();
  }
  return "no fault";
}

TEST(Deployment, ReadsEveryKey) {
  const auto configs = parse(R"(
model: Qwen3Omni
served_name: omni
plugin: ai.cairn.omni
weights: models/omni.gguf
node_groups:
  - node_names: [thinker, talker]
    ranks: [0, 1]
    tp_size: 2
  - node_names: [vocoder]
    ranks: [0]
    graph_walks: [decode]
    sp_size: 1
max_seq_len: 4096
max_concurrent_requests: 16
max_batch_tokens: 512
max_queue: 0
kv_cache_bytes: 1000000000
resources:
  kv: {page_size: 32, ratio: 0.5, dtype: "16"}
model_kwargs:
  flag: true
  list: [1, 2.5, text, ~]
autocast_dtype: bfloat16
threads: 3
)");
  ASSERT_EQ(configs.size(), 1U);
  const auto& c = configs[0];
  EXPECT_EQ(c.model, "Qwen3Omni");
  EXPECT_EQ(c.served_name, "omni");
  EXPECT_EQ(c.plugin, "ai.cairn.omni");
  EXPECT_EQ(c.weights, "/base/models/omni.gguf");
  ASSERT_EQ(c.node_groups.size(), 2U);
  EXPECT_EQ(c.node_groups[0].node_names, (std::vector<std::string>{"thinker", "talker"}));
  EXPECT_EQ(c.node_groups[0].ranks, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(c.node_groups[0].tp_size, 2);
  EXPECT_TRUE(c.node_groups[0].graph_walks.empty());
  EXPECT_EQ(c.node_groups[1].graph_walks, std::vector<std::string>{"decode"});
  EXPECT_EQ(c.max_seq_len, 4096);
  EXPECT_EQ(c.max_concurrent_requests, 16);
  EXPECT_EQ(c.max_batch_tokens, 512);
  EXPECT_EQ(c.max_queue, 0);
  EXPECT_EQ(c.kv_cache_bytes, 1000000000);
  EXPECT_EQ(c.resources, Value(ValueMap{{"kv", ValueMap{{"page_size", 32}, {"ratio", 0.5}, {"dtype", "16"}}}}));
  EXPECT_EQ(c.model_kwargs, Value(ValueMap{{"flag", true}, {"list", ValueList{1, 2.5, "text", Value()}}}));
  EXPECT_EQ(c.autocast_dtype, "bfloat16");
  EXPECT_EQ(c.threads, 3);
}

TEST(Deployment, ReadsSeveralModelsInBothForms) {
  const auto list = parse("models:\n  - weights: a.gguf\n  - weights: /abs/b.gguf\n    plugin: ./p.so\n");
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].weights, "/base/a.gguf");
  EXPECT_EQ(list[1].weights, "/abs/b.gguf");
  EXPECT_EQ(list[1].plugin, "/base/p.so");
  const auto documents = parse("weights: a.gguf\n---\nplugin: ai.cairn.echo\n");
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[1].plugin, "ai.cairn.echo");
  EXPECT_TRUE(documents[1].weights.empty());
}

TEST(Deployment, NamesPlaceAndNearestKeyOfAnUnknownOne) {
  EXPECT_EQ(fault("weights: a\nmax_seq_length: 5\n"),
            "d.yaml:2:1: Unknown key 'max_seq_length' in a model; did you mean 'max_seq_len'?");
  EXPECT_EQ(fault("weights: a\nnode_groups:\n  - node_name: [x]\n"),
            "d.yaml:3:5: Unknown key 'node_name' in a node group; did you mean 'node_names'?");
  EXPECT_NE(
      fault("weights: a\nxyzzy: 5\n").find("d.yaml:2:1: Unknown key 'xyzzy' in a model; the known keys are model,"),
      std::string::npos);
  EXPECT_NE(fault("models: []\nmodel: x\n").find("Unknown key 'model' in a file with 'models'"), std::string::npos);
}

TEST(Deployment, SaysWhatATypeShouldBe) {
  const std::pair<const char*, const char*> cases[] = {
      {"weights: a\nmax_seq_len: many\n", "d.yaml:2:14: 'max_seq_len' must be an integer; 'many' is none."},
      {"weights: a\nmax_seq_len: \"5\"\n", "d.yaml:2:14: 'max_seq_len' must be an integer; '5' is none."},
      {"weights: a\nmax_seq_len: 0\n", "d.yaml:2:14: 'max_seq_len' must be from 1 to 2147483647; 0 was given."},
      {"weights: a\nmax_seq_len: 99999999999999999999\n",
       "d.yaml:2:14: 'max_seq_len' must be an integer; '99999999999999999999' is none."},
      {"weights: [a]\n", "d.yaml:1:10: 'weights' must be a text, and is a list."},
      {"weights: a\nresources: [kv]\n", "d.yaml:2:12: 'resources' must be a map, and is a list."},
      {"weights: a\nresources: {kv: 5}\n", "d.yaml:2:17: The overrides of the resource 'kv' must be a map."},
      {"weights: a\nnode_groups: {}\n", "d.yaml:2:14: 'node_groups' must be a list."},
      {"weights: a\nautocast_dtype: int8\n", "d.yaml:2:17: 'autocast_dtype' must be float32, float16 or bfloat16."},
      {"weights: a\nweights: b\n", "d.yaml:2:1: The key 'weights' occurs twice in a model."},
      {"- a\n", "d.yaml:1:1: a model must be a map of keys to values, and is a list."},
      {"model: x\n", "d.yaml:1:1: A model needs 'weights', 'plugin' or both."},
      {"models:\n  - weights: a\n    served_name: n\n  - weights: b\n    served_name: n\n",
       "d.yaml: Two models have the served_name 'n'."},
      {"", "d.yaml: The deployment file names no model."},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(fault(text), expected) << text;
}

TEST(Deployment, SaysWhereYamlIsBroken) {
  EXPECT_EQ(fault("weights: a\nplugin: [x\n").substr(0, 10), "d.yaml:3:1");
  EXPECT_EQ(fault("a: \"x\n").substr(0, 7), "d.yaml:");
}

TEST(Deployment, RefusesWhatIsNoText) {
  EXPECT_NE(fault("weights: a\nplugin: \xC1\xC1\n").find("d.yaml:2: The deployment file must be UTF-8"),
            std::string::npos);
  EXPECT_NE(fault("weights: \x04\n").find("d.yaml:1: "), std::string::npos);
  EXPECT_EQ(parse("weights: \"h\xC3\xA9\"\t\r\n")[0].weights, "/base/h\xC3\xA9");
}

TEST(Deployment, BoundsAliasesNestingAndSize) {
  std::string bomb = "weights: a\nmodel_kwargs:\n  a0: &a0 [x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 10; ++i) {
    bomb += "  a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) bomb += (k > 0 ? ",*a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_NE(fault(bomb).find("more than 20000 values"), std::string::npos);
  EXPECT_NE(fault("weights: a\nmodel_kwargs: {x: &x [*x]}\n"), "no fault");
  EXPECT_NE(fault("weights: a\nmodel_kwargs: {x: " + std::string(40, '[') + std::string(40, ']') + "}\n")
                .find("deeper than 32"),
            std::string::npos);
  EXPECT_NE(fault("weights: a\nmodel_kwargs: {x: " + std::string(100000, '[') + "}\n"), "no fault");
  EXPECT_NE(fault(std::string(2 << 20, '#')).find("1048576"), std::string::npos);
}

TEST(DeploymentFile, ATextThatReadsAsDocumentsWithoutEndIsRefused) {
  EXPECT_NE(fault(", max_queuesr:ig").find("more than 256 documents"), std::string::npos);
}

TEST(NearestName, FindsSlipsAndNothingElse) {
  constexpr std::string_view kNames[] = {"temperature", "top_p", "seed"};
  EXPECT_EQ(nearest_name("temprature", kNames, 2), "temperature");
  EXPECT_EQ(nearest_name("tempreature", kNames, 2), "temperature");
  EXPECT_EQ(nearest_name("topp", kNames, 1), "top_p");
  EXPECT_EQ(nearest_name("sede", kNames, 1), "seed");  // neighbours swapped count once
  EXPECT_EQ(nearest_name("mirostat", kNames, 2), "");
  EXPECT_EQ(nearest_name(std::string(1000, 'x'), kNames, 2000), "");
}

}  // namespace
}  // namespace cairn
