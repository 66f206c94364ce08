// ModelAdapter over C tables: what a plugin sees, what it may answer, and what happens when it answers nonsense.
#include "core/conductor/model_adapter.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"
#include "tests/unit/graph/walk_harness.hpp"

// The plugin's side of the test: hooks that the test fills in.
struct cairn_model {
  std::function<cairn_status(const cairn_prompt_args*, cairn_prompt_result*)> prompt;
  std::function<cairn_status(const cairn_initial_args*, cairn_forward_args*)> initial;
  std::function<cairn_status(const cairn_transition_args*, cairn_forward_args*)> transition;
  std::function<cairn_status(const cairn_request_config_args*, cairn_resource_req_config_span*)> configs;
};

namespace cairn::testing {
namespace {

constexpr std::uint32_t kIds = 0, kToken = 1;

cairn_model_api full_table() {
  cairn_model_api api{};
  api.struct_size = sizeof(api);
  api.process_prompt = [](cairn_model* model, const cairn_prompt_args* args, cairn_prompt_result* out) {
    return model->prompt(args, out);
  };
  api.initial_forward_args = [](cairn_model* model, const cairn_initial_args* args, cairn_forward_args* out) {
    return model->initial(args, out);
  };
  api.partition_forward_args = [](cairn_model* model, const cairn_transition_args* args, cairn_forward_args* out) {
    return model->transition(args, out);
  };
  api.request_resource_configs = [](cairn_model* model, const cairn_request_config_args* args,
                                    cairn_resource_req_config_span* out) { return model->configs(args, out); };
  return api;
}

template <class T>
T* in_arena(cairn_arena* arena, const T& value) {
  void* memory = arena->alloc(arena, sizeof(T), alignof(T));
  std::memcpy(memory, &value, sizeof(T));
  return static_cast<T*>(memory);
}

class ModelAdapterTest : public ::testing::Test {
 protected:
  ModelAdapterTest() : builder({"ids", "token"}, {"llm"}) {
    builder.walk("prefill").node(0, {kIds}, {{kToken, kEmit}});
    spec = ModelSpec::from_desc(builder.desc());
    request.id = "r";
    request.prompt_ids = {4, 5, 6};
  }
  ForwardPassArgs ask_initial(const Value& kwargs = {}) {
    const std::uint32_t modalities[] = {0};
    std::vector<SignalTensors> signals;
    signals.push_back({kIds, number(42)});
    return adapter.initial_forward_args({0, modalities, modalities, signals, cairn_map{}, kwargs});
  }
  // The InternalError that a wrong answer of initial_forward_args ends in.
  std::string bad_answer(std::function<void(cairn_forward_args*)> fill) {
    model.initial = [fill = std::move(fill)](const cairn_initial_args*, cairn_forward_args* out) {
      fill(out);
      return CAIRN_STATUS_OK;
    };
    try {
      ask_initial();
    } catch (const InternalError& error) {
      return error.what();
    }
    return "accepted";
  }

