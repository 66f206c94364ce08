#include "core/engine/engine.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"
#include "core/plugin/thread_context.hpp"

namespace cairn {
namespace {

void fail_row(EngineRow& row, std::string_view error) {
  row.failed = true;
  row.error.assign(error);
}

// Elements [row, row + 1) of a batch tensor, as a view whose shape lies in the arena.
cairn_tensor_view row_view(const cairn_tensor_view& batch, std::uint32_t row, Arena& arena) {
  cairn_tensor_view view = batch;
  auto shape = arena_span<std::int64_t>(arena, static_cast<std::size_t>(batch.ndim));
  std::copy(batch.shape, batch.shape + batch.ndim, shape.begin());
  shape[0] = 1;
  std::int64_t elements = 1;
  for (std::int32_t i = 1; i < batch.ndim; ++i) elements *= batch.shape[i];
  if (batch.strides != nullptr) elements = batch.strides[0];
  view.shape = shape.data();
  view.byte_offset += static_cast<std::uint64_t>(elements) * row * (batch.dtype.bits / 8U);
  return view;
}

void require_rows(const cairn_batch_tensor& tensor, std::size_t rows, const char* what, const std::string& node) {
  if (tensor.view.ndim < 1 || tensor.view.shape == nullptr || tensor.view.data == nullptr ||
      tensor.view.shape[0] < static_cast<std::int64_t>(rows)) {
    throw InvalidArgument("Node '" + node + "': " + what + " of signal " + std::to_string(tensor.signal) +
                          " must be a batch tensor with at least " + std::to_string(rows) + " rows.");
  }
}

}  // namespace

Engine::Engine(std::uint32_t signal_count, std::uint32_t label_count, const kernels::Parallel& parallel)
    : signal_count_(signal_count), label_count_(label_count), parallel_(parallel), arena_(std::size_t{1} << 20U) {}

void Engine::prepare(const NodeRunner& node, std::span<const cairn_row_signals> rows, Arena& arena,
                     std::span<cairn_node_inputs> out) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out[i] = cairn_node_inputs{};
    out[i].graph_walk = rows[i].graph_walk;
  }
  // The message is built only when it is needed: a string per step would be an allocation per step.
  const cairn_status status =
      node.api().prepare_inputs(node.node(), {rows.data(), rows.size(), sizeof(cairn_row_signals)}, arena.table(),
                                out.data(), sizeof(cairn_node_inputs));
  if (status != CAIRN_STATUS_OK) throw_status(status, "prepare_inputs of node '" + node.name() + "'");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    cairn_node_inputs& row = out[i];
    if (row.row_status != CAIRN_ROW_OK) continue;
    if (row.input_seq_len < 0 || (node.autoregressive() && row.input_seq_len == 0)) {
      throw InternalError("prepare_inputs of node '" + node.name() + "' gave a row input_seq_len " +
                          std::to_string(row.input_seq_len) + ".");
    }
    row.chunk_start = 0;
    row.chunk_end = row.input_seq_len;
    row.is_last_chunk = 1;
  }
}

void Engine::run(const NodeRunner& node, std::uint32_t walk, std::span<EngineRow> rows,
                 const std::atomic<bool>& abort) {
  outputs_.clear();
  context_.abort = &abort;
  arena_.reset();
  if (rows.empty()) return;
  bool batched = rows.size() == 1;
  if (!batched) {
    try {
      batched = can_batch(node, walk, rows);
    } catch (const std::exception& error) {
      for (EngineRow& row : rows) fail_row(row, error.what());
      return;
    }
  }
  const std::size_t size = batched ? rows.size() : 1;
  for (std::size_t first = 0; first < rows.size(); first += size) {
    const std::span<EngineRow> batch = rows.subspan(first, size);
    context_.in_forward = false;
    try {
      run_batch(node, walk, batch, static_cast<std::uint32_t>(first));
    } catch (const Cancelled&) {
      for (EngineRow& row : rows.subspan(first)) row.skipped = true;
      break;
    } catch (const std::exception& error) {
      for (EngineRow& row : batch) fail_row(row, error.what());
    }
    context_.in_forward = false;
  }
}

