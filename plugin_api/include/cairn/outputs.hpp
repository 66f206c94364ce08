// A step's outputs and the stop check's view of them (seed: BatchedModelOutput, HostRows, StopCheck, BatchedStopCheck).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cairn/request_info.hpp"

namespace cairn {

// One request's outputs: signal -> tensors.
using NameToTensorList = std::map<Signal, TensorList>;

// A forward's result as one dictionary: a request's outputs, or a packed tensor under a name of the form __x__.
using OutputKey = std::variant<Request, std::string>;
using OutputDict = std::map<OutputKey, std::variant<NameToTensorList, Tensor>>;

struct BatchedModelOutput {
  std::map<Request, NameToTensorList> per_rid_outputs;
  std::map<std::string, Tensor> packed_outputs;                // cut per request by unpack_packed_outputs
  std::optional<std::map<Signal, Tensor>> check_stop_buffers;  // row i for request i; none: the per-request outputs
  std::optional<std::map<Signal, Tensor>> row_outputs;
  std::optional<std::map<Signal, Tensor>> output_spans;  // int64 [rows, 2]
  std::set<Request> loopback_rids;                       // their loop-back value stays on the device
  bool rows_only = false;

  // A dictionary as an output: text keys of the form __x__ are packed tensors, request keys are per-request outputs.
  static BatchedModelOutput coerce(OutputDict output) {
    BatchedModelOutput result;
    for (auto& [key, value] : output) {
      if (const Request* request = std::get_if<Request>(&key)) {
        if (!std::holds_alternative<NameToTensorList>(value)) {
          throw std::invalid_argument("the outputs of request " + std::to_string(*request) +
                                      " are one tensor, not a dictionary by signal");
        }
        result.per_rid_outputs[*request] = std::get<NameToTensorList>(std::move(value));
        continue;
      }
      const std::string& name = std::get<std::string>(key);
      if (name.size() < 5 || !name.starts_with("__") || !name.ends_with("__") ||
          !std::holds_alternative<Tensor>(value)) {
        throw std::invalid_argument("output '" + name + "' is neither a request nor a packed tensor named __x__");
      }
      result.packed_outputs[name] = std::get<Tensor>(std::move(value));
    }
    return result;
  }
  static BatchedModelOutput coerce(BatchedModelOutput output) { return output; }

  // Per-request outputs first, then packed ones; nullptr when there are none.
  const NameToTensorList* get(Request request) const {
    const auto found = per_rid_outputs.find(request);
    return found == per_rid_outputs.end() ? nullptr : &found->second;
  }
  const Tensor* get(const std::string& name) const {
    const auto found = packed_outputs.find(name);
    return found == packed_outputs.end() ? nullptr : &found->second;
  }
  // Takes one request's per-request outputs out; row-addressed tensors stay.
  std::optional<NameToTensorList> pop(Request request) {
    auto node = per_rid_outputs.extract(request);
    return node.empty() ? std::nullopt : std::optional<NameToTensorList>(std::move(node.mapped()));
  }
  // One clone per row-addressed tensor, narrowed to the real rows.
  std::map<Signal, Tensor> clone_row_outputs(std::int64_t num_rows) const {
    std::map<Signal, Tensor> clones;
    if (!row_outputs) return clones;
    for (const auto& [signal, tensor] : *row_outputs) {
      clones[signal] = tensor.shape().empty() ? tensor : tensor.narrow(0, 0, std::min(num_rows, tensor.dim(0))).clone();
    }
    return clones;
  }
  // A detached copy of the stop buffers. `reuse` holds clones of the row outputs: a buffer that is the same memory as a
  // row output takes that clone, and memory under two names is cloned once. Nothing when there are no buffers.
  std::optional<std::map<Signal, Tensor>> clone_check_stop_buffers(
      const std::map<Signal, Tensor>* reuse = nullptr) const {
    if (!check_stop_buffers) return std::nullopt;
    std::map<const void*, Tensor> cloned;
    if (reuse != nullptr && row_outputs) {
      for (const auto& [signal, tensor] : *row_outputs) {
        const auto held = reuse->find(signal);
        if (held != reuse->end()) cloned[tensor.data()] = held->second;
      }
    }
    std::map<Signal, Tensor> result;
    for (const auto& [signal, tensor] : *check_stop_buffers) {
      const auto [held, inserted] = cloned.try_emplace(tensor.data());
      if (inserted) held->second = tensor.clone();
      result[signal] = held->second;
    }
    return result;
  }
  // What the stop check reads: the buffers, or else the per-request outputs.
  std::variant<const std::map<Signal, Tensor>*, const std::map<Request, NameToTensorList>*> get_check_stop_input()
      const {
    if (check_stop_buffers) return &*check_stop_buffers;
    return &per_rid_outputs;
  }
  // Merges another output in. Stop buffers survive only when exactly one side has them.
  void update(BatchedModelOutput other) {
    for (auto& [request, outputs] : other.per_rid_outputs) per_rid_outputs[request] = std::move(outputs);
    for (auto& [name, tensor] : other.packed_outputs) packed_outputs[name] = std::move(tensor);
    if (other.row_outputs) {
      if (!row_outputs) row_outputs.emplace();
      for (auto& [signal, tensor] : *other.row_outputs) (*row_outputs)[signal] = std::move(tensor);
    }
    if (check_stop_buffers && other.check_stop_buffers) {
      check_stop_buffers.reset();
    } else if (other.check_stop_buffers) {
      check_stop_buffers = std::move(other.check_stop_buffers);
    }
  }
};

// A step's row-addressed outputs on the host. Row i of every buffer belongs to request_ids[i]; a padded replay leaves
// more rows.
struct HostRows {
  std::vector<Request> request_ids;
  std::map<Signal, Tensor> buffers;

