// The SDK's thunks: which table entries a class fills, what the defaults do, what happens to exceptions, and how
// structs of other sizes are taken. The numbers in test names are those of the seeds' check-list.
#include <gtest/gtest.h>

#include "cairn/cairn.hpp"
#include "contract_host.hpp"

namespace {

using namespace cairn;

constexpr Signal kIds = 0, kToken = 1;

class Plain : public NodeSubmodule {};
class PlainAR : public ARNodeSubmodule {};

// Adds one to the first id of each row; throws for a row that holds 13.
class Adder : public ARNodeSubmodule {
 public:
  std::unique_ptr<NodeInputs> prepare_inputs(const CurrentForwardPassInfo& info, const RoutedInputs& inputs,
                                             const RowContext& row) override {
    const auto ids = inputs.at(kIds).at(0).values<const std::int32_t>();
    if (ids.empty()) return nullptr;
    if (ids[0] == 13) throw std::runtime_error("13 is not liked");
    auto made = std::make_unique<ARNodeInputs>();
    made->input_ids = inputs.at(kIds).at(0);
    made->input_seq_len = static_cast<std::int64_t>(ids.size());
    made->kwargs.set("walk", static_cast<std::int64_t>(row.graph_walk));
    seen_max_tokens = info.max_tokens;
    return made;
  }
  bool can_batch(const ModelInputsFromEngine&) override { return true; }
  std::optional<SubmoduleStep> declare_step(const ModelInputsFromEngine& inputs,
                                            const std::vector<const NodeInputs*>& rows) override {
    SubmoduleStep step;
    for (std::size_t i = 0; i < rows.size(); ++i)
      step.segments.push_back({inputs.request_ids[i], 0, rows[i]->input_seq_len});
    step.steps[4] = {std::nullopt, AttentionStep{false}};
    return step;
  }
  NamedTensors preprocess(const ModelInputsFromEngine&, const std::vector<const NodeInputs*>& rows) override {
    std::vector<std::int32_t> firsts;
    for (const NodeInputs* row : rows) {
      firsts.push_back(dynamic_cast<const ARNodeInputs&>(*row).input_ids.values<const std::int32_t>()[0]);
    }
    const auto count = static_cast<std::int64_t>(firsts.size());
    return {{"firsts", Tensor::of(std::move(firsts), {count})}};
  }
  BatchedModelOutput forward_batched(const ModelInputsFromEngine& inputs, const NamedTensors& tensors) override {
    BatchedModelOutput output;
    for (std::size_t i = 0; i < inputs.request_ids.size(); ++i) {
      const std::int32_t sum = tensors.at("firsts").values<const std::int32_t>()[i] + 1;
      output.per_rid_outputs[inputs.request_ids[i]][kToken] = {Tensor::of<std::int32_t>({sum}, {1})};
    }
    return output;
  }
  void postprocess(Request request, const CurrentForwardPassInfo&, NameToTensorList& outputs,
                   const NodeInputs&) override {
    if (request == 101) throw std::runtime_error("postprocess of 101");
    outputs[kIds] = outputs.at(kToken);
  }
  StopCheck check_stop(Request, const CurrentForwardPassInfo& info, const NameToTensorList& outputs) override {
    const std::int32_t token = outputs.at(kToken).at(0).values<const std::int32_t>()[0];
    if (token == 50) throw std::runtime_error("50 cannot be checked");
    if (token < 10) return {};
    return {{info.graph_walk}, {kToken}};
  }
  void cleanup_request(Request request) override { cleaned = request; }
  void warmup_compiles() override { throw 42; }

  std::int64_t seen_max_tokens = 0;
  Request cleaned = 0;
};

// Rows of one step, laid out as a host would.
class HooksTest : public testing::Test {
 protected:
  HooksTest() : handle_(make_node<Adder>()), node_(handle_.node->handle()), api_(*handle_.api) {
    services() = Services::from(contract::host());
  }

