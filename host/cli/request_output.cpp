#include "host/cli/request_output.hpp"

#include <utility>

namespace cairn {

class RequestOutput::Sink final : public OutputSink {
 public:
  explicit Sink(std::shared_ptr<RequestOutput> output) : output_(std::move(output)) {}
  void on_tokens(std::span<const TokenRecord> tokens) override {
    {
      const std::lock_guard lock(output_->mutex_);
      output_->arrived_.tokens.insert(output_->arrived_.tokens.end(), tokens.begin(), tokens.end());
    }
    output_->changed_.notify_one();
  }
  void on_finish(const RequestResult& result) override {
    {
      const std::lock_guard lock(output_->mutex_);
      output_->arrived_.result = result;
    }
    output_->changed_.notify_one();
  }

 private:
  std::shared_ptr<RequestOutput> output_;
};

std::unique_ptr<OutputSink> RequestOutput::make_sink() {
  return std::make_unique<Sink>(shared_from_this());
}

void RequestOutput::wait(TokenBatch& batch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !arrived_.tokens.empty() || arrived_.result.has_value(); });
  std::swap(arrived_, batch);
}

}  // namespace cairn
