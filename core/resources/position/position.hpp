// Positions of every stream and their rotary embedding. Counts tokens per (request, label) and rotates q and k at the
// plan's positions. Built by the resource factory. Device thread only.
#pragma once

#include <memory>
#include <vector>

#include "core/resources/kv/kv_pool.hpp"
#include "kernels/cpu/rope.hpp"

namespace cairn {

struct PositionConfig {
  bool rope = true;    // false: a bare counter
  bool block = false;  // BLOCK scheme: every token of a segment has the same position
  std::int64_t block_step = 1;
  kernels::RopeConfig rope_config;
};

class Position final : public Resource {
 public:
  Position(std::string key, std::uint32_t index, const PositionConfig& config, KvPool& kv);

  const void* api() const override;
  void remove_request(RequestHandle request) override;
  void admit(const ResourceStep& step, StepContext& context) override;
  void plan(const ResourceStep& step, StepContext& context) override;
  void commit(const ResourceStep& step, StepContext& context) override;

  void apply_qk(std::uint32_t label, const cairn_tensor_view* q, const cairn_tensor_view* k,
                const StepContext& context);
  void pos_ids(std::uint32_t label, cairn_tensor_view* out, const StepContext& context);

 private:
  struct LabelIds {
    std::uint32_t label = 0;
    std::span<const std::int64_t> ids;  // one per token
  };
  struct Request {
    RequestHandle handle = 0;
    std::vector<std::int64_t> counters;  // by label
  };
  std::int64_t& counter(RequestHandle request, std::uint32_t label);
  const LabelIds& ids_of(std::uint32_t label, const char* function) const;

  PositionConfig config_;
  KvPool& kv_;
  std::unique_ptr<kernels::RopeTable> table_;
  std::vector<Request> requests_;
  std::vector<LabelIds> ids_;
};

}  // namespace cairn
