// A LocalRuntime over the scripted plugin, sinks that record what they get, and what the plugin must answer, computed
// apart from it. Used by the tests of this folder and of tests/unit/worker.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/runtime/local_runtime.hpp"
#include "tests/unit/runtime/plugins/scripted.h"

namespace cairn::testing {

// The greedy continuation of `prompt`; ends with SCRIPTED_END, which is not part of it, or after `max_tokens`.
inline std::vector<std::int32_t> continuation(const std::vector<std::int32_t>& prompt, std::size_t max_tokens) {
  std::uint32_t sum = 0;
  std::int64_t position = 0;
  for (const std::int32_t token : prompt) sum = scripted_sum(sum, position++, token);
  std::vector<std::int32_t> out;
  while (out.size() < max_tokens) {
    std::int32_t best = 0;
    for (std::int32_t token = 1; token < SCRIPTED_VOCAB; ++token) {
      if (scripted_logit(sum, token) > scripted_logit(sum, best)) best = token;
    }
    if (best == SCRIPTED_END) break;
    out.push_back(best);
    sum = scripted_sum(sum, position++, best);
  }
  return out;
}

// A prompt of `length` ordinary tokens, another for every seed, none of which is an order.
inline std::vector<std::int32_t> prompt_of(std::size_t length, int seed) {
  std::vector<std::int32_t> ids(length);
  for (std::size_t i = 0; i < length; ++i) {
    ids[i] = static_cast<std::int32_t>((i * 37 + static_cast<std::size_t>(seed) * 101) % SCRIPTED_END);
  }
  return ids;
}

// What one request received. Shared with its sink, which the runtime destroys.
class Record {
 public:
  void add(std::span<const TokenRecord> tokens, bool prompt) {
    const std::lock_guard lock(mutex_);
    auto& into = prompt ? prompt_ : tokens_;
    into.insert(into.end(), tokens.begin(), tokens.end());
    changed_.notify_all();
  }
  void finish(const RequestResult& result) {
    const std::lock_guard lock(mutex_);
    ++finishes_;
    result_ = result;
    changed_.notify_all();
  }
  // What it ended with; waits for that.
  RequestResult wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return result_.has_value(); });
    return *result_;
  }
  void wait_tokens(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tokens_.size() >= count || result_.has_value(); });
  }
  bool finished() {
    const std::lock_guard lock(mutex_);
    return result_.has_value();
  }
  int finishes() {
    const std::lock_guard lock(mutex_);
    return finishes_;
  }
  std::vector<std::int32_t> ids() {
    const std::lock_guard lock(mutex_);
    std::vector<std::int32_t> ids;
    for (const TokenRecord& token : tokens_) ids.push_back(token.token);
    return ids;
  }
  std::vector<TokenRecord> tokens() {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }
  std::vector<TokenRecord> prompt() {
    const std::lock_guard lock(mutex_);
    return prompt_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TokenRecord> tokens_, prompt_;
  std::optional<RequestResult> result_;
  int finishes_ = 0;
};

class RecordingSink final : public OutputSink {
 public:
  explicit RecordingSink(std::shared_ptr<Record> record) : record_(std::move(record)) {}
  void on_prompt_tokens(std::span<const TokenRecord> tokens) override { record_->add(tokens, true); }
  void on_tokens(std::span<const TokenRecord> tokens) override { record_->add(tokens, false); }
  void on_finish(const RequestResult& result) override { record_->finish(result); }

 private:
  std::shared_ptr<Record> record_;
};

struct Request {
  RequestHandle handle = 0;
  std::shared_ptr<Record> record;
};

// The plugin's orders from this test, and the runtime that it serves.
class ScriptedRuntime {
 public:
  explicit ScriptedRuntime(DeploymentConfig deployment = {}, bool paused = false) {
    configure_logging("error", false);
    static const std::shared_ptr<PluginLibrary> plugin = PluginLibrary::load(CAIRN_SCRIPTED_PLUGIN);
    deployment.threads = 1;
    if (!deployment.kv_cache_bytes) deployment.kv_cache_bytes = std::int64_t{64} << 20;
    deployment.model_kwargs = ValueMap{{"control", reinterpret_cast<std::int64_t>(&control_)}};
    runtime_ = paused ? std::make_unique<LocalRuntime>(plugin, nullptr, deployment, nullptr, LocalRuntime::Paused{})
                      : std::make_unique<LocalRuntime>(plugin, nullptr, deployment, nullptr);
    tensors_ = runtime_->stats().live_tensors;
  }

  LocalRuntime& operator*() { return *runtime_; }
  LocalRuntime* operator->() { return runtime_.get(); }
  void destroy() { runtime_.reset(); }

  static RequestSpec spec(std::vector<std::int32_t> prompt, int max_tokens) {
    RequestSpec spec;
    spec.id = "test";
    spec.prompt_ids = std::move(prompt);
    spec.max_tokens = max_tokens;
    spec.sampling.temperature = 0;
    return spec;
  }
  Request submit(RequestSpec spec) {
    Request request;
    request.record = std::make_shared<Record>();
    request.handle = runtime_->submit(std::move(spec), std::make_unique<RecordingSink>(request.record));
    return request;
  }
  Request submit(std::vector<std::int32_t> prompt, int max_tokens) {
    return submit(spec(std::move(prompt), max_tokens));
  }
  // Steps a paused runtime until nothing is ready.
  void run_all() {
    while (runtime_->run_once()) {
    }
  }

  int read(int scripted_control::*field) const { return __atomic_load_n(&(control_.*field), __ATOMIC_ACQUIRE); }
  void write(int scripted_control::*field, int value) { __atomic_store_n(&(control_.*field), value, __ATOMIC_RELEASE); }
  // Spins until the plugin has counted so far; it does so at work, not at rest.
  void await(int scripted_control::*field, int value) const {
    while (read(field) < value) std::this_thread::yield();
  }

  // Whether nothing is held of any request.
  void expect_nothing_held() {
    const RuntimeStats stats = runtime_->stats();
    EXPECT_EQ(stats.running, 0);
    EXPECT_EQ(stats.waiting, 0);
    EXPECT_EQ(stats.open_requests, 0);
    EXPECT_EQ(stats.kv_pages_used, 0);
    EXPECT_EQ(stats.live_tensors, tensors_);
    EXPECT_EQ(read(&scripted_control::added), read(&scripted_control::cleaned));
  }

 private:
  scripted_control control_{};
  std::unique_ptr<LocalRuntime> runtime_;
  std::int64_t tensors_ = 0;
};

}  // namespace cairn::testing
