// Choosing the next token from f32 logits, and log-probabilities. Used by the sampler resource.
//
// Order of operations for a row: ban, bias, repetition, presence and frequency penalties; temperature; min-p; then
// top-k and top-p joint (both judged on the min-p-filtered distribution); one draw in index order. Ties go to the
// lowest index. The draw depends on (seed, position) and the row's logits only. NaN logits count as minus infinity.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/parallel.hpp"

namespace cairn::kernels {

struct TokenCount {
  std::int32_t token = 0;
  std::int32_t count = 0;
};
struct TokenBias {
  std::int32_t token = 0;
  float bias = 0.0F;
};

// Parameters of one row. Lists hold each token at most once; ids outside the vocabulary are ignored.
struct SamplingRow {
  float temperature = 1.0F;  // 0: greedy
  float top_p = 1.0F;        // >= 1: off
  float min_p = 0.0F;        // 0: off
  std::int32_t top_k = 0;    // <= 0: off
  float repetition_penalty = 1.0F;
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  const std::uint64_t* seen_bits = nullptr;  // bitmap of prompt and output tokens, bit t of word t / 64; or null
  const std::int32_t* seen = nullptr;        // the same as a list of distinct tokens; either may be given
  std::int64_t seen_count = 0;
  const TokenCount* counts = nullptr;  // output tokens and how often each occurred
  std::int64_t counts_count = 0;
  const TokenBias* bias = nullptr;
  std::int64_t bias_count = 0;
  const std::int32_t* banned = nullptr;
  std::int64_t banned_count = 0;
  const std::uint64_t* allowed_bits = nullptr;  // grammar mask: a clear bit bans the token; or null
  std::uint64_t seed = 0;
  std::uint64_t position = 0;  // of the token to be drawn, in the request
};

// Scratch for sample(), one area per thread.
std::size_t sampling_scratch_bytes(std::int64_t vocab, int threads);

// tokens[r] for every row of logits [n][logits_stride]; -1 when no token has a logit above minus infinity.
// logits are not changed.
void sample(const float* logits, std::int64_t logits_stride, std::int64_t n, std::int64_t vocab,
            const SamplingRow* rows, std::int32_t* tokens, void* scratch, const Parallel& parallel);

// Index of the largest value, the lowest on ties, NaN ignored; -1 when all are NaN or minus infinity.
std::int32_t argmax(const float* x, std::int64_t n);

struct TokenLogprob {
  std::int32_t token = -1;
  float logprob = 0.0F;
};
// The log-probability of `token` and the top_n best (falling, ties to the lowest index) under softmax(logits), before
// any sampling parameter. top must hold top_n entries; entries past the vocabulary get token -1. top_n <= 1024.
float token_logprobs(const float* logits, std::int64_t vocab, std::int32_t token, std::int32_t top_n,
                     TokenLogprob* top);

// Philox4x32-10 of (seed, position), as a double in [0, 1) with 53 random bits. `stream` separates several draws at
// one position.
double philox_uniform(std::uint64_t seed, std::uint64_t position, std::uint32_t stream = 0);
void philox4x32(const std::uint32_t counter[4], const std::uint32_t key[2], std::uint32_t out[4]);

}  // namespace cairn::kernels
