// NodeSubmodule and ARNodeSubmodule: the classes a model's nodes derive from. Every hook has the seed's name, meaning
// and default. Hooks come in two shapes:
//   - per request or with C++ containers (prepare_inputs, forward, ...): comfortable, allocate;
//   - `*_rows`: the whole batch in the ABI's own structs, for authors who want a step without allocations. The default
//   of
//     such a hook calls the comfortable ones, so override one of the two.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cairn/engine_inputs.hpp"
#include "cairn/outputs.hpp"
#include "cairn/step.hpp"

namespace cairn {

// What a hook is told about one row beside its inputs.
struct RowContext {
  Walk graph_walk = 0;
  bool has_loopback = false;
  bool is_final_stream_chunk = false;
  bool synthetic = false;
  const InputMetadata& input_metadata;
};

// The rows a prepare hook fills.
class OutRows {
 public:
  OutRows(cairn_node_inputs* rows, std::uint64_t stride) : rows_(rows), stride_(stride) {}
  cairn_node_inputs& operator[](std::uint64_t i) const { return *CAIRN_OUT_ROW(cairn_node_inputs, rows_, stride_, i); }

 private:
  cairn_node_inputs* rows_;
  std::uint64_t stride_;
};

class NodeSubmodule {
 public:
  NodeSubmodule() = default;
  NodeSubmodule(const NodeSubmodule&) = delete;
  NodeSubmodule& operator=(const NodeSubmodule&) = delete;
  virtual ~NodeSubmodule() = default;

  // Class attributes.
  bool disable_torch_compile = false;
  bool disable_autocast = false;
  std::optional<bool> cudnn_allow_tf32;
  std::string float32_matmul_precision;  // empty: not given
  bool reads_device_loopback = false;
  bool cuts_tensor_inputs = false;

  NodeResources node_resources;

  // ---- life ----
  virtual void bind_node_resources(const NodeResources& resources) { node_resources = resources; }
  virtual std::optional<cairn_device> get_device() const { return std::nullopt; }
  virtual std::optional<cairn_dtype> get_autocast_dtype() const { return std::nullopt; }
  virtual void on_request_added(Request, const CurrentForwardPassInfo&) {}
  virtual void cleanup_request(Request) {}
  virtual void warmup_compiles() {}
  PerRequestState& request_state(Request request) { return request_states.of(request); }

  // ---- inputs ----
  // nullptr skips the row this step; an exception fails the request.
  virtual std::unique_ptr<NodeInputs> prepare_inputs(const CurrentForwardPassInfo&, const RoutedInputs&,
                                                     const RowContext&) {
    throw unsupported("the node implements neither prepare_inputs nor prepare_rows");
  }
  virtual void prepare_rows(cairn_row_signals_span rows, const Arena& arena, OutRows out) {
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      const cairn_row_signals& row = elements(rows)[i];
      out[i].row_status = prepare_one(row, arena, out[i]);
    }
  }
  // What every row of this walk gets, or nullptr to prepare row by row.
  virtual std::unique_ptr<NodeInputs> uniform_row_inputs(Walk, bool /*has_loopback*/) { return nullptr; }
  // The row restricted to tokens [start, end).
  virtual std::unique_ptr<NodeInputs> split_inputs(Walk, const CurrentForwardPassInfo&, const NodeInputs&,
                                                   std::int64_t /*start*/, std::int64_t /*end*/) {
    throw unsupported("the node does not cut its inputs");
  }

  // ---- batching and capture ----
  virtual bool can_batch(const ModelInputsFromEngine&) { return false; }
  virtual bool can_batch_rows(const cairn_engine_inputs& inputs) {
    return can_batch(ModelInputsFromEngine(inputs, node_resources, request_states));
  }
  virtual std::optional<std::int64_t> max_batch_size(Walk) { return std::nullopt; }
  virtual std::optional<std::int64_t> max_batch_tokens(Walk) { return std::nullopt; }
  virtual std::optional<std::int64_t> max_rows_in_combined(Walk) { return std::nullopt; }
  virtual Value cg_key_info(Walk, const std::map<Request, CurrentForwardPassInfo>&,
                            const std::map<Request, InputMetadata>&) {
    return {};
  }
  virtual bool split_batches_by_capture_key(Walk) { return false; }
  virtual bool can_use_accelerator_graphs(const ModelInputsFromEngine&) { return true; }
  // Memory of the node, valid until destroy_node.
  virtual cairn_capture_config_span get_accelerator_graph_configs(cairn_device, int /*tp_world_size*/) { return {}; }
  virtual cairn_region_config_span get_piecewise_accelerator_graph_configs(cairn_device, cairn_dtype,
                                                                           int /*tp_world_size*/) {
    return {};
  }
  // The template row for a captured shape: `tokens` tokens.
  virtual std::unique_ptr<NodeInputs> make_capture_inputs(const cairn_capture_config&, std::int64_t /*tokens*/) {
    throw unsupported("the node has capture configs but no make_capture_inputs");
  }
  virtual bool step_is_input_free(Walk) { return false; }