  ModelBuilder builder;
  ModelSpec spec;
  cairn_model_api api = full_table();
  cairn_model model;
  ModelAdapter adapter{api, &model, spec};
  RequestSpec request;
};

TEST_F(ModelAdapterTest, ATableWithoutInitialArgsIsRefused) {
  cairn_model_api empty{};
  EXPECT_THROW(ModelAdapter(empty, &model, spec), BadFile);
}

TEST_F(ModelAdapterTest, WithoutAPromptHookTheIdsAreTheFirstSignal) {
  api.process_prompt = nullptr;
  const PromptResult result = adapter.process_prompt(request);
  EXPECT_EQ(result.prompt_tokens, 3);
  ASSERT_EQ(result.tensors.size(), 1U);
  EXPECT_EQ(result.tensors[0].signal, 0U);
  const Tensor& tensor = *result.tensors[0].value.front();
  ASSERT_EQ(tensor.shape().size(), 1U);
  EXPECT_EQ(tensor.shape()[0], 3);
  EXPECT_EQ(reinterpret_cast<const std::int32_t*>(tensor.data())[2], 6);
}

TEST_F(ModelAdapterTest, AByteModelGetsTheBytesOfItsText) {
  api.process_prompt = nullptr;
  spec.text = CAIRN_TEXT_BYTES;
  request.prompt_ids.clear();
  request.prompt_text = "A\xc3\xa9";
  const PromptResult result = adapter.process_prompt(request);
  ASSERT_EQ(result.prompt_tokens, 3);
  const auto* ids = reinterpret_cast<const std::int32_t*>(result.tensors[0].value.front()->data());
  EXPECT_EQ(ids[0], 65);
  EXPECT_EQ(ids[1], 0xc3);
  EXPECT_EQ(ids[2], 0xa9);
}

TEST_F(ModelAdapterTest, ThePromptHookSeesTheRequestAndItsArenaTensorsAreCopied) {
  request.model_kwargs = Value(ValueMap{{"voice", Value("alto")}});
  model.prompt = [](const cairn_prompt_args* args, cairn_prompt_result* out) {
    EXPECT_EQ(args->parts.count, 1U);
    EXPECT_EQ(args->parts.data[0].token_ids.count, 3U);
    EXPECT_EQ(args->model_kwargs.count, 1U);
    EXPECT_EQ(std::string(args->model_kwargs.data[0].value.as.string.data, 4), "alto");
    const std::int64_t shape = 2;
    const std::array<float, 2> values{1.5F, 2.5F};
    cairn_tensor_view view{};
    view.data = in_arena(args->arena, values);
    view.device = {CAIRN_DEVICE_CPU, 0};
    view.ndim = 1;
    view.dtype = kFloat32;
    view.shape = in_arena(args->arena, shape);
    cairn_signal_tensors tensors{kToken, 0, {in_arena(args->arena, view), 1, 0}};
    out->tensors = {in_arena(args->arena, tensors), 1, 0};
    out->prompt_tokens = 2;
    return CAIRN_STATUS_OK;
  };
  const PromptResult result = adapter.process_prompt(request);
  EXPECT_EQ(result.prompt_tokens, 2);
  ASSERT_EQ(result.tensors.size(), 1U);
  EXPECT_EQ(result.tensors[0].signal, kToken);
  EXPECT_EQ(reinterpret_cast<const float*>(result.tensors[0].value.front()->data())[1], 2.5F);
}

TEST_F(ModelAdapterTest, TheClientsFaultInAPromptStaysTheClientsFault) {
  model.prompt = [](const cairn_prompt_args*, cairn_prompt_result*) {
    return set_status(CAIRN_STATUS_INVALID_ARGUMENT, "the picture has no pixels");
  };
  try {
    adapter.process_prompt(request);
    FAIL() << "no exception";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("the picture has no pixels"), std::string::npos) << error.what();
  }
}

TEST_F(ModelAdapterTest, AnOldMessageIsNotTakenForANewFailure) {
  set_status(CAIRN_STATUS_INTERNAL, "yesterday's trouble");
  model.initial = [](const cairn_initial_args*, cairn_forward_args*) -> cairn_status { return CAIRN_STATUS_INTERNAL; };
  try {
    ask_initial();
    FAIL() << "no exception";
  } catch (const InternalError& error) {
    EXPECT_EQ(std::string(error.what()).find("yesterday"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("initial_forward_args"), std::string::npos) << error.what();
  }
}

TEST_F(ModelAdapterTest, InitialArgsTravelBothWays) {
  Tensor* input = nullptr;
  model.initial = [&](const cairn_initial_args* args, cairn_forward_args* out) {
    EXPECT_EQ(args->input_modalities.count, 1U);
    EXPECT_EQ(args->input_signals.count, 1U);
    EXPECT_EQ(args->model_kwargs.count, 1U);
    out->struct_size = sizeof(*out);
    out->metadata.graph_walk = 0;
    out->metadata.is_prefill = 1;
    input = Tensor::from_handle(args->input_signals.data[0].tensors.data[0].owner);
    cairn_input_edge edge{kIds, 0, args->input_signals.data[0].tensors};
    out->inputs = {in_arena(args->arena, edge), 1, 0};
    const cairn_entry entry{{"steps", 5}, {CAIRN_VALUE_INT, 0, {4}}};
    out->step_metadata = {in_arena(args->arena, entry), 1};
    const std::uint32_t unpersist = kIds;
    out->unpersist = {in_arena(args->arena, unpersist), 1};
    return CAIRN_STATUS_OK;
  };
  const ForwardPassArgs args = ask_initial(Value(ValueMap{{"a", Value(1)}}));
  EXPECT_TRUE(args.metadata.is_prefill);
  ASSERT_EQ(args.inputs.size(), 1U);
  EXPECT_EQ(args.inputs[0].value.front().get(), input) << "the whole of a tensor is passed on, not copied";
  EXPECT_EQ(show(args.inputs[0].value), "42");
  EXPECT_EQ(args.unpersist, Indices{kIds});
  EXPECT_EQ(args.step_metadata.find("steps")->as.integer, 4);
}

TEST_F(ModelAdapterTest, APartOfATensorKeepsAllOfItAlive) {
  const std::int64_t before = Tensor::live_count();
  {
    const std::int64_t shape[] = {4};
    TensorPtr tensor = Tensor::create(kInt32, shape);
    for (int i = 0; i < 4; ++i) reinterpret_cast<std::int32_t*>(tensor->data())[i] = i;
    const std::int64_t part_shape = 2;
    cairn_tensor_view part = tensor->view();
    part.shape = &part_shape;
    part.byte_offset = 4;
    cairn_input_edge edge{kIds, 0, {&part, 1, 0}};
    model.initial = [&](const cairn_initial_args*, cairn_forward_args* out) {
      out->inputs = {&edge, 1, 0};
      return CAIRN_STATUS_OK;
    };
    const ForwardPassArgs args = ask_initial();
    tensor = TensorPtr();
    const Tensor& kept = *args.inputs[0].value.front();
    ASSERT_EQ(kept.elements(), 2);
    EXPECT_EQ(reinterpret_cast<const std::int32_t*>(kept.data())[1], 2);
  }
  EXPECT_EQ(Tensor::live_count(), before);
}

TEST_F(ModelAdapterTest, BadAnswersAreThePluginsFaultAndLeakNothing) {
  const std::int64_t before = Tensor::live_count();
  TensorPtr tensor = number(1).front();
  cairn_tensor_view view = tensor->view();
  cairn_input_edge edge{kIds, 0, {&view, 1, 0}};
  const auto with_view = [&](cairn_forward_args* out) { out->inputs = {&edge, 1, 0}; };
  EXPECT_EQ(bad_answer(with_view), "accepted");
  view.owner = nullptr;
  EXPECT_NE(bad_answer(with_view).find("owner"), std::string::npos);
  view = tensor->view();
  const std::int64_t too_long[] = {1000};
  view.shape = too_long;
  EXPECT_NE(bad_answer(with_view).find("outside"), std::string::npos);
  view = tensor->view();
  view.ndim = 99;
  EXPECT_NE(bad_answer(with_view).find("99"), std::string::npos);
  const std::int64_t negative[] = {-1};
  view = tensor->view();
  view.shape = negative;
  EXPECT_NE(bad_answer(with_view), "accepted");
  EXPECT_NE(bad_answer([](cairn_forward_args* out) { out->inputs.count = 1ULL << 60; }).find("inputs"),
            std::string::npos);
  EXPECT_NE(bad_answer([](cairn_forward_args* out) { out->unpersist.count = 2; }).find("unpersist"), std::string::npos);
  EXPECT_NE(bad_answer([](cairn_forward_args* out) { out->step_metadata.count = 2; }).find("step_metadata"),
            std::string::npos);
  tensor = TensorPtr();
  EXPECT_EQ(Tensor::live_count(), before);
}

TEST_F(ModelAdapterTest, WithoutATransitionHookTheRequestIsDone) {
  api.partition_forward_args = nullptr;
  const ConductorMetadata metadata;
  EXPECT_TRUE(adapter.partition_forward_args({0, metadata, {}, {}, 0, 1, {}}).request_done);
}

TEST_F(ModelAdapterTest, TheTransitionHookSeesWhatTheWalkLeft) {
  ConductorMetadata metadata;
  metadata.is_prefill = true;
  metadata.kwargs = OwnedMap::from_value(Value(ValueMap{{"k", Value(true)}}), "test");
  std::vector<SignalTensors> persisted;
  persisted.push_back({kToken, number(8)});
  const std::uint32_t outputs[] = {kToken};
  model.transition = [](const cairn_transition_args* args, cairn_forward_args* out) {
    EXPECT_EQ(args->metadata->is_prefill, 1U);
    EXPECT_EQ(args->metadata->kwargs.data[0].value.as.integer, 1);
    EXPECT_EQ(args->persist_signals.count, 1U);
    EXPECT_EQ(args->fwd_index, 3);
    EXPECT_EQ(args->num_output_tokens, 17);
    EXPECT_EQ(args->curr_forward_outputs.data[0], kToken);
    out->request_done = 1;
    return CAIRN_STATUS_OK;
  };
  EXPECT_TRUE(adapter.partition_forward_args({0, metadata, persisted, {}, 3, 17, outputs}).request_done);
}

TEST_F(ModelAdapterTest, ConfigsGoThroughTheHook) {
  cairn_sampling_req_config sampling{};
  sampling.struct_size = sizeof(sampling);
  model.configs = [](const cairn_request_config_args* args, cairn_resource_req_config_span* out) {
    EXPECT_EQ(args->partition_count, 1U);
    EXPECT_EQ(args->partition_fwd_args[0]->request_done, 1U);
    EXPECT_EQ(args->max_tokens, 20);
    out->count = 3;  // more than there are resources
    return CAIRN_STATUS_OK;
  };
  std::vector<ForwardPassArgs> args(1);
  args[0].request_done = true;
  EXPECT_THROW(adapter.request_resource_configs({args, {}, sampling, 7, 20}), InternalError);
}

}  // namespace
}  // namespace cairn::testing
