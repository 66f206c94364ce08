// The worker's step: which rows run together, what they are given, and what becomes of what they leave.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"
#include "core/worker/worker.hpp"

namespace cairn {
namespace {

constexpr std::int64_t kShortPromptTokens = 32;  // at most, of a step that cannot be given up
constexpr std::int64_t kPromptShare = 4;         // at least a quarter of a step's budget goes to prompts that wait

std::uint64_t bit(std::uint32_t index) {
  return std::uint64_t{1} << index;
}

}  // namespace

// The walk a row of `walk` at `node` is scheduled under: the combined walk that has it, else its own.
std::uint32_t Worker::key_walk(std::uint32_t node, std::uint32_t walk) const {
  for (std::size_t i = 0; i < spec_.combined_walks.size(); ++i) {
    const CombinedWalkSpec& combined = spec_.combined_walks[i];
    if (combined.node == node &&
        std::find(combined.walks.begin(), combined.walks.end(), walk) != combined.walks.end()) {
      return static_cast<std::uint32_t>(spec_.walks.size() + i);
    }
  }
  return walk;
}

// The ready key that ran longest ago.
Worker::Key* Worker::choose_key() {
  Key* chosen = nullptr;
  for (Key& key : keys_) {
    if (chosen != nullptr && key.last_turn >= chosen->last_turn) continue;
    const bool ready = std::any_of(running_.begin(), running_.end(), [&](std::uint32_t slot) {
      const RequestRecord& record = *slots_[slot].record;
      return (record.state.ready_nodes() & bit(key.node)) != 0 && key_walk(key.node, record.walk) == key.walk;
    });
    if (ready) chosen = &key;
  }
  return chosen;
}

cairn_row_signals Worker::make_signals(RequestRecord& record, const NodeRunner& runner, Arena& arena) {
  const WalkPlan& plan = plans_[record.walk];
  const std::span<const std::uint32_t> names = plan.input_signals(runner.index());
  auto inputs = arena_span<cairn_signal_tensors>(arena, names.size());
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    const SignalValue& value = record.state.input(runner.index(), i);
    auto views = arena_span<cairn_tensor_view>(arena, value.size());
    for (std::size_t t = 0; t < value.size(); ++t) views[t] = value[t]->view();
    inputs[i] = {names[i], 0, {views.data(), views.size(), sizeof(cairn_tensor_view)}};
  }
  record.info->refresh(record.state, record.delivered);
  cairn_row_signals signals{};
  signals.request = record.handle;
  signals.info = record.info->view();
  signals.graph_walk = record.walk;
  signals.inputs = {inputs.data(), inputs.size(), sizeof(cairn_signal_tensors)};
  const auto counts = record.state.loop_counts();
  signals.dynamic_loop_iter_counts = {counts.data(), counts.size(), sizeof(cairn_loop_count)};
  return signals;
}

// Prepares the whole row once; its inputs live with the request until the last chunk. False: the request failed or
// skips this step.
bool Worker::prepare_retained(RequestRecord& record, const NodeRunner& runner) {
  if (record.prepared && record.prepared_node == runner.index()) return true;
  record.arena.reset();
  try {
    const cairn_row_signals signals = make_signals(record, runner, record.arena);
    engine_.prepare(runner, {&signals, 1}, record.arena, {&record.inputs, 1});
    if (record.inputs.row_status == CAIRN_ROW_SKIP) {
      skipped_ = true;
      return false;
    }
    if (record.inputs.row_status != CAIRN_ROW_OK) {
      throw InternalError(std::string(from_abi_str(record.inputs.error)));
    }
  } catch (const std::exception& error) {
    fail(record, error);
    return false;
  }
  record.prepared = true;
  record.prepared_node = runner.index();
  record.chunk_done = 0;
  return true;
}

