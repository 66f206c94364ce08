// A walk compiled for execution: flat arrays of nodes, inputs, outgoing edges and loops, so that routing follows
// indices and looks nothing up. Built once per walk from a checked ModelSpec; shared read-only by every request's
// WalkState.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/graph/model_spec.hpp"

namespace cairn {

// A half-open range of indices into one of the plan's arrays.
struct PlanRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t size() const { return end - begin; }
};

enum class PlanEdgeKind : std::uint8_t {
  kForward,   // to an input of this iteration
  kLoopBack,  // to an input of the next iteration of loop `carrier`
  kEmit,      // to the client
  kNowhere    // only persisted, counted or caught by a loop's outputs
};

struct PlanEdge {
  PlanEdgeKind kind = PlanEdgeKind::kNowhere;
  bool persist = false;
  bool new_token = false;
  std::uint32_t input = CAIRN_NONE;     // kForward, kLoopBack: index into inputs
  std::uint32_t buffer = CAIRN_NONE;    // kLoopBack: index into buffers
  std::uint32_t modality = CAIRN_NONE;  // kEmit
};

// One output signal of a node or loop, with everything that happens to its value.
struct PlanOutput {
  std::uint32_t signal = 0;
  PlanRange edges;
  std::uint32_t caught_by = CAIRN_NONE;  // output of the loop around it that keeps the value, as index into outputs
  bool accumulate = false;               // loops' outputs: all iterations' values in order, not the last one's
  bool new_token = false;                // counted once, whatever the number of edges that say so
};

struct PlanInput {
  std::uint32_t node = 0;  // model node index
  std::uint32_t signal = 0;
  std::uint32_t buffer = CAIRN_NONE;  // the buffer of the innermost loop, for early deliveries from outside
  PlanRange externals;                // into external_inputs: loops that keep this input and inject it again
};

struct PlanNode {
  std::uint32_t node = CAIRN_NONE;  // model node index
  PlanRange inputs;                 // in the order of the section's inputs
  std::uint64_t required = 0;       // mask over the node's own inputs: bit i is input i
  PlanRange outputs;
  std::uint32_t loop = CAIRN_NONE;  // innermost plan loop
  std::uint32_t flags = 0;          // CAIRN_SECTION_*
};

// Loops come in the order of the graph: a loop after the one around it.
struct PlanLoop {
  std::uint32_t parent = CAIRN_NONE;      // plan loop around it
  std::uint32_t model_loop = CAIRN_NONE;  // index into the model's loops
  std::int64_t max_iters = 1;
  std::uint32_t entities = 0;            // nodes and loops directly inside
  std::uint64_t nodes = 0;               // mask over plan nodes inside, nested ones included
  std::uint64_t loops = 0;               // mask over plan loops inside, nested ones included
  PlanRange outputs;                     // its outputs, accumulated ones included
  std::vector<std::uint32_t> externals;  // external_inputs of this loop
  std::vector<std::uint32_t> buffers;    // buffers of this loop
  std::uint32_t stop_slot = CAIRN_NONE;  // position among the walk's stoppable loops
};

class WalkPlan {
 public:
  // Throws InvalidArgument for a graph that cannot run (an edge that leads back outside of every loop, ...).
  static WalkPlan compile(const ModelSpec& spec, std::uint32_t walk);

  std::uint32_t walk() const { return walk_; }
  const std::string& name() const { return name_; }
  // Plan node of a model node, or CAIRN_NONE.
  std::uint32_t find(std::uint32_t model_node) const {
    return model_node < plan_node_.size() ? plan_node_[model_node] : CAIRN_NONE;
  }
  // Model-node mask of this walk.
  std::uint64_t node_mask() const { return node_mask_; }
  // Signals that a node of this walk waits for, in order. Empty when it is not in the walk.
  std::span<const std::uint32_t> input_signals(std::uint32_t model_node) const;
  // Signals that the graph names as outputs of a node, in order.
  std::span<const std::uint32_t> output_signals(std::uint32_t model_node) const;
  // Section flags of a node (CAIRN_SECTION_*).
  std::uint32_t section_flags(std::uint32_t model_node) const;
  bool loop_stoppable(std::uint32_t model_loop) const { return find_loop(model_loop) != CAIRN_NONE; }

  // For WalkState and tests.
  std::uint32_t find_loop(std::uint32_t model_loop) const {
    return model_loop < plan_loop_.size() ? plan_loop_[model_loop] : CAIRN_NONE;
  }
  std::vector<PlanNode> nodes;
  std::vector<PlanInput> inputs;
  std::vector<PlanOutput> outputs;
  std::vector<PlanEdge> edges;
  std::vector<PlanLoop> loops;
  std::vector<std::uint32_t> external_inputs;  // input index kept, one entry per (loop, input)
  std::vector<std::uint32_t> buffers;          // input index fed, one entry per (loop, input)
  std::uint32_t entities = 0;                  // nodes and loops outside of every loop
  std::vector<std::uint32_t> stoppable;        // plan loops that have a model loop

  // Names for messages.
  std::string node_name(std::uint32_t plan_node) const { return node_names_[plan_node]; }
  std::string signal_name(std::uint32_t signal) const { return signal_names_[signal]; }

 private:
  friend class WalkCompiler;
  std::uint32_t walk_ = 0;
  std::string name_;
  std::uint64_t node_mask_ = 0;
  std::vector<std::uint32_t> plan_node_;       // by model node
  std::vector<std::uint32_t> plan_loop_;       // by model loop
  std::vector<std::uint32_t> input_signals_;   // parallel to inputs
  std::vector<std::uint32_t> output_signals_;  // parallel to outputs
  std::vector<std::string> node_names_;        // by plan node
  std::vector<std::string> signal_names_;
};

}  // namespace cairn
