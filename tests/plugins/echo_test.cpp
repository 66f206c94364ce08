// The echo plugin through its C tables alone: identity, description, a request from prompt to stop, two rows at once.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "contract_host.hpp"

namespace {

using contract::Arena;
using contract::HostTensor;
using contract::text;

class EchoTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("CAIRN_ECHO_PLUGIN");
    ASSERT_NE(path, nullptr);
    library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    const auto entry = reinterpret_cast<cairn_plugin_entry_fn>(dlsym(library_, CAIRN_ENTRY_SYMBOL));
    ASSERT_NE(entry, nullptr);
    plugin_ = entry(contract::host());
    ASSERT_NE(plugin_, nullptr);
    api_ = static_cast<const cairn_model_api*>(plugin_->get_interface(plugin_, contract::str("cairn.model"), 1));
    ASSERT_NE(api_, nullptr);
    cairn_open_args args{};
    args.struct_size = sizeof args;
    args.host = contract::host();
    ASSERT_EQ(api_->open(&args, &model_), CAIRN_STATUS_OK);
    ASSERT_EQ(api_->describe(model_, &description_), CAIRN_STATUS_OK);
    ASSERT_EQ(api_->create_node(model_, 0, &node_, &node_api_), CAIRN_STATUS_OK);
  }
  void TearDown() override {
    if (library_ != nullptr) {
      EXPECT_EQ(dlclose(library_), 0);
    }
  }

  // One step of rows that hold the given remaining ids: each row's token, and what remains.
  struct Row {
    std::int32_t token = -1;
    std::vector<std::int32_t> rest;
    bool stops = false;
    bool skipped = false;
  };
  std::vector<Row> step(std::vector<HostTensor*> remaining) {
    Arena arena;
    const std::size_t count = remaining.size();
    std::vector<cairn_tensor_view> views(count);
    std::vector<cairn_signal_tensors> signals(count);
    std::vector<cairn_row_signals> routed(count);
    std::vector<cairn_request> requests(count);
    for (std::size_t i = 0; i < count; ++i) {
      views[i] = remaining[i]->view();
      signals[i] = {0, 0, {&views[i], 1, sizeof(cairn_tensor_view)}};
      requests[i] = static_cast<cairn_request>(100 + i);
      routed[i].request = requests[i];
      routed[i].inputs = {&signals[i], 1, sizeof(cairn_signal_tensors)};
    }
    // A host of a later minor has larger rows: 64 bytes more of each, which the plugin must step over.
    const std::size_t stride = sizeof(cairn_node_inputs) + 64;
    std::vector<std::uint64_t> memory(count * stride / 8);
    EXPECT_EQ(node_api_->prepare_inputs(node_, {routed.data(), count, sizeof(cairn_row_signals)}, &arena,
                                        reinterpret_cast<cairn_node_inputs*>(memory.data()), stride),
              CAIRN_STATUS_OK);
    const cairn_node_inputs_span inputs = {reinterpret_cast<cairn_node_inputs*>(memory.data()), count, stride};
    std::vector<Row> rows(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (CAIRN_AT(cairn_node_inputs, inputs, i)->row_status == CAIRN_ROW_SKIP) rows[i].skipped = true;
    }
    if (rows[0].skipped) return rows;

    cairn_engine_inputs engine{};
    engine.struct_size = sizeof engine;
    engine.row_count = engine.real_row_count = static_cast<std::uint32_t>(count);
    engine.request_ids = requests.data();
    engine.inputs = inputs;
    engine.arena = &arena;
    cairn_batched_output output{};
    output.struct_size = sizeof output;
    EXPECT_EQ(node_api_->forward_batched(node_, &engine, {}, &output), CAIRN_STATUS_OK);

    cairn_host_rows host{};
    host.struct_size = sizeof host;
    host.request_ids = requests.data();
    host.row_count = static_cast<std::uint32_t>(count);
    host.row_outputs = output.per_rid_outputs;
    std::vector<cairn_stop_check> stops(count);
    EXPECT_EQ(node_api_->check_stop(node_, &host, stops.data()), CAIRN_STATUS_OK);
    for (std::uint64_t i = 0; i < output.per_rid_outputs.count; ++i) {
      const cairn_row_output* routed_output = CAIRN_AT(cairn_row_output, output.per_rid_outputs, i);
      const cairn_tensor_view* view = CAIRN_AT(cairn_tensor_view, routed_output->tensors, 0);
      const auto* ids = reinterpret_cast<const std::int32_t*>(static_cast<const char*>(view->data) + view->byte_offset);
      Row& row = rows[routed_output->row];
      if (routed_output->signal == 1) {
        EXPECT_EQ(view->shape[0], 1);
        row.token = ids[0];
      } else {
        row.rest.assign(ids, ids + view->shape[0]);
      }
    }
    for (std::size_t i = 0; i < count; ++i) rows[i].stops = stops[i].stops == 1;
    return rows;
  }

  void* library_ = nullptr;
  const cairn_plugin* plugin_ = nullptr;
  const cairn_model_api* api_ = nullptr;
  cairn_model* model_ = nullptr;
  const cairn_model_desc* description_ = nullptr;
  cairn_node* node_ = nullptr;
  const cairn_node_api* node_api_ = nullptr;
};

TEST_F(EchoTest, DescriptorSaysWhatTheNoteSays) {
  EXPECT_EQ(text(plugin_->id), "ai.cairn.echo");
  EXPECT_EQ(text(plugin_->version), "0.1.0");
  EXPECT_EQ(plugin_->abi_major, 1u);
  EXPECT_EQ(plugin_->min_host_minor, 0u);
}