void Worker::gather_rows(Key& key) {
  rows_.clear();
  signals_.clear();
  fresh_rows_.clear();
  prepare_arena_.reset();
  std::fill(walk_rows_.begin(), walk_rows_.end(), 0);
  const NodeRunner& runner = *runners_[key.node];
  std::int64_t budget = key.max_tokens;
  const auto eligible = [&](const RequestRecord& record) {
    return (record.state.ready_nodes() & bit(key.node)) != 0 && key_walk(key.node, record.walk) == key.walk &&
           (key.walk_caps.empty() || key.walk_caps[record.walk] <= 0 ||
            walk_rows_[record.walk] < key.walk_caps[record.walk]);
  };
  const auto full = [&] {
    return rows_.size() >= limits_.max_requests ||
           (key.max_rows > 0 && rows_.size() >= static_cast<std::size_t>(key.max_rows)) || budget <= 0;
  };
  // Rows of one token first: their clients are waiting for the next token. When not all fit, the next step goes on
  // where this one stopped, so that each has its turn.
  const std::size_t count = running_.size();
  const std::size_t start = count > 0 ? key.next_row % count : 0;
  key.next_row = 0;
  for (std::size_t n = 0; n < count; ++n) {
    RequestRecord& record = *slots_[running_[(start + n) % count]].record;
    if (!eligible(record) || (record.fresh_walk && runner.chunked_prefill())) continue;
    if (full()) {
      key.next_row = (start + n) % count;
      break;
    }
    EngineRow& row = rows_.emplace_back();
    row.step = {record.handle, 0, 0, record.first_walk && record.fresh_walk, true};
    signals_.push_back(make_signals(record, runner, prepare_arena_));
    fresh_rows_.push_back(static_cast<std::uint32_t>(rows_.size() - 1));
    ++walk_rows_[record.walk];
    --budget;
  }
  if (!runner.chunked_prefill()) return;
  // Then prompts, oldest first; some of the budget is always theirs.
  budget = std::max(budget, std::max<std::int64_t>(1, key.max_tokens / kPromptShare));
  if (give_up_credit_ < std::min(budget, limits_.max_batch_tokens)) budget = std::min(budget, kShortPromptTokens);
  for (std::size_t i = 0; i < running_.size() && !full();) {
    const std::uint32_t slot = running_[i];
    RequestRecord& record = *slots_[slot].record;
    if (eligible(record) && record.fresh_walk && prepare_retained(record, runner)) {
      add_prompt_row(record, runner, budget);
      ++walk_rows_[record.walk];
    }
    // A request that failed to prepare has left running_, and the next one moved into its place.
    if (i < running_.size() && running_[i] == slot) ++i;
  }
}

void Worker::add_prompt_row(RequestRecord& record, const NodeRunner& runner, std::int64_t& budget) {
  const std::int64_t total = record.inputs.input_seq_len;
  std::int64_t limit = budget;
  if (record.spec.sampling.prompt_logprobs >= 0) limit = std::min(limit, limits_.max_scored_tokens);
  const std::int64_t start = record.chunk_done;
  const std::int64_t end = std::min(total, start + limit);
  EngineRow& row = rows_.emplace_back();
  try {
    row.inputs = start == 0 && end == total
                     ? record.inputs
                     : runner.split(*record.info->view(), record.inputs, start, end, prepare_arena_.table());
  } catch (const std::exception& error) {
    rows_.pop_back();
    fail(record, error);
    return;
  }
  row.step = {record.handle, start, end, record.first_walk, end == total};
  signals_.push_back(make_signals(record, runner, prepare_arena_));
  budget -= end - start;
}

