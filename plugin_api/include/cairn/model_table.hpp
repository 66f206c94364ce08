// Turns a Model class into the ABI's model table; hooks the class does not override stay NULL.
#pragma once

#include <string>
#include <vector>

#include "cairn/model.hpp"

namespace cairn {

namespace detail {

inline SignalTensors signal_tensors(cairn_signal_tensors_span signals) {
  return routed_inputs(signals);
}

inline cairn_tensor_view_span views_in(const TensorList& tensors, const Arena& arena) {
  const std::span<cairn_tensor_view> views = arena.make<cairn_tensor_view>(tensors.size());
  for (std::size_t i = 0; i < views.size(); ++i) views[i] = tensors[i].in(arena);
  return span_of<cairn_tensor_view_span>(views.data(), views.size());
}

inline void to_abi(const ForwardPassArgs& args, const Arena& arena, cairn_forward_args& out) {
  const std::span<cairn_input_edge> edges = arena.make<cairn_input_edge>(args.inputs.size());
  for (std::size_t i = 0; i < edges.size(); ++i) {
    edges[i] = {args.inputs[i].signal, args.inputs[i].node, views_in(args.inputs[i].tensors, arena)};
  }
  out.metadata = args.full_metadata.in(arena);
  out.inputs = span_of<cairn_input_edge_span>(edges.data(), edges.size());
  out.unpersist = arena.span<cairn_u32_span>(args.unpersist_tensors);
  out.request_done = args.request_done ? 1 : 0;
  out.step_metadata = args.step_metadata.in(arena);
}

}  // namespace detail

template <class Concrete>
class ModelTable {
  static_assert(std::is_base_of_v<Model, Concrete>, "a model derives from cairn::Model");

  static Concrete& model(cairn_model* handle) noexcept {
    return static_cast<Concrete&>(*reinterpret_cast<Model*>(handle));
  }

