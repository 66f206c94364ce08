#include "core/resources/kv/kv_pool.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/plugin/status.hpp"
#include "core/resources/tensor_args.hpp"

namespace cairn {
namespace {

KvPool& pool_of(cairn_resource* self) {
  return *reinterpret_cast<KvPool*>(self);
}

cairn_status write_kv(cairn_resource* self, cairn_step_context* context, std::int64_t layer, std::uint32_t label,
                      const cairn_tensor_view* k, const cairn_tensor_view* v) {
  return guard([&] { pool_of(self).write_kv(layer, label, k, v, step_context_of(context, "kv.write_kv")); });
}

cairn_status seq_len(cairn_resource* self, cairn_request request, std::uint32_t label, std::int64_t* out) {
  return guard([&] {
    if (out == nullptr) throw InvalidArgument("kv.seq_len: out is NULL.");
    *out = pool_of(self).stored_len(request, label);
  });
}

cairn_status read_kv(cairn_resource* self, cairn_step_context* context, std::int64_t layer, cairn_request request,
                     std::uint32_t label, std::int64_t start, std::int64_t end, const cairn_tensor_view* k,
                     const cairn_tensor_view* v) {
  return guard([&] {
    step_context_of(context, "kv.read_kv");
    pool_of(self).read_kv(layer, request, label, start, end, k, v);
  });
}

cairn_status no_retention(cairn_resource*, cairn_request, std::uint32_t, std::int64_t) {
  return set_status(CAIRN_STATUS_UNSUPPORTED, "kv: retention windows are not driven by this host yet.");
}

constexpr cairn_kv_api kKvApi = {
    CAIRN_SIZE(cairn_kv_api, release_oldest), write_kv, seq_len, read_kv, no_retention, no_retention,
};

}  // namespace

KvPool::KvPool(std::string key, std::uint32_t index, const KvPoolConfig& config)
    : Resource(std::move(key), index, CAIRN_RESOURCE_KV),
      config_(config),
      page_bytes_(kernels::kv_page_bytes(config.layout)),
      bytes_(page_bytes_ * static_cast<std::size_t>(config.num_pages * config.num_layers)),
      pages_(config.num_pages),
      requests_(config.max_requests) {
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw ResourceExhausted("KV pool '" + this->key() + "': the system refused " + std::to_string(bytes_ >> 20U) +
                            " MiB for " + std::to_string(config.num_pages) + " pages; lower max_num_pages.");
  }
  madvise(mapped, bytes_, MADV_HUGEPAGE);  // fewer TLB misses where the system grants it
  memory_ = static_cast<std::byte*>(mapped);
  plans_.reserve(config_.num_labels);
}

KvPool::~KvPool() {
  munmap(memory_, bytes_);
}

const void* KvPool::api() const {
  return &kKvApi;
}

ReserveOutcome KvPool::reserve(RequestHandle request, const RequestNeeds& needs, std::string& why) {
  Request& record = requests_[slot_of(request)];
  if (record.handle == request) return ReserveOutcome::kReserved;
  const std::int64_t tokens = std::min(needs.prompt_tokens + needs.max_tokens, config_.max_seq_len);
  const std::int64_t pages = pages_for(tokens);
  if (pages > pages_.capacity()) {
    why = "The request can need " + std::to_string(tokens) + " tokens of KV cache (" + std::to_string(pages) +
          " pages), and the pool has " + std::to_string(pages_.capacity()) + " pages of " +
          std::to_string(config_.layout.page_size) + " tokens; lower max_tokens or shorten the prompt.";
    return ReserveOutcome::kNeverFits;
  }
  if (!pages_.reserve(pages)) return ReserveOutcome::kWait;
  record.handle = request;
  record.reserved_pages = pages;
  record.streams.resize(config_.num_labels);
  for (Stream& stream : record.streams) stream.stored_len = 0;
  record.streams[0].pages.reserve(static_cast<std::size_t>(pages));
  return ReserveOutcome::kReserved;
}

