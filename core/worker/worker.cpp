// The worker's life of requests: inbox, admission, walks, finish. The step itself is in worker_step.cpp.
#include "core/worker/worker.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/plugin/request_state.hpp"
#include "core/plugin/status.hpp"
#include "core/plugin/thread_context.hpp"

namespace cairn {
namespace {

constexpr std::int64_t kLongStepTokens = 8;  // a step of fewer is over before giving it up would pay
constexpr std::chrono::milliseconds kSkipRetry{1};

}  // namespace

Worker::Worker(const ModelSpec& spec, const cairn_model_api& api, cairn_model* model, Conductor& conductor,
               Engine& engine, std::span<const std::unique_ptr<NodeRunner>> runners,
               std::span<Resource* const> resources, const WorkerLimits& limits)
    : spec_(spec),
      api_(api),
      model_(model),
      conductor_(conductor),
      engine_(engine),
      runners_(runners),
      resources_(resources),
      limits_(limits),
      router_(spec, api, model),
      slots_(limits.max_requests + limits.max_queue),
      give_up_credit_(max_give_up_credit()) {
  for (std::uint32_t walk = 0; walk < spec.walks.size(); ++walk) plans_.push_back(WalkPlan::compile(spec, walk));
  for (std::uint32_t walk = 0; walk < spec.walk_count(); ++walk) {
    for (std::uint32_t node = 0; node < spec.nodes.size(); ++node) {
      const bool runs = walk < spec.walks.size() ? plans_[walk].find(node) != CAIRN_NONE && key_walk(node, walk) == walk
                                                 : spec.combined_walks[walk - spec.walks.size()].node == node;
      if (!runs) continue;
      const NodeRunner& runner = *runners[node];
      Key key;
      key.node = node;
      key.walk = walk;
      key.max_tokens = limits.max_batch_tokens;
      if (runner.api().max_batch_size != nullptr) key.max_rows = runner.api().max_batch_size(runner.node(), walk);
      if (runner.api().max_batch_tokens != nullptr) {
        const std::int64_t tokens = runner.api().max_batch_tokens(runner.node(), walk);
        if (tokens > 0) key.max_tokens = tokens;
      }
      if (walk >= spec.walks.size() && runner.api().max_rows_in_combined != nullptr) {
        for (std::uint32_t real = 0; real < spec.walks.size(); ++real) {
          key.walk_caps.push_back(runner.api().max_rows_in_combined(runner.node(), real));
        }
      }
      keys_.push_back(std::move(key));
    }
  }
  // Slot 0 of generation 0 would be handle 0, which is no request; generations start at 1.
  for (std::size_t slot = slots_.size(); slot-- > 0;) free_slots_.push_back(static_cast<std::uint32_t>(slot));
  running_.reserve(limits.max_requests);
  rows_.reserve(limits.max_requests);
  signals_.reserve(limits.max_requests);
  inputs_.reserve(limits.max_requests);
  fresh_rows_.reserve(limits.max_requests);
  walk_rows_.resize(spec.walks.size());
  update_counters();
}

Worker::~Worker() = default;

RequestHandle Worker::reserve_slot() {
  const std::lock_guard lock(mutex_);
  if (stopping_ || deadline_) throw ResourceExhausted("The server is draining and takes no new requests.");
  if (free_slots_.empty()) {
    throw ResourceExhausted("The queue is full: " + std::to_string(slots_.size()) +
                            " requests are running or waiting; try again later.");
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  counters_.open.fetch_add(1, std::memory_order_relaxed);
  return make_handle(slot, slots_[slot].generation.load(std::memory_order_relaxed));
}

void Worker::release_slot(RequestHandle handle) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[slot_of(handle)];
  slot.generation.fetch_add(1, std::memory_order_relaxed);
  free_slots_.push_back(slot_of(handle));
  if (counters_.open.fetch_sub(1, std::memory_order_relaxed) == 1) drained_.notify_all();
}

void Worker::submit(IncomingRequest request) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(request));
  }
  counters_.waiting.fetch_add(1, std::memory_order_relaxed);
  wake_.notify_one();
}

void Worker::cancel(RequestHandle handle) {
  if (handle <= 0 || slot_of(handle) >= slots_.size()) return;
  Slot& slot = slots_[slot_of(handle)];
  if (make_handle(slot_of(handle), slot.generation.load(std::memory_order_relaxed)) != handle) return;
  slot.cancelled.store(handle, std::memory_order_release);
  {
    const std::lock_guard lock(mutex_);
    cancels_.push_back(handle);
    if (long_step_) abort_step_.store(true, std::memory_order_release);
  }
  wake_.notify_one();
}