  // (request, first element of its row) for each of `requests` that has a row; nothing when there is no such buffer.
  template <class T = std::int64_t>
  std::optional<std::vector<std::pair<Request, T>>> first_values(Signal signal,
                                                                 const std::vector<Request>& requests) const {
    const auto buffer = buffers.find(signal);
    if (buffer == buffers.end()) return std::nullopt;
    std::vector<std::pair<Request, T>> values;
    for (Request request : requests) {
      for (std::size_t row = 0; row < request_ids.size(); ++row) {
        if (request_ids[row] != request || static_cast<std::int64_t>(row) >= buffer->second.dim(0)) continue;
        values.emplace_back(request, first_of_row<T>(buffer->second, static_cast<std::int64_t>(row)));
        break;
      }
    }
    return values;
  }

 private:
  template <class T>
  static T first_of_row(const Tensor& buffer, std::int64_t row) {
    const Tensor part = buffer.narrow(0, row, row + 1);
    if (part.elements() == 0) throw std::invalid_argument("a row of a stop buffer is empty");
    const cairn_dtype type = part.dtype();
    const auto read = [&part]<class From>(From from) {
      std::memcpy(&from, part.data(), sizeof from);
      return static_cast<T>(from);
    };
    if (type.code == CAIRN_DTYPE_INT && type.bits == 32) return read(std::int32_t{});
    if (type.code == CAIRN_DTYPE_INT && type.bits == 64) return read(std::int64_t{});
    if (type.code == CAIRN_DTYPE_FLOAT && type.bits == 32) return read(float{});
    if (type.code == CAIRN_DTYPE_FLOAT && type.bits == 64) return read(double{});
    if ((type.code == CAIRN_DTYPE_UINT || type.code == CAIRN_DTYPE_BOOL) && type.bits == 8) return read(std::uint8_t{});
    throw std::invalid_argument("a stop buffer's type cannot be read: int32, int64, float32, float64, uint8 or bool");
  }
};

// check_stop's answer: loops that stop, and outputs of this step that are not routed. A plain set of loops is one too.
struct StopCheck {
  std::set<LoopIndex> stops;
  std::vector<Signal> withheld;

  StopCheck() = default;
  StopCheck(std::set<LoopIndex> loops) : stops(std::move(loops)) {}
  StopCheck(std::set<LoopIndex> loops, std::vector<Signal> outputs)
      : stops(std::move(loops)), withheld(std::move(outputs)) {}
};

// The same for a batch; requests without an entry are left out of each map.
struct BatchedStopCheck {
  std::map<Request, std::set<LoopIndex>> stops;
  std::map<Request, std::vector<Signal>> withheld;