void KvPool::remove_request(RequestHandle request) {
  Request& record = requests_[slot_of(request)];
  if (record.handle != request) return;
  for (Stream& stream : record.streams) {
    for (const std::int32_t page : stream.pages) pages_.give_back(page);
    stream.pages.clear();
    stream.stored_len = 0;
  }
  pages_.unreserve(record.reserved_pages);
  record.reserved_pages = 0;
  record.handle = 0;
}

KvPool::Request& KvPool::request_of(RequestHandle handle, const char* function) {
  const std::uint32_t slot = slot_of(handle);
  if (handle <= 0 || slot >= requests_.size() || requests_[slot].handle != handle) {
    throw InvalidArgument(std::string(function) + ": request " + std::to_string(handle) + " holds no stream in '" +
                          key() + "'.");
  }
  return requests_[slot];
}

void KvPool::admit(const ResourceStep& step, StepContext& context) {
  (void)context;
  if (const auto* detail = static_cast<const cairn_kv_step*>(step.detail); detail != nullptr) {
    const bool combined = CAIRN_HAS(detail, cairn_kv_step, combined_labels) && detail->combined_labels.count > 0;
    const bool forks = (CAIRN_HAS(detail, cairn_kv_step, pre_forks) && detail->pre_forks.count > 0) ||
                       (CAIRN_HAS(detail, cairn_kv_step, post_forks) && detail->post_forks.count > 0);
    const bool retention = CAIRN_HAS(detail, cairn_kv_step, retention) && detail->retention.count > 0;
    if (combined || forks || retention) {
      throw NotSupported("KV resource '" + key() +
                         "': combined labels, forks and retention policies are not driven by this host yet.");
    }
  }
  for (const cairn_segment& segment : step.segments) {
    if (segment.span == 0) continue;
    Request& request = request_of(segment.request, "kv.admit");
    Stream& stream = request.streams[segment.label];
    const std::int64_t total = stream.stored_len + segment.span;
    if (total > config_.max_seq_len) {
      throw InvalidArgument("The request would grow to " + std::to_string(total) +
                            " tokens, and the model's context is " + std::to_string(config_.max_seq_len) + " tokens.");
    }
    const std::int64_t wanted = pages_for(total);
    while (static_cast<std::int64_t>(stream.pages.size()) < wanted) {
      // Another label than the first may need pages beyond what admission counted.
      if (request.reserved_pages == 0) {
        if (!pages_.reserve(1)) {
          throw ResourceExhausted("KV resource '" + key() + "' is out of pages for label " +
                                  std::to_string(segment.label) + ".");
        }
        request.reserved_pages = 1;
      }
      stream.pages.push_back(pages_.take_reserved());
      --request.reserved_pages;
    }
  }
}

void KvPool::plan(const ResourceStep& step, StepContext& context) {
  plans_.clear();
  const std::int64_t page_size = config_.layout.page_size;
  for (const cairn_segment& first : step.segments) {
    const bool planned =
        std::any_of(plans_.begin(), plans_.end(), [&](const KvLabelPlan& plan) { return plan.label == first.label; });
    if (planned) continue;
    KvLabelPlan plan;
    plan.label = first.label;
    std::size_t count = 0;
    for (const cairn_segment& segment : step.segments) {
      if (segment.label != plan.label) continue;
      ++count;
      plan.tokens += segment.span;
    }
    auto segments = arena_span<const cairn_segment*>(*context.arena, count);
    auto rows = arena_span<kernels::AttentionRow>(*context.arena, count);
    auto slots = arena_span<std::int64_t>(*context.arena, static_cast<std::size_t>(plan.tokens));
    auto starts = arena_span<std::int64_t>(*context.arena, count);
    std::size_t row = 0;
    std::int64_t token = 0;
    for (const cairn_segment& segment : step.segments) {
      if (segment.label != plan.label) continue;
      const Stream& stream = request_of(segment.request, "kv.plan").streams[segment.label];
      segments[row] = &segment;
      starts[row] = stream.stored_len;
      rows[row] = {token, segment.span, stream.stored_len + segment.span, stream.pages.data()};
      plan.max_kv_len = std::max(plan.max_kv_len, rows[row].kv_len);
      for (std::int64_t i = 0; i < segment.span; ++i, ++token) {
        const std::int64_t position = stream.stored_len + i;
        slots[static_cast<std::size_t>(token)] =
            std::int64_t{stream.pages[static_cast<std::size_t>(position / page_size)]} * page_size +
            position % page_size;
      }
      ++row;
    }
    plan.segments = segments;
    plan.rows = rows;
    plan.slots = slots;
    plan.start_positions = starts;
    plans_.push_back(plan);
  }
}