  void add_row(std::vector<std::int32_t> ids) {
    const std::size_t i = tensors_.size();
    tensors_.push_back(std::make_unique<contract::HostTensor>(std::move(ids)));
    infos_.push_back(std::make_unique<cairn_forward_info>());
    infos_[i]->struct_size = sizeof(cairn_forward_info);
    infos_[i]->request = static_cast<Request>(100 + i);
    infos_[i]->graph_walk = 2;
    infos_[i]->max_tokens = 64;
  }
  const cairn_node_inputs& prepared(std::size_t i) { return *CAIRN_AT(cairn_node_inputs, engine_.inputs, i); }

  cairn_status prepare() {
    const std::size_t count = tensors_.size();
    views_.resize(count), signals_.resize(count), rows_.resize(count), requests_.resize(count),
        info_pointers_.resize(count);
    memory_.assign(count * kStride / 8, 0);
    for (std::size_t i = 0; i < count; ++i) {
      views_[i] = tensors_[i]->view();
      signals_[i] = {kIds, 0, {&views_[i], 1, 0}};
      requests_[i] = infos_[i]->request;
      info_pointers_[i] = infos_[i].get();
      rows_[i].request = requests_[i];
      rows_[i].info = infos_[i].get();
      rows_[i].graph_walk = 2;
      rows_[i].inputs = {&signals_[i], 1, 0};
    }
    engine_.struct_size = sizeof engine_;
    engine_.row_count = engine_.real_row_count = static_cast<std::uint32_t>(count);
    engine_.request_ids = requests_.data();
    engine_.per_request_info = info_pointers_.data();
    engine_.inputs = {reinterpret_cast<cairn_node_inputs*>(memory_.data()), count, kStride};
    engine_.arena = &arena_;
    return api_.prepare_inputs(node_, {rows_.data(), count, sizeof(cairn_row_signals)}, &arena_,
                               reinterpret_cast<cairn_node_inputs*>(memory_.data()), kStride);
  }
  cairn_batched_output forward() {
    cairn_named_tensor_span tensors{};
    EXPECT_EQ(api_.preprocess(node_, &engine_, &tensors), CAIRN_STATUS_OK) << contract::last_message();
    cairn_batched_output output{};
    output.struct_size = sizeof output;
    EXPECT_EQ(api_.forward_batched(node_, &engine_, tensors, &output), CAIRN_STATUS_OK) << contract::last_message();
    return output;
  }

