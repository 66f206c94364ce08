#include "core/resources/sampler/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"
#include "core/plugin/thread_context.hpp"
#include "core/resources/tensor_args.hpp"

namespace cairn {
namespace {

Sampler& sampler_of(cairn_resource* self) {
  return *reinterpret_cast<Sampler*>(self);
}

cairn_status num_logit_rows(cairn_resource* self, cairn_step_context* context, std::int64_t* out) {
  return guard([&] {
    step_context_of(context, "sampler.num_logit_rows");
    if (out == nullptr) throw InvalidArgument("sampler.num_logit_rows: out is NULL.");
    *out = sampler_of(self).num_logit_rows();
  });
}

cairn_status select_hidden(cairn_resource* self, cairn_step_context* context, const cairn_tensor_view* hidden,
                           const cairn_tensor_view* out) {
  return guard([&] {
    step_context_of(context, "sampler.select_hidden");
    sampler_of(self).select_hidden(hidden, out);
  });
}

cairn_status sample(cairn_resource* self, cairn_step_context* context, const cairn_tensor_view* logits,
                    const cairn_tensor_view* out_tokens) {
  return guard([&] { sampler_of(self).sample(logits, out_tokens, step_context_of(context, "sampler.sample")); });
}

cairn_status loopback_tokens(cairn_resource* self, cairn_step_context* context, const cairn_tensor_view* out) {
  return guard([&] { sampler_of(self).loopback_tokens(out, step_context_of(context, "sampler.loopback_tokens")); });
}

constexpr cairn_sampler_api kSamplerApi = {
    CAIRN_SIZE(cairn_sampler_api, loopback_tokens), num_logit_rows, select_hidden, sample, loopback_tokens,
};

void fill_logprobs(TokenRecord& record, const float* logits, std::int64_t vocab, std::int32_t token,
                   std::int32_t top_count) {
  std::array<kernels::TokenLogprob, kMaxTopLogprobs> top;
  top_count = std::min(top_count, kMaxTopLogprobs);
  record.logprob = kernels::token_logprobs(logits, vocab, token, top_count, top.data());
  record.has_logprob = true;
  record.top_count = 0;
  for (std::int32_t i = 0; i < top_count && top[static_cast<std::size_t>(i)].token >= 0; ++i) {
    const auto& entry = top[static_cast<std::size_t>(i)];
    record.top[record.top_count++] = {entry.token, entry.logprob};
  }
}

}  // namespace

Sampler::Sampler(std::string key, std::uint32_t index, const SamplerConfig& config, KvPool& kv)
    : Resource(std::move(key), index, CAIRN_RESOURCE_SAMPLER),
      config_(config),
      kv_(kv),
      requests_(config.max_requests) {
  row_plans_.reserve(config.max_requests);
  sampling_rows_.reserve(config.max_requests);
  kernel_rows_.reserve(config.max_requests);
  kernel_tokens_.reserve(config.max_requests);
  records_.reserve(config.max_requests);
  logit_tokens_.reserve(config.max_requests);
}

const void* Sampler::api() const {
  return &kSamplerApi;
}

void Sampler::ingest_request(RequestHandle request, const RequestNeeds& needs, const void* config) {
  Request& record = requests_[slot_of(request)];
  if (record.handle == request) return;
  if (needs.sampling == nullptr) throw InternalError("sampler: a request without sampling parameters.");
  SamplingParams params = *needs.sampling;
  // The plugin may have replaced the client's parameters for this sampler.
  if (const auto* given = static_cast<const cairn_sampling_req_config*>(config); given != nullptr) {
    if (CAIRN_HAS(given, cairn_sampling_req_config, temperature))
      params.temperature = static_cast<float>(given->temperature);
    if (CAIRN_HAS(given, cairn_sampling_req_config, top_k)) params.top_k = static_cast<std::int32_t>(given->top_k);
    if (CAIRN_HAS(given, cairn_sampling_req_config, top_p))
      params.top_p = given->top_p == 0 ? 1.0F : static_cast<float>(given->top_p);
    if (CAIRN_HAS(given, cairn_sampling_req_config, min_p)) params.min_p = static_cast<float>(given->min_p);
    if (CAIRN_HAS(given, cairn_sampling_req_config, repetition_penalty)) {
      params.repetition_penalty = given->repetition_penalty == 0 ? 1.0F : static_cast<float>(given->repetition_penalty);
    }
    if (CAIRN_HAS(given, cairn_sampling_req_config, presence_penalty)) {
      params.presence_penalty = static_cast<float>(given->presence_penalty);
    }
    if (CAIRN_HAS(given, cairn_sampling_req_config, frequency_penalty)) {
      params.frequency_penalty = static_cast<float>(given->frequency_penalty);
    }
    if (CAIRN_HAS(given, cairn_sampling_req_config, seed) && given->seed != 0) params.seed = given->seed;
  }
  if (std::isnan(params.min_p) || params.min_p < 0.0F || params.min_p > 1.0F) {
    throw InvalidArgument("min_p must be between 0 and 1.", "min_p");
  }
  if (params.min_p > 0.0F && !config_.min_p) {
    throw InvalidArgument("This model's sampler does not do min_p; leave it out.", "min_p");
  }
  if (params.repetition_penalty != 1.0F && !config_.repetition_penalty) {
    throw InvalidArgument("This model's sampler does no repetition_penalty; leave it out.", "repetition_penalty");
  }
  record.handle = request;
  record.sampled = 0;
  record.last_token = -1;
  record.logprobs = params.logprobs;
  record.prompt_logprobs = params.prompt_logprobs;
  record.prompt_ids = needs.prompt_ids;
  record.min_tokens = needs.min_tokens;
  record.bias.clear();
  for (const auto& [token, value] : params.logit_bias) record.bias.push_back({token, value});
  record.counts.clear();
  record.banned.clear();
  if (needs.min_tokens > 0) record.banned.assign(needs.end_tokens.begin(), needs.end_tokens.end());
  record.seen.clear();
  if (params.repetition_penalty != 1.0F) {
    record.seen.assign(static_cast<std::size_t>((config_.vocab_size + 63) / 64), 0);
  }
  if (params.presence_penalty != 0.0F || params.frequency_penalty != 0.0F) {
    record.counts.reserve(static_cast<std::size_t>(std::min<std::int64_t>(needs.max_tokens, config_.vocab_size)));
  }
  record.row = kernels::SamplingRow{};
  record.row.temperature = params.temperature;
  record.row.top_p = params.top_p;
  record.row.min_p = params.min_p;
  record.row.top_k = params.top_k;
  record.row.repetition_penalty = params.repetition_penalty;
  record.row.presence_penalty = params.presence_penalty;
  record.row.frequency_penalty = params.frequency_penalty;
  record.row.seed = params.seed;
}

void Sampler::remove_request(RequestHandle request) {
  Request& record = requests_[slot_of(request)];
  if (record.handle != request) return;
  record.handle = 0;
  record.prompt_ids = {};
  record.scored = {};
  record.seen = {};
}

Sampler::Request& Sampler::request_of(RequestHandle request) {
  Request& record = requests_[slot_of(request)];
  if (record.handle != request) throw InternalError("sampler '" + key() + "': request was never ingested.");
  return record;
}

void Sampler::plan(const ResourceStep& step, StepContext& context) {
  const std::size_t rows = context.rows.size();
  row_plans_.assign(rows, {});
  records_.assign(rows, {});
  sampling_rows_.clear();
  logit_tokens_.clear();
  const auto* detail = static_cast<const cairn_sampler_step*>(step.detail);
  apply_penalty_ = !(CAIRN_HAS(detail, cairn_sampler_step, no_penalty) && detail->no_penalty != 0);
  // Prompt tokens the penalties count, as the node declares them.
  if (CAIRN_HAS(detail, cairn_sampler_step, prefill_tracked_tokens)) {
    for (std::uint64_t i = 0; i < detail->prefill_tracked_tokens.count; ++i) {
      const auto* tracked = CAIRN_AT(cairn_tracked_tokens, detail->prefill_tracked_tokens, i);
      Request& request = request_of(tracked->request);
      if (request.seen.empty()) continue;
      const auto ids = int32_rows(&tracked->ids, 0, "sampler.plan", "prefill_tracked_tokens");
      for (std::int64_t t = 0; t < ids.rows; ++t) {
        const std::int32_t token = ids.data[t];
        if (token >= 0 && token < config_.vocab_size) {
          request.seen[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1}
                                                                << (static_cast<unsigned>(token) % 64U);
        }
      }
    }
  }
  const std::span<const KvLabelPlan> plans = kv_.label_plans();
  if (plans.empty()) return;
  const KvLabelPlan& layout = plans.front();  // the packed hidden states follow the first label
  for (std::size_t i = 0; i < layout.segments.size(); ++i) {
    const std::uint32_t row = layout.segments[i]->row;
    if (row >= rows || layout.rows[i].q_count == 0 || !context.rows[row].last_chunk) continue;
    row_plans_[row].sample_row = static_cast<std::int32_t>(logit_tokens_.size());
    logit_tokens_.push_back(layout.rows[i].q_start + layout.rows[i].q_count - 1);
    sampling_rows_.push_back(row);
  }
  for (std::size_t i = 0; i < layout.segments.size(); ++i) {
    const std::uint32_t row = layout.segments[i]->row;
    if (row >= rows || !context.rows[row].prompt) continue;
    const Request& request = request_of(context.rows[row].request);
    if (request.prompt_logprobs < 0 || request.prompt_ids.empty()) continue;
    // The last token of a prompt predicts the first output token, which is sampled, not scored.
    const std::int64_t count = layout.rows[i].q_count - (context.rows[row].last_chunk ? 1 : 0);
    row_plans_[row].score_row = static_cast<std::int32_t>(logit_tokens_.size());
    row_plans_[row].score_count = count;
    for (std::int64_t t = 0; t < count; ++t) logit_tokens_.push_back(layout.rows[i].q_start + t);
  }
}

void Sampler::select_hidden(const cairn_tensor_view* hidden, const cairn_tensor_view* out) {
  const auto in_rows = float_rows(hidden, 0, -1, "sampler.select_hidden", "hidden");
  const auto out_rows = float_rows(out, num_logit_rows(), in_rows.row_elements, "sampler.select_hidden", "out");
  for (std::size_t i = 0; i < logit_tokens_.size(); ++i) {
    if (logit_tokens_[i] >= in_rows.rows) {
      throw InvalidArgument("sampler.select_hidden: hidden has " + std::to_string(in_rows.rows) +
                            " rows, and the step has token " + std::to_string(logit_tokens_[i]) + ".");
    }
    std::memcpy(out_rows.data + static_cast<std::int64_t>(i) * out_rows.stride,
                in_rows.data + logit_tokens_[i] * in_rows.stride,
                static_cast<std::size_t>(in_rows.row_elements) * sizeof(float));
  }
}

void Sampler::remember(Request& request, std::int32_t token) {
  request.last_token = token;
  ++request.sampled;
  if (!request.seen.empty()) {
    request.seen[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << (static_cast<unsigned>(token) % 64U);
  }
  if (request.row.presence_penalty != 0.0F || request.row.frequency_penalty != 0.0F) {
    const auto found = std::find_if(request.counts.begin(), request.counts.end(),
                                    [token](const kernels::TokenCount& entry) { return entry.token == token; });
    if (found != request.counts.end()) {
      ++found->count;
    } else {
      request.counts.push_back({token, 1});
    }
  }
}

void Sampler::score_prompt(Request& request, const StepRow& row, const RowPlan& plan, const float* logits,
                           std::int64_t stride) {
  // Token at prompt position p is scored by the logits of position p - 1; the first prompt token has no logprob.
  request.scored.clear();
  if (row.chunk_start == 0) {
    request.scored.emplace_back();
    request.scored.back().token = request.prompt_ids[0];
  }
  for (std::int64_t t = 0; t < plan.score_count; ++t) {
    const std::int64_t target = row.chunk_start + t + 1;
    if (target >= static_cast<std::int64_t>(request.prompt_ids.size())) break;
    TokenRecord record;
    record.token = request.prompt_ids[static_cast<std::size_t>(target)];
    fill_logprobs(record, logits + (plan.score_row + t) * stride, config_.vocab_size, record.token,
                  request.prompt_logprobs);
    request.scored.push_back(record);
  }
}

void Sampler::sample(const cairn_tensor_view* logits, const cairn_tensor_view* out_tokens, const StepContext& context) {
  const std::int64_t rows = num_logit_rows();
  const auto out =
      int32_rows(out_tokens, static_cast<std::int64_t>(context.rows.size()), "sampler.sample", "out_tokens");
  std::fill(out.data, out.data + out.rows, -1);
  if (rows == 0) return;
  const auto in = float_rows(logits, rows, config_.vocab_size, "sampler.sample", "logits");
  const std::size_t sampling = sampling_rows_.size();
  kernel_rows_.clear();
  kernel_tokens_.assign(sampling, -1);
  for (const std::uint32_t step_row : sampling_rows_) {
    Request& request = request_of(context.rows[step_row].request);
    kernels::SamplingRow row = request.row;
    row.position = static_cast<std::uint64_t>(request.sampled);
    row.bias = request.bias.data();
    row.bias_count = static_cast<std::int64_t>(request.bias.size());
    row.counts = request.counts.data();
    row.counts_count = static_cast<std::int64_t>(request.counts.size());
    row.seen_bits = request.seen.empty() ? nullptr : request.seen.data();
    if (!apply_penalty_) {
      row.repetition_penalty = 1.0F;
      row.presence_penalty = 0.0F;
      row.frequency_penalty = 0.0F;
    }
    if (request.sampled < request.min_tokens) {
      row.banned = request.banned.data();
      row.banned_count = static_cast<std::int64_t>(request.banned.size());
    }
    kernel_rows_.push_back(row);
  }
  void* scratch = thread_scratch(kernels::sampling_scratch_bytes(config_.vocab_size, context.parallel->threads));
  kernels::sample(in.data, in.stride, static_cast<std::int64_t>(sampling), config_.vocab_size, kernel_rows_.data(),
                  kernel_tokens_.data(), scratch, *context.parallel);
  for (std::size_t i = 0; i < sampling; ++i) {
    const std::uint32_t step_row = sampling_rows_[i];
    const std::int32_t token = kernel_tokens_[i];
    if (token < 0) {
      throw InternalError("sampler '" + key() + "': no token can be sampled; every logit of the row is NaN or -inf.");
    }
    Request& request = request_of(context.rows[step_row].request);
    TokenRecord& record = records_[step_row];
    record.token = token;
    if (request.logprobs >= 0) {
      fill_logprobs(record, in.data + static_cast<std::int64_t>(i) * in.stride, config_.vocab_size, token,
                    request.logprobs);
    }
    out.data[step_row] = token;
  }
  for (std::size_t row = 0; row < context.rows.size(); ++row) {
    if (row_plans_[row].score_row < 0) continue;
    score_prompt(request_of(context.rows[row].request), context.rows[row], row_plans_[row], in.data, in.stride);
  }
}

void Sampler::commit(const ResourceStep& step, StepContext& context) {
  (void)step;
  for (const std::uint32_t row : sampling_rows_) {
    if (records_[row].token >= 0) remember(request_of(context.rows[row].request), records_[row].token);
  }
}

void Sampler::loopback_tokens(const cairn_tensor_view* out, const StepContext& context) {
  const auto rows = int32_rows(out, static_cast<std::int64_t>(context.rows.size()), "sampler.loopback_tokens", "out");
  for (std::size_t row = 0; row < context.rows.size(); ++row) {
    rows.data[row] = request_of(context.rows[row].request).last_token;
  }
}

const TokenRecord* Sampler::sampled(std::size_t row) const {
  return row < records_.size() && records_[row].token >= 0 ? &records_[row] : nullptr;
}

std::span<const TokenRecord> Sampler::scored(RequestHandle request) {
  Request& record = request_of(request);
  return record.scored;
}

void Sampler::clear_scored(RequestHandle request) {
  request_of(request).scored.clear();
}

}  // namespace cairn