  // ---- the step ----
  // Nothing: the node drives no resource.
  virtual std::optional<SubmoduleStep> declare_step(const ModelInputsFromEngine&,
                                                    const std::vector<const NodeInputs*>&) {
    return std::nullopt;
  }
  virtual const cairn_step* declare_rows(const cairn_engine_inputs& inputs) {
    const ModelInputsFromEngine engine_inputs(inputs, node_resources, request_states);
    const Rows rows(*this, inputs);
    const std::optional<SubmoduleStep> step = declare_step(engine_inputs, rows.pointers);
    return step ? step->in(engine_inputs.arena, engine_inputs.request_ids) : nullptr;
  }
  // The tensors forward gets. The default passes the tensor_inputs of a single row on.
  virtual NamedTensors preprocess(const ModelInputsFromEngine&, const std::vector<const NodeInputs*>& inputs) {
    if (inputs.size() != 1) throw unsupported("the node batches rows but does not override preprocess");
    return inputs.front()->tensor_inputs;
  }
  virtual NameToTensorList forward(const ModelInputsFromEngine&, const NamedTensors&) {
    throw unsupported("the node implements no forward");
  }
  // forward of one row whose outputs carry spans or row buffers.
  virtual BatchedModelOutput forward_with_spans(const ModelInputsFromEngine& inputs, const NamedTensors& tensors) {
    BatchedModelOutput output;
    output.per_rid_outputs[inputs.request_ids.front()] = forward(inputs, tensors);
    return output;
  }
  virtual BatchedModelOutput forward_batched(const ModelInputsFromEngine&, const NamedTensors&) {
    throw unsupported("can_batch answered yes, but the node does not override forward_batched");
  }
  virtual void forward_rows(const cairn_engine_inputs& inputs, cairn_named_tensor_span tensors, bool batched,
                            cairn_batched_output& out) {
    const ModelInputsFromEngine engine_inputs(inputs, node_resources, request_states);
    NamedTensors named;
    for (const auto& tensor : elements(tensors)) named[std::string(text(tensor.name))] = Tensor::borrow(tensor.view);
    to_abi(batched ? forward_batched(engine_inputs, named) : forward_with_spans(engine_inputs, named),
           engine_inputs.request_ids, engine_inputs.arena, out);
  }

  // ---- after the forward ----
  // Drops what a real request shall not receive.
  virtual NameToTensorList filter_batched_output(const CurrentForwardPassInfo&, NameToTensorList outputs) {
    return outputs;
  }
  virtual std::map<Request, NameToTensorList> unpack_packed_outputs(const ModelInputsFromEngine&,
                                                                    const NamedTensors& /*packed*/) {
    return {};
  }
  // Per request, in place.
  virtual void postprocess(Request, const CurrentForwardPassInfo&, NameToTensorList&, const NodeInputs&) {}
  // Once per step, after every postprocess.
  virtual void batch_postprocess(BatchedModelOutput&, const ModelInputsFromEngine&) {}

  // ---- stops (main thread) ----
  virtual StopCheck check_stop(Request, const CurrentForwardPassInfo&, const NameToTensorList&) { return {}; }
  // Must agree with check_stop; nothing falls back to it.
  virtual std::optional<BatchedStopCheck> check_stop_batched(const std::map<Request, CurrentForwardPassInfo>&,
                                                             const HostRows&, std::optional<Walk> /*step_walk*/) {
    return std::nullopt;
  }
  // False falls back to check_stop.
  virtual bool check_stop_rows(const cairn_host_rows& rows, cairn_stop_check* results) {
    std::map<Request, CurrentForwardPassInfo> infos;
    HostRows host;
    for (std::uint32_t i = 0; i < rows.row_count; ++i) {
      host.request_ids.push_back(rows.request_ids[i]);
      if (rows.infos[i] != nullptr) infos.emplace(rows.request_ids[i], CurrentForwardPassInfo(*rows.infos[i]));
    }
    for (const auto& buffer : elements(rows.buffers)) host.buffers[buffer.signal] = Tensor::borrow(buffer.view);
    const auto answer = check_stop_batched(
        infos, host, rows.step_walk == CAIRN_NONE ? std::nullopt : std::optional<Walk>(rows.step_walk));
    if (!answer) return false;
    for (std::uint32_t i = 0; i < rows.row_count; ++i) {
      const auto stops = answer->stops.find(rows.request_ids[i]);
      if (stops != answer->stops.end()) results[i].stops = bits_of(stops->second);
      const auto withheld = answer->withheld.find(rows.request_ids[i]);
      if (withheld != answer->withheld.end()) results[i].withheld = bits_of(withheld->second);
    }
    return true;
  }
  // Output signal -> stop buffer that carries its value.
  virtual std::map<Signal, Signal> inline_client_signals(Walk) { return {}; }
  virtual std::set<Signal> device_loopback_signals(Walk) { return {}; }
  virtual std::set<Signal> spanned_outputs(Walk) { return {}; }