bool Worker::is_cancelled(cairn_request request) const noexcept {
  return request > 0 && slot_of(request) < slots_.size() &&
         slots_[slot_of(request)].cancelled.load(std::memory_order_acquire) == request;
}

void Worker::post(void (*fn)(void* argument), void* argument) {
  {
    const std::lock_guard lock(mutex_);
    posts_.emplace_back(fn, argument);
  }
  wake_.notify_one();
}

void Worker::drain(std::chrono::steady_clock::time_point deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (!deadline_ || deadline < *deadline_) deadline_ = deadline;
  }
  wake_.notify_one();
}

void Worker::wait_drained() {
  std::unique_lock lock(mutex_);
  drained_.wait(lock, [this] { return counters_.open.load(std::memory_order_relaxed) == 0; });
}

void Worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  abort_step_.store(true, std::memory_order_release);
  wake_.notify_one();
}

void Worker::run() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) break;
    }
    if (run_once()) continue;
    std::unique_lock lock(mutex_);
    const auto work = [this] { return !inbox_.empty() || !cancels_.empty() || !posts_.empty() || stopping_; };
    if (skipped_) {
      wake_.wait_for(lock, kSkipRetry, work);  // what the plugin waits for may be nothing that wakes us
    } else if (!deadline_) {
      wake_.wait(lock, [&] { return work() || deadline_.has_value(); });
    } else if (!running_.empty()) {
      wake_.wait_until(lock, *deadline_, work);  // nothing is ready; the deadline ends what is open
    } else {
      wake_.wait(lock, work);
    }
  }
  take_inbox();
  cancel_all();
}

bool Worker::run_once() {
  if (take_inbox()) cancel_all();
  admit_waiting();
  update_counters();  // before the step, which can be long
  skipped_ = false;
  const std::size_t running = running_.size();
  bool ran = false;
  // A key whose rows all skip or fail gives way to the next.
  for (std::size_t tries = keys_.size(); tries > 0 && !ran; --tries) {
    Key* key = choose_key();
    if (key == nullptr) break;
    ran = run_key(*key);
  }
  update_counters();
  return ran || running_.size() != running;
}

// Runs a step of what is ready for the key; false when no row of it was to run.
bool Worker::run_key(Key& key) {
  key.last_turn = ++turn_;
  gather_rows(key);
  const NodeRunner& runner = *runners_[key.node];
  prepare_rest(runner);
  if (rows_.empty()) return false;
  ++step_number_;
  counters_.steps.store(step_number_, std::memory_order_relaxed);
  const std::int64_t cost = open_step_to_cancels();
  engine_.run(runner, key.walk, rows_, abort_step_);
  const bool gave_up = std::any_of(rows_.begin(), rows_.end(), [](const EngineRow& row) { return row.skipped; });
  give_up_credit_ = std::min(give_up_credit_ + (gave_up ? -cost : cost), max_give_up_credit());
  finish_step(runner);
  return true;
}

// A cancellation gives up a step that takes long, whoever's rows are in it: its rows run again. Steps that complete pay
// for those that are given up, so that clients who come and go cannot hold up the others for long.
// Returns what giving this one up costs, in tokens.
std::int64_t Worker::open_step_to_cancels() {
  std::int64_t tokens = 0;
  for (const EngineRow& row : rows_) tokens += row.step.chunk_end - row.step.chunk_start;
  const std::int64_t cost = std::min(tokens, limits_.max_batch_tokens);
  const std::lock_guard lock(mutex_);
  long_step_ = tokens >= kLongStepTokens && give_up_credit_ >= cost;
  if (long_step_ && !cancels_.empty()) abort_step_.store(true, std::memory_order_release);
  return cost;
}

