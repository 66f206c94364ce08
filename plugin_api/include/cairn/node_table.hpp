// Turns a NodeSubmodule class into the ABI's node table. A hook the class does not override stays NULL, so that the
// host can take its own default path; every thunk catches whatever the hook throws.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "cairn/node_submodule.hpp"

namespace cairn {

// A node and its table, as get_submodule returns it.
struct NodeHandle {
  std::unique_ptr<NodeSubmodule> node;
  const cairn_node_api* api = nullptr;
};

namespace detail {

inline NameToTensorList outputs_of_row(const cairn_batched_output& outputs, std::uint32_t row) {
  NameToTensorList result;
  for (const auto& batch : elements(outputs.row_outputs)) {
    const Tensor tensor = Tensor::borrow(batch.view);
    if (!tensor.shape().empty() && row < tensor.dim(0)) result[batch.signal] = {tensor.narrow(0, row, row + 1)};
  }
  for (const auto& output : elements(outputs.per_rid_outputs)) {
    if (output.row != row) continue;
    TensorList tensors;
    for (const auto& view : elements(output.tensors)) tensors.push_back(Tensor::borrow(view));
    result[output.signal] = std::move(tensors);
  }
  return result;
}

inline void write_back(std::map<Request, NameToTensorList> rows, const cairn_engine_inputs& inputs,
                       cairn_batched_output& out) {
  BatchedModelOutput only_rows;
  only_rows.per_rid_outputs = std::move(rows);
  cairn_batched_output written{};
  to_abi(only_rows, {inputs.request_ids, inputs.row_count}, Arena(inputs.arena), written);
  out.per_rid_outputs = written.per_rid_outputs;
  out.row_outputs = {};
}

}  // namespace detail

template <class Node>
class NodeTable {
  static_assert(std::is_base_of_v<NodeSubmodule, Node>,
                "a node derives from cairn::NodeSubmodule or cairn::ARNodeSubmodule");

  static Node& node(cairn_node* handle) noexcept { return static_cast<Node&>(NodeSubmodule::of(handle)); }
  static ModelInputsFromEngine engine_inputs(cairn_node* handle, const cairn_engine_inputs& inputs) {
    return {inputs, node(handle).node_resources, node(handle).request_states};
  }