  BatchedStopCheck() = default;
  BatchedStopCheck(std::map<Request, std::set<LoopIndex>> loops) : stops(std::move(loops)) {}
};

// The bit sets of the ABI. An index over 63 has no bit: the model description allows no more loops and signals to be
// stopped.
template <class Indices>
std::uint64_t bits_of(const Indices& indices) {
  std::uint64_t bits = 0;
  for (std::uint32_t index : indices) {
    if (index > 63)
      throw std::out_of_range("index " + std::to_string(index) + " is over 63: it has no bit in a stop check");
    bits |= std::uint64_t{1} << index;
  }
  return bits;
}

// Between C++ outputs and the ABI's. `requests` are the step's rows in order.
inline void to_abi(const BatchedModelOutput& output, std::span<const Request> requests, const Arena& arena,
                   cairn_batched_output& out) {
  std::size_t count = 0;
  for (const auto& [request, outputs] : output.per_rid_outputs) count += outputs.size();
  const std::span<cairn_row_output> rows = arena.make<cairn_row_output>(count);
  std::size_t at = 0;
  for (const auto& [request, outputs] : output.per_rid_outputs) {
    std::uint32_t row = 0;
    while (row < requests.size() && requests[row] != request) ++row;
    if (row == requests.size())
      throw std::invalid_argument("an output is keyed by request " + std::to_string(request) +
                                  ", which is not in the step");
    for (const auto& [signal, tensors] : outputs) {
      const std::span<cairn_tensor_view> views = arena.make<cairn_tensor_view>(tensors.size());
      for (std::size_t i = 0; i < views.size(); ++i) views[i] = tensors[i].in(arena);
      rows[at++] = {row, signal, span_of<cairn_tensor_view_span>(views.data(), views.size())};
    }
  }
  out.per_rid_outputs = span_of<cairn_row_output_span>(rows.data(), rows.size());
  const std::span<cairn_named_tensor> packed = arena.make<cairn_named_tensor>(output.packed_outputs.size());
  at = 0;
  for (const auto& [name, tensor] : output.packed_outputs) packed[at++] = {arena.copy(name), tensor.in(arena)};
  out.packed_outputs = span_of<cairn_named_tensor_span>(packed.data(), packed.size());
  // One memory under several names stays one memory, so that the host copies it once.
  std::map<const void*, cairn_tensor_view> placed;
  const auto batch = [&](const std::optional<std::map<Signal, Tensor>>& tensors) -> cairn_batch_tensor_span {
    if (!tensors) return {};
    const std::span<cairn_batch_tensor> made = arena.make<cairn_batch_tensor>(tensors->size());
    std::size_t i = 0;
    for (const auto& [signal, tensor] : *tensors) {
      const auto [held, inserted] = placed.try_emplace(tensor.data());
      if (inserted) held->second = tensor.in(arena);
      made[i++] = {signal, 0, held->second};
    }
    return span_of<cairn_batch_tensor_span>(made.data(), made.size());
  };
  out.row_outputs = batch(output.row_outputs);
  out.check_stop_buffers = batch(output.check_stop_buffers);
  out.output_spans = batch(output.output_spans);
  if (!output.loopback_rids.empty()) {
    const std::span<std::uint8_t> flags = arena.make<std::uint8_t>(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) flags[i] = output.loopback_rids.contains(requests[i]) ? 1 : 0;
    out.loopback_rids = flags.data();
  }
  out.rows_only = output.rows_only ? 1 : 0;
}
inline BatchedModelOutput from_abi(const cairn_batched_output& output, std::span<const Request> requests) {
  BatchedModelOutput result;
  for (const auto& row : elements(output.per_rid_outputs)) {
    if (row.row >= requests.size()) continue;
    TensorList& tensors = result.per_rid_outputs[requests[row.row]][row.signal];
    for (const auto& view : elements(row.tensors)) tensors.push_back(Tensor::borrow(view));
  }
  for (const auto& named : elements(output.packed_outputs))
    result.packed_outputs[std::string(text(named.name))] = Tensor::borrow(named.view);
  const auto batch = [](cairn_batch_tensor_span tensors) -> std::optional<std::map<Signal, Tensor>> {
    if (tensors.count == 0) return std::nullopt;
    std::map<Signal, Tensor> read;
    for (const auto& tensor : elements(tensors)) read[tensor.signal] = Tensor::borrow(tensor.view);
    return read;
  };
  result.row_outputs = batch(output.row_outputs);
  result.check_stop_buffers = batch(output.check_stop_buffers);
  result.output_spans = batch(output.output_spans);
  result.rows_only = output.rows_only != 0;
  for (std::size_t i = 0; output.loopback_rids != nullptr && i < requests.size(); ++i) {
    if (output.loopback_rids[i] != 0) result.loopback_rids.insert(requests[i]);
  }
  return result;
}

}  // namespace cairn