  // Rows of a later host are larger than this SDK's.
  static constexpr std::size_t kStride = sizeof(cairn_node_inputs) + 32;
  contract::Arena arena_;
  NodeHandle handle_;
  cairn_node* node_;
  const cairn_node_api& api_;
  std::vector<std::unique_ptr<contract::HostTensor>> tensors_;
  std::vector<std::unique_ptr<cairn_forward_info>> infos_;
  std::vector<cairn_tensor_view> views_;
  std::vector<cairn_signal_tensors> signals_;
  std::vector<cairn_row_signals> rows_;
  std::vector<cairn_request> requests_;
  std::vector<const cairn_forward_info*> info_pointers_;
  std::vector<std::uint64_t> memory_;
  cairn_engine_inputs engine_{};
};

TEST(NodeTableTest, HooksThatAreNotOverriddenStayNull71To95) {
  const cairn_node_api& api = *NodeTable<Plain>::get();
  EXPECT_EQ(api.can_batch, nullptr);
  EXPECT_EQ(api.max_batch_size, nullptr);
  EXPECT_EQ(api.max_rows_in_combined, nullptr);
  EXPECT_EQ(api.uniform_row_inputs, nullptr);
  EXPECT_EQ(api.split_inputs, nullptr);
  EXPECT_EQ(api.cg_key_info, nullptr);
  EXPECT_EQ(api.declare_step, nullptr);
  EXPECT_EQ(api.forward, nullptr);
  EXPECT_EQ(api.forward_batched, nullptr);
  EXPECT_EQ(api.postprocess, nullptr);
  EXPECT_EQ(api.batch_postprocess, nullptr);
  EXPECT_EQ(api.check_stop, nullptr);
  EXPECT_EQ(api.check_stop_batched, nullptr);
  EXPECT_EQ(api.inline_client_signals, nullptr);
  EXPECT_EQ(api.spanned_outputs, nullptr);
  EXPECT_EQ(api.warmup_compiles, nullptr);
  EXPECT_NE(api.prepare_inputs, nullptr);
  EXPECT_NE(api.bind_node_resources, nullptr);
}

TEST(NodeTableTest, TheDefaultCut98IsTheHosts) {
  EXPECT_EQ(NodeTable<PlainAR>::get()->split_inputs, nullptr);
}

TEST(NodeTableTest, OverriddenHooksAreThere) {
  const cairn_node_api& api = *NodeTable<Adder>::get();
  EXPECT_NE(api.can_batch, nullptr);
  EXPECT_NE(api.forward_batched, nullptr);
  EXPECT_EQ(api.forward, nullptr);
  EXPECT_NE(api.check_stop, nullptr);
  EXPECT_NE(api.declare_step, nullptr);
}

TEST(NodeTableTest, ClassAttributes57To61HaveTheSeedsDefaults) {
  const NodeHandle handle = make_node<Plain>();
  cairn_node_attributes attributes{};
  attributes.struct_size = sizeof attributes;
  ASSERT_EQ(handle.api->attributes(handle.node->handle(), &attributes), CAIRN_STATUS_OK);
  EXPECT_EQ(attributes.disable_torch_compile, 0u);
  EXPECT_EQ(attributes.disable_autocast, 0u);
  EXPECT_EQ(attributes.cudnn_allow_tf32, 0);
  EXPECT_EQ(attributes.reads_device_loopback, 0u);
  EXPECT_EQ(attributes.float32_matmul_precision.size, 0u);
  EXPECT_EQ(attributes.cuts_tensor_inputs, 0u);
}

TEST_F(HooksTest, PrepareInputs68FillsEachRowAndItsFateIsItsOwn) {
  add_row({5, 6});
  add_row({13});
  add_row({});
  add_row({7});
  ASSERT_EQ(prepare(), CAIRN_STATUS_OK);
  EXPECT_EQ(prepared(0).row_status, static_cast<std::uint32_t>(CAIRN_ROW_OK));
  EXPECT_EQ(prepared(0).input_seq_len, 2);
  EXPECT_EQ(prepared(0).input_ids.owner, tensors_[0]->handle());
  EXPECT_EQ(prepared(1).row_status, static_cast<std::uint32_t>(CAIRN_ROW_FAILED));
  EXPECT_EQ(contract::text(prepared(1).error), "13 is not liked");
  EXPECT_EQ(prepared(2).row_status, static_cast<std::uint32_t>(CAIRN_ROW_SKIP));
  EXPECT_EQ(prepared(3).row_status, static_cast<std::uint32_t>(CAIRN_ROW_OK));
}

TEST_F(HooksTest, InfoOfAnOlderHostIsTaken) {
  add_row({5});
  infos_[0]->struct_size = CAIRN_SIZE(cairn_forward_info, max_tokens);
  infos_[0]->step_metadata = {nullptr, 1000};  // behind the size given
  ASSERT_EQ(prepare(), CAIRN_STATUS_OK);
  EXPECT_EQ(prepared(0).row_status, static_cast<std::uint32_t>(CAIRN_ROW_OK)) << contract::text(prepared(0).error);
  EXPECT_EQ(dynamic_cast<Adder&>(*handle_.node).seen_max_tokens, 64);
}

TEST_F(HooksTest, InfoOfALaterHostIsTaken) {
  add_row({5});
  infos_[0]->struct_size = sizeof(cairn_forward_info) + 512;
  ASSERT_EQ(prepare(), CAIRN_STATUS_OK);
  EXPECT_EQ(prepared(0).row_status, static_cast<std::uint32_t>(CAIRN_ROW_OK));
}

TEST_F(HooksTest, DeclareStep81BecomesTheAbisStep) {
  add_row({5, 6, 7});
  add_row({8});
  ASSERT_EQ(prepare(), CAIRN_STATUS_OK);
  const cairn_step* step = nullptr;
  ASSERT_EQ(api_.declare_step(node_, &engine_, &step), CAIRN_STATUS_OK) << contract::last_message();
  ASSERT_NE(step, nullptr);
  ASSERT_EQ(step->segments.count, 2u);
  EXPECT_EQ(CAIRN_AT(cairn_segment, step->segments, 0)->span, 3);
  EXPECT_EQ(CAIRN_AT(cairn_segment, step->segments, 1)->span, 1);
  EXPECT_EQ(CAIRN_AT(cairn_segment, step->segments, 1)->row, 1u);
  EXPECT_EQ(CAIRN_AT(cairn_segment, step->segments, 1)->request, 101);
  ASSERT_EQ(step->steps.count, 1u);
  EXPECT_EQ(step->steps.data->resource, 4u);
  EXPECT_EQ(static_cast<const cairn_attention_step*>(step->steps.data->detail)->not_causal, 1u);
}

TEST_F(HooksTest, ForwardBatched85AnswersEveryRow) {
  add_row({5});
  add_row({7});
  ASSERT_EQ(prepare(), CAIRN_STATUS_OK);
  std::uint32_t batches = 0;
  ASSERT_EQ(api_.can_batch(node_, &engine_, &batches), CAIRN_STATUS_OK);
  EXPECT_EQ(batches, 1u);
  const cairn_batched_output output = forward();
  ASSERT_EQ(output.per_rid_outputs.count, 2u);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const cairn_row_output* row = CAIRN_AT(cairn_row_output, output.per_rid_outputs, i);
    EXPECT_EQ(row->row, i);
    EXPECT_EQ(row->signal, kToken);
    EXPECT_EQ(*static_cast<const std::int32_t*>(row->tensors.data->data), i == 0 ? 6 : 8);
  }
}