void KvPool::commit(const ResourceStep& step, StepContext& context) {
  (void)context;
  plans_.clear();
  const auto* detail = static_cast<const cairn_kv_step*>(step.detail);
  if (CAIRN_HAS(detail, cairn_kv_step, no_commit) && detail->no_commit != 0) return;
  for (const cairn_segment& segment : step.segments) {
    if (segment.span > 0) request_of(segment.request, "kv.commit").streams[segment.label].stored_len += segment.span;
  }
}

const KvLabelPlan& KvPool::label_plan(std::uint32_t label, const char* function) const {
  for (const KvLabelPlan& plan : plans_) {
    if (plan.label == label) return plan;
  }
  throw InvalidArgument(std::string(function) + ": the step declared no segment of label " + std::to_string(label) +
                        " for '" + key() + "'.");
}

std::int64_t KvPool::stored_len(RequestHandle request, std::uint32_t label) const {
  const std::uint32_t slot = slot_of(request);
  if (request <= 0 || slot >= requests_.size() || requests_[slot].handle != request || label >= config_.num_labels) {
    return 0;
  }
  return requests_[slot].streams[label].stored_len;
}

std::byte* KvPool::layer_base(std::int64_t layer, const char* function) const {
  if (layer < 0 || layer >= config_.num_layers) {
    throw InvalidArgument(std::string(function) + ": layer " + std::to_string(layer) + " is outside of '" + key() +
                          "', which has " + std::to_string(config_.num_layers) + " layers.");
  }
  return memory_ + page_bytes_ * static_cast<std::size_t>(config_.num_pages * layer);
}

void KvPool::write_kv(std::int64_t layer, std::uint32_t label, const cairn_tensor_view* k, const cairn_tensor_view* v,
                      const StepContext& context) {
  const KvLabelPlan& plan = label_plan(label, "kv.write_kv");
  const std::int64_t width = config_.layout.kv_heads * config_.layout.head_dim;
  const auto k_rows = float_rows(k, plan.tokens, width, "kv.write_kv", "k");
  const auto v_rows = float_rows(v, plan.tokens, width, "kv.write_kv", "v");
  kernels::kv_write(config_.layout, layer_base(layer, "kv.write_kv"), page_bytes_, k_rows.data, k_rows.stride,
                    v_rows.data, v_rows.stride, plan.slots.data(), plan.tokens, *context.parallel);
}

void KvPool::read_kv(std::int64_t layer, RequestHandle request, std::uint32_t label, std::int64_t start,
                     std::int64_t end, const cairn_tensor_view* k, const cairn_tensor_view* v) {
  const Request& record = request_of(request, "kv.read_kv");
  if (label >= config_.num_labels || start < 0 || end < start || end > record.streams[label].stored_len) {
    throw InvalidArgument("kv.read_kv: tokens [" + std::to_string(start) + ", " + std::to_string(end) +
                          ") are not stored for label " + std::to_string(label) + ".");
  }
  const std::int64_t width = config_.layout.kv_heads * config_.layout.head_dim;
  const auto k_rows = float_rows(k, end - start, width, "kv.read_kv", "k");
  const auto v_rows = float_rows(v, end - start, width, "kv.read_kv", "v");
  const std::int64_t page_size = config_.layout.page_size;
  for (std::int64_t position = start; position < end; ++position) {
    const std::int64_t slot =
        std::int64_t{record.streams[label].pages[static_cast<std::size_t>(position / page_size)]} * page_size +
        position % page_size;
    kernels::kv_read(config_.layout, layer_base(layer, "kv.read_kv"), page_bytes_, slot,
                     k_rows.data + (position - start) * k_rows.stride,
                     v_rows.data + (position - start) * v_rows.stride);
  }
}

}  // namespace cairn
