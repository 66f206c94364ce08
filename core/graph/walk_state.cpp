// WalkState: delivery, completion, and the end of iterations and loops.
#include "core/graph/walk_state.hpp"

#include <algorithm>
#include <bit>

#include "core/base/error.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t bit(std::uint32_t index) {
  return std::uint64_t{1} << index;
}

template <class T>
void grow(std::vector<T>& values, std::size_t size) {
  if (values.size() < size) values.resize(size);  // never shrinks: what a value holds on the heap is used again
}

}  // namespace

void WalkState::start(const WalkPlan& plan, std::int64_t forward_index) {
  clear();
  plan_ = &plan;
  forward_index_ = forward_index;
  remaining_ = plan.entities;
  grow(present_, plan.nodes.size());
  grow(values_, plan.inputs.size());
  grow(buffered_, plan.buffers.size());
  grow(externals_, plan.external_inputs.size());
  grow(caught_, plan.outputs.size());
  grow(loops_, plan.loops.size());
  std::fill(present_.begin(), present_.end(), 0);
  loop_counts_.clear();
  for (const std::uint32_t loop : plan.stoppable) loop_counts_.push_back({plan.loops[loop].model_loop, 0, 0});
  stop_times_.resize(plan.stoppable.size());
  stop_indices_.resize(plan.stoppable.size() * plan.stoppable.size());
  for (std::uint32_t loop = 0; loop < plan.loops.size(); ++loop) {
    loops_[loop] = {0, plan.loops[loop].entities, false, false};
  }
  for (std::uint32_t node = 0; node < plan.nodes.size(); ++node) update_ready(node);
}

void WalkState::clear() noexcept {
  plan_ = nullptr;
  ready_ = in_flight_ = completed_ = routed_signals_ = 0;
  remaining_ = 0;
  hit_cap_ = false;
  new_tokens_ = 0;
  forward_index_ = 0;
  stop_time_count_ = 0;
  loop_counts_.clear();
  for (SignalValue& value : values_) value.clear();
  for (auto* kept : {&buffered_, &externals_, &caught_}) {
    for (Kept& value : *kept) value.reset();
  }
}

void WalkState::update_ready(std::uint32_t plan_node) {
  const PlanNode& node = plan_->nodes[plan_node];
  const std::uint64_t mask = bit(node.node);
  const bool ready =
      present_[plan_node] == node.required && (completed_ & bit(plan_node)) == 0 && (in_flight_ & mask) == 0;
  ready_ = ready ? ready_ | mask : ready_ & ~mask;
}

// Puts a value, copied or moved, into an input of the current iteration. False (nothing changed) when the node has it
// already or has run.
template <class Value>
bool WalkState::deliver(std::uint32_t input, Value&& value) {
  const PlanInput& target = plan_->inputs[input];
  const std::uint32_t plan_node = plan_->find(target.node);
  const std::uint64_t mask = bit(input - plan_->nodes[plan_node].inputs.begin);
  if ((completed_ & bit(plan_node)) != 0 || (present_[plan_node] & mask) != 0) return false;
  present_[plan_node] |= mask;
  for (std::uint32_t external = target.externals.begin; external < target.externals.end; ++external) {
    if (externals_[external].present) continue;
    externals_[external].value = value;
    externals_[external].present = true;
  }
  values_[input] = std::forward<Value>(value);
  update_ready(plan_node);
  return true;
}

bool WalkState::ingest(std::uint32_t node, std::uint32_t signal, SignalValue&& value) {
  const std::uint32_t plan_node = plan_ == nullptr ? CAIRN_NONE : plan_->find(node);
  if (plan_node == CAIRN_NONE) return false;
  const PlanRange& inputs = plan_->nodes[plan_node].inputs;
  for (std::uint32_t input = inputs.begin; input < inputs.end; ++input) {
    if (plan_->inputs[input].signal != signal) continue;
    if (deliver(input, std::move(value))) return true;  // which moved nothing when it answered false
    const std::uint32_t buffer = plan_->inputs[input].buffer;
    if (buffer == CAIRN_NONE || buffered_[buffer].present || loops_[plan_->nodes[plan_node].loop].ended) return false;
    buffered_[buffer].value = std::move(value);  // NOLINT(bugprone-use-after-move)
    buffered_[buffer].present = true;
    value.clear();  // NOLINT(bugprone-use-after-move)
    return true;
  }
  return false;
}

void WalkState::set_in_flight(std::uint32_t node, bool in_flight) {
  const std::uint32_t plan_node = plan_ == nullptr ? CAIRN_NONE : plan_->find(node);
  if (plan_node == CAIRN_NONE) return;
  in_flight_ = in_flight ? in_flight_ | bit(node) : in_flight_ & ~bit(node);
  update_ready(plan_node);
}