cairn_engine_inputs Engine::make_inputs(std::uint32_t walk, std::span<EngineRow> rows) {
  auto requests = arena_span<cairn_request>(arena_, rows.size());
  auto infos = arena_span<const cairn_forward_info*>(arena_, rows.size());
  auto node_inputs = arena_span<cairn_node_inputs>(arena_, rows.size());
  auto signals = arena_span<cairn_row_signals>(arena_, rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    requests[i] = rows[i].step.request;
    infos[i] = rows[i].info;
    node_inputs[i] = rows[i].inputs;
    signals[i] = *rows[i].signals;
  }
  cairn_engine_inputs inputs{};
  inputs.struct_size = CAIRN_SIZE(cairn_engine_inputs, stream);
  inputs.graph_walk = walk;
  inputs.row_count = static_cast<std::uint32_t>(rows.size());
  inputs.real_row_count = inputs.row_count;
  inputs.request_ids = requests.data();
  inputs.per_request_info = infos.data();
  inputs.inputs = {node_inputs.data(), node_inputs.size(), sizeof(cairn_node_inputs)};
  inputs.row_signals = {signals.data(), signals.size(), sizeof(cairn_row_signals)};
  inputs.context = context_.handle();
  inputs.arena = arena_.table();
  return inputs;
}

bool Engine::can_batch(const NodeRunner& node, std::uint32_t walk, std::span<EngineRow> rows) {
  if (node.api().can_batch == nullptr || node.api().forward_batched == nullptr) return false;
  const cairn_engine_inputs inputs = make_inputs(walk, rows);
  std::uint32_t answer = 0;
  check_status(node.api().can_batch(node.node(), &inputs, &answer), "can_batch");
  return answer != 0;
}

void Engine::declare(const NodeRunner& node, cairn_engine_inputs& inputs, std::span<EngineRow> rows) {
  const std::span<Resource* const> resources = node.resources();
  resource_steps_.assign(resources.size(), {});
  resource_used_.assign(resources.size(), false);
  if (node.api().declare_step == nullptr) return;
  const cairn_step* step = nullptr;
  check_status(node.api().declare_step(node.node(), &inputs, &step), "declare_step");
  inputs.step = step;
  if (step == nullptr) return;
  // Copies the segments, so that resources walk a plain array whatever stride the plugin used.
  const auto take_segments = [&](const cairn_segment_span& span) {
    auto segments = arena_span<cairn_segment>(arena_, span.count);
    for (std::uint64_t i = 0; i < span.count; ++i) {
      const cairn_segment& segment = *CAIRN_AT(cairn_segment, span, i);
      if (segment.row >= rows.size() || rows[segment.row].step.request != segment.request ||
          segment.label >= label_count_ || segment.span < 0) {
        throw InternalError("declare_step of node '" + node.name() + "': segment " + std::to_string(i) + " names row " +
                            std::to_string(segment.row) + ", label " + std::to_string(segment.label) + ", span " +
                            std::to_string(segment.span) + ", which do not fit the step.");
      }
      segments[i] = segment;
    }
    return std::span<const cairn_segment>(segments);
  };
  const std::span<const cairn_segment> shared = take_segments(step->segments);
  for (std::uint64_t i = 0; i < step->steps.count; ++i) {
    const cairn_resource_step& part = *CAIRN_AT(cairn_resource_step, step->steps, i);
    const auto found = std::find_if(resources.begin(), resources.end(),
                                    [&](const Resource* resource) { return resource->index() == part.resource; });
    if (found == resources.end()) {
      throw InternalError("declare_step of node '" + node.name() + "' names resource " + std::to_string(part.resource) +
                          ", which the node does not have.");
    }
    const auto at = static_cast<std::size_t>(found - resources.begin());
    resource_used_[at] = true;
    resource_steps_[at] = {part.segments.count > 0 ? take_segments(part.segments) : shared, part.detail};
  }
}

