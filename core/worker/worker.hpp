// The loop of one model: takes requests in, admits them by what they can need, batches their ready rows into steps
// under a token budget, and routes what the steps leave. Owns the request records; runs on one thread, the device
// thread, which sleeps when there is nothing to do.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/plugin/thread_context.hpp"
#include "core/worker/output_router.hpp"
#include "core/worker/request_record.hpp"

namespace cairn {

struct WorkerLimits {
  std::uint32_t max_requests = 256;     // that hold resources at a time
  std::uint32_t max_queue = 1024;       // that wait beside them
  std::int64_t max_batch_tokens = 256;  // of one step
  std::int64_t max_scored_tokens = 64;  // prompt tokens of a row that needs logits for each of them
};

// Counters that other threads read at any time.
struct WorkerCounters {
  std::atomic<std::int64_t> running{0}, waiting{0}, open{0}, prompt_tokens{0}, generation_tokens{0}, steps{0};
  std::atomic<std::int64_t> units_used{0}, units_total{0};
  std::array<std::atomic<std::int64_t>, 4> finished{};
};

class Worker final : public CancellationView {
 public:
  // All references must outlive the worker. `runners` by node index; `resources` in dependency order.
  Worker(const ModelSpec& spec, const cairn_model_api& api, cairn_model* model, Conductor& conductor, Engine& engine,
         std::span<const std::unique_ptr<NodeRunner>> runners, std::span<Resource* const> resources,
         const WorkerLimits& limits);
  ~Worker() override;

  // Any thread. Reserves a place: throws ResourceExhausted when running and waiting are full or the worker drains.
  RequestHandle reserve_slot();
  void release_slot(RequestHandle handle);  // when preparing the request failed
  void submit(IncomingRequest request);     // with a handle of reserve_slot
  void cancel(RequestHandle handle);
  // Whether cancel() was called for a request that is still open.
  bool is_cancelled(cairn_request request) const noexcept override;
  // Runs fn(argument) on the worker's thread, between steps.
  void post(void (*fn)(void* argument), void* argument);
  void drain(std::chrono::steady_clock::time_point deadline);
  void wait_drained();
  void stop();  // ends run(); open requests are cancelled
  const WorkerCounters& counters() const { return counters_; }

  // The thread's main function: until stop().
  void run();
  // One pass without waiting, for tests and the step benchmark: true when a step ran. Not beside run().
  bool run_once();

 private:
  struct Key {
    std::uint32_t node = 0;
    std::uint32_t walk = 0;               // combined where the model declares one
    std::int64_t last_turn = 0;           // the turn in which it was last tried
    std::int64_t max_rows = 0;            // 0: no cap
    std::int64_t max_tokens = 0;          // budget
    std::vector<std::int64_t> walk_caps;  // max_rows_in_combined by walk; empty: no caps
    std::size_t next_row = 0;             // where the rows of one token go on, when not all fitted
  };
  struct Slot {
    std::unique_ptr<RequestRecord> record;
    std::atomic<std::uint32_t> generation{1};
    std::atomic<RequestHandle> cancelled{0};
  };

  bool take_inbox();
  bool run_key(Key& key);
  std::int64_t open_step_to_cancels();
  std::int64_t max_give_up_credit() const { return 4 * limits_.max_batch_tokens; }
  void admit_waiting();
  bool start(RequestRecord& record);
  void start_walk(RequestRecord& record, WalkStart start);
  Key* choose_key();
  std::uint32_t key_walk(std::uint32_t node, std::uint32_t walk) const;
  void gather_rows(Key& key);
  bool prepare_retained(RequestRecord& record, const NodeRunner& runner);
  void add_prompt_row(RequestRecord& record, const NodeRunner& runner, std::int64_t& budget);
  void prepare_rest(const NodeRunner& runner);
  cairn_row_signals make_signals(RequestRecord& record, const NodeRunner& runner, Arena& arena);
  void finish_step(const NodeRunner& runner);
  void complete_row(RequestRecord& record, EngineRow& row, const NodeRunner& runner, std::size_t first_output,
                    std::size_t output_count);
  void walk_done(RequestRecord& record);
  void finish(RequestRecord& record, FinishReason reason, std::string error = {}, bool client_error = false);
  void fail(RequestRecord& record, const std::exception& error);
  void cancel_all();
  void update_counters();
  RequestRecord* find(RequestHandle handle);

  const ModelSpec& spec_;
  const cairn_model_api& api_;
  cairn_model* model_;
  Conductor& conductor_;
  Engine& engine_;
  std::span<const std::unique_ptr<NodeRunner>> runners_;
  std::span<Resource* const> resources_;
  WorkerLimits limits_;
  std::vector<WalkPlan> plans_;  // by walk
  OutputRouter router_;

  std::vector<Slot> slots_;
  std::deque<std::uint32_t> waiting_;   // slots in order of arrival
  std::vector<std::uint32_t> running_;  // slots in order of admission
  std::vector<Key> keys_;
  std::int64_t step_number_ = 0;
  std::int64_t turn_ = 0;
  std::int64_t give_up_credit_;  // tokens of steps that cancellations may still give up
  bool skipped_ = false;         // a row of the last pass skipped its step

  // The step being built and run.
  std::vector<EngineRow> rows_;
  std::vector<cairn_row_signals> signals_;  // by row
  std::vector<cairn_node_inputs> inputs_;   // of the rows that are prepared together
  std::vector<std::uint32_t> fresh_rows_;   // rows of rows_ that are still to be prepared
  std::vector<OutputValue> row_outputs_;
  std::vector<std::int64_t> walk_rows_;  // rows of the step by walk
  Arena prepare_arena_{std::size_t{64} << 10U};
  std::atomic<bool> abort_step_{false};
  bool long_step_ = false;  // a long step runs, which a cancellation may end; guarded by mutex_

  WorkerCounters counters_;

  std::mutex mutex_;  // guards the inbox
  std::condition_variable wake_;
  std::condition_variable drained_;
  std::vector<IncomingRequest> inbox_;
  std::vector<RequestHandle> cancels_;
  std::vector<std::pair<void (*)(void*), void*>> posts_;
  std::vector<std::uint32_t> free_slots_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  bool stopping_ = false;
  std::vector<IncomingRequest> taken_;
  std::vector<RequestHandle> taken_cancels_;
  std::vector<std::pair<void (*)(void*), void*>> taken_posts_;
};

}  // namespace cairn