TEST_F(EchoTest, UnknownInterfacesAndLaterRevisionsAreNull) {
  EXPECT_EQ(plugin_->get_interface(plugin_, contract::str("cairn.modem"), 1), nullptr);
  EXPECT_EQ(plugin_->get_interface(plugin_, contract::str("cairn.models"), 1), nullptr);
  EXPECT_EQ(plugin_->get_interface(plugin_, contract::str(""), 1), nullptr);
  EXPECT_EQ(plugin_->get_interface(plugin_, contract::str("cairn.model"), 2), nullptr);
}

TEST_F(EchoTest, DescribesOneLoopAroundOneNode) {
  EXPECT_EQ(description_->text, static_cast<std::uint32_t>(CAIRN_TEXT_BYTES));
  ASSERT_EQ(description_->walks.count, 1u);
  const cairn_walk_desc& walk = *description_->walks.data;
  ASSERT_EQ(walk.sections.count, 2u);
  const cairn_graph_section* loop = CAIRN_AT(cairn_graph_section, walk.sections, walk.root);
  EXPECT_EQ(loop->kind, static_cast<std::uint32_t>(CAIRN_SECTION_LOOP));
  ASSERT_EQ(loop->children.count, 1u);
  const cairn_graph_section* node = CAIRN_AT(cairn_graph_section, walk.sections, loop->children.data[0]);
  EXPECT_EQ(node->kind, static_cast<std::uint32_t>(CAIRN_SECTION_NODE));
  ASSERT_EQ(node->outputs.count, 2u);
  EXPECT_EQ(node->outputs.data[0].next_node, CAIRN_EMIT_TO_CLIENT);
  EXPECT_EQ(node->outputs.data[0].flags, static_cast<std::uint32_t>(CAIRN_EDGE_NEW_TOKEN));
  EXPECT_EQ(node->outputs.data[1].next_node, 0u);
}

TEST_F(EchoTest, SendsThePromptToTheNodeAndIsDoneAfterOneWalk) {
  Arena arena;
  HostTensor prompt({1, 2, 3});
  const cairn_tensor_view view = prompt.view();
  const cairn_signal_tensors signal = {0, 0, {&view, 1, sizeof view}};
  cairn_initial_args args{};
  args.struct_size = sizeof args;
  args.input_signals = {&signal, 1, sizeof signal};
  args.arena = &arena;
  cairn_forward_args first{};
  first.struct_size = sizeof first;
  ASSERT_EQ(api_->initial_forward_args(model_, &args, &first), CAIRN_STATUS_OK);
  ASSERT_EQ(first.inputs.count, 1u);
  EXPECT_EQ(first.inputs.data->signal, 0u);
  EXPECT_EQ(first.inputs.data->node, 0u);
  EXPECT_EQ(first.inputs.data->tensors.data->owner, prompt.handle());
  EXPECT_EQ(first.request_done, 0u);
  EXPECT_EQ(api_->partition_forward_args, nullptr);
}

TEST_F(EchoTest, OutOfMemoryIsAStatus) {
  Arena arena;
  arena.fail_after(0);
  HostTensor prompt({1});
  const cairn_tensor_view view = prompt.view();
  const cairn_signal_tensors signal = {0, 0, {&view, 1, sizeof view}};
  cairn_initial_args args{};
  args.input_signals = {&signal, 1, sizeof signal};
  args.arena = &arena;
  cairn_forward_args first{};
  EXPECT_EQ(api_->initial_forward_args(model_, &args, &first), CAIRN_STATUS_RESOURCE_EXHAUSTED);
  EXPECT_EQ(first.inputs.count, 0u);
}

TEST_F(EchoTest, EmitsTheFirstIdAndLoopsTheRestBack) {
  HostTensor remaining({72, 105, 33});
  const auto rows = step({&remaining});
  EXPECT_EQ(rows[0].token, 72);
  EXPECT_EQ(rows[0].rest, (std::vector<std::int32_t>{105, 33}));
  EXPECT_FALSE(rows[0].stops);
  EXPECT_EQ(remaining.references, 1);
}

TEST_F(EchoTest, TheLastIdStopsTheLoop) {
  HostTensor remaining({33});
  const auto rows = step({&remaining});
  EXPECT_EQ(rows[0].token, 33);
  EXPECT_TRUE(rows[0].rest.empty());
  EXPECT_TRUE(rows[0].stops);
}

TEST_F(EchoTest, RowsOfOneStepDoNotMix) {
  HostTensor first({1, 2}), second({7}), third({9, 8, 7});
  const auto rows = step({&first, &second, &third});
  EXPECT_EQ(rows[0].token, 1);
  EXPECT_EQ(rows[1].token, 7);
  EXPECT_EQ(rows[2].token, 9);
  EXPECT_EQ(rows[0].rest, (std::vector<std::int32_t>{2}));
  EXPECT_EQ(rows[2].rest, (std::vector<std::int32_t>{8, 7}));
  EXPECT_FALSE(rows[0].stops);
  EXPECT_TRUE(rows[1].stops);
  EXPECT_FALSE(rows[2].stops);
}

TEST_F(EchoTest, ARowWithNothingLeftIsSkipped) {
  HostTensor remaining({});
  EXPECT_TRUE(step({&remaining})[0].skipped);
}

TEST_F(EchoTest, RowsMayShareAStep) {
  std::uint32_t batches = 0;
  cairn_engine_inputs inputs{};
  EXPECT_EQ(node_api_->can_batch(node_, &inputs, &batches), CAIRN_STATUS_OK);
  EXPECT_EQ(batches, 1u);
}

}  // namespace