void Engine::run_batch(const NodeRunner& node, std::uint32_t walk, std::span<EngineRow> rows, std::uint32_t first_row) {
  step_rows_.clear();
  for (const EngineRow& row : rows) step_rows_.push_back(row.step);
  context_.rows = step_rows_;
  context_.arena = &arena_;
  context_.parallel = &parallel_;
  cairn_engine_inputs inputs = make_inputs(walk, rows);
  declare(node, inputs, rows);
  const std::span<Resource* const> resources = node.resources();
  for (std::size_t i = 0; i < resources.size(); ++i) {
    if (resource_used_[i]) resources[i]->admit(resource_steps_[i], context_);
  }
  for (std::size_t i = 0; i < resources.size(); ++i) {
    if (resource_used_[i]) resources[i]->plan(resource_steps_[i], context_);
  }
  cairn_batched_output output{};
  output.struct_size = sizeof(output);
  forward(node, inputs, output);
  for (std::size_t i = 0; i < resources.size(); ++i) {
    if (resource_used_[i]) resources[i]->commit(resource_steps_[i], context_);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TokenRecord* record = node.sampler() != nullptr ? node.sampler()->sampled(i) : nullptr;
    rows[i].has_sampled = record != nullptr;
    if (record != nullptr) rows[i].sampled = *record;
  }
  collect(node, inputs, output, rows, first_row);
  check_stops(node, inputs, output, rows);
}

void Engine::forward(const NodeRunner& node, cairn_engine_inputs& inputs, cairn_batched_output& output) {
  const cairn_node_api& api = node.api();
  cairn_named_tensor_span tensors{};
  context_.in_forward = true;
  if (api.preprocess != nullptr) {
    check_status(api.preprocess(node.node(), &inputs, &tensors), "preprocess");
  } else if (inputs.row_count == 1) {
    tensors = CAIRN_AT(cairn_node_inputs, inputs.inputs, 0)->tensor_inputs;
  }
  const bool single = inputs.row_count == 1 && api.forward != nullptr;
  check_status(single ? api.forward(node.node(), &inputs, tensors, &output)
                      : api.forward_batched(node.node(), &inputs, tensors, &output),
               "forward");
  context_.in_forward = false;
}

void Engine::keep_output(std::uint32_t row, std::uint32_t signal, const cairn_tensor_view& view) {
  Tensor* owner = Tensor::from_handle(view.owner);
  // Whole rows of an owned tensor share its memory; anything else is copied out of step memory.
  if (owner != nullptr && view.ndim == static_cast<std::int32_t>(owner->shape().size()) && view.ndim > 0 &&
      view.strides == nullptr && std::equal(owner->shape().begin() + 1, owner->shape().end(), view.shape + 1) &&
      owner->elements() > 0) {
    const auto row_bytes = static_cast<std::ptrdiff_t>(owner->nbytes() / static_cast<std::size_t>(owner->shape()[0]));
    const std::ptrdiff_t offset =
        static_cast<std::byte*>(view.data) + static_cast<std::ptrdiff_t>(view.byte_offset) - owner->data();
    if (row_bytes > 0 && offset >= 0 && offset % row_bytes == 0 &&
        offset / row_bytes + view.shape[0] <= owner->shape()[0]) {
      const std::int64_t first = offset / row_bytes;
      const bool whole = first == 0 && view.shape[0] == owner->shape()[0];
      outputs_.push_back(
          {row, signal, whole ? TensorPtr::retain(owner) : Tensor::slice(*owner, first, first + view.shape[0])});
      return;
    }
  }
  outputs_.push_back({row, signal, Tensor::copy_of(view)});
}

