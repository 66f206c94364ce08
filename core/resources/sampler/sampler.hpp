// Chooses tokens, and says which positions need logits at all: the last token of a row that samples, every token of a
// row whose prompt is scored, none of a non-final chunk. Draws are keyed by (request seed, index of the output token),
// so that a token depends on nothing but the request. Built by the resource factory. Device thread only.
#pragma once

#include <vector>

#include "core/resources/kv/kv_pool.hpp"
#include "kernels/cpu/sampling.hpp"

namespace cairn {

struct SamplerConfig {
  std::int64_t vocab_size = 0;
  bool repetition_penalty = true;
  bool min_p = true;
  std::uint32_t max_requests = 0;
};

class Sampler final : public Resource {
 public:
  // `kv` gives the packed layout of the step's tokens.
  Sampler(std::string key, std::uint32_t index, const SamplerConfig& config, KvPool& kv);

  const void* api() const override;
  void ingest_request(RequestHandle request, const RequestNeeds& needs, const void* config) override;
  void remove_request(RequestHandle request) override;
  void plan(const ResourceStep& step, StepContext& context) override;
  void commit(const ResourceStep& step, StepContext& context) override;

  std::int64_t num_logit_rows() const { return static_cast<std::int64_t>(logit_tokens_.size()); }
  void select_hidden(const cairn_tensor_view* hidden, const cairn_tensor_view* out);
  void sample(const cairn_tensor_view* logits, const cairn_tensor_view* out_tokens, const StepContext& context);
  void loopback_tokens(const cairn_tensor_view* out, const StepContext& context);

  // The record of the token row `row` of the last step sampled, or null when it sampled none.
  const TokenRecord* sampled(std::size_t row) const;
  // Records of the request's prompt tokens that the last step scored, in prompt order; until clear_scored.
  std::span<const TokenRecord> scored(RequestHandle request);
  void clear_scored(RequestHandle request);

 private:
  struct Request {
    RequestHandle handle = 0;
    kernels::SamplingRow row;
    std::vector<kernels::TokenBias> bias;
    std::vector<kernels::TokenCount> counts;  // output tokens, for presence and frequency penalties
    std::vector<std::uint64_t> seen;          // bitmap of prompt and output tokens; empty without a penalty
    std::vector<std::int32_t> banned;         // end tokens, until min_tokens is reached
    std::int64_t min_tokens = 0;
    std::int64_t sampled = 0;  // output tokens so far
    std::int32_t last_token = -1;
    std::int32_t logprobs = -1;
    std::int32_t prompt_logprobs = -1;
    std::span<const std::int32_t> prompt_ids;
    std::vector<TokenRecord> scored;  // of the last step
  };
  struct RowPlan {
    std::int32_t sample_row = -1;  // row of logits, or -1
    std::int32_t score_row = -1;   // first row of logits of a scored prompt, or -1
    std::int64_t score_count = 0;
  };

  Request& request_of(RequestHandle request);
  void remember(Request& request, std::int32_t token);
  void score_prompt(Request& request, const StepRow& row, const RowPlan& plan, const float* logits,
                    std::int64_t stride);

  SamplerConfig config_;
  KvPool& kv_;
  std::vector<Request> requests_;             // by slot
  std::vector<RowPlan> row_plans_;            // by row of the step
  std::vector<std::int64_t> logit_tokens_;    // packed token index of every row of logits
  std::vector<std::uint32_t> sampling_rows_;  // step row of every sampling row of logits, which come first
  std::vector<kernels::SamplingRow> kernel_rows_;
  std::vector<std::int32_t> kernel_tokens_;
  bool apply_penalty_ = true;         // of the step: repetition, presence and frequency penalties
  std::vector<TokenRecord> records_;  // by row of the step
};

}  // namespace cairn