// Moves new requests to the queue and carries out cancellations. True when the drain deadline has passed.
bool Worker::take_inbox() {
  bool expired = false;
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(inbox_);
    taken_cancels_.swap(cancels_);
    taken_posts_.swap(posts_);
    abort_step_.store(stopping_, std::memory_order_relaxed);
    long_step_ = false;
    expired = deadline_ && std::chrono::steady_clock::now() >= *deadline_;
  }
  for (IncomingRequest& incoming : taken_) {
    const std::uint32_t slot = slot_of(incoming.handle);
    if (slots_[slot].record == nullptr) slots_[slot].record = std::make_unique<RequestRecord>();
    RequestRecord& record = *slots_[slot].record;
    record.phase = RequestRecord::Phase::kQueued;
    record.handle = incoming.handle;
    record.spec = std::move(incoming.spec);
    record.sink = std::move(incoming.sink);
    record.prompt = std::move(incoming.prompt);
    record.prompt_tokens = record.prompt.prompt_tokens;
    record.max_tokens = incoming.max_tokens;
    record.end_tokens = std::move(incoming.end_tokens);
    record.first_walk = true;
    record.prepared = false;
    record.delivered = 0;
    record.stop_token = -1;
    record.reached_max = false;
    waiting_.push_back(slot);
  }
  taken_.clear();
  for (const RequestHandle handle : taken_cancels_) {
    if (RequestRecord* record = find(handle)) finish(*record, FinishReason::kCancelled);
  }
  taken_cancels_.clear();
  for (const auto& [fn, argument] : taken_posts_) fn(argument);
  taken_posts_.clear();
  return expired;
}

RequestRecord* Worker::find(RequestHandle handle) {
  const std::uint32_t slot = slot_of(handle);
  if (slot >= slots_.size() || slots_[slot].record == nullptr) return nullptr;
  RequestRecord* record = slots_[slot].record.get();
  return record->handle == handle && record->phase != RequestRecord::Phase::kFree ? record : nullptr;
}

void Worker::cancel_all() {
  while (!waiting_.empty()) finish(*slots_[waiting_.front()].record, FinishReason::kCancelled);
  while (!running_.empty()) finish(*slots_[running_.back()].record, FinishReason::kCancelled);
}

// In order of arrival; the head waits for what it needs and nobody passes it, so nobody starves.
void Worker::admit_waiting() {
  while (!waiting_.empty() && running_.size() < limits_.max_requests) {
    RequestRecord& record = *slots_[waiting_.front()].record;
    if (!start(record)) return;
  }
}

// False: the request has to wait. Otherwise it runs, or has ended with an error.
bool Worker::start(RequestRecord& record) {
  const RequestNeeds needs{record.prompt_tokens,  record.max_tokens, record.spec.prompt_ids,
                           &record.spec.sampling, record.end_tokens, record.spec.min_tokens};
  std::string why;
  for (Resource* resource : resources_) {
    switch (resource->reserve(record.handle, needs, why)) {
      case ReserveOutcome::kReserved:
        break;
      case ReserveOutcome::kWait:
        return false;
      case ReserveOutcome::kNeverFits:
        finish(record, FinishReason::kError, std::move(why), true);
        return true;
    }
  }
  waiting_.pop_front();
  counters_.waiting.fetch_sub(1, std::memory_order_relaxed);
  running_.push_back(slot_of(record.handle));
  record.phase = RequestRecord::Phase::kRunning;
  counters_.prompt_tokens.fetch_add(record.prompt_tokens, std::memory_order_relaxed);
  try {
    const std::uint64_t seed = request_seed(record.spec.sampling, record.spec.id);
    record.spec.sampling.seed = seed;
    RequestStart start{record.handle,     record.spec, std::move(record.prompt),
                       record.max_tokens, seed,        record.end_tokens};
    std::vector<WalkStart> walks = conductor_.start_request(std::move(start));
    const ResourceReqConfigs& configs = conductor_.resource_configs(record.handle);
    for (Resource* resource : resources_) {
      resource->ingest_request(record.handle, needs, configs.sampling(resource->index()));
    }
    if (walks.empty()) {
      finish(record, FinishReason::kStop);
      return true;
    }
    for (WalkStart& walk : walks) start_walk(record, std::move(walk));
    for (const auto& runner : runners_) {
      if (runner->api().on_request_added == nullptr) continue;
      check_status(runner->api().on_request_added(runner->node(), conductor_.info(record.handle, 0).view()),
                   "on_request_added of node '" + runner->name() + "'");
    }
  } catch (const std::exception& error) {
    fail(record, error);
  }
  return true;
}