TEST_F(HooksTest, Postprocess88FailsItsRowAlone) {
  add_row({5});
  add_row({7});
  ASSERT_EQ(prepare(), CAIRN_STATUS_OK);
  cairn_batched_output output = forward();
  cairn_row_result results[2] = {};
  ASSERT_EQ(api_.postprocess(node_, &engine_, &output, results), CAIRN_STATUS_OK);
  EXPECT_EQ(results[0].row_status, static_cast<std::uint32_t>(CAIRN_ROW_OK));
  EXPECT_EQ(results[1].row_status, static_cast<std::uint32_t>(CAIRN_ROW_FAILED));
  EXPECT_EQ(contract::text(results[1].error), "postprocess of 101");
  std::map<Signal, int> of_first;
  for (std::uint64_t i = 0; i < output.per_rid_outputs.count; ++i) {
    const cairn_row_output* row = CAIRN_AT(cairn_row_output, output.per_rid_outputs, i);
    if (row->row == 0) ++of_first[row->signal];
  }
  EXPECT_EQ(of_first, (std::map<Signal, int>{{kIds, 1}, {kToken, 1}}));
}

TEST_F(HooksTest, CheckStop90AnswersInBitsAndFailsItsRowAlone) {
  add_row({5}), add_row({20}), add_row({49});
  ASSERT_EQ(prepare(), CAIRN_STATUS_OK);
  const cairn_batched_output output = forward();
  cairn_host_rows rows{};
  rows.struct_size = sizeof rows;
  rows.request_ids = requests_.data();
  rows.row_count = 3;
  rows.infos = info_pointers_.data();
  rows.row_outputs = output.per_rid_outputs;
  cairn_stop_check results[3] = {};
  ASSERT_EQ(api_.check_stop(node_, &rows, results), CAIRN_STATUS_OK);
  EXPECT_EQ(results[0].stops, 0u);
  EXPECT_EQ(results[1].stops, 4u);  // the loop is the row's walk, 2
  EXPECT_EQ(results[1].withheld, 2u);
  EXPECT_EQ(results[2].row_status, static_cast<std::uint32_t>(CAIRN_ROW_FAILED));
  EXPECT_EQ(contract::text(results[2].error), "50 cannot be checked");
}

