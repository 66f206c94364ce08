// Carries one runtime request's output from the runtime's thread to the IO thread of its client.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/runtime/model_runtime.hpp"
#include "host/http/io_thread.hpp"

namespace cairn {

// What arrived since the last take(). Reused by the reader, so that its buffers keep their size.
struct TokenBatch {
  std::vector<TokenRecord> prompt;
  std::vector<TokenRecord> tokens;
  std::optional<RequestResult> result;
  void clear() {
    prompt.clear();
    tokens.clear();
    result.reset();
  }
};

// The runtime's side copies records under a lock that is held for the copy only, into a buffer that has reached its
// steady size after the first steps, and wakes the IO thread at most once until that has looked.
class TokenChannel final : public Wakeable, public std::enable_shared_from_this<TokenChannel> {
 public:
  explicit TokenChannel(std::shared_ptr<IoThread> io);

  // The sink to hand to ModelRuntime::submit; keeps this channel alive.
  std::unique_ptr<OutputSink> make_sink();

  // IO thread: called whenever there is something to take; an empty function ends listening.
  void listen(std::function<void()> listener) { listener_ = std::move(listener); }
  // IO thread: swaps what has arrived into `batch`, which must be clear.
  void take(TokenBatch& batch);
  void on_wake() override;

 private:
  class Sink;
  void put(std::span<const TokenRecord> records, bool prompt);
  void put_result(const RequestResult& result);

  std::shared_ptr<IoThread> io_;
  std::function<void()> listener_;
  std::mutex mutex_;
  TokenBatch arrived_;  // guarded by mutex_
};

}  // namespace cairn