void Worker::start_walk(RequestRecord& record, WalkStart start) {
  if (start.walk >= plans_.size()) {
    throw InternalError("The model asked for walk " + std::to_string(start.walk) + ", which does not exist.");
  }
  record.partition = start.partition;
  record.info = &conductor_.info(record.handle, start.partition);
  record.walk = start.walk;
  record.first_walk = start.fwd_index == 0;
  record.fresh_walk = true;
  record.prepared = false;
  record.persisted.clear();
  record.state.start(plans_[start.walk], start.fwd_index);
  for (RoutedInput& input : start.inputs) {
    if (!record.state.ingest(input.node, input.signal, std::move(input.value))) {
      throw InternalError("The model sent signal '" + spec_.signal_name(input.signal) + "' to node '" +
                          spec_.node_name(input.node) + "', which does not take it in walk '" +
                          spec_.walk_name(start.walk) + "'.");
    }
  }
  if (record.state.stalled()) throw InternalError(record.state.stall_reason());
}

void Worker::walk_done(RequestRecord& record) {
  WalkReport report;
  report.persisted = record.persisted;
  report.new_tokens = record.state.new_tokens();
  report.routed_signals = record.state.routed_signals();
  const bool hit_cap = record.state.hit_iteration_cap();
  Transition transition = conductor_.on_walk_done(record.handle, record.partition, report);
  record.persisted.clear();
  // The request ends with its first end token or its last allowed token, whatever the model would run next.
  if (transition.kind == Transition::Kind::kNextWalk && !record.reached_max && record.stop_token < 0) {
    start_walk(record, std::move(transition.next));
    return;
  }
  const bool length = record.stop_token < 0 && (transition.length_limit || record.reached_max || hit_cap);
  finish(record, length ? FinishReason::kLength : FinishReason::kStop);
}

void Worker::fail(RequestRecord& record, const std::exception& error) {
  const bool client = dynamic_cast<const InvalidArgument*>(&error) != nullptr;
  finish(record, FinishReason::kError, error.what(), client);
}

// The one place where a request ends: gives everything back, then tells the sink.
void Worker::finish(RequestRecord& record, FinishReason reason, std::string error, bool client_error) {
  const RequestHandle handle = record.handle;
  const std::uint32_t slot = slot_of(handle);
  if (record.phase == RequestRecord::Phase::kQueued) {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), slot));
    counters_.waiting.fetch_sub(1, std::memory_order_relaxed);
  } else {
    running_.erase(std::find(running_.begin(), running_.end(), slot));
    for (const auto& runner : runners_) {
      if (runner->api().cleanup_request != nullptr) runner->api().cleanup_request(runner->node(), handle);
    }
  }
  for (auto resource = resources_.rbegin(); resource != resources_.rend(); ++resource) {
    (*resource)->remove_request(handle);
  }
  record.state.clear();
  record.persisted.clear();
  record.prompt = {};
  record.arena.reset();
  conductor_.end_request(handle);
  if (api_.request_closed != nullptr) api_.request_closed(model_, handle);
  if (current_thread().request_state != nullptr) current_thread().request_state->drop_request(handle);
  RequestResult result;
  result.reason = reason;
  result.stop_token = record.stop_token;
  result.usage.prompt_tokens = static_cast<std::int32_t>(record.prompt_tokens);
  result.usage.completion_tokens = static_cast<std::int32_t>(record.delivered);
  result.error = std::move(error);
  result.client_error = client_error;
  if (reason == FinishReason::kError && !client_error) {
    log(LogLevel::kError, "worker", "request " + record.spec.id + " failed: " + result.error);
  }
  const std::unique_ptr<OutputSink> sink = std::move(record.sink);
  record.phase = RequestRecord::Phase::kFree;
  record.spec = {};
  record.end_tokens.clear();
  counters_.finished[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  update_counters();
  {
    const std::lock_guard lock(mutex_);
    slots_[slot].generation.fetch_add(1, std::memory_order_relaxed);
    free_slots_.push_back(slot);
  }
  sink->on_finish(result);
  const std::lock_guard lock(mutex_);
  if (counters_.open.fetch_sub(1, std::memory_order_relaxed) == 1) drained_.notify_all();
}

void Worker::update_counters() {
  counters_.running.store(static_cast<std::int64_t>(running_.size()), std::memory_order_relaxed);
  std::int64_t used = 0;
  std::int64_t total = 0;
  for (const Resource* resource : resources_) {
    const auto [resource_used, resource_total] = resource->usage();
    used += resource_used;
    total += resource_total;
  }
  counters_.units_used.store(used, std::memory_order_relaxed);
  counters_.units_total.store(total, std::memory_order_relaxed);
}

}  // namespace cairn