const SignalValue& WalkState::input(std::uint32_t node, std::uint32_t i) const {
  const std::uint32_t plan_node = plan_ == nullptr ? CAIRN_NONE : plan_->find(node);
  if (plan_node == CAIRN_NONE || i >= plan_->nodes[plan_node].inputs.size()) {
    throw InternalError("Input " + std::to_string(i) + " of node " + std::to_string(node) + " is not in this walk.");
  }
  return values_[plan_->nodes[plan_node].inputs.begin + i];
}

void WalkState::complete(std::uint32_t node, std::span<OutputValue> outputs, std::uint64_t withheld, RoutedSink& sink) {
  const std::uint32_t plan_node = plan_ == nullptr ? CAIRN_NONE : plan_->find(node);
  if (plan_node == CAIRN_NONE || ((ready_ | in_flight_) & bit(node)) == 0) {
    throw InternalError("Node " + std::to_string(node) + " completed in a walk in which it was not running.");
  }
  const PlanNode& plan = plan_->nodes[plan_node];
  const auto find = [&](std::uint32_t signal) {
    return std::find_if(outputs.begin(), outputs.end(), [&](const OutputValue& o) { return o.signal == signal; });
  };
  for (std::uint32_t i = plan.outputs.begin; i < plan.outputs.end; ++i) {
    const std::uint32_t signal = plan_->outputs[i].signal;
    if ((withheld & bit(signal)) != 0 || find(signal) != outputs.end()) continue;
    throw InternalError("Node \"" + plan_->node_name(plan_node) + "\" gave no output \"" + plan_->signal_name(signal) +
                        "\", which walk \"" + plan_->name() + "\" routes; return it or withhold it in check_stop.");
  }
  in_flight_ &= ~bit(node);
  ready_ &= ~bit(node);
  completed_ |= bit(plan_node);
  present_[plan_node] = 0;
  for (std::uint32_t input = plan.inputs.begin; input < plan.inputs.end; ++input) values_[input].clear();
  for (std::uint32_t i = plan.outputs.begin; i < plan.outputs.end; ++i) {
    const PlanOutput& output = plan_->outputs[i];
    if ((withheld & bit(output.signal)) != 0) continue;
    route(output, find(output.signal)->value, sink);
  }
  entity_completed(plan.loop, sink);
}

template <class Value>
void WalkState::route_to_node(const PlanEdge& edge, Value&& value) {
  if (deliver(edge.input, std::forward<Value>(value))) return;
  if (edge.kind == PlanEdgeKind::kForward || buffered_[edge.buffer].present) {
    const PlanInput& input = plan_->inputs[edge.input];
    throw InternalError("Walk \"" + plan_->name() + "\": node \"" + plan_->node_name(plan_->find(input.node)) +
                        "\" received signal \"" + plan_->signal_name(input.signal) + "\" twice in one iteration.");
  }
  buffered_[edge.buffer].value = std::forward<Value>(value);
  buffered_[edge.buffer].present = true;
}

// Moves the value away.
void WalkState::route(const PlanOutput& output, SignalValue& value, RoutedSink& sink) {
  routed_signals_ |= bit(output.signal);
  if (output.new_token) {
    for (const TensorPtr& tensor : value) new_tokens_ += tensor ? tensor->elements() : 0;
  }
  for (std::uint32_t i = output.edges.begin; i < output.edges.end; ++i) {
    const PlanEdge& edge = plan_->edges[i];
    switch (edge.kind) {
      case PlanEdgeKind::kForward:
      case PlanEdgeKind::kLoopBack:
        if (i + 1 == output.edges.end && !edge.persist && output.caught_by == CAIRN_NONE) {
          route_to_node(edge, std::move(value));  // nobody needs it afterwards
        } else {
          route_to_node(edge, value);
        }
        break;
      case PlanEdgeKind::kEmit:
        sink.emit(output.signal, edge.modality, value, edge.new_token);
        break;
      case PlanEdgeKind::kNowhere:
        break;
    }
    if (edge.persist) sink.persist(output.signal, value);  // NOLINT(bugprone-use-after-move): moved only as the last
  }
  if (output.caught_by != CAIRN_NONE) {
    Kept& kept = caught_[output.caught_by];
    if (plan_->outputs[output.caught_by].accumulate) {
      for (TensorPtr& tensor : value) kept.value.push_back(std::move(tensor));
    } else {
      kept.value = std::move(value);
    }
    kept.present = true;
  }
  value.clear();  // NOLINT(bugprone-use-after-move)
}

// Something directly inside `loop` (CAIRN_NONE: the walk) is done. Ends iterations from the inside out; the outputs of
// a loop are in place before the loop counts as done in the one around it.
void WalkState::entity_completed(std::uint32_t loop, RoutedSink& sink) {
  while (loop != CAIRN_NONE) {
    LoopState& state = loops_[loop];
    if (--state.remaining > 0) return;
    const PlanLoop& plan = plan_->loops[loop];
    set_iteration(loop, state.iteration + 1);
    if (!state.stop && state.iteration < plan.max_iters) {
      advance(loop);
      return;
    }
    if (!state.stop && plan.model_loop != CAIRN_NONE) hit_cap_ = true;
    end_loop(loop, sink);
    loop = plan.parent;
  }
  --remaining_;
}