  static cairn_status attributes(cairn_node* handle, cairn_node_attributes* out) {
    return guarded([&] {
      const Node& self = node(handle);
      out->disable_torch_compile = self.disable_torch_compile;
      out->disable_autocast = self.disable_autocast;
      out->cudnn_allow_tf32 = !self.cudnn_allow_tf32 ? 0 : *self.cudnn_allow_tf32 ? 1 : -1;
      out->reads_device_loopback = self.reads_device_loopback;
      out->float32_matmul_precision = str(self.float32_matmul_precision);
      out->autocast_dtype = self.get_autocast_dtype().value_or(cairn_dtype{});
      out->device = self.get_device().value_or(cairn_device{});
      out->cuts_tensor_inputs = self.cuts_tensor_inputs;
    });
  }
  static cairn_status bind_node_resources(cairn_node* handle, cairn_bound_resource_span resources) {
    return guarded([&] { node(handle).bind_node_resources(NodeResources(resources)); });
  }
  static cairn_status on_request_added(cairn_node* handle, const cairn_forward_info* info) {
    return guarded([&] { node(handle).on_request_added(info->request, CurrentForwardPassInfo(*info)); });
  }
  static void cleanup_request(cairn_node* handle, cairn_request request) {
    guarded([&] { node(handle).cleanup_request(request); });
    node(handle).forget(request);
  }
  static cairn_status prepare_inputs(cairn_node* handle, cairn_row_signals_span rows, cairn_arena* arena,
                                     cairn_node_inputs* out_rows, std::uint64_t out_stride) {
    return guarded([&] { node(handle).prepare_rows(rows, Arena(arena), OutRows(out_rows, out_stride)); });
  }
  static cairn_status uniform_row_inputs(cairn_node* handle, std::uint32_t walk, std::uint32_t has_loopback,
                                         cairn_arena* arena, cairn_node_inputs* out, std::uint32_t* out_used) {
    return guarded([&] {
      const auto inputs = node(handle).uniform_row_inputs(walk, has_loopback != 0);
      if (inputs != nullptr) to_abi(*inputs, Arena(arena), *out);
      *out_used = inputs != nullptr ? 1 : 0;
    });
  }
  static cairn_status split_inputs(cairn_node* handle, const cairn_forward_info* info, const cairn_node_inputs* row,
                                   std::int64_t start, std::int64_t end, cairn_arena* arena, cairn_node_inputs* out) {
    return guarded([&] {
      const auto whole = node(handle).new_inputs();
      from_abi(*row, *whole);
      const CurrentForwardPassInfo request = info == nullptr ? CurrentForwardPassInfo{} : CurrentForwardPassInfo(*info);
      to_abi(*node(handle).split_inputs(row->graph_walk, request, *whole, start, end), Arena(arena), *out);
    });
  }
  static cairn_status can_batch(cairn_node* handle, const cairn_engine_inputs* inputs, std::uint32_t* out) {
    return guarded([&] { *out = node(handle).can_batch_rows(*inputs) ? 1 : 0; });
  }
  // A number hook cannot report an error: an exception reads as no cap.
  template <class Ask>
  static std::int64_t cap(Ask&& ask) noexcept {
    std::int64_t value = 0;
    guarded([&] { value = std::forward<Ask>(ask)().value_or(0); });
    return value;
  }
  static std::int64_t max_batch_size(cairn_node* handle, std::uint32_t walk) {
    return cap([&] { return node(handle).max_batch_size(walk); });
  }
  static std::int64_t max_batch_tokens(cairn_node* handle, std::uint32_t walk) {
    return cap([&] { return node(handle).max_batch_tokens(walk); });
  }
  static std::int64_t max_rows_in_combined(cairn_node* handle, std::uint32_t walk) {
    return cap([&] { return node(handle).max_rows_in_combined(walk); });
  }
  static cairn_status cg_key_info(cairn_node* handle, std::uint32_t walk, cairn_row_signals_span rows,
                                  cairn_value* out) {
    return guarded([&] {
      std::map<Request, CurrentForwardPassInfo> infos;
      std::map<Request, InputMetadata> metadata;
      for (const auto& row : elements(rows)) {
        if (row.info != nullptr) infos.emplace(row.request, CurrentForwardPassInfo(*row.info));
        metadata.emplace(row.request, InputMetadata(row));
      }
      // There is no arena here: a key is a number or nothing; texts must outlive the call, so they are refused.
      const Value key = node(handle).cg_key_info(walk, infos, metadata);
      if (!key.is_none() && !key.get_if<std::int64_t>() && !key.get_if<bool>() && !key.get_if<double>()) {
        throw unsupported("a capture key must be none, a bool or a number");
      }
      *out = key.in(Arena(nullptr));
    });
  }
  static std::uint32_t split_batches_by_capture_key(cairn_node* handle, std::uint32_t walk) {
    std::uint32_t answer = 0;
    guarded([&] { answer = node(handle).split_batches_by_capture_key(walk) ? 1 : 0; });
    return answer;
  }
  static cairn_status can_use_accelerator_graphs(cairn_node* handle, const cairn_engine_inputs* inputs,
                                                 std::uint32_t* out) {
    return guarded([&] { *out = node(handle).can_use_accelerator_graphs(engine_inputs(handle, *inputs)) ? 1 : 0; });
  }
  static cairn_status get_accelerator_graph_configs(cairn_node* handle, cairn_device device, std::int32_t tp_world_size,
                                                    cairn_capture_config_span* out) {
    return guarded([&] { *out = node(handle).get_accelerator_graph_configs(device, tp_world_size); });
  }
  static cairn_status get_piecewise_accelerator_graph_configs(cairn_node* handle, cairn_device device,
                                                              cairn_dtype autocast_dtype, std::int32_t tp_world_size,
                                                              cairn_region_config_span* out) {
    return guarded(
        [&] { *out = node(handle).get_piecewise_accelerator_graph_configs(device, autocast_dtype, tp_world_size); });
  }
  static cairn_status make_capture_inputs(cairn_node* handle, const cairn_capture_config* config, std::int64_t rows,
                                          std::int64_t tokens, cairn_arena* arena, cairn_node_inputs* out_rows,
                                          std::uint64_t out_stride) {
    return guarded([&] {
      if (rows <= 0) throw std::invalid_argument("make_capture_inputs of no rows");
      const OutRows out(out_rows, out_stride);
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t share = tokens / rows + (i == 0 ? tokens % rows : 0);
        to_abi(*node(handle).make_capture_inputs(*config, share), Arena(arena), out[static_cast<std::uint64_t>(i)]);
      }
    });
  }
  static cairn_status declare_step(cairn_node* handle, const cairn_engine_inputs* inputs, const cairn_step** out) {
    return guarded([&] { *out = node(handle).declare_rows(*inputs); });
  }
  static std::uint32_t step_is_input_free(cairn_node* handle, std::uint32_t walk) {
    std::uint32_t answer = 0;
    guarded([&] { answer = node(handle).step_is_input_free(walk) ? 1 : 0; });
    return answer;
  }
  static cairn_status preprocess(cairn_node* handle, const cairn_engine_inputs* inputs, cairn_named_tensor_span* out) {
    return guarded([&] {
      const NodeSubmodule::Rows rows(node(handle), *inputs);
      const NamedTensors tensors = node(handle).preprocess(engine_inputs(handle, *inputs), rows.pointers);
      const Arena arena(inputs->arena);
      const std::span<cairn_named_tensor> made = arena.make<cairn_named_tensor>(tensors.size());
      std::size_t i = 0;
      for (const auto& [name, tensor] : tensors) made[i++] = {arena.copy(name), tensor.in(arena)};
      *out = span_of<cairn_named_tensor_span>(made.data(), made.size());
    });
  }
  static cairn_status forward(cairn_node* handle, const cairn_engine_inputs* inputs, cairn_named_tensor_span tensors,
                              cairn_batched_output* out) {
    return guarded([&] { node(handle).forward_rows(*inputs, tensors, false, *out); });
  }
  static cairn_status forward_batched(cairn_node* handle, const cairn_engine_inputs* inputs,
                                      cairn_named_tensor_span tensors, cairn_batched_output* out) {
    return guarded([&] { node(handle).forward_rows(*inputs, tensors, true, *out); });
  }
  static cairn_status filter_batched_output(cairn_node* handle, const cairn_engine_inputs* inputs,
                                            const cairn_batched_output* outputs, std::uint8_t* keep) {
    return guarded([&] {
      for (std::uint32_t row = 0; row < inputs->real_row_count; ++row) {
        NameToTensorList all;
        for (const auto& output : elements(outputs->per_rid_outputs)) {
          if (output.row != row) continue;
          for (const auto& view : elements(output.tensors)) all[output.signal].push_back(Tensor::borrow(view));
        }
        const NameToTensorList kept =
            node(handle).filter_batched_output(CurrentForwardPassInfo(*inputs->per_request_info[row]), all);
        for (std::uint64_t i = 0; i < outputs->per_rid_outputs.count; ++i) {
          const cairn_row_output& output = elements(outputs->per_rid_outputs)[i];
          if (output.row == row) keep[i] = kept.contains(output.signal) ? 1 : 0;
        }
      }
    });
  }
  static cairn_status unpack_packed_outputs(cairn_node* handle, const cairn_engine_inputs* inputs,
                                            const cairn_batched_output* outputs, cairn_row_output_span* out) {
    return guarded([&] {
      NamedTensors packed;
      for (const auto& named : elements(outputs->packed_outputs))
        packed[std::string(text(named.name))] = Tensor::borrow(named.view);
      cairn_batched_output unpacked{};
      detail::write_back(node(handle).unpack_packed_outputs(engine_inputs(handle, *inputs), packed), *inputs, unpacked);
      *out = unpacked.per_rid_outputs;
    });
  }
  static cairn_status postprocess(cairn_node* handle, const cairn_engine_inputs* inputs, cairn_batched_output* outputs,
                                  cairn_row_result* results) {
    return guarded([&] {
      const NodeSubmodule::Rows rows(node(handle), *inputs);
      std::map<Request, NameToTensorList> all;
      for (std::uint32_t row = 0; row < inputs->real_row_count; ++row) {
        NameToTensorList& mine = all[inputs->request_ids[row]] = detail::outputs_of_row(*outputs, row);
        try {
          node(handle).postprocess(inputs->request_ids[row], CurrentForwardPassInfo(*inputs->per_request_info[row]),
                                   mine, *rows.pointers[row]);
        } catch (const std::exception& error) {
          results[row].row_status = CAIRN_ROW_FAILED;
          results[row].error = Arena(inputs->arena).copy(std::string_view(error.what()));
        }
      }
      detail::write_back(std::move(all), *inputs, *outputs);
    });
  }
  static cairn_status batch_postprocess(cairn_node* handle, const cairn_engine_inputs* inputs,
                                        cairn_batched_output* outputs) {
    return guarded([&] {
      const std::span<const Request> requests(inputs->request_ids, inputs->row_count);
      BatchedModelOutput output = from_abi(*outputs, requests);
      node(handle).batch_postprocess(output, engine_inputs(handle, *inputs));
      to_abi(output, requests, Arena(inputs->arena), *outputs);
    });
  }
  static cairn_status check_stop(cairn_node* handle, const cairn_host_rows* rows, cairn_stop_check* results) {
    return guarded([&] {
      for (std::uint32_t row = 0; row < rows->row_count; ++row) {
        try {
          cairn_batched_output outputs{};
          outputs.row_outputs = rows->buffers;
          outputs.per_rid_outputs = rows->row_outputs;
          const StopCheck answer = node(handle).check_stop(
              rows->request_ids[row], CurrentForwardPassInfo(*rows->infos[row]), detail::outputs_of_row(outputs, row));
          results[row].stops = bits_of(answer.stops);
          results[row].withheld = bits_of(answer.withheld);
        } catch (const std::exception& error) {
          results[row].row_status = CAIRN_ROW_FAILED;
          results[row].error = str(node(handle).keep_text(rows->request_ids[row], error.what()));
        }
      }
    });
  }
  static cairn_status check_stop_batched(cairn_node* handle, const cairn_host_rows* rows, cairn_stop_check* results) {
    bool answered = false;
    const cairn_status status = guarded([&] { answered = node(handle).check_stop_rows(*rows, results); });
    return status != CAIRN_STATUS_OK ? status : answered ? CAIRN_STATUS_OK : CAIRN_STATUS_UNSUPPORTED;
  }
  static cairn_status inline_client_signals(cairn_node* handle, std::uint32_t walk, cairn_inline_signal_span* out) {
    return guarded([&] {
      auto& kept = node(handle).kept_inline_signals(walk);
      kept.clear();
      for (const auto& [signal, buffer] : node(handle).inline_client_signals(walk)) kept.push_back({signal, buffer});
      *out = span_of<cairn_inline_signal_span>(kept.data(), kept.size());
    });
  }
  static cairn_status device_loopback_signals(cairn_node* handle, std::uint32_t walk, cairn_u32_span* out) {
    return guarded([&] { *out = node(handle).keep_signals(0, walk, node(handle).device_loopback_signals(walk)); });
  }
  static cairn_status spanned_outputs(cairn_node* handle, std::uint32_t walk, cairn_u32_span* out) {
    return guarded([&] { *out = node(handle).keep_signals(1, walk, node(handle).spanned_outputs(walk)); });
  }
  static cairn_status warmup_compiles(cairn_node* handle) {
    return guarded([&] { node(handle).warmup_compiles(); });
  }