void Engine::collect(const NodeRunner& node, const cairn_engine_inputs& inputs, cairn_batched_output& output,
                     std::span<EngineRow> rows, std::uint32_t first_row) {
  const cairn_node_api& api = node.api();
  if (output.packed_outputs.count > 0 && api.unpack_packed_outputs != nullptr) {
    cairn_row_output_span unpacked{};
    check_status(api.unpack_packed_outputs(node.node(), &inputs, &output, &unpacked), "unpack_packed_outputs");
    if (output.per_rid_outputs.count > 0 && unpacked.count > 0) {
      auto merged = arena_span<cairn_row_output>(arena_, output.per_rid_outputs.count + unpacked.count);
      std::size_t at = 0;
      for (std::uint64_t i = 0; i < output.per_rid_outputs.count; ++i) {
        merged[at++] = *CAIRN_AT(cairn_row_output, output.per_rid_outputs, i);
      }
      for (std::uint64_t i = 0; i < unpacked.count; ++i) merged[at++] = *CAIRN_AT(cairn_row_output, unpacked, i);
      output.per_rid_outputs = {merged.data(), merged.size(), sizeof(cairn_row_output)};
    } else if (unpacked.count > 0) {
      output.per_rid_outputs = unpacked;
    }
  }
  if (output.rows_only == 0 && api.postprocess != nullptr) {
    auto results = arena_span<cairn_row_result>(arena_, rows.size());
    check_status(api.postprocess(node.node(), &inputs, &output, results.data()), "postprocess");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (results[i].row_status != CAIRN_ROW_OK) fail_row(rows[i], from_abi_str(results[i].error));
    }
  }
  if (api.batch_postprocess != nullptr) {
    check_status(api.batch_postprocess(node.node(), &inputs, &output), "batch_postprocess");
  }
  std::uint8_t* keep = nullptr;
  if (api.filter_batched_output != nullptr && output.per_rid_outputs.count > 0) {
    keep = arena_.array<std::uint8_t>(output.per_rid_outputs.count);
    std::fill(keep, keep + output.per_rid_outputs.count, std::uint8_t{1});
    check_status(api.filter_batched_output(node.node(), &inputs, &output, keep), "filter_batched_output");
  }
  const auto route = [&](std::uint32_t row) { return !rows[row].failed && rows[row].step.last_chunk; };
  for (std::uint64_t i = 0; i < output.row_outputs.count; ++i) {
    const cairn_batch_tensor& batch = *CAIRN_AT(cairn_batch_tensor, output.row_outputs, i);
    if (batch.signal >= signal_count_) throw InternalError("forward of '" + node.name() + "' names an unknown signal.");
    require_rows(batch, rows.size(), "row_outputs", node.name());
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      if (route(row)) keep_output(first_row + row, batch.signal, row_view(batch.view, row, arena_));
    }
  }
  if (output.rows_only != 0) return;
  for (std::uint64_t i = 0; i < output.per_rid_outputs.count; ++i) {
    const cairn_row_output& entry = *CAIRN_AT(cairn_row_output, output.per_rid_outputs, i);
    if (entry.row >= rows.size() || entry.signal >= signal_count_) {
      throw InternalError("forward of '" + node.name() + "' names row " + std::to_string(entry.row) + ", signal " +
                          std::to_string(entry.signal) + ", which do not exist.");
    }
    if (!route(entry.row) || (keep != nullptr && keep[i] == 0)) continue;
    for (std::uint64_t t = 0; t < entry.tensors.count; ++t) {
      keep_output(first_row + entry.row, entry.signal, *CAIRN_AT(cairn_tensor_view, entry.tensors, t));
    }
  }
}

void Engine::check_stops(const NodeRunner& node, const cairn_engine_inputs& inputs, const cairn_batched_output& output,
                         std::span<EngineRow> rows) {
  const cairn_node_api& api = node.api();
  if (api.check_stop == nullptr && api.check_stop_batched == nullptr) return;
  cairn_host_rows host{};
  host.struct_size = CAIRN_SIZE(cairn_host_rows, row_outputs);
  host.request_ids = inputs.request_ids;
  host.row_count = inputs.row_count;
  host.step_walk = inputs.graph_walk;
  for (const EngineRow& row : rows) {
    if (row.inputs.graph_walk != rows[0].inputs.graph_walk) host.step_walk = CAIRN_NONE;
  }
  host.infos = inputs.per_request_info;
  for (std::uint64_t i = 0; i < output.check_stop_buffers.count; ++i) {
    require_rows(*CAIRN_AT(cairn_batch_tensor, output.check_stop_buffers, i), rows.size(), "check_stop_buffers",
                 node.name());
  }
  host.buffers = output.check_stop_buffers;
  host.row_outputs = output.per_rid_outputs;
  auto results = arena_span<cairn_stop_check>(arena_, rows.size());
  cairn_status status = CAIRN_STATUS_UNSUPPORTED;
  if (api.check_stop_batched != nullptr && host.buffers.count > 0) {
    status = api.check_stop_batched(node.node(), &host, results.data());
  }
  if (status != CAIRN_STATUS_OK) {  // falls back, as for a raise in the reference
    if (api.check_stop == nullptr) return;
    std::fill(results.begin(), results.end(), cairn_stop_check{});
    check_status(api.check_stop(node.node(), &host, results.data()), "check_stop");
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].step.last_chunk) continue;
    if (results[i].row_status != CAIRN_ROW_OK) {
      fail_row(rows[i], from_abi_str(results[i].error));
      continue;
    }
    rows[i].stops = results[i].stops;
    rows[i].withheld = results[i].withheld;
  }
}

}  // namespace cairn
