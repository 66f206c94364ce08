// Runs one step of one node: declare, admit, plan, preprocess, forward, commit, collect, check_stop.
// The worker fills the rows and reads what came out; nothing here allocates in a steady state. Device thread only.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/engine/node_runner.hpp"
#include "core/plugin/arena.hpp"
#include "core/resources/step.hpp"
#include "core/tensor/tensor.hpp"

namespace cairn {

// One row of a step: what goes in, and what came of it.
struct EngineRow {
  StepRow step;
  const cairn_forward_info* info = nullptr;
  const cairn_row_signals* signals = nullptr;
  cairn_node_inputs inputs{};  // prepared, and cut when the row is chunked

  bool skipped = false;  // the step was given up before this row committed
  bool failed = false;
  bool client_error = false;  // the failure is the request's own fault
  std::string error;
  std::uint64_t stops = 0;     // bit i: loop i stops
  std::uint64_t withheld = 0;  // bit i: signal i is not routed
  bool has_sampled = false;
  TokenRecord sampled;  // of the node's sampler
};

// The tensors a row left under one signal.
struct RowOutput {
  std::uint32_t row = 0;
  std::uint32_t signal = 0;
  TensorPtr tensor;
};

class Engine {
 public:
  Engine(std::uint32_t signal_count, std::uint32_t label_count, const kernels::Parallel& parallel);

  // prepare_inputs for rows whose inputs are to live in `arena`; out[i] for rows[i]. A failed row carries its status.
  // Throws the plugin's error when the call itself fails.
  void prepare(const NodeRunner& node, std::span<const cairn_row_signals> rows, Arena& arena,
               std::span<cairn_node_inputs> out) const;

  // One step over `rows`, all of them real. Failures of the batch mark every row. The outputs of rows whose chunk is
  // the last are then in outputs(), until the next step. When `abort` turns true while the step runs, it is given up
  // at the next resource call: its rows are marked skipped, nothing of them is committed, and they may run again.
  void run(const NodeRunner& node, std::uint32_t walk, std::span<EngineRow> rows, const std::atomic<bool>& abort);

  std::span<RowOutput> outputs() { return {outputs_.data(), outputs_.size()}; }
  // Lets go of the step's memory and of the outputs that nobody took.
  void end_step() {
    outputs_.clear();
    arena_.reset();
  }
  // Memory of the step in flight; reset by end_step and at the beginning of the next run.
  Arena& arena() { return arena_; }

 private:
  void run_batch(const NodeRunner& node, std::uint32_t walk, std::span<EngineRow> rows, std::uint32_t first_row);
  bool can_batch(const NodeRunner& node, std::uint32_t walk, std::span<EngineRow> rows);
  cairn_engine_inputs make_inputs(std::uint32_t walk, std::span<EngineRow> rows);
  void declare(const NodeRunner& node, cairn_engine_inputs& inputs, std::span<EngineRow> rows);
  void forward(const NodeRunner& node, cairn_engine_inputs& inputs, cairn_batched_output& output);
  void collect(const NodeRunner& node, const cairn_engine_inputs& inputs, cairn_batched_output& output,
               std::span<EngineRow> rows, std::uint32_t first_row);
  void check_stops(const NodeRunner& node, const cairn_engine_inputs& inputs, const cairn_batched_output& output,
                   std::span<EngineRow> rows);
  void keep_output(std::uint32_t row, std::uint32_t signal, const cairn_tensor_view& view);

  std::uint32_t signal_count_;
  std::uint32_t label_count_;
  const kernels::Parallel& parallel_;
  Arena arena_;
  StepContext context_;
  std::vector<StepRow> step_rows_;
  std::vector<ResourceStep> resource_steps_;  // by position in the node's resources
  std::vector<bool> resource_used_;
  std::vector<RowOutput> outputs_;
};

}  // namespace cairn
