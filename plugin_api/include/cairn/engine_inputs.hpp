// What the step-scoped hooks receive (seed: ModelInputsFromEngine). Borrowed: valid for the call.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cairn/node_inputs.hpp"
#include "cairn/request_state.hpp"
#include "cairn/resources.hpp"

namespace cairn {

// A captured region of this node. run() replays it; its outputs alias static memory until the next run.
class PiecewiseRunner {
 public:
  PiecewiseRunner(cairn_region_runner* runner, cairn_step_context* context, Arena arena)
      : runner_(runner), context_(context), arena_(arena) {}
  bool can_run(std::int64_t batch_size, std::int64_t tokens = 0) const {
    const cairn_region_service* service = services().regions;
    return CAIRN_HAS(service, cairn_region_service, can_run) && service->can_run(runner_, batch_size, tokens) != 0;
  }
  NamedTensors run(const NamedTensors& static_inputs, std::span<const Request> requests,
                   std::span<const std::int64_t> seq_lens) const {
    const std::span<cairn_named_tensor> inputs = arena_.make<cairn_named_tensor>(static_inputs.size());
    std::size_t i = 0;
    for (const auto& [name, tensor] : static_inputs) inputs[i++] = {arena_.copy(name), *tensor.view()};
    cairn_named_tensor_span made{};
    check(services().regions->run(runner_, context_, span_of<cairn_named_tensor_span>(inputs.data(), inputs.size()),
                                  requests.data(), requests.size(), {seq_lens.data(), seq_lens.size()}, &made));
    NamedTensors outputs;
    for (const auto& named : elements(made)) outputs[std::string(text(named.name))] = Tensor::borrow(named.view);
    return outputs;
  }

 private:
  cairn_region_runner* runner_;
  cairn_step_context* context_;
  Arena arena_;
};

struct ModelInputsFromEngine {
  std::span<const Request> request_ids;  // padding rows last
  std::size_t real_rows = 0;
  Walk graph_walk = 0;  // the step's: a combined one in a mixed step
  std::map<Request, CurrentForwardPassInfo> per_request_info;
  const NodeResources& resources;
  std::map<std::uint32_t, PiecewiseRunner> piecewise_runners;  // by region index
  LazyRequestStates per_request_states;
  const cairn_step* step = nullptr;  // nullptr when undeclared
  bool captured = false;             // at capture and replay
  bool synthetic = false;            // the rows are made up
  std::optional<std::int64_t> real_seq_len;
  std::map<Request, InputMetadata> per_request_input_metadata;
  Arena arena;
  cairn_step_context* context = nullptr;
  void* stream = nullptr;
  const cairn_engine_inputs& raw;

  ModelInputsFromEngine(const cairn_engine_inputs& inputs, const NodeResources& bound, RequestStates& states)
      : request_ids(inputs.request_ids, inputs.row_count),
        real_rows(inputs.real_row_count),
        graph_walk(inputs.graph_walk),
        resources(bound),
        per_request_states(states, {inputs.request_ids, inputs.row_count}),
        step(inputs.step),
        captured((inputs.flags & CAIRN_STEP_CAPTURED) != 0),
        synthetic((inputs.flags & CAIRN_STEP_SYNTHETIC) != 0),
        arena(inputs.arena),
        context(inputs.context),
        stream(inputs.stream),
        raw(inputs) {
    for (std::size_t i = 0; i < request_ids.size(); ++i) {
      const cairn_forward_info* info = inputs.per_request_info == nullptr ? nullptr : inputs.per_request_info[i];
      if (info != nullptr) per_request_info.emplace(request_ids[i], CurrentForwardPassInfo(*info));
    }
    if (inputs.real_seq_len != 0) real_seq_len = inputs.real_seq_len;
    for (const auto& row : elements(inputs.row_signals))
      per_request_input_metadata.emplace(row.request, InputMetadata(row));
    for (std::uint32_t i = 0; i < inputs.piecewise_runner_count; ++i) {
      if (inputs.piecewise_runners[i] != nullptr) {
        piecewise_runners.emplace(i, PiecewiseRunner(inputs.piecewise_runners[i], inputs.context, arena));
      }
    }
  }

  // The info of the only request; an error when there are several.
  const CurrentForwardPassInfo& single_request_info() const {
    if (per_request_info.size() != 1) {
      throw std::logic_error("single_request_info() of a step with " + std::to_string(per_request_info.size()) +
                             " requests");
    }
    return per_request_info.begin()->second;
  }
  // The info of the first request, whether or not there are more.
  const CurrentForwardPassInfo& first_request_info() const {
    if (request_ids.empty()) throw std::logic_error("first_request_info() of an empty step");
    return per_request_info.at(request_ids.front());
  }
};

}  // namespace cairn
