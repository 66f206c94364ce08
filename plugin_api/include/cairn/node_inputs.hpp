// One row's inputs (seed: NodeInputs, ARNodeInputs, InputMetadata). Made by prepare_inputs, read by the later hooks.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cairn/request_info.hpp"

namespace cairn {

// How collate joins a field over rows.
enum class StackingMethod { NONE, STACK, CAT };

using NamedTensors = std::map<std::string, Tensor>;

struct NodeInputs {
  NamedTensors tensor_inputs;
  ValueMap kwargs;
  const void* resource_step_info = nullptr;  // for declare_step only; the plugin's, alive until the step ends
  std::int64_t input_seq_len = 0;
  std::optional<Walk> graph_walk;
  // Set by the host on rows it hands out: this row carries tokens [chunk_start, chunk_end) of its prompt.
  std::int64_t chunk_start = 0;
  std::int64_t chunk_end = 0;
  bool is_last_chunk = true;

  NodeInputs() = default;
  NodeInputs(const NodeInputs&) = default;
  NodeInputs& operator=(const NodeInputs&) = default;
  virtual ~NodeInputs() = default;

  // A copy with tensors cloned, of the same class, so that a capture template can be used again.
  virtual std::unique_ptr<NodeInputs> clone() const {
    auto copy = std::make_unique<NodeInputs>(*this);
    copy->clone_tensors();
    return copy;
  }

 protected:
  virtual void clone_tensors() {
    for (auto& [name, tensor] : tensor_inputs) tensor = tensor.clone();
    kwargs = clone_values(kwargs);
  }

 private:
  static Value clone_value(const Value& value) {
    if (const Tensor* tensor = value.get_if<Tensor>()) return tensor->clone();
    if (const ValueMap* map = value.get_if<ValueMap>()) return clone_values(*map);
    if (const ValueList* list = value.get_if<ValueList>()) {
      ValueList copied;
      for (const Value& element : *list) copied.push_back(clone_value(element));
      return copied;
    }
    return value;
  }
  static ValueMap clone_values(const ValueMap& values) {
    ValueMap copied;
    for (const auto& [key, value] : values) copied.set(key, clone_value(value));
    return copied;
  }
};

// The result of collate: one entry per field, either one joined tensor or the rows' tensors as a list.
struct Collated {
  std::map<std::string, Tensor> joined;
  std::map<std::string, TensorList> lists;
  std::map<std::string, ValueList> values;
};

struct ARNodeInputs : NodeInputs {
  Tensor input_ids;     // int32 [input_seq_len]; usually exactly one of ids and embeds
  Tensor input_embeds;  // [input_seq_len, hidden]
  std::map<Label, Tensor> custom_pos_ids;

  std::unique_ptr<NodeInputs> clone() const override {
    auto copy = std::make_unique<ARNodeInputs>(*this);
    copy->clone_tensors();
    return copy;
  }

  // Joins the rows field by field. NONE keeps lists. STACK and CAT join tensors (a new outer dimension; the outermost
  // one) and fall back to the list when shapes do not fit. tensor_inputs and kwargs appear under their own names.
  static Collated collate(std::span<const ARNodeInputs* const> rows, StackingMethod method = StackingMethod::NONE) {
    Collated result;
    for (const ARNodeInputs* row : rows) {
      if (row->input_ids.defined()) result.lists["input_ids"].push_back(row->input_ids);
      if (row->input_embeds.defined()) result.lists["input_embeds"].push_back(row->input_embeds);
      for (const auto& [label, ids] : row->custom_pos_ids) {
        result.lists["custom_pos_ids." + std::to_string(label)].push_back(ids);
      }
      for (const auto& [name, tensor] : row->tensor_inputs) result.lists[name].push_back(tensor);
      for (const auto& [name, value] : row->kwargs) result.values[name].push_back(value);
    }
    if (method == StackingMethod::NONE) return result;
    for (auto entry = result.lists.begin(); entry != result.lists.end();) {
      Tensor joined = join(entry->second, method);
      if (joined.defined()) {
        result.joined[entry->first] = joined;
        entry = result.lists.erase(entry);
      } else {
        ++entry;
      }
    }
    return result;
  }

 protected:
  void clone_tensors() override {
    NodeInputs::clone_tensors();
    if (input_ids.defined()) input_ids = input_ids.clone();
    if (input_embeds.defined()) input_embeds = input_embeds.clone();
    for (auto& [label, ids] : custom_pos_ids) ids = ids.clone();
  }

