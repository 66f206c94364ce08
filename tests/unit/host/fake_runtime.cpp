#include "tests/unit/host/fake_runtime.hpp"

#include <stdexcept>

#include "core/base/error.hpp"

namespace cairn::testing {
namespace {

constexpr std::chrono::seconds kPatience{10};

}  // namespace

FakeRuntime::FakeRuntime(Options options) : options_(std::move(options)) {
  description_ = {.id = options_.id,
                  .plugin_id = "test.fake",
                  .plugin_version = "1.0",
                  .architecture = "fake",
                  .max_seq_len = options_.max_seq_len,
                  .vocab_size = 256,
                  .text = TextSource::kBytes,
                  .input_modalities = {"text"},
                  .output_modalities = {"text"},
                  .created = 1700000000};
  if (options_.script) thread_ = std::thread([this] { run_script(); });
}

FakeRuntime::~FakeRuntime() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

RequestHandle FakeRuntime::submit(RequestSpec spec, std::unique_ptr<OutputSink> sink) {
  const std::lock_guard lock(mutex_);
  if (health_ == RuntimeHealth::kDraining) throw ResourceExhausted("The runtime is draining.");
  if (open_ >= options_.max_open) throw ResourceExhausted("The queue is full.");
  const RequestHandle handle = next_handle_++;
  Request& request = requests_[handle];
  if (options_.script) request.script = options_.script(spec);
  prompt_tokens_ += static_cast<std::int64_t>(spec.prompt_ids.size());
  request.spec = std::move(spec);
  request.sink = std::move(sink);
  ++open_;
  submitted_.push_back(handle);
  changed_.notify_all();
  return handle;
}

void FakeRuntime::finish_locked(Request& request, const RequestResult& result) {
  request.finished = true;
  --open_;
  ++finished_total_[static_cast<std::size_t>(result.reason)];
  request.sink->on_finish(result);
  request.sink.reset();
  changed_.notify_all();
}

void FakeRuntime::cancel(RequestHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(handle);
  if (found == requests_.end()) return;
  found->second.cancelled = true;
  if (!found->second.finished) finish_locked(found->second, {.reason = FinishReason::kCancelled});
  changed_.notify_all();
}

void FakeRuntime::drain(std::chrono::steady_clock::time_point) {
  set_health(RuntimeHealth::kDraining);
}

void FakeRuntime::wait_drained() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return open_ == 0; });
}

RuntimeStats FakeRuntime::stats() const {
  const std::lock_guard lock(mutex_);
  RuntimeStats stats;
  stats.running = open_;
  stats.open_requests = open_;
  stats.kv_pages_total = 100;
  stats.kv_pages_used = open_ * 10;
  stats.prompt_tokens_total = prompt_tokens_;
  stats.generation_tokens_total = generated_tokens_;
  stats.finished_total = finished_total_;
  return stats;
}

RuntimeHealth FakeRuntime::health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

RequestHandle FakeRuntime::wait_submitted() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [this] { return !submitted_.empty(); })) {
    throw std::runtime_error("no request was submitted in time");
  }
  const RequestHandle handle = submitted_.front();
  submitted_.pop_front();
  return handle;
}

RequestSpec FakeRuntime::spec(RequestHandle handle) const {
  const std::lock_guard lock(mutex_);
  return requests_.at(handle).spec;
}

void FakeRuntime::emit(RequestHandle handle, std::string_view text) {
  std::vector<TokenRecord> records;
  for (const char c : text) records.push_back(record_of(static_cast<unsigned char>(c), spec(handle).sampling.logprobs));
  emit_records(handle, records);
}

void FakeRuntime::emit_records(RequestHandle handle, const std::vector<TokenRecord>& records, bool prompt) {
  const std::lock_guard lock(mutex_);
  Request& request = requests_.at(handle);
  if (request.finished) return;
  if (prompt) {
    request.sink->on_prompt_tokens(records);
    return;
  }
  request.tokens += static_cast<std::int32_t>(records.size());
  generated_tokens_ += static_cast<std::int64_t>(records.size());
  request.sink->on_tokens(records);
}