  static cairn_status config_schema(cairn_config_key_span* out) {
    return guarded([&] { *out = Concrete::config_schema(); });
  }
  static cairn_status open(const cairn_open_args* args, cairn_model** out) {
    return guarded([&] {
      std::unique_ptr<Model> opened = Concrete::open(OpenArgs(*args));
      if (opened == nullptr) throw std::logic_error("the plugin's open() returned no model");
      *out = reinterpret_cast<cairn_model*>(opened.release());
    });
  }
  static void close(cairn_model* handle) {
    guarded([&] { delete reinterpret_cast<Model*>(handle); });
  }
  static cairn_status describe(cairn_model* handle, const cairn_model_desc** out) {
    return guarded([&] { *out = model(handle).describe(); });
  }
  static cairn_status process_prompt(cairn_model* handle, const cairn_prompt_args* args, cairn_prompt_result* out) {
    return guarded([&] {
      PromptArgs prompt;
      prompt.request_id = text(args->request_id);
      for (const auto& part : elements(args->parts)) {
        PromptPart& added = prompt.parts.emplace_back();
        added.modality = part.modality;
        added.text = text(part.text);
        added.token_ids = elements(part.token_ids);
        if (part.media.shape != nullptr) added.media = Tensor::borrow(part.media);
      }
      prompt.output_modalities = elements(args->output_modalities);
      prompt.model_kwargs = ValueMap(args->model_kwargs);
      const PromptResult result = model(handle).process_prompt(prompt);
      const Arena arena(args->arena);
      const std::span<cairn_signal_tensors> tensors = arena.make<cairn_signal_tensors>(result.tensors.size());
      std::size_t i = 0;
      for (const auto& [signal, list] : result.tensors) tensors[i++] = {signal, 0, detail::views_in(list, arena)};
      out->tensors = span_of<cairn_signal_tensors_span>(tensors.data(), tensors.size());
      out->prompt_tokens = result.prompt_tokens;
      out->metadata = result.metadata.in(arena);
    });
  }
  static cairn_status initial_forward_args(cairn_model* handle, const cairn_initial_args* args,
                                           cairn_forward_args* out) {
    return guarded([&] {
      InitialArgs initial;
      initial.partition = args->partition;
      initial.input_modalities = elements(args->input_modalities);
      initial.output_modalities = elements(args->output_modalities);
      initial.input_signals = detail::signal_tensors(args->input_signals);
      initial.prompt_metadata = ValueMap(args->prompt_metadata);
      initial.model_kwargs = ValueMap(args->model_kwargs);
      detail::to_abi(model(handle).get_initial_forward_pass_args(initial), Arena(args->arena), *out);
    });
  }
  static cairn_status partition_forward_args(cairn_model* handle, const cairn_transition_args* args,
                                             cairn_forward_args* out) {
    return guarded([&] {
      TransitionArgs transition;
      transition.partition = args->partition;
      if (args->metadata != nullptr) transition.metadata = CurrentForwardConductorMetadata(*args->metadata);
      transition.persist_signals = detail::signal_tensors(args->persist_signals);
      for (const auto& state : elements(args->incoming_connections))
        transition.incoming_connections.emplace_back(state);
      transition.fwd_index = args->fwd_index;
      transition.num_output_tokens = args->num_output_tokens;
      transition.curr_forward_outputs = elements(args->curr_forward_outputs);
      detail::to_abi(model(handle).get_partition_forward_pass_args(transition), Arena(args->arena), *out);
    });
  }
  static cairn_status request_resource_configs(cairn_model* handle, const cairn_request_config_args* args,
                                               cairn_resource_req_config_span* out) {
    return guarded([&] {
      const auto configs = model(handle).get_request_resource_configs(*args);
      const Arena arena(args->arena);
      const std::span<cairn_resource_req_config> made = arena.make<cairn_resource_req_config>(configs.size());
      for (std::size_t i = 0; i < made.size(); ++i) {
        void* copied = arena.allocate(configs[i].size, 8);
        std::memcpy(copied, configs[i].config.get(), configs[i].size);
        made[i] = {configs[i].resource, configs[i].kind, copied};
      }
      *out = span_of<cairn_resource_req_config_span>(made.data(), made.size());
    });
  }
  static cairn_status postprocess(cairn_model* handle, const cairn_postprocess_args* args, cairn_bytes* out) {
    return guarded([&] {
      PostprocessArgs output;
      output.request_id = text(args->request_id);
      output.request = args->request;
      output.modality = args->modality;
      output.is_final = args->is_final != 0;
      if (args->tensor != nullptr && args->tensor->shape != nullptr) output.tensor = Tensor::borrow(*args->tensor);
      output.request_kwargs = ValueMap(args->request_kwargs);
      const cairn_str bytes = Arena(args->arena).copy(model(handle).postprocess(output));
      *out = {bytes.data, bytes.size};
    });
  }
  static void request_closed(cairn_model* handle, cairn_request request) {
    guarded([&] { model(handle).request_closed(request); });
  }
  static cairn_status create_node(cairn_model* handle, std::uint32_t node, cairn_node** out,
                                  const cairn_node_api** out_api) {
    return guarded([&] {
      NodeHandle made = model(handle).get_submodule(node);
      if (made.node == nullptr || made.api == nullptr) {
        throw std::logic_error("get_submodule(" + std::to_string(node) +
                               ") returned no node; build it with cairn::make_node");
      }
      *out_api = made.api;
      *out = made.node.release()->handle();
    });
  }
  static void destroy_node(cairn_model*, cairn_node* node) {
    guarded([&] { delete reinterpret_cast<NodeSubmodule*>(node); });
  }
  static cairn_status prefix_key_streams(cairn_model* handle, cairn_prefix_stream_span* out) {
    return guarded([&] {
      std::vector<cairn_prefix_stream>& kept = model(handle).kept_prefix_streams;
      kept = model(handle).prefix_key_streams();
      *out = span_of<cairn_prefix_stream_span>(kept.data(), kept.size());
    });
  }
  static cairn_status checkpoint_path(cairn_model* handle, cairn_str* out) {
    return guarded([&] {
      std::string& kept = model(handle).kept_checkpoint_path;
      kept = model(handle).checkpoint_path();
      *out = str(kept);
    });
  }

 public:
  static const cairn_model_api* get() noexcept {
#define CAIRN_SDK_SET(entry, hook) \
  if constexpr (!std::is_same_v<decltype(&Concrete::hook), decltype(&Model::hook)>) table.entry = &ModelTable::entry
    static constexpr cairn_model_api kTable = [] {
      cairn_model_api table{};
      table.struct_size = CAIRN_SIZE(cairn_model_api, checkpoint_path);
      if constexpr (&Concrete::config_schema != &Model::config_schema) table.config_schema = &ModelTable::config_schema;
      table.open = &ModelTable::open;
      table.close = &ModelTable::close;
      table.describe = &ModelTable::describe;
      CAIRN_SDK_SET(process_prompt, process_prompt);
      table.initial_forward_args = &ModelTable::initial_forward_args;
      CAIRN_SDK_SET(partition_forward_args, get_partition_forward_pass_args);
      CAIRN_SDK_SET(request_resource_configs, get_request_resource_configs);
      CAIRN_SDK_SET(postprocess, postprocess);
      CAIRN_SDK_SET(request_closed, request_closed);
      table.create_node = &ModelTable::create_node;
      table.destroy_node = &ModelTable::destroy_node;
      CAIRN_SDK_SET(prefix_key_streams, prefix_key_streams);
      CAIRN_SDK_SET(checkpoint_path, checkpoint_path);
      return table;
    }();
#undef CAIRN_SDK_SET
    return &kTable;
  }
};

}  // namespace cairn
