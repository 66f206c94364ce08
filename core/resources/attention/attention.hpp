// Causal (or full) attention over a KV pool's pages. run() stores the step's k and v first, then attends.
// Built by the resource factory. Device thread only.
#pragma once

#include "core/resources/kv/kv_pool.hpp"

namespace cairn {

struct AttentionConfig {
  std::int64_t num_qo_heads = 0;
  float sm_scale = 0.0F;
  float logit_soft_cap = 0.0F;
  std::int64_t window = 0;
};

class Attention final : public Resource {
 public:
  Attention(std::string key, std::uint32_t index, const AttentionConfig& config, KvPool& kv)
      : Resource(std::move(key), index, CAIRN_RESOURCE_ATTENTION), config_(config), kv_(kv) {}

  const void* api() const override;
  void plan(const ResourceStep& step, StepContext& context) override;

  void run(std::int64_t layer, std::uint32_t label, const cairn_tensor_view* q, const cairn_tensor_view* k,
           const cairn_tensor_view* v, const cairn_tensor_view* out, const StepContext& context);
  void select_last_hidden(std::uint32_t label, const cairn_tensor_view* hidden, const cairn_tensor_view* out);
  void qo_indptr(std::uint32_t label, cairn_tensor_view* out, const StepContext& context);

 private:
  AttentionConfig config_;
  KvPool& kv_;
  bool causal_ = true;
};

}  // namespace cairn