 public:
  static const cairn_node_api* get() noexcept {
// Whether Node, or a class between it and the base, has its own version of the hook.
#define CAIRN_SDK_OWN(hook) (!std::is_same_v<decltype(&Node::hook), decltype(&NodeSubmodule::hook)>)
#define CAIRN_SDK_SET(hook, overridden) \
  if constexpr (overridden) table.hook = &NodeTable::hook
    static constexpr cairn_node_api kTable = [] {
      cairn_node_api table{};
      table.struct_size = CAIRN_SIZE(cairn_node_api, warmup_compiles);
      table.attributes = &NodeTable::attributes;
      table.bind_node_resources = &NodeTable::bind_node_resources;
      CAIRN_SDK_SET(on_request_added, CAIRN_SDK_OWN(on_request_added));
      table.cleanup_request = &NodeTable::cleanup_request;
      table.prepare_inputs = &NodeTable::prepare_inputs;
      CAIRN_SDK_SET(uniform_row_inputs, CAIRN_SDK_OWN(uniform_row_inputs));
      // The autoregressive default is the host's own.
      constexpr bool cuts = !std::is_same_v<decltype(&Node::split_inputs), decltype(&ARNodeSubmodule::split_inputs)>;
      CAIRN_SDK_SET(split_inputs, CAIRN_SDK_OWN(split_inputs) && cuts);
      CAIRN_SDK_SET(can_batch, CAIRN_SDK_OWN(can_batch) || CAIRN_SDK_OWN(can_batch_rows));
      CAIRN_SDK_SET(max_batch_size, CAIRN_SDK_OWN(max_batch_size));
      CAIRN_SDK_SET(max_batch_tokens, CAIRN_SDK_OWN(max_batch_tokens));
      CAIRN_SDK_SET(max_rows_in_combined, CAIRN_SDK_OWN(max_rows_in_combined));
      CAIRN_SDK_SET(cg_key_info, CAIRN_SDK_OWN(cg_key_info));
      CAIRN_SDK_SET(split_batches_by_capture_key, CAIRN_SDK_OWN(split_batches_by_capture_key));
      CAIRN_SDK_SET(can_use_accelerator_graphs, CAIRN_SDK_OWN(can_use_accelerator_graphs));
      CAIRN_SDK_SET(get_accelerator_graph_configs, CAIRN_SDK_OWN(get_accelerator_graph_configs));
      CAIRN_SDK_SET(get_piecewise_accelerator_graph_configs, CAIRN_SDK_OWN(get_piecewise_accelerator_graph_configs));
      CAIRN_SDK_SET(make_capture_inputs, CAIRN_SDK_OWN(make_capture_inputs));
      CAIRN_SDK_SET(declare_step, CAIRN_SDK_OWN(declare_step) || CAIRN_SDK_OWN(declare_rows));
      CAIRN_SDK_SET(step_is_input_free, CAIRN_SDK_OWN(step_is_input_free));
      CAIRN_SDK_SET(preprocess, CAIRN_SDK_OWN(preprocess));
      CAIRN_SDK_SET(forward,
                    CAIRN_SDK_OWN(forward) || CAIRN_SDK_OWN(forward_with_spans) || CAIRN_SDK_OWN(forward_rows));
      CAIRN_SDK_SET(forward_batched, CAIRN_SDK_OWN(forward_batched) || CAIRN_SDK_OWN(forward_rows));
      CAIRN_SDK_SET(filter_batched_output, CAIRN_SDK_OWN(filter_batched_output));
      CAIRN_SDK_SET(unpack_packed_outputs, CAIRN_SDK_OWN(unpack_packed_outputs));
      CAIRN_SDK_SET(postprocess, CAIRN_SDK_OWN(postprocess));
      CAIRN_SDK_SET(batch_postprocess, CAIRN_SDK_OWN(batch_postprocess));
      CAIRN_SDK_SET(check_stop, CAIRN_SDK_OWN(check_stop));
      CAIRN_SDK_SET(check_stop_batched, CAIRN_SDK_OWN(check_stop_batched) || CAIRN_SDK_OWN(check_stop_rows));
      CAIRN_SDK_SET(inline_client_signals, CAIRN_SDK_OWN(inline_client_signals));
      CAIRN_SDK_SET(device_loopback_signals, CAIRN_SDK_OWN(device_loopback_signals));
      CAIRN_SDK_SET(spanned_outputs, CAIRN_SDK_OWN(spanned_outputs));
      CAIRN_SDK_SET(warmup_compiles, CAIRN_SDK_OWN(warmup_compiles));
      return table;
    }();
#undef CAIRN_SDK_SET
#undef CAIRN_SDK_OWN
    return &kTable;
  }
};

// Builds a node and pairs it with its class's table.
template <class Node, class... Arguments>
NodeHandle make_node(Arguments&&... arguments) {
  return {std::make_unique<Node>(std::forward<Arguments>(arguments)...), NodeTable<Node>::get()};
}

}  // namespace cairn
