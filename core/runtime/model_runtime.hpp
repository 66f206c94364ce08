// The one narrow interface between the host's front end and a served model. Two implementations are planned: in this
// process (LocalRuntime) and in a child process; nothing above or below this line knows which one it has.
//
// Threads: every method may be called from any thread and none blocks on inference. OutputSink methods are called on
// the runtime's own thread, must return at once, and must not call back into the runtime except request_cancel().
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/value.hpp"

namespace cairn {

// Slot and generation of a request; negative means a padding row, and 0 is never a live request.
using RequestHandle = std::int64_t;

inline constexpr int kMaxTopLogprobs = 20;

// Sampling parameters of one request. The defaults are OpenAI's where OpenAI has the parameter (temperature 1).
struct SamplingParams {
  float temperature = 1.0F;                                // >= 0; 0 means greedy
  std::int32_t top_k = 0;                                  // 0 means off
  float top_p = 1.0F;                                      // (0, 1]; 1 means off
  float min_p = 0.0F;                                      // [0, 1]; 0 means off
  float repetition_penalty = 1.0F;                         // > 0; 1 means off; prompt and output tokens count
  float presence_penalty = 0.0F;                           // [-2, 2]; output tokens only
  float frequency_penalty = 0.0F;                          // [-2, 2]; output tokens only
  std::vector<std::pair<std::int32_t, float>> logit_bias;  // token id -> added to its logit
  std::uint64_t seed = 0;
  bool has_seed = false;              // without one, the seed is derived from the request id
  std::int32_t logprobs = -1;         // -1: none; 0: the chosen token only; n: and the n best (<= kMaxTopLogprobs)
  std::int32_t prompt_logprobs = -1;  // the same for every prompt token but the first
};

enum class FinishReason : std::uint8_t { kStop, kLength, kCancelled, kError };

// What the front end asks of a model. Either prompt_ids or prompt_text is set; media travel in tensors later on.
struct RequestSpec {
  std::string id;  // the client-visible id, for logs and errors
  std::vector<std::string> input_modalities{"text"};
  std::vector<std::string> output_modalities{"text"};
  std::string prompt_text;
  std::vector<std::int32_t> prompt_ids;
  SamplingParams sampling;
  std::int32_t max_tokens = 0;               // 0: as many as the context leaves room for
  std::int32_t min_tokens = 0;               // stop tokens are not sampled before this many tokens
  std::vector<std::int32_t> stop_token_ids;  // beside the model's own end tokens
  bool ignore_eos = false;
  Value model_kwargs;  // a map, handed to the plugin as it is
};

struct TokenLogprob {
  std::int32_t token = -1;
  float logprob = 0.0F;  // natural logarithm, of the distribution before temperature and truncation
};

// One generated (or scored prompt) token. `top` is in falling order and holds `top_count` entries.
struct TokenRecord {
  std::int32_t token = -1;
  float logprob = 0.0F;
  bool has_logprob = false;
  std::uint8_t top_count = 0;
  std::array<TokenLogprob, kMaxTopLogprobs> top{};
};

struct RequestUsage {
  std::int32_t prompt_tokens = 0;
  std::int32_t completion_tokens = 0;
  std::int32_t cached_tokens = 0;  // prompt tokens taken from a prefix cache
};

struct RequestResult {
  FinishReason reason = FinishReason::kStop;
  std::int32_t stop_token = -1;  // the token that ended generation (an end token or one of stop_token_ids), or -1.
                                 // It is not delivered through on_tokens.
  RequestUsage usage;
  std::string error;          // a sentence, when reason is kError
  bool client_error = false;  // the error is the request's own fault (HTTP 400), else ours (HTTP 500)
};

// Receives one request's output. Destroyed by the runtime after on_finish returned.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // Scored prompt tokens (only with prompt_logprobs), in order; the first token carries no logprob.
  virtual void on_prompt_tokens(std::span<const TokenRecord> tokens) { (void)tokens; }
  // Newly generated tokens, in order.
  virtual void on_tokens(std::span<const TokenRecord> tokens) = 0;
  // Output that is not tokens (a modality of the model's own): valid during the call only.
  virtual void on_bytes(std::string_view modality, std::span<const std::byte> data) { (void)modality, (void)data; }
  // Called exactly once, last.
  virtual void on_finish(const RequestResult& result) = 0;
};

// How the front end turns text into prompt ids for this model, and ids back into text.
enum class TextSource : std::uint8_t { kNone, kBytes, kVocabulary };

struct ModelDescription {
  std::string id;         // the name clients use
  std::string plugin_id;  // e.g. "ai.cairn.llama"
  std::string plugin_version;
  std::string architecture;      // e.g. "llama"
  std::int64_t max_seq_len = 0;  // prompt plus output tokens of one request
  std::int64_t vocab_size = 0;
  TextSource text = TextSource::kNone;
  std::vector<std::string> input_modalities;
  std::vector<std::string> output_modalities;
  std::int64_t created = 0;  // seconds since the epoch
};

// A consistent snapshot for /metrics and tests; times are cumulative histograms kept by the runtime's registry.
struct RuntimeStats {
  std::int64_t running = 0;  // requests with resources
  std::int64_t waiting = 0;  // admitted to the queue, not yet to the pool
  std::int64_t kv_pages_used = 0;
  std::int64_t kv_pages_total = 0;
  std::int64_t open_requests = 0;  // everything between submit and on_finish
  std::int64_t live_tensors = 0;
  std::int64_t prompt_tokens_total = 0;
  std::int64_t generation_tokens_total = 0;
  std::int64_t preemptions_total = 0;
  std::int64_t steps_total = 0;
  std::array<std::int64_t, 4> finished_total{};  // indexed by FinishReason
};

enum class RuntimeHealth : std::uint8_t { kLoading, kReady, kDraining, kFailed };

class ModelRuntime {
 public:
  virtual ~ModelRuntime() = default;
  virtual const ModelDescription& describe() const = 0;
  // Takes the request in, or throws InvalidArgument (never fits, bad parameter), ResourceExhausted (queue full or
  // draining). After a return the sink gets on_finish exactly once, whatever happens.
  virtual RequestHandle submit(RequestSpec spec, std::unique_ptr<OutputSink> sink) = 0;
  // Ends the request early: FinishReason::kCancelled. Idempotent; a stale handle is ignored. Wakes the runtime.
  virtual void cancel(RequestHandle handle) = 0;
  // Stops taking requests; those still open at the deadline finish with kCancelled. Returns at once.
  virtual void drain(std::chrono::steady_clock::time_point deadline) = 0;
  // Waits until no request is open (after drain).
  virtual void wait_drained() = 0;
  virtual RuntimeStats stats() const = 0;
  virtual RuntimeHealth health() const = 0;
};

}  // namespace cairn