void WalkState::set_iteration(std::uint32_t loop, std::int64_t iteration) {
  loops_[loop].iteration = iteration;
  const std::uint32_t slot = plan_->loops[loop].stop_slot;
  if (slot != CAIRN_NONE) loop_counts_[slot].iterations = iteration;
}

// Everything inside the loop may run again.
void WalkState::reset_iteration(const PlanLoop& loop) {
  completed_ &= ~loop.nodes;
  for (std::uint64_t inner = loop.loops; inner != 0; inner &= inner - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(inner));
    const PlanLoop& plan = plan_->loops[index];
    loops_[index] = {0, plan.entities, false, false};
    set_iteration(index, 0);
    for (std::uint32_t output = plan.outputs.begin; output < plan.outputs.end; ++output) caught_[output].reset();
  }
}

void WalkState::advance(std::uint32_t loop) {
  const PlanLoop& plan = plan_->loops[loop];
  loops_[loop].remaining = plan.entities;
  reset_iteration(plan);
  for (std::uint32_t output = plan.outputs.begin; output < plan.outputs.end; ++output) {
    if (!plan_->outputs[output].accumulate) caught_[output].reset();
  }
  for (const std::uint32_t buffer : plan.buffers) {
    if (!buffered_[buffer].present) continue;
    deliver(plan_->buffers[buffer], std::move(buffered_[buffer].value));
    buffered_[buffer].reset();
  }
  for (const std::uint32_t external : plan.externals) {
    if (externals_[external].present) deliver(plan_->external_inputs[external], externals_[external].value);
  }
  for (std::uint64_t nodes = plan.nodes; nodes != 0; nodes &= nodes - 1) {
    update_ready(static_cast<std::uint32_t>(std::countr_zero(nodes)));
  }
}

void WalkState::end_loop(std::uint32_t loop, RoutedSink& sink) {
  const PlanLoop& plan = plan_->loops[loop];
  loops_[loop].ended = true;
  for (const std::uint32_t buffer : plan.buffers) buffered_[buffer].reset();
  for (const std::uint32_t external : plan.externals) externals_[external].reset();
  for (std::uint32_t i = plan.outputs.begin; i < plan.outputs.end; ++i) {
    if (!caught_[i].present) continue;  // withheld in the last iteration
    route(plan_->outputs[i], caught_[i].value, sink);
    caught_[i].reset();
  }
}

bool WalkState::stop_loop(std::uint32_t model_loop) {
  const std::uint32_t loop = plan_ == nullptr ? CAIRN_NONE : plan_->find_loop(model_loop);
  if (loop == CAIRN_NONE || loops_[loop].ended || loops_[loop].stop) return false;
  loops_[loop].stop = true;
  std::size_t slot = 0;
  while (slot < stop_time_count_ && stop_times_[slot].loop != model_loop) ++slot;
  if (slot == stop_time_count_) ++stop_time_count_;
  // Named loops around it, outer to inner, itself last. Loops are numbered outer before inner.
  cairn_loop_count* indices = stop_indices_.data() + slot * plan_->stoppable.size();
  std::uint64_t count = 0;
  for (const std::uint32_t outer : plan_->stoppable) {
    const PlanLoop& plan = plan_->loops[outer];
    if (outer == loop || (plan.loops & bit(loop)) != 0) {
      indices[count++] = {plan.model_loop, 0, loops_[outer].iteration};
    }
  }
  stop_times_[slot] = {model_loop, 0, forward_index_, {indices, count, 0}};
  return true;
}

void WalkState::stop_loops(std::uint64_t model_loops) {
  for (; model_loops != 0; model_loops &= model_loops - 1) {
    stop_loop(static_cast<std::uint32_t>(std::countr_zero(model_loops)));
  }
}

std::int64_t WalkState::loop_iterations(std::uint32_t model_loop) const {
  const std::uint32_t loop = plan_ == nullptr ? CAIRN_NONE : plan_->find_loop(model_loop);
  return loop == CAIRN_NONE ? 0 : loops_[loop].iteration;
}

std::string WalkState::stall_reason() const {
  if (!stalled() || plan_ == nullptr) return {};
  for (std::uint32_t node = 0; node < plan_->nodes.size(); ++node) {
    const PlanNode& plan = plan_->nodes[node];
    if ((completed_ & bit(node)) != 0 || present_[node] == plan.required) continue;
    const std::uint32_t missing = static_cast<std::uint32_t>(std::countr_one(present_[node]));
    return "Walk \"" + plan_->name() + "\" cannot go on: node \"" + plan_->node_name(node) + "\" waits for signal \"" +
           plan_->signal_name(plan_->inputs[plan.inputs.begin + missing].signal) +
           "\", which nothing that still runs will bring.";
  }
  return "Walk \"" + plan_->name() + "\" cannot go on: no node can run.";
}

}  // namespace cairn