// Prepares the rows that are new in this step, all in one call, or one for all when the node says they are equal.
void Worker::prepare_rest(const NodeRunner& runner) {
  if (!fresh_rows_.empty()) {
    inputs_.assign(fresh_rows_.size(), {});
    std::string error;
    bool client_error = false;
    try {
      bool uniform = false;
      if (runner.api().uniform_row_inputs != nullptr) {
        const std::uint32_t walk = signals_[fresh_rows_[0]].graph_walk;
        const bool one_walk = std::all_of(fresh_rows_.begin(), fresh_rows_.end(),
                                          [&](std::uint32_t row) { return signals_[row].graph_walk == walk; });
        std::uint32_t used = 0;
        if (one_walk) {
          check_status(
              runner.api().uniform_row_inputs(runner.node(), walk, 0, prepare_arena_.table(), inputs_.data(), &used),
              "uniform_row_inputs");
        }
        uniform = used != 0;
        if (uniform) {
          for (std::size_t i = 1; i < inputs_.size(); ++i) inputs_[i] = inputs_[0];
        }
      }
      // The rows to prepare are the first ones of the step, so their signals lie together.
      if (!uniform) engine_.prepare(runner, {signals_.data(), fresh_rows_.size()}, prepare_arena_, inputs_);
    } catch (const std::exception& failure) {
      error = failure.what();
      client_error = dynamic_cast<const InvalidArgument*>(&failure) != nullptr && fresh_rows_.size() == 1;
    }
    for (std::size_t i = 0; i < fresh_rows_.size(); ++i) {
      EngineRow& row = rows_[fresh_rows_[i]];
      row.inputs = inputs_[i];
      row.inputs.graph_walk = signals_[i].graph_walk;
      if (!error.empty() || inputs_[i].row_status == CAIRN_ROW_FAILED) {
        row.failed = true;
        row.client_error = client_error;
        row.error = error.empty() ? std::string(from_abi_str(inputs_[i].error)) : error;
      }
    }
  }
  // Drops failed and skipped rows, keeping rows_ and signals_ in step.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    EngineRow& row = rows_[i];
    if (row.failed) {
      if (RequestRecord* record = find(row.step.request)) {
        finish(*record, FinishReason::kError, row.error, row.client_error);
      }
      continue;
    }
    if (row.inputs.row_status == CAIRN_ROW_SKIP) {
      skipped_ = true;
      continue;
    }
    if (kept != i) {
      rows_[kept] = std::move(row);
      signals_[kept] = signals_[i];
    }
    ++kept;
  }
  rows_.resize(kept);
  signals_.resize(kept);
  for (std::size_t i = 0; i < kept; ++i) {
    rows_[i].signals = &signals_[i];
    rows_[i].info = signals_[i].info;
    if (rows_[i].step.chunk_end == 0) rows_[i].step.chunk_end = rows_[i].inputs.input_seq_len;
  }
}

void Worker::finish_step(const NodeRunner& runner) {
  const std::span<RowOutput> outputs = engine_.outputs();
  std::size_t at = 0;
  std::sort(outputs.begin(), outputs.end(), [](const RowOutput& a, const RowOutput& b) { return a.row < b.row; });
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    EngineRow& row = rows_[i];
    const std::size_t first = at;
    while (at < outputs.size() && outputs[at].row == i) ++at;
    RequestRecord* record = find(row.step.request);
    if (record == nullptr || row.skipped) continue;
    if (row.failed) {
      finish(*record, FinishReason::kError, row.error, row.client_error);
      continue;
    }
    try {
      complete_row(*record, row, runner, first, at - first);
    } catch (const std::exception& error) {
      fail(*record, error);
    }
  }
  // Nothing of the step outlives it: an idle worker holds no tensor of a request that has ended.
  row_outputs_.clear();
  engine_.end_step();
}

void Worker::complete_row(RequestRecord& record, EngineRow& row, const NodeRunner& runner, std::size_t first_output,
                          std::size_t output_count) {
  if (row.step.prompt && runner.sampler() != nullptr && record.spec.sampling.prompt_logprobs >= 0) {
    const auto scored = runner.sampler()->scored(record.handle);
    if (!scored.empty()) record.sink->on_prompt_tokens(scored);
    runner.sampler()->clear_scored(record.handle);
  }
  record.chunk_done = row.step.chunk_end;
  if (!row.step.last_chunk) return;
  record.prepared = false;
  record.fresh_walk = false;
  row_outputs_.clear();
  for (RowOutput& output : engine_.outputs().subspan(first_output, output_count)) {
    const auto found = std::find_if(row_outputs_.begin(), row_outputs_.end(),
                                    [&](const OutputValue& value) { return value.signal == output.signal; });
    if (found != row_outputs_.end()) {
      found->value.push_back(std::move(output.tensor));
    } else {
      row_outputs_.push_back({output.signal, {}});
      row_outputs_.back().value.push_back(std::move(output.tensor));
    }
  }
  if (row.stops != 0) record.state.stop_loops(row.stops);
  const std::int64_t before = record.delivered;
  router_.aim(record, row);
  record.state.complete(runner.index(), row_outputs_, row.withheld, router_);
  counters_.generation_tokens.fetch_add(record.delivered - before, std::memory_order_relaxed);
  if (record.state.done()) {
    walk_done(record);
  } else if (record.stop_token >= 0 || record.reached_max) {
    finish(record, record.stop_token >= 0 ? FinishReason::kStop : FinishReason::kLength);
  } else if (record.state.stalled()) {
    throw InternalError(record.state.stall_reason());
  }
}

}  // namespace cairn
