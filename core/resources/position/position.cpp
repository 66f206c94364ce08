#include "core/resources/position/position.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"
#include "core/resources/tensor_args.hpp"

namespace cairn {
namespace {

Position& position_of(cairn_resource* self) {
  return *reinterpret_cast<Position*>(self);
}

cairn_status apply_qk(cairn_resource* self, cairn_step_context* context, std::uint32_t label,
                      const cairn_tensor_view* q, const cairn_tensor_view* k) {
  return guard([&] { position_of(self).apply_qk(label, q, k, step_context_of(context, "position.apply_qk")); });
}

cairn_status pos_ids(cairn_resource* self, cairn_step_context* context, std::uint32_t label, cairn_tensor_view* out) {
  return guard([&] { position_of(self).pos_ids(label, out, step_context_of(context, "position.pos_ids")); });
}

constexpr cairn_position_api kPositionApi = {CAIRN_SIZE(cairn_position_api, pos_ids), apply_qk, pos_ids};

const cairn_position_step* detail_of(const ResourceStep& step) {
  return static_cast<const cairn_position_step*>(step.detail);
}

}  // namespace

Position::Position(std::string key, std::uint32_t index, const PositionConfig& config, KvPool& kv)
    : Resource(std::move(key), index, CAIRN_RESOURCE_POSITION),
      config_(config),
      kv_(kv),
      requests_(kv.config().max_requests) {
  if (config_.rope) {
    table_ = std::make_unique<kernels::RopeTable>(config_.rope_config, kv.config().max_seq_len);
  }
  ids_.reserve(kv.config().num_labels);
}

const void* Position::api() const {
  return &kPositionApi;
}

void Position::remove_request(RequestHandle request) {
  Request& record = requests_[slot_of(request)];
  if (record.handle != request) return;
  record.handle = 0;
  std::fill(record.counters.begin(), record.counters.end(), 0);
}

std::int64_t& Position::counter(RequestHandle request, std::uint32_t label) {
  Request& record = requests_[slot_of(request)];
  if (record.handle != request) {
    record.handle = request;
    record.counters.assign(kv_.config().num_labels, 0);
  }
  return record.counters[label];
}

void Position::admit(const ResourceStep& step, StepContext& context) {
  (void)context;
  const cairn_position_step* detail = detail_of(step);
  if (CAIRN_HAS(detail, cairn_position_step, pos_ids) && detail->pos_ids.count > 0) {
    throw NotSupported("Position resource '" + key() + "': explicit position ids are not driven by this host yet.");
  }
  if (CAIRN_HAS(detail, cairn_position_step, advance) && detail->advance.count > 0 &&
      detail->advance.count != step.segments.size()) {
    throw InvalidArgument("Position resource '" + key() + "': advance has " + std::to_string(detail->advance.count) +
                          " entries for " + std::to_string(step.segments.size()) + " segments.");
  }
}

void Position::plan(const ResourceStep& step, StepContext& context) {
  (void)step;
  ids_.clear();
  for (const KvLabelPlan& plan : kv_.label_plans()) {
    auto ids = arena_span<std::int64_t>(*context.arena, static_cast<std::size_t>(plan.tokens));
    std::size_t token = 0;
    for (const cairn_segment* segment : plan.segments) {
      const std::int64_t first = counter(segment->request, segment->label);
      for (std::int64_t i = 0; i < segment->span; ++i) ids[token++] = config_.block ? first : first + i;
    }
    ids_.push_back({plan.label, ids});
  }
}

void Position::commit(const ResourceStep& step, StepContext& context) {
  (void)context;
  ids_.clear();
  const cairn_position_step* detail = detail_of(step);
  const bool explicit_advance = CAIRN_HAS(detail, cairn_position_step, advance) && detail->advance.count > 0;
  for (std::size_t i = 0; i < step.segments.size(); ++i) {
    const cairn_segment& segment = step.segments[i];
    std::int64_t advance = config_.block ? (segment.span > 0 ? config_.block_step : 0) : segment.span;
    if (explicit_advance) advance = detail->advance.data[i];
    counter(segment.request, segment.label) += advance;
  }
}

const Position::LabelIds& Position::ids_of(std::uint32_t label, const char* function) const {
  for (const LabelIds& ids : ids_) {
    if (ids.label == label) return ids;
  }
  throw InvalidArgument(std::string(function) + ": the step declared no segment of label " + std::to_string(label) +
                        " for '" + key() + "'.");
}

void Position::apply_qk(std::uint32_t label, const cairn_tensor_view* q, const cairn_tensor_view* k,
                        const StepContext& context) {
  if (table_ == nullptr) throw InvalidArgument("position.apply_qk: '" + key() + "' is a counter and rotates nothing.");
  const LabelIds& ids = ids_of(label, "position.apply_qk");
  const auto tokens = static_cast<std::int64_t>(ids.ids.size());
  const std::int64_t head_dim = table_->head_dim();
  for (const auto& [view, name] : {std::pair{q, "q"}, std::pair{k, "k"}}) {
    const auto rows = float_rows(view, tokens, -1, "position.apply_qk", name);
    if (rows.row_elements % head_dim != 0) {
      throw InvalidArgument("position.apply_qk: a row of " + std::string(name) + " has " +
                            std::to_string(rows.row_elements) + " values, no multiple of head_dim " +
                            std::to_string(head_dim) + ".");
    }
    kernels::rope_apply(*table_, ids.ids.data(), tokens, rows.data, rows.stride, rows.row_elements / head_dim,
                        *context.parallel);
  }
}

void Position::pos_ids(std::uint32_t label, cairn_tensor_view* out, const StepContext& context) {
  if (out == nullptr) throw InvalidArgument("position.pos_ids: out is NULL.");
  const LabelIds& ids = ids_of(label, "position.pos_ids");
  auto shape = arena_span<std::int64_t>(*context.arena, 1);
  shape[0] = static_cast<std::int64_t>(ids.ids.size());
  *out = cairn_tensor_view{};
  out->data = const_cast<std::int64_t*>(ids.ids.data());  // handed out read-only, see flags
  out->device = {CAIRN_DEVICE_CPU, 0};
  out->ndim = 1;
  out->dtype = {CAIRN_DTYPE_INT, 64, 1};
  out->shape = shape.data();
  out->flags = CAIRN_TENSOR_READ_ONLY;
}

}  // namespace cairn
