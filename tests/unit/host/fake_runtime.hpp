// A scripted ModelRuntime for tests of the front end: either a test plays the runtime by hand, or a thread of its own
// answers every request from a script. Ids are bytes.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/runtime/model_runtime.hpp"
#include "host/openai/served_model.hpp"

namespace cairn::testing {

class FakeRuntime final : public ModelRuntime {
 public:
  struct Options {
    std::string id = "fake";
    std::int64_t max_seq_len = 256;
    std::int64_t max_open = 64;  // more are refused with ResourceExhausted
    // The text that answers a request, byte by byte, one byte of every open request per step; empty: by hand.
    std::function<std::string(const RequestSpec&)> script;
  };
  explicit FakeRuntime(Options options);
  ~FakeRuntime() override;

  const ModelDescription& describe() const override { return description_; }
  RequestHandle submit(RequestSpec spec, std::unique_ptr<OutputSink> sink) override;
  void cancel(RequestHandle handle) override;
  void drain(std::chrono::steady_clock::time_point deadline) override;
  void wait_drained() override;
  RuntimeStats stats() const override;
  RuntimeHealth health() const override;

  // By hand. Each waits for its event for at most 10 s, and throws when it does not come.
  RequestHandle wait_submitted();  // the next request in the order of submission
  RequestSpec spec(RequestHandle handle) const;
  void emit(RequestHandle handle, std::string_view text);
  void emit_records(RequestHandle handle, const std::vector<TokenRecord>& records, bool prompt = false);
  void finish(RequestHandle handle, FinishReason reason, const std::string& error = {}, bool client_error = false,
              std::int32_t stop_token = -1);
  void wait_cancelled(RequestHandle handle);
  bool was_cancelled(RequestHandle handle) const;
  void set_health(RuntimeHealth health);
  std::int64_t open_requests() const;
  // The deadline expires now: what is open ends with kCancelled.
  void expire_drain();
  void wait_draining();

  // The scripted log-probabilities: of `token`, and of its n best alternatives.
  static TokenRecord record_of(std::int32_t token, int top);

 private:
  struct Request {
    RequestSpec spec;
    std::unique_ptr<OutputSink> sink;
    std::string script;
    std::size_t position = 0;
    std::int32_t tokens = 0;
    bool cancelled = false;
    bool finished = false;
  };
  void finish_locked(Request& request, const RequestResult& result);
  void run_script();
  void step_locked();

  Options options_;
  ModelDescription description_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RequestHandle, Request> requests_;
  std::deque<RequestHandle> submitted_;
  std::array<std::int64_t, 4> finished_total_{};
  std::int64_t open_ = 0;
  std::int64_t next_handle_ = 1;
  std::int64_t prompt_tokens_ = 0;
  std::int64_t generated_tokens_ = 0;
  RuntimeHealth health_ = RuntimeHealth::kReady;
  bool stopping_ = false;
  std::thread thread_;
};

// A model over `runtime` with the byte tokenizer and the given chat template; "" means none.
ServedModel make_model(std::unique_ptr<FakeRuntime> runtime, const std::string& chat_template);

}  // namespace cairn::testing
