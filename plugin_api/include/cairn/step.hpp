// What declare_step answers (seed: SubmoduleStep, Segment, the resource steps): which streams a batch touches, what
// grows, forks and commits.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "cairn/request_info.hpp"

namespace cairn {

// One stream's growth. The ordered list is the packed layout of the step's tokens. span 0 reads without extending.
struct Segment {
  Request request_id = 0;
  Label label = 0;
  std::int64_t span = 0;
};

struct Fork {
  Label from = 0;
  Label to = 0;
};
struct RetentionPolicy {
  Request request_id = 0;
  Label label = 0;
  std::int64_t protected_prefix = 0;
  std::int64_t context_budget = 0;
};

struct KVStep {
  bool commit = true;
  std::map<Label, std::vector<Label>> combined_labels;
  std::vector<Fork> pre_forks;
  std::vector<Fork> post_forks;
  std::vector<RetentionPolicy> retention;
};
struct AttentionStep {
  bool causal = true;
};
struct PositionStep {
  std::map<Label, Tensor> pos_ids;
  std::vector<std::int64_t> advance;  // one per segment; empty: the spans
};
struct SamplerStep {
  bool apply_penalty = true;
  std::map<Request, Tensor> prefill_tracked_tokens;
};
struct DiffusionSamplerStep {
  std::int64_t iteration = 0;
};
struct BoundedKVStep {
  struct Position {
    Request request_id = 0;
    std::int64_t source_len = 0;
    std::int64_t written = 0;
  };
  std::vector<Position> positions;
};
struct SlotStateStep {
  bool chunked = false;
  bool commit = true;
};

struct ResourceStep {
  std::optional<std::vector<Segment>> segments;  // none: the SubmoduleStep's
  std::variant<std::monostate, KVStep, AttentionStep, PositionStep, SamplerStep, DiffusionSamplerStep, BoundedKVStep,
               SlotStateStep>
      detail;
};

struct SubmoduleStep {
  std::vector<Segment> segments;
  std::map<std::uint32_t, ResourceStep> steps;  // by resource index
  Value cg_key_info;

  bool contains(std::uint32_t resource) const { return steps.contains(resource); }

  // The ABI form, in the arena. `requests` are the step's rows in order.
  const cairn_step* in(const Arena& arena, std::span<const Request> requests) const {
    auto* step = arena.make_one<cairn_step>();
    step->struct_size = CAIRN_SIZE(cairn_step, cg_key_info);
    step->segments = convert(segments, arena, requests);
    const std::span<cairn_resource_step> made = arena.make<cairn_resource_step>(steps.size());
    std::size_t i = 0;
    for (const auto& [resource, declared] : steps) {
      made[i].resource = resource;
      if (declared.segments) made[i].segments = convert(*declared.segments, arena, requests);
      made[i].detail = std::visit([&](const auto& detail) { return convert(detail, arena); }, declared.detail);
      ++i;
    }
    step->steps = span_of<cairn_resource_step_span>(made.data(), made.size());
    step->cg_key_info = cg_key_info.in(arena);
    return step;
  }

 private:
  static cairn_segment_span convert(const std::vector<Segment>& segments, const Arena& arena,
                                    std::span<const Request> requests) {
    const std::span<cairn_segment> made = arena.make<cairn_segment>(segments.size());
    std::uint32_t row = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      // Segments mostly come in row order: look on from the last row first.
      std::size_t looked = 0;
      while (looked < requests.size() && requests[row] != segments[i].request_id)
        row = (row + 1) % requests.size(), ++looked;
      if (looked == requests.size()) {
        throw std::invalid_argument("a segment names request " + std::to_string(segments[i].request_id) +
                                    ", which is not in the step");
      }
      made[i] = {segments[i].request_id, segments[i].label, row, segments[i].span};
    }
    return span_of<cairn_segment_span>(made.data(), made.size());
  }
  static cairn_label_tensor_span convert(const std::map<Label, Tensor>& tensors, const Arena& arena) {
    const std::span<cairn_label_tensor> made = arena.make<cairn_label_tensor>(tensors.size());
    std::size_t i = 0;
    for (const auto& [label, tensor] : tensors) made[i++] = {label, 0, tensor.in(arena)};
    return span_of<cairn_label_tensor_span>(made.data(), made.size());
  }
  static cairn_fork_span convert(const std::vector<Fork>& forks, const Arena& arena) {
    const std::span<cairn_fork> made = arena.make<cairn_fork>(forks.size());
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = {forks[i].from, forks[i].to};
    return span_of<cairn_fork_span>(made.data(), made.size());
  }