TEST_F(HooksTest, CleanupRequest95DropsTheStateAfterTheHook) {
  handle_.node->request_state(100).add("n", 1);
  EXPECT_EQ(handle_.node->request_states.local_size(), 1u);
  api_.cleanup_request(node_, 100);
  EXPECT_EQ(dynamic_cast<Adder&>(*handle_.node).cleaned, 100);
  EXPECT_EQ(handle_.node->request_states.local_size(), 0u);
}

TEST_F(HooksTest, WhateverAHookThrowsBecomesAStatus) {
  EXPECT_EQ(api_.warmup_compiles(node_), CAIRN_STATUS_INTERNAL);
  EXPECT_EQ(contract::last_message(), "the plugin threw something that is no std::exception");
}

TEST(GuardTest, ExceptionsBecomeTheStatusThatFits) {
  services() = Services::from(contract::host());
  EXPECT_EQ(guarded([] { throw invalid_argument("bad prompt"); }), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(contract::last_message(), "bad prompt");
  EXPECT_EQ(guarded([] { throw std::bad_alloc(); }), CAIRN_STATUS_RESOURCE_EXHAUSTED);
  EXPECT_EQ(guarded([] { throw std::logic_error("bug"); }), CAIRN_STATUS_INTERNAL);
  EXPECT_EQ(guarded([] { throw Error(CAIRN_STATUS_OK, "a failure is never OK"); }), CAIRN_STATUS_INTERNAL);
  EXPECT_EQ(guarded([] {}), CAIRN_STATUS_OK);
}

TEST(BindTest, AMissingResourceFailsAtBindAndNamesWhatThereIs64) {
  const cairn_bound_resource bound[] = {{contract::str("kv"), 0, CAIRN_RESOURCE_KV, nullptr, nullptr},
                                        {contract::str("attn"), 1, CAIRN_RESOURCE_ATTENTION, nullptr, bound}};
  const NodeResources resources(span_of<cairn_bound_resource_span>(bound, 2));
  EXPECT_EQ(resources.at("attn").index, 1u);
  try {
    (void)resources.at("sampler");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), CAIRN_STATUS_NOT_FOUND);
    EXPECT_STREQ(error.what(), "the node has no resource 'sampler'; it is bound to: attn, kv");
  }
  EXPECT_THROW(Sampler{resources.at("attn")}, Error);  // of another kind
  EXPECT_TRUE(Attention{resources.at("attn")}.bound());
}

TEST(DefaultHooksTest, TheSeedsDefaults) {
  Plain node;
  EXPECT_EQ(node.uniform_row_inputs(0, false), nullptr);
  EXPECT_FALSE(node.max_batch_size(0).has_value());
  EXPECT_FALSE(node.max_rows_in_combined(0).has_value());
  EXPECT_FALSE(node.split_batches_by_capture_key(0));
  EXPECT_FALSE(node.step_is_input_free(0));
  EXPECT_TRUE(node.cg_key_info(0, {}, {}).is_none());
  EXPECT_TRUE(node.inline_client_signals(0).empty());
  EXPECT_TRUE(node.device_loopback_signals(0).empty());
  EXPECT_TRUE(node.spanned_outputs(0).empty());
  EXPECT_TRUE(node.check_stop(1, {}, {}).stops.empty());
  EXPECT_FALSE(node.check_stop_batched({}, {}, std::nullopt).has_value());
  EXPECT_FALSE(node.get_autocast_dtype().has_value());
  EXPECT_THROW(node.split_inputs(0, {}, NodeInputs{}, 0, 1), Error);
}

