// The paged KV cache: pages of keys and values, streams of requests over them, and the plan of the step in flight.
// A request reserves at admission every page it can come to need, so that no admitted request ever runs out.
// Built by the resource factory; attention and position read its plan. Device thread only.
#pragma once

#include <memory>
#include <vector>

#include "core/resources/kv/page_allocator.hpp"
#include "core/resources/resource.hpp"
#include "kernels/cpu/attention.hpp"

namespace cairn {

struct KvPoolConfig {
  std::int64_t num_layers = 0;
  std::int64_t num_pages = 0;  // the sink included
  std::int64_t max_seq_len = 0;
  std::uint32_t num_labels = 1;
  std::uint32_t max_requests = 0;  // slots
  kernels::KvLayout layout;
};

// The step's tokens of one label, in packed order. Arrays live in the step's arena.
struct KvLabelPlan {
  std::uint32_t label = 0;
  std::int64_t tokens = 0;  // of all segments
  std::int64_t max_kv_len = 0;
  std::span<const cairn_segment* const> segments;  // of this label, in order
  std::span<const kernels::AttentionRow> rows;     // one per segment
  std::span<const std::int64_t> slots;             // one per token: page * page_size + offset
  std::span<const std::int64_t> start_positions;   // one per segment: tokens stored before this step
};

class KvPool final : public Resource {
 public:
  KvPool(std::string key, std::uint32_t index, const KvPoolConfig& config);
  ~KvPool() override;

  const void* api() const override;
  ReserveOutcome reserve(RequestHandle request, const RequestNeeds& needs, std::string& why) override;
  void remove_request(RequestHandle request) override;
  void admit(const ResourceStep& step, StepContext& context) override;
  void plan(const ResourceStep& step, StepContext& context) override;
  void commit(const ResourceStep& step, StepContext& context) override;
  std::pair<std::int64_t, std::int64_t> usage() const override { return {pages_.used(), pages_.capacity()}; }

  const KvPoolConfig& config() const { return config_; }
  // The plan of the step in flight for `label`. Throws InvalidArgument when the step has no segment there.
  const KvLabelPlan& label_plan(std::uint32_t label, const char* function) const;
  // Every label with a plan, in order of first appearance.
  std::span<const KvLabelPlan> label_plans() const { return {plans_.data(), plans_.size()}; }
  std::int64_t stored_len(RequestHandle request, std::uint32_t label) const;
  std::byte* layer_base(std::int64_t layer, const char* function) const;
  std::size_t page_stride() const { return page_bytes_; }

  void write_kv(std::int64_t layer, std::uint32_t label, const cairn_tensor_view* k, const cairn_tensor_view* v,
                const StepContext& context);
  void read_kv(std::int64_t layer, RequestHandle request, std::uint32_t label, std::int64_t start, std::int64_t end,
               const cairn_tensor_view* k, const cairn_tensor_view* v);

 private:
  struct Stream {
    std::vector<std::int32_t> pages;
    std::int64_t stored_len = 0;
  };
  struct Request {
    RequestHandle handle = 0;
    std::int64_t reserved_pages = 0;  // not yet taken
    std::vector<Stream> streams;      // by label
  };

  Request& request_of(RequestHandle handle, const char* function);
  std::int64_t pages_for(std::int64_t tokens) const {
    return (tokens + config_.layout.page_size - 1) / config_.layout.page_size;
  }

  KvPoolConfig config_;
  std::size_t page_bytes_ = 0;
  std::size_t bytes_ = 0;
  std::byte* memory_ = nullptr;  // [layer][page], mapped; pages that were never written cost no memory
  PageAllocator pages_;
  std::vector<Request> requests_;  // by slot
  std::vector<KvLabelPlan> plans_;
};

}  // namespace cairn