  // ---- for the thunks ----
  cairn_node* handle() noexcept { return reinterpret_cast<cairn_node*>(this); }
  static NodeSubmodule& of(cairn_node* node) noexcept { return *reinterpret_cast<NodeSubmodule*>(node); }
  RequestStates request_states{handle()};
  // Answers of the per-walk questions and of a failed stop check, kept because the host reads them after the call.
  std::vector<cairn_inline_signal>& kept_inline_signals(Walk walk) { return inline_signals_[walk]; }
  cairn_u32_span keep_signals(int question, Walk walk, const std::set<Signal>& signals) {
    std::vector<Signal>& kept = signals_[{question, walk}];
    kept.assign(signals.begin(), signals.end());
    return span_of<cairn_u32_span>(kept.data(), kept.size());
  }
  const std::string& keep_text(Request request, const char* message) { return texts_[request] = message; }
  void forget(Request request) noexcept {
    request_states.drop(request);
    texts_.erase(request);
  }
  // An empty row of the class this node works with.
  virtual std::unique_ptr<NodeInputs> new_inputs() const { return std::make_unique<NodeInputs>(); }

  // The step's rows as C++ objects.
  struct Rows {
    Rows(const NodeSubmodule& node, const cairn_engine_inputs& inputs) {
      for (const auto& row : elements(inputs.inputs)) {
        owned.push_back(node.new_inputs());
        from_abi(row, *owned.back());
        pointers.push_back(owned.back().get());
      }
    }
    std::vector<std::unique_ptr<NodeInputs>> owned;
    std::vector<const NodeInputs*> pointers;
  };

 private:
  std::map<Walk, std::vector<cairn_inline_signal>> inline_signals_;
  std::map<std::pair<int, Walk>, std::vector<Signal>> signals_;
  std::map<Request, std::string> texts_;  // main thread

  // A row's failure is its own: the text goes with the row, not with the call.
  std::uint32_t prepare_one(const cairn_row_signals& row, const Arena& arena, cairn_node_inputs& out) {
    try {
      const InputMetadata metadata(row);
      const CurrentForwardPassInfo info =
          row.info == nullptr ? CurrentForwardPassInfo{} : CurrentForwardPassInfo(*row.info);
      const RowContext context{row.graph_walk, (row.flags & CAIRN_ROW_HAS_LOOPBACK) != 0,
                               (row.flags & CAIRN_ROW_FINAL_STREAM_CHUNK) != 0, (row.flags & CAIRN_ROW_SYNTHETIC) != 0,
                               metadata};
      const std::unique_ptr<NodeInputs> inputs = prepare_inputs(info, routed_inputs(row.inputs), context);
      if (inputs == nullptr) return CAIRN_ROW_SKIP;
      to_abi(*inputs, arena, out);
      return CAIRN_ROW_OK;
    } catch (const std::exception& error) {
      out.error = arena.copy(std::string_view(error.what()));
      return CAIRN_ROW_FAILED;
    }
  }
};

// A node whose rows carry input_ids or input_embeds.
class ARNodeSubmodule : public NodeSubmodule {
 public:
  // The default cut slices ids, embeds and positions along tokens, and refuses a row with anything it cannot cut.
  std::unique_ptr<NodeInputs> split_inputs(Walk, const CurrentForwardPassInfo&, const NodeInputs& inputs,
                                           std::int64_t start, std::int64_t end) override {
    const auto& row = dynamic_cast<const ARNodeInputs&>(inputs);
    if (!row.tensor_inputs.empty() || !row.kwargs.empty() || row.resource_step_info != nullptr) {
      throw unsupported(
          "a row with tensor_inputs, kwargs or resource_step_info has no default cut; override split_inputs");
    }
    auto part = std::make_unique<ARNodeInputs>(row);
    part->input_seq_len = end - start;
    if (row.input_ids.defined()) part->input_ids = cut(row.input_ids, 0, row.input_seq_len, start, end);
    if (row.input_embeds.defined()) part->input_embeds = cut(row.input_embeds, 0, row.input_seq_len, start, end);
    for (auto& [label, ids] : part->custom_pos_ids) ids = cut(ids, -1, row.input_seq_len, start, end);
    return part;
  }
  std::unique_ptr<NodeInputs> new_inputs() const override { return std::make_unique<ARNodeInputs>(); }

 private:
  static Tensor cut(const Tensor& tensor, int dim, std::int64_t tokens, std::int64_t start, std::int64_t end) {
    if (tensor.shape().empty() || tensor.dim(dim) != tokens) {
      throw unsupported("a tensor of the row does not have one entry per token; override split_inputs");
    }
    return tensor.narrow(dim, start, end);
  }
};

}  // namespace cairn
