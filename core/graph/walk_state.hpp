// One request's run over one WalkPlan: which inputs are there, which nodes may run, which iteration every loop is in.
// Recyclable: start() on a plan of the same or a smaller size allocates nothing, and neither do ingest and complete.
// One thread at a time (the worker's main thread).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/graph/walk_plan.hpp"
#include "core/tensor/signal_value.hpp"

namespace cairn {

// One output of a step, for one row, by model signal. complete() moves the value away.
struct OutputValue {
  std::uint32_t signal = 0;
  SignalValue value;
};

// What leaves the graph while a node completes, called in the order of the graph's edges. Values are valid during the
// call only; copy the pointers to keep them. Must not call back into the state.
class RoutedSink {
 public:
  virtual ~RoutedSink() = default;
  // An EMIT_TO_CLIENT edge. new_token: the edge is a NEW_TOKEN edge too.
  virtual void emit(std::uint32_t signal, std::uint32_t modality, const SignalValue& value, bool new_token) = 0;
  // A PERSIST edge: the value is kept alive for the conductor.
  virtual void persist(std::uint32_t signal, const SignalValue& value) = 0;
};

class WalkState {
 public:
  // A fresh run: iteration 0, no inputs, no stop. `plan` must outlive the run. forward_index stamps loop stops.
  void start(const WalkPlan& plan, std::int64_t forward_index = 0);
  // Releases every tensor and forgets the plan. done() afterwards.
  void clear() noexcept;
  const WalkPlan* plan() const { return plan_; }

  // Delivers a value from outside of the walk (the conductor). False (nothing changed, value untouched) when the node
  // is not in the walk, does not wait for the signal, or already holds one for this and one for the next iteration.
  bool ingest(std::uint32_t node, std::uint32_t signal, SignalValue&& value);

  // Model-node masks. A ready node has all inputs, has not run in this iteration and is not in flight.
  std::uint64_t ready_nodes() const { return ready_; }
  std::uint64_t in_flight_nodes() const { return in_flight_; }
  // A node in flight is not ready; taking it back (false) makes it ready again.
  void set_in_flight(std::uint32_t node, bool in_flight);

  // Input i of a node in the order of WalkPlan::input_signals. Empty: signal-only or not there yet.
  const SignalValue& input(std::uint32_t node, std::uint32_t i) const;

  // The node ran: routes its outputs, ends the iteration and the loops that are complete with it, and makes nodes
  // ready. Which signals are routed is decided by the graph: outputs it does not name are ignored. withheld: signal
  // mask of outputs that are not routed this time. Throws InternalError naming node and signal when an output that the
  // graph names is neither in `outputs` nor withheld; the request must then be failed and the state cleared.
  void complete(std::uint32_t node, std::span<OutputValue> outputs, std::uint64_t withheld, RoutedSink& sink);

  // Loop `model_loop` ends with the iteration that runs now. False: it is not in this walk, or ended already.
  bool stop_loop(std::uint32_t model_loop);
  // The same for a mask (cairn_stop_check.stops).
  void stop_loops(std::uint64_t model_loops);

  bool done() const { return remaining_ == 0; }
  // Nothing is ready, in flight or done: the walk waits for an input that nobody will bring. The reason is for the
  // error.
  bool stalled() const { return !done() && ready_ == 0 && in_flight_ == 0; }
  std::string stall_reason() const;

  // Iterations completed by a named loop (of the current or last run of it); 0 when the walk does not have it.
  std::int64_t loop_iterations(std::uint32_t model_loop) const;
  // A named loop ended because of max_iters, without a stop, since start().
  bool hit_iteration_cap() const { return hit_cap_; }
  // Elements of NEW_TOKEN outputs since start().
  std::int64_t new_tokens() const { return new_tokens_; }
  // Signals that were routed since start(), as a mask (curr_forward_outputs).
  std::uint64_t routed_signals() const { return routed_signals_; }

  // dynamic_loop_iter_counts and loop_stop_times, kept up to date in place; the memory stays put until start().
  std::span<const cairn_loop_count> loop_counts() const { return loop_counts_; }
  std::span<const cairn_loop_stop_time> loop_stop_times() const { return {stop_times_.data(), stop_time_count_}; }

 private:
  struct LoopState {
    std::int64_t iteration = 0;
    std::uint32_t remaining = 0;  // entities that have not completed in this iteration
    bool stop = false;
    bool ended = false;
  };
  struct Kept {  // a value that may be absent
    SignalValue value;
    bool present = false;
    void reset() noexcept {
      value.clear();
      present = false;
    }
  };

  template <class Value>
  bool deliver(std::uint32_t input, Value&& value);
  template <class Value>
  void route_to_node(const PlanEdge& edge, Value&& value);
  void route(const PlanOutput& output, SignalValue& value, RoutedSink& sink);
  void entity_completed(std::uint32_t loop, RoutedSink& sink);
  void advance(std::uint32_t loop);
  void end_loop(std::uint32_t loop, RoutedSink& sink);
  void reset_iteration(const PlanLoop& loop);
  void update_ready(std::uint32_t plan_node);
  void set_iteration(std::uint32_t loop, std::int64_t iteration);

  const WalkPlan* plan_ = nullptr;
  std::uint64_t ready_ = 0;      // by model node
  std::uint64_t in_flight_ = 0;  // by model node
  std::uint64_t completed_ = 0;  // by plan node, in its current iteration
  std::uint32_t remaining_ = 0;  // entities outside of every loop
  bool hit_cap_ = false;
  std::int64_t new_tokens_ = 0;
  std::int64_t forward_index_ = 0;
  std::uint64_t routed_signals_ = 0;
  std::vector<std::uint64_t> present_;  // by plan node: mask over its inputs
  std::vector<SignalValue> values_;     // by plan input: this iteration's
  std::vector<Kept> buffered_;          // by plan buffer: the next iteration's
  std::vector<Kept> externals_;         // by plan external input
  std::vector<Kept> caught_;            // by plan output (loops' only)
  std::vector<LoopState> loops_;
  std::vector<cairn_loop_count> loop_counts_;     // by stop slot
  std::vector<cairn_loop_stop_time> stop_times_;  // the first stop_time_count_ are set
  std::size_t stop_time_count_ = 0;
  std::vector<cairn_loop_count> stop_indices_;  // stop slot x depth
};

}  // namespace cairn