TEST(DefaultHooksTest, TheAutoregressiveCut98SlicesTokensAndRefusesWhatItCannotCut) {
  PlainAR node;
  ARNodeInputs row;
  row.input_ids = Tensor::of<std::int32_t>({1, 2, 3, 4}, {4});
  row.custom_pos_ids[0] = Tensor::of<std::int64_t>({0, 1, 2, 3, 4, 5, 6, 7}, {2, 4});
  row.input_seq_len = 4;
  const auto part = node.split_inputs(0, {}, row, 1, 3);
  const auto& cut = dynamic_cast<const ARNodeInputs&>(*part);
  EXPECT_EQ(cut.input_seq_len, 2);
  EXPECT_EQ(cut.input_ids.values<const std::int32_t>()[0], 2);
  std::vector<std::int64_t> positions(4);
  cut.custom_pos_ids.at(0).copy_to(positions.data());
  EXPECT_EQ(positions, (std::vector<std::int64_t>{1, 2, 5, 6}));  // along the last dimension

  ARNodeInputs opaque = row;
  opaque.kwargs.set("k", 1);
  EXPECT_THROW(node.split_inputs(0, {}, opaque, 1, 3), Error);
  ARNodeInputs other = row;
  other.tensor_inputs["t"] = row.input_ids;
  EXPECT_THROW(node.split_inputs(0, {}, other, 1, 3), Error);
  ARNodeInputs uneven = row;
  uneven.custom_pos_ids[0] = Tensor::of<std::int64_t>({1, 2, 3}, {3});
  EXPECT_THROW(node.split_inputs(0, {}, uneven, 1, 3), Error);
}

TEST(StepTest, SegmentsOfRequestsOutsideTheStepAreRefused) {
  contract::Arena memory;
  SubmoduleStep step;
  step.segments = {{5, 0, 1}};
  const std::vector<Request> requests = {4};
  EXPECT_THROW((void)step.in(Arena(&memory), requests), std::invalid_argument);
  EXPECT_THROW((void)step.in(Arena(&memory), {}), std::invalid_argument);
}

TEST(DescriptionTest, NestedSectionsBecomeIndices) {
  ModelDescription description("m", "a");
  const auto ids = description.signal("ids");
  const auto token = description.signal("token");
  const auto text = description.output_modality("text");
  const auto first = description.node("first");
  const auto second = description.node("second");
  const auto loop = description.loop("loop");
  description.walk(
      "walk",
      Sequential({GraphNode(first, {ids}, {GraphEdge::to_node(ids, second)}),
                  Loop(loop, 8,
                       GraphNode(second, {ids},
                                 {GraphEdge::to_client(token, text).new_token(), GraphEdge::to_node(ids, second)}))}));
  const cairn_model_desc* desc = description.get();
  ASSERT_EQ(desc->walks.count, 1u);
  const cairn_walk_desc& walk = *desc->walks.data;
  ASSERT_EQ(walk.sections.count, 4u);
  const auto* root = CAIRN_AT(cairn_graph_section, walk.sections, walk.root);
  EXPECT_EQ(root->kind, static_cast<std::uint32_t>(CAIRN_SECTION_SEQUENTIAL));
  ASSERT_EQ(root->children.count, 2u);
  const auto* looped = CAIRN_AT(cairn_graph_section, walk.sections, root->children.data[1]);
  EXPECT_EQ(looped->kind, static_cast<std::uint32_t>(CAIRN_SECTION_LOOP));
  EXPECT_EQ(looped->max_iters, 8);
  const auto* body = CAIRN_AT(cairn_graph_section, walk.sections, looped->children.data[0]);
  EXPECT_EQ(body->node, second);
  ASSERT_EQ(body->outputs.count, 2u);
  EXPECT_EQ(body->outputs.data[0].flags, static_cast<std::uint32_t>(CAIRN_EDGE_NEW_TOKEN));
  EXPECT_EQ(body->outputs.data[1].next_node, second);
  EXPECT_EQ(
      contract::text(CAIRN_AT(cairn_str, desc->signals, 1)->data != nullptr ? desc->signals.data[1] : cairn_str{}),
      "token");
}

}  // namespace