 private:
  // Undefined when the shapes or types do not fit.
  static Tensor join(const TensorList& parts, StackingMethod method) {
    const Tensor& first = parts.front();
    const bool cat = method == StackingMethod::CAT;
    const std::size_t compared_from = cat ? 1 : 0;
    if (cat && first.shape().empty()) return {};
    std::int64_t outer = 0;
    std::size_t bytes = 0;
    for (const Tensor& part : parts) {
      if (part.dtype().code != first.dtype().code || part.dtype().bits != first.dtype().bits) return {};
      if (part.shape().size() != first.shape().size()) return {};
      for (std::size_t i = compared_from; i < first.shape().size(); ++i) {
        if (part.shape()[i] != first.shape()[i]) return {};
      }
      outer += cat ? part.dim(0) : 1;
      bytes += part.nbytes();
    }
    std::vector<std::int64_t> shape{outer};
    shape.insert(shape.end(), first.shape().begin() + static_cast<std::ptrdiff_t>(compared_from), first.shape().end());
    return Tensor::filled(first.dtype(), shape, bytes, [&](std::byte* to) {
      for (const Tensor& part : parts) {
        part.copy_to(to);
        to += part.nbytes();
      }
    });
  }
};

// Facts about one popped chunk of a streaming edge.
struct StreamChunkInfo {
  std::int64_t chunk_index = 0;
  std::int64_t start_offset = 0;
  std::int64_t num_items = 0;
  bool is_final = false;
};

// What the worker knows about one request's inputs to this step.
struct InputMetadata {
  std::map<Signal, StreamChunkInfo> stream_chunks;
  std::map<LoopIndex, std::int64_t> dynamic_loop_iter_counts;

  InputMetadata() = default;
  explicit InputMetadata(const cairn_row_signals& row) {
    for (const auto& chunk : elements(row.stream_chunks)) {
      stream_chunks[chunk.signal] = {chunk.chunk_index, chunk.start_offset, chunk.num_items, chunk.is_final != 0};
    }
    for (const auto& count : elements(row.dynamic_loop_iter_counts))
      dynamic_loop_iter_counts[count.loop] = count.iterations;
  }
};

// What was routed to one row, by signal. A signal without tensors is there with an empty list.
using RoutedInputs = std::map<Signal, TensorList>;
inline RoutedInputs routed_inputs(cairn_signal_tensors_span signals) {
  RoutedInputs routed;
  for (const auto& signal : elements(signals)) {
    TensorList& tensors = routed[signal.signal];
    for (const auto& view : elements(signal.tensors)) tensors.push_back(Tensor::borrow(view));
  }
  return routed;
}

// Between C++ rows and the ABI's. Rows with any autoregressive field become ARNodeInputs.
inline void to_abi(const NodeInputs& inputs, const Arena& arena, cairn_node_inputs& out) {
  out.input_seq_len = inputs.input_seq_len;
  if (inputs.graph_walk) out.graph_walk = *inputs.graph_walk;
  const std::span<cairn_named_tensor> tensors = arena.make<cairn_named_tensor>(inputs.tensor_inputs.size());
  std::size_t i = 0;
  for (const auto& [name, tensor] : inputs.tensor_inputs) tensors[i++] = {arena.copy(name), tensor.in(arena)};
  out.tensor_inputs = span_of<cairn_named_tensor_span>(tensors.data(), tensors.size());
  out.kwargs = inputs.kwargs.in(arena);
  out.resource_step_info = inputs.resource_step_info;
  const auto* autoregressive = dynamic_cast<const ARNodeInputs*>(&inputs);
  if (autoregressive == nullptr) return;
  out.input_ids = autoregressive->input_ids.in(arena);
  out.input_embeds = autoregressive->input_embeds.in(arena);
  const std::span<cairn_label_tensor> positions = arena.make<cairn_label_tensor>(autoregressive->custom_pos_ids.size());
  i = 0;
  for (const auto& [label, ids] : autoregressive->custom_pos_ids) positions[i++] = {label, 0, ids.in(arena)};
  out.custom_pos_ids = span_of<cairn_label_tensor_span>(positions.data(), positions.size());
}
inline void from_abi(const cairn_node_inputs& row, NodeInputs& inputs) {
  inputs.input_seq_len = row.input_seq_len;
  inputs.graph_walk = row.graph_walk;
  inputs.kwargs = ValueMap(row.kwargs);
  inputs.resource_step_info = row.resource_step_info;
  inputs.chunk_start = row.chunk_start;
  inputs.chunk_end = row.chunk_end;
  inputs.is_last_chunk = row.is_last_chunk != 0;
  for (const auto& named : elements(row.tensor_inputs))
    inputs.tensor_inputs[std::string(text(named.name))] = Tensor::borrow(named.view);
  auto* autoregressive = dynamic_cast<ARNodeInputs*>(&inputs);
  if (autoregressive == nullptr) return;
  if (row.input_ids.shape != nullptr) autoregressive->input_ids = Tensor::borrow(row.input_ids);
  if (row.input_embeds.shape != nullptr) autoregressive->input_embeds = Tensor::borrow(row.input_embeds);
  for (const auto& ids : elements(row.custom_pos_ids))
    autoregressive->custom_pos_ids[ids.label] = Tensor::borrow(ids.view);
}

}  // namespace cairn
