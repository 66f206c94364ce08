#include "host/openai/token_channel.hpp"

#include <utility>

namespace cairn {

class TokenChannel::Sink final : public OutputSink {
 public:
  explicit Sink(std::shared_ptr<TokenChannel> channel) : channel_(std::move(channel)) {}
  void on_prompt_tokens(std::span<const TokenRecord> tokens) override { channel_->put(tokens, true); }
  void on_tokens(std::span<const TokenRecord> tokens) override { channel_->put(tokens, false); }
  void on_finish(const RequestResult& result) override { channel_->put_result(result); }

 private:
  std::shared_ptr<TokenChannel> channel_;
};

TokenChannel::TokenChannel(std::shared_ptr<IoThread> io) : io_(std::move(io)) {
  arrived_.tokens.reserve(8);
}

std::unique_ptr<OutputSink> TokenChannel::make_sink() {
  return std::make_unique<Sink>(shared_from_this());
}

void TokenChannel::take(TokenBatch& batch) {
  const std::lock_guard lock(mutex_);
  std::swap(arrived_, batch);
}

void TokenChannel::on_wake() {
  if (!listener_) return;
  const auto listener = listener_;  // it may end listening, or replace itself
  listener();
}

void TokenChannel::put(std::span<const TokenRecord> records, bool prompt) {
  {
    const std::lock_guard lock(mutex_);
    auto& into = prompt ? arrived_.prompt : arrived_.tokens;
    into.insert(into.end(), records.begin(), records.end());
  }
  io_->wake(shared_from_this());
}

void TokenChannel::put_result(const RequestResult& result) {
  {
    const std::lock_guard lock(mutex_);
    arrived_.result = result;
  }
  io_->wake(shared_from_this());
}

}  // namespace cairn
