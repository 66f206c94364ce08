// ModelSpec::from_desc: what it copies, what it refuses, and that a refusal names the thing at fault.
#include "core/graph/model_spec.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "core/base/error.hpp"
#include "tests/unit/graph/desc_builder.hpp"

namespace cairn::testing {
namespace {

constexpr std::uint32_t kA = 0, kB = 1;

// prefill (a), decode (a in a loop, then b).
ModelBuilder good_model() {
  ModelBuilder model({"token", "hidden"}, {"a", "b"}, {"decode_loop"});
  model.walk("prefill").node(kA, {0}, {{0, kEmit, CAIRN_EDGE_NEW_TOKEN | CAIRN_EDGE_PERSIST}});
  WalkBuilder& decode = model.walk("decode");
  const auto loop = decode.loop(decode.node(kA, {0}, {{0, kA}, {1, kNowhere}}), 16, 0, {{1, kB}});
  decode.sequential({loop, decode.node(kB, {1}, {{1, kEmit}})});
  return model;
}

// The message of the refusal, or "accepted".
std::string refusal(const cairn_model_desc& desc) {
  try {
    ModelSpec::from_desc(desc);
  } catch (const InvalidArgument& error) {
    return error.what();
  } catch (const NotSupported& error) {
    return std::string("not supported: ") + error.what();
  }
  return "accepted";
}
std::string refusal(ModelBuilder& model) {
  return refusal(model.desc());
}

void expect_parts(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
}

TEST(ModelSpec, CopiesTheWholeDescription) {
  ModelBuilder model = good_model();
  const std::uint32_t combined[] = {0, 1};
  model.combined.push_back({text("mixed"), kA, 0, {combined, 2}});
  const ModelSpec spec = ModelSpec::from_desc(model.desc());
  EXPECT_EQ(spec.name, "test");
  ASSERT_EQ(spec.walks.size(), 2U);
  EXPECT_EQ(spec.walks[0].name, "prefill");
  EXPECT_EQ(spec.walks[0].nodes, 0b01U);
  EXPECT_EQ(spec.walks[1].nodes, 0b11U);
  EXPECT_EQ(spec.walk_count(), 3U);
  EXPECT_EQ(spec.walk_name(2), "mixed");
  EXPECT_EQ(spec.walk_name(9), "walk 9");
  EXPECT_EQ(spec.find_walk("mixed"), 2U);
  EXPECT_EQ(spec.find_walk("none"), CAIRN_NONE);
  EXPECT_EQ(spec.find_node("b"), kB);
  ASSERT_EQ(spec.partitions.size(), 1U);
  EXPECT_EQ(spec.partitions[0].name, "default");
  EXPECT_EQ(spec.partitions[0].graph_walks, (Indices{0, 1}));
  EXPECT_EQ(spec.labels, std::vector<std::string>{"main"});
  EXPECT_EQ(spec.output_sample_rate, 24000);
  EXPECT_EQ(spec.output_audio_channels, 1);
  const SectionSpec* prefill = spec.node_section(0, kA);
  ASSERT_NE(prefill, nullptr);
  EXPECT_TRUE(prefill->outputs[0].persists());
  EXPECT_TRUE(prefill->outputs[0].counts_tokens());
  EXPECT_EQ(prefill->outputs[0].output_modality, 0U);
  EXPECT_TRUE(spec.waits_for(1, kB, 1));
  EXPECT_FALSE(spec.waits_for(0, kB, 1));
}

TEST(ModelSpec, KeepsNothingOfThePlugin) {
  std::string name = "architecture";
  ModelBuilder model = good_model();
  cairn_model_desc desc = model.desc();
  desc.architecture = {name.data(), name.size()};
  const ModelSpec spec = ModelSpec::from_desc(desc);
  name.assign(name.size(), 'x');
  EXPECT_EQ(spec.architecture, "architecture");
}

TEST(ModelSpec, ReadsOnlyWhatAnOlderPluginKnows) {
  ModelBuilder model = good_model();
  cairn_model_desc desc = model.desc();
  desc.max_seq_len = 99;
  desc.vocab_size = -5;  // beyond struct_size: not given
  desc.end_tokens = {nullptr, 7};
  desc.struct_size = CAIRN_SIZE(cairn_model_desc, max_seq_len);
  const ModelSpec spec = ModelSpec::from_desc(desc);
  EXPECT_EQ(spec.max_seq_len, 99);
  EXPECT_EQ(spec.vocab_size, 0);
  EXPECT_TRUE(spec.end_tokens.empty());
}

TEST(ModelSpec, HonoursTheStrideOfANewerPlugin) {
  struct NewerNode {
    cairn_node_desc known;
    std::uint64_t unknown[3];
  };
  NewerNode nodes[2] = {};
  nodes[0] = {{text("a"), CAIRN_NODE_AUTOREGRESSIVE, 0}, {1, 2, 3}};
  nodes[1] = {{text("b"), 0, 0}, {4, 5, 6}};
  ModelBuilder model = good_model();
  cairn_model_desc desc = model.desc();
  desc.nodes = {&nodes[0].known, 2, sizeof(NewerNode)};
  const ModelSpec spec = ModelSpec::from_desc(desc);
  EXPECT_EQ(spec.nodes[0].flags, static_cast<std::uint32_t>(CAIRN_NODE_AUTOREGRESSIVE));
  EXPECT_EQ(spec.nodes[1].name, "b");
}

TEST(ModelSpec, UnknownTextSourcesAndChunkModesFallBackToTheirDefaults) {
  ModelBuilder model = good_model();
  cairn_model_desc desc = model.desc();
  desc.text = 77;
  EXPECT_EQ(ModelSpec::from_desc(desc).text, static_cast<std::uint32_t>(CAIRN_TEXT_NONE));
}

TEST(ModelSpecRefuses, NamesThatAreEmptyTwiceOrNotText) {
  ModelBuilder model = good_model();
  cairn_model_desc desc = model.desc();
  const auto with_signals = [&](std::vector<cairn_str> names) {
    desc.signals = {names.data(), names.size(), 0};
    return refusal(desc);
  };
  expect_parts(with_signals({text("token"), text("")}), {"signals[1]", "empty"});
  expect_parts(with_signals({text("token"), text("token")}), {"signals[1]", "token", "taken"});
  expect_parts(with_signals({text("token"), text("\xc3")}), {"signals[1]", "UTF-8"});
  expect_parts(with_signals({text("token"), text("\xed\xa0\x80")}), {"signals[1]", "UTF-8"});
  expect_parts(with_signals({text("token"), text("a\nb")}), {"signals[1]", "control"});
  expect_parts(with_signals({text("token"), {nullptr, 4}}), {"signals[1]", "no text"});
  EXPECT_EQ(with_signals({text("token"), text("\xe6\xb0\xb4")}), "accepted");
}

TEST(ModelSpecRefuses, MoreNodesSignalsOrLoopsThanAMaskHolds) {
  std::vector<std::string> many;
  for (int i = 0; i < 65; ++i) many.push_back("n" + std::to_string(i));
  ModelBuilder signals(many, {"a"});
  signals.walk("walk").node(kA, {0}, {});
  expect_parts(refusal(signals), {"signals", "65", "64"});
  ModelBuilder nodes({"x"}, many);
  nodes.walk("walk").node(kA, {0}, {});
  expect_parts(refusal(nodes), {"nodes", "65", "64"});
  ModelBuilder loops({"x"}, {"a"}, many);
  loops.walk("walk").node(kA, {0}, {});
  expect_parts(refusal(loops), {"loops", "65", "64"});
}

TEST(ModelSpecRefuses, HostileCounts) {
  ModelBuilder model = good_model();
  cairn_model_desc desc = model.desc();
  desc.walks.count = UINT64_MAX;
  expect_parts(refusal(desc), {"walks"});
  desc = model.desc();
  desc.nodes.data = nullptr;
  expect_parts(refusal(desc), {"nodes", "no data"});
  desc = model.desc();
  desc.struct_size = 3;
  expect_parts(refusal(desc), {"no nodes"});
  ModelBuilder sections = good_model();
  const cairn_walk_desc huge{text("huge"), {nullptr, 1ULL << 40, 0}, 0, 0};
  desc = sections.desc();
  desc.walks = {&huge, 1, 0};
  expect_parts(refusal(desc), {"\"huge\"", "sections"});
}

TEST(ModelSpecRefuses, SectionsThatFormNoTree) {
  const auto with = [](auto change) {
    ModelBuilder model({"x"}, {"a"}, {"loop"});
    WalkBuilder& walk = model.walk("walk");
    change(walk);
    return refusal(model);
  };
  expect_parts(with([](WalkBuilder& w) { w.set_root(5); }), {"\"walk\"", "no sections"});
  expect_parts(with([](WalkBuilder& w) {
                 w.node(kA, {0}, {});
                 w.set_root(5);
               }),
               {"root", "5"});
  expect_parts(with([](WalkBuilder& w) { w.sequential({0}); }), {"section 0", "twice"});
  expect_parts(with([](WalkBuilder& w) {
                 const auto node = w.node(kA, {0}, {});
                 w.sequential({node, node});
               }),
               {"section 0", "twice"});
  expect_parts(with([](WalkBuilder& w) {
                 w.node(kA, {0}, {});
                 w.sequential({2});
                 w.sequential({1});
               }),
               {"section 2", "twice"});
  expect_parts(with([](WalkBuilder& w) {
                 const auto node = w.node(kA, {0}, {});
                 w.sequential({node});
                 w.set_root(node);
               }),
               {"section 1", "not reached"});
  expect_parts(with([](WalkBuilder& w) { w.sequential({}); }), {"children", "empty"});
  expect_parts(with([](WalkBuilder& w) {
                 w.node(kA, {0}, {});
                 w.sequential({0, 9});
               }),
               {"children", "9"});
  expect_parts(with([](WalkBuilder& w) {
                 w.node(kA, {0}, {});
                 w.section(0).kind = 9;
               }),
               {"kind", "9"});
  expect_parts(with([](WalkBuilder& w) {
                 std::uint32_t inner = w.node(kA, {0}, {});
                 for (int i = 0; i < 70; ++i) inner = w.sequential({inner});
               }),
               {"nested"});
}

TEST(ModelSpecRefuses, BadLoops) {
  const auto with = [](auto change) {
    ModelBuilder model({"x", "y"}, {"a", "b"}, {"loop"});
    WalkBuilder& walk = model.walk("walk");
    const auto a = walk.node(kA, {0}, {{0, kA}, {1, kNowhere}});
    change(walk, walk.loop(a, 4, 0));
    model.walk("other").node(kB, {0}, {});
    return refusal(model);
  };
  EXPECT_EQ(with([](WalkBuilder&, std::uint32_t) {}), "accepted");
  expect_parts(with([](WalkBuilder& w, std::uint32_t loop) { w.section(loop).max_iters = 0; }), {"max_iters", "0"});
  expect_parts(with([](WalkBuilder& w, std::uint32_t loop) { w.section(loop).max_iters = -3; }), {"max_iters", "-3"});
  expect_parts(with([](WalkBuilder& w, std::uint32_t loop) { w.section(loop).loop = 1; }), {"loop", "1 loops"});
  expect_parts(with([](WalkBuilder& w, std::uint32_t loop) { w.section(loop).children.count = 0; }),
               {"children", "body"});
  expect_parts(with([](WalkBuilder& w, std::uint32_t loop) { w.loop(loop, 2, 0); }), {"\"loop\"", "twice"});
  cairn_graph_edge edge{1, kNowhere, 0, CAIRN_NONE, CAIRN_NONE, 0, -1, 0};
  expect_parts(with([&](WalkBuilder& w, std::uint32_t loop) {
                 w.section(loop).outputs = {&edge, 1, 0};
                 w.section(loop).accumulated_outputs = {&edge, 1, 0};
               }),
               {"\"y\"", "accumulated_outputs"});
}

TEST(ModelSpecRefuses, BadEdges) {
  const auto with = [](Edges edges, Indices inputs = {0}) {
    ModelBuilder model({"x", "y"}, {"a", "b"});
    model.walk("walk").node(kA, std::move(inputs), std::move(edges));
    model.walk("other").node(kB, {0}, {});
    return refusal(model);
  };
  expect_parts(with({{7, kEmit}}), {"\"a\"", "outputs[0]", "signal", "7"});
  expect_parts(with({{0, 7}}), {"\"a\"", "next_node", "7"});
  expect_parts(with({{0, kB}}), {"\"a\"", "\"b\"", "not in this walk"});
  expect_parts(with({{1, kA}}), {"\"a\"", "\"y\"", "does not wait"});
  expect_parts(with({{1, kEmit}, {1, kEmit}}), {"outputs[1]", "same destination"});
  expect_parts(with({}, {0, 0}), {"inputs[1]", "already"});
  expect_parts(with({}, {2}), {"inputs[0]", "2"});
  expect_parts(with({{1, kB, CAIRN_EDGE_STREAMING}}), {"target_partition"});
}

TEST(ModelSpecRefuses, AnEdgeToTheClientWithoutModality) {
  ModelBuilder model({"x"}, {"a"});
  WalkBuilder& walk = model.walk("walk");
  walk.node(kA, {0}, {{0, kEmit}});
  cairn_graph_edge edge{0, kEmit, 0, CAIRN_NONE, CAIRN_NONE, 0, -1, 0};
  walk.section(0).outputs = {&edge, 1, 0};
  expect_parts(refusal(model), {"\"a\"", "output_modality", "missing"});
  edge.output_modality = 3;
  expect_parts(refusal(model), {"\"a\"", "output_modality", "3"});
  edge.output_modality = 0;
  EXPECT_EQ(refusal(model), "accepted");
}

TEST(ModelSpecRefuses, NodesInNoWalkOrTwiceInOne) {
  ModelBuilder unused({"x"}, {"a", "b"});
  unused.walk("walk").node(kA, {0}, {});
  expect_parts(refusal(unused), {"\"b\"", "no walk"});
  ModelBuilder twice({"x"}, {"a"});
  WalkBuilder& walk = twice.walk("walk");
  walk.sequential({walk.node(kA, {0}, {}), walk.node(kA, {0}, {})});
  expect_parts(refusal(twice), {"\"a\"", "twice"});
}

TEST(ModelSpecRefuses, CombinedWalksOfWalksThatDoNotRunTheNode) {
  ModelBuilder model = good_model();
  const std::uint32_t walks[] = {0, 1};
  model.combined.push_back({text("mixed"), kB, 0, {walks, 2}});
  expect_parts(refusal(model), {"\"mixed\"", "\"prefill\"", "\"b\""});
  model.combined[0] = {text("decode"), kA, 0, {walks, 2}};
  expect_parts(refusal(model), {"\"decode\"", "taken"});
  model.combined[0] = {text("mixed"), kA, 0, {nullptr, 0}};
  expect_parts(refusal(model), {"\"mixed\"", "empty"});
}

TEST(ModelSpecRefuses, PartitionsThatDoNotDivideTheWalks) {
  ModelBuilder model = good_model();
  const std::uint32_t all[] = {0, 1};
  const auto with = [&](std::vector<cairn_partition_definition> partitions) {
    model.partitions = std::move(partitions);
    return refusal(model);
  };
  EXPECT_EQ(with({{text("all"), {all, 2}, 0, 0, {}}}), "accepted");
  expect_parts(with({{text("p"), {all, 1}, CAIRN_NONE, 0, {}}}), {"\"decode\"", "no partition"});
  expect_parts(with({{text("p"), {all, 1}, 1, 0, {}}}), {"\"p\"", "initial_walk", "\"decode\""});
  expect_parts(with({{text("p"), {all, 2}, CAIRN_NONE, 0, {}}, {text("q"), {all, 1}, CAIRN_NONE, 0, {}}}),
               {"\"prefill\"", "two partitions"});
  expect_parts(with({{text("p"), {all, 1}, CAIRN_NONE, 0, {}}, {text("q"), {all + 1, 1}, CAIRN_NONE, 0, {}}}),
               {"not supported", "2 partitions"});
}

TEST(ModelSpecRefuses, EndTokensOutsideOfTheVocabulary) {
  ModelBuilder model = good_model();
  cairn_model_desc desc = model.desc();
  const std::int32_t tokens[] = {3, 256};
  desc.end_tokens = {tokens, 2};
  expect_parts(refusal(desc), {"end_tokens[1]", "256"});
  desc.end_tokens.count = 1;
  EXPECT_EQ(ModelSpec::from_desc(desc).end_tokens, std::vector<std::int32_t>{3});
}

}  // namespace
}  // namespace cairn::testing