  static const void* convert(std::monostate, const Arena&) { return nullptr; }
  static const void* convert(const KVStep& kv, const Arena& arena) {
    auto* step = arena.make_one<cairn_kv_step>();
    step->struct_size = CAIRN_SIZE(cairn_kv_step, retention);
    step->no_commit = kv.commit ? 0 : 1;
    const std::span<cairn_combined_label> combined = arena.make<cairn_combined_label>(kv.combined_labels.size());
    std::size_t i = 0;
    for (const auto& [label, sources] : kv.combined_labels)
      combined[i++] = {label, 0, arena.span<cairn_u32_span>(sources)};
    step->combined_labels = span_of<cairn_combined_label_span>(combined.data(), combined.size());
    step->pre_forks = convert(kv.pre_forks, arena);
    step->post_forks = convert(kv.post_forks, arena);
    const std::span<cairn_retention> retention = arena.make<cairn_retention>(kv.retention.size());
    for (i = 0; i < retention.size(); ++i) {
      const RetentionPolicy& policy = kv.retention[i];
      retention[i] = {policy.request_id, policy.label, 0, policy.protected_prefix, policy.context_budget};
    }
    step->retention = span_of<cairn_retention_span>(retention.data(), retention.size());
    return step;
  }
  static const void* convert(const AttentionStep& attention, const Arena& arena) {
    auto* step = arena.make_one<cairn_attention_step>();
    step->struct_size = CAIRN_SIZE(cairn_attention_step, not_causal);
    step->not_causal = attention.causal ? 0 : 1;
    return step;
  }
  static const void* convert(const PositionStep& position, const Arena& arena) {
    auto* step = arena.make_one<cairn_position_step>();
    step->struct_size = CAIRN_SIZE(cairn_position_step, advance);
    step->pos_ids = convert(position.pos_ids, arena);
    step->advance = arena.span<cairn_i64_span>(position.advance);
    return step;
  }
  static const void* convert(const SamplerStep& sampler, const Arena& arena) {
    auto* step = arena.make_one<cairn_sampler_step>();
    step->struct_size = CAIRN_SIZE(cairn_sampler_step, prefill_tracked_tokens);
    step->no_penalty = sampler.apply_penalty ? 0 : 1;
    const std::span<cairn_tracked_tokens> tracked =
        arena.make<cairn_tracked_tokens>(sampler.prefill_tracked_tokens.size());
    std::size_t i = 0;
    for (const auto& [request, ids] : sampler.prefill_tracked_tokens) tracked[i++] = {request, ids.in(arena)};
    step->prefill_tracked_tokens = span_of<cairn_tracked_tokens_span>(tracked.data(), tracked.size());
    return step;
  }
  static const void* convert(const DiffusionSamplerStep& sampler, const Arena& arena) {
    auto* step = arena.make_one<cairn_diffusion_sampler_step>();
    step->struct_size = CAIRN_SIZE(cairn_diffusion_sampler_step, iteration);
    step->iteration = sampler.iteration;
    return step;
  }
  static const void* convert(const BoundedKVStep& bounded, const Arena& arena) {
    auto* step = arena.make_one<cairn_bounded_kv_step>();
    step->struct_size = CAIRN_SIZE(cairn_bounded_kv_step, positions);
    const std::span<cairn_bounded_position> made = arena.make<cairn_bounded_position>(bounded.positions.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] = {bounded.positions[i].request_id, bounded.positions[i].source_len, bounded.positions[i].written};
    }
    step->positions = span_of<cairn_bounded_position_span>(made.data(), made.size());
    return step;
  }
  static const void* convert(const SlotStateStep& state, const Arena& arena) {
    auto* step = arena.make_one<cairn_slot_state_step>();
    step->struct_size = CAIRN_SIZE(cairn_slot_state_step, no_commit);
    step->chunked = state.chunked ? 1 : 0;
    step->no_commit = state.commit ? 0 : 1;
    return step;
  }
};

}  // namespace cairn
