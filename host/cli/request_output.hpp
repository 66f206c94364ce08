// The output of one runtime request for a caller that waits for it: `cairn run` and `cairn bench`.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "host/openai/token_channel.hpp"

namespace cairn {

class RequestOutput : public std::enable_shared_from_this<RequestOutput> {
 public:
  // The sink to submit; keeps this object alive.
  std::unique_ptr<OutputSink> make_sink();
  // Waits for something new and swaps it into `batch`, which must be clear.
  void wait(TokenBatch& batch);

 private:
  class Sink;
  std::mutex mutex_;
  std::condition_variable changed_;
  TokenBatch arrived_;  // guarded by mutex_
};

}  // namespace cairn
