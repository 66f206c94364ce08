#include "core/resources/attention/attention.hpp"

#include <cstring>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"
#include "core/plugin/thread_context.hpp"
#include "core/resources/tensor_args.hpp"

namespace cairn {
namespace {

Attention& attention_of(cairn_resource* self) {
  return *reinterpret_cast<Attention*>(self);
}

cairn_status run(cairn_resource* self, cairn_step_context* context, std::int64_t layer, std::uint32_t label,
                 const cairn_tensor_view* q, const cairn_tensor_view* k, const cairn_tensor_view* v,
                 const cairn_tensor_view* out) {
  return guard([&] { attention_of(self).run(layer, label, q, k, v, out, step_context_of(context, "attention.run")); });
}

cairn_status select_last_hidden(cairn_resource* self, cairn_step_context* context, std::uint32_t label,
                                const cairn_tensor_view* hidden, const cairn_tensor_view* out) {
  return guard([&] {
    step_context_of(context, "attention.select_last_hidden");
    attention_of(self).select_last_hidden(label, hidden, out);
  });
}

cairn_status qo_indptr(cairn_resource* self, cairn_step_context* context, std::uint32_t label, cairn_tensor_view* out) {
  return guard([&] { attention_of(self).qo_indptr(label, out, step_context_of(context, "attention.qo_indptr")); });
}

constexpr cairn_attention_api kAttentionApi = {
    CAIRN_SIZE(cairn_attention_api, qo_indptr),
    run,
    select_last_hidden,
    qo_indptr,
};

}  // namespace

const void* Attention::api() const {
  return &kAttentionApi;
}

void Attention::plan(const ResourceStep& step, StepContext& context) {
  (void)context;
  const auto* detail = static_cast<const cairn_attention_step*>(step.detail);
  causal_ = !(CAIRN_HAS(detail, cairn_attention_step, not_causal) && detail->not_causal != 0);
}

void Attention::run(std::int64_t layer, std::uint32_t label, const cairn_tensor_view* q, const cairn_tensor_view* k,
                    const cairn_tensor_view* v, const cairn_tensor_view* out, const StepContext& context) {
  const KvLabelPlan& plan = kv_.label_plan(label, "attention.run");
  const kernels::KvLayout& layout = kv_.config().layout;
  const std::int64_t width = config_.num_qo_heads * layout.head_dim;
  const auto q_rows = float_rows(q, plan.tokens, width, "attention.run", "q");
  const auto out_rows = float_rows(out, plan.tokens, width, "attention.run", "out");
  kv_.write_kv(layer, label, k, v, context);
  const kernels::AttentionParams params{config_.num_qo_heads, config_.sm_scale, config_.logit_soft_cap, config_.window,
                                        causal_};
  const auto row_count = static_cast<std::int64_t>(plan.rows.size());
  const std::size_t bytes = kernels::attention_scratch_bytes(layout, config_.num_qo_heads, row_count, plan.tokens,
                                                             plan.max_kv_len, context.parallel->threads);
  kernels::attention(layout, kv_.layer_base(layer, "attention.run"), kv_.page_stride(), params, plan.rows.data(),
                     row_count, q_rows.data, q_rows.stride, out_rows.data, out_rows.stride, thread_scratch(bytes),
                     *context.parallel);
}

void Attention::select_last_hidden(std::uint32_t label, const cairn_tensor_view* hidden, const cairn_tensor_view* out) {
  const KvLabelPlan& plan = kv_.label_plan(label, "attention.select_last_hidden");
  const auto in_rows = float_rows(hidden, plan.tokens, -1, "attention.select_last_hidden", "hidden");
  const auto rows = static_cast<std::int64_t>(plan.rows.size());
  const auto out_rows = float_rows(out, rows, in_rows.row_elements, "attention.select_last_hidden", "out");
  for (std::int64_t i = 0; i < rows; ++i) {
    const kernels::AttentionRow& row = plan.rows[static_cast<std::size_t>(i)];
    float* target = out_rows.data + i * out_rows.stride;
    if (row.q_count == 0) {
      std::memset(target, 0, static_cast<std::size_t>(in_rows.row_elements) * sizeof(float));
      continue;
    }
    std::memcpy(target, in_rows.data + (row.q_start + row.q_count - 1) * in_rows.stride,
                static_cast<std::size_t>(in_rows.row_elements) * sizeof(float));
  }
}

void Attention::qo_indptr(std::uint32_t label, cairn_tensor_view* out, const StepContext& context) {
  if (out == nullptr) throw InvalidArgument("attention.qo_indptr: out is NULL.");
  const KvLabelPlan& plan = kv_.label_plan(label, "attention.qo_indptr");
  auto indptr = arena_span<std::int64_t>(*context.arena, plan.rows.size() + 1);
  for (std::size_t i = 0; i < plan.rows.size(); ++i) indptr[i] = plan.rows[i].q_start;
  indptr[plan.rows.size()] = plan.tokens;
  auto shape = arena_span<std::int64_t>(*context.arena, 1);
  shape[0] = static_cast<std::int64_t>(indptr.size());
  *out = cairn_tensor_view{};
  out->data = indptr.data();
  out->device = {CAIRN_DEVICE_CPU, 0};
  out->ndim = 1;
  out->dtype = {CAIRN_DTYPE_INT, 64, 1};
  out->shape = shape.data();
  out->flags = CAIRN_TENSOR_READ_ONLY;
}

}  // namespace cairn