void FakeRuntime::finish(RequestHandle handle, FinishReason reason, const std::string& error, bool client_error,
                         std::int32_t stop_token) {
  const std::lock_guard lock(mutex_);
  Request& request = requests_.at(handle);
  if (request.finished) return;
  RequestResult result;
  result.reason = reason;
  result.stop_token = stop_token;
  result.usage = {.prompt_tokens = static_cast<std::int32_t>(request.spec.prompt_ids.size()),
                  .completion_tokens = request.tokens + (stop_token >= 0 ? 1 : 0)};
  result.error = error;
  result.client_error = client_error;
  finish_locked(request, result);
}

void FakeRuntime::wait_cancelled(RequestHandle handle) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [&] { return requests_.at(handle).cancelled; })) {
    throw std::runtime_error("the request was not cancelled in time");
  }
}

bool FakeRuntime::was_cancelled(RequestHandle handle) const {
  const std::lock_guard lock(mutex_);
  return requests_.at(handle).cancelled;
}

void FakeRuntime::set_health(RuntimeHealth health) {
  {
    const std::lock_guard lock(mutex_);
    health_ = health;
  }
  changed_.notify_all();
}

std::int64_t FakeRuntime::open_requests() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

void FakeRuntime::expire_drain() {
  const std::lock_guard lock(mutex_);
  for (auto& [handle, request] : requests_) {
    if (!request.finished) finish_locked(request, {.reason = FinishReason::kCancelled});
  }
}

void FakeRuntime::wait_draining() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [this] { return health_ == RuntimeHealth::kDraining; })) {
    throw std::runtime_error("the runtime was not drained in time");
  }
}

TokenRecord FakeRuntime::record_of(std::int32_t token, int top) {
  TokenRecord record{.token = token};
  if (top < 0) return record;
  // Whole eighths, so that they print exactly: the token itself is the second best of its alternatives.
  record.has_logprob = true;
  record.logprob = -1.25F;
  record.top_count = static_cast<std::uint8_t>(top);
  for (int i = 0; i < top; ++i) {
    const std::int32_t candidate = i == 1 ? token : (token + 1 + i) % 256;
    record.top[static_cast<std::size_t>(i)] = {candidate, i == 1 ? -1.25F : -1.0F - 0.5F * static_cast<float>(i)};
  }
  return record;
}

void FakeRuntime::step_locked() {
  for (auto& [handle, request] : requests_) {
    if (request.finished) continue;
    const SamplingParams& sampling = request.spec.sampling;
    if (request.tokens == 0 && sampling.prompt_logprobs >= 0) {
      std::vector<TokenRecord> prompt;
      for (const auto id : request.spec.prompt_ids) prompt.push_back(record_of(id, sampling.prompt_logprobs));
      prompt.front() = TokenRecord{.token = request.spec.prompt_ids.front()};
      request.sink->on_prompt_tokens(prompt);
    }
    RequestResult result;
    result.usage.prompt_tokens = static_cast<std::int32_t>(request.spec.prompt_ids.size());
    if (request.position < request.script.size()) {
      const TokenRecord record =
          record_of(static_cast<unsigned char>(request.script[request.position++]), sampling.logprobs);
      ++request.tokens;
      ++generated_tokens_;
      request.sink->on_tokens({&record, 1});
    }
    result.usage.completion_tokens = request.tokens;
    const std::int64_t length = result.usage.prompt_tokens + request.tokens;
    if (request.spec.max_tokens > 0 && request.tokens >= request.spec.max_tokens) {
      result.reason = FinishReason::kLength;
    } else if (length >= options_.max_seq_len) {
      result.reason = FinishReason::kLength;
    } else if (request.position < request.script.size()) {
      continue;
    } else {
      result.stop_token = 0;
      ++result.usage.completion_tokens;
    }
    finish_locked(request, result);
  }
}

void FakeRuntime::run_script() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || open_ > 0; });
    if (stopping_) return;
    step_locked();
    lock.unlock();
    std::this_thread::yield();  // submit and cancel get their turn between steps
    lock.lock();
  }
}

ServedModel make_model(std::unique_ptr<FakeRuntime> runtime, const std::string& chat_template) {
  ServedModel model;
  model.runtime = std::move(runtime);
  model.tokenizer = Tokenizer::bytes();
  if (chat_template.empty()) {
    model.chat_template_error = "it has no chat template.";
  } else {
    model.chat_template = std::make_shared<const ChatTemplate>(chat_template);
  }
  return model;
}

}  // namespace cairn::testing
