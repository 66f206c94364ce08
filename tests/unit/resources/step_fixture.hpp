// A step as a resource sees it, built by hand. Used by the resource tests.
#pragma once

#include <initializer_list>
#include <vector>

#include "core/resources/kv/kv_pool.hpp"

namespace cairn::testing {

inline KvPoolConfig small_pool(std::int64_t pages, std::int64_t max_seq_len = 256) {
  KvPoolConfig config;
  config.num_layers = 2;
  config.num_pages = pages + 1;
  config.max_seq_len = max_seq_len;
  config.num_labels = 1;
  config.max_requests = 8;
  config.layout = {2, 16, 16, kernels::KvType::kF32};
  return config;
}

inline RequestNeeds needs(std::int64_t prompt, std::int64_t output) {
  RequestNeeds result;
  result.prompt_tokens = prompt;
  result.max_tokens = output;
  return result;
}

// Rows of one label, in order; `spans[i]` tokens of request `requests[i]`.
class StepFixture {
 public:
  StepFixture(std::initializer_list<RequestHandle> requests, std::initializer_list<std::int64_t> spans) {
    std::uint32_t row = 0;
    auto span = spans.begin();
    for (const RequestHandle request : requests) {
      rows_.push_back({request, 0, *span, false, true});
      segments_.push_back({request, 0, row++, *span++});
    }
    context_.rows = rows_;
    context_.arena = &arena_;
    context_.parallel = &parallel_;
  }
  ResourceStep step() const { return {segments_, detail_}; }
  void set_detail(const void* detail) { detail_ = detail; }
  StepContext& context() { return context_; }
  std::vector<StepRow>& rows() { return rows_; }

 private:
  std::vector<StepRow> rows_;
  std::vector<cairn_segment> segments_;
  const void* detail_ = nullptr;
  kernels::Parallel parallel_ = kernels::serial();
  Arena arena_;
  StepContext context_;
};

inline void run_step(Resource& resource, StepFixture& fixture) {
  resource.admit(fixture.step(), fixture.context());
  resource.plan(fixture.step(), fixture.context());
  resource.commit(fixture.step(), fixture.context());
}

// A float32 view over a vector, [rows, columns].
struct FloatTensor {
  FloatTensor(std::int64_t rows, std::int64_t columns, float fill = 0.0F)
      : values(static_cast<std::size_t>(rows * columns), fill), shape{rows, columns} {
    view.data = values.data();
    view.device = {CAIRN_DEVICE_CPU, 0};
    view.ndim = 2;
    view.dtype = {CAIRN_DTYPE_FLOAT, 32, 1};
    view.shape = shape;
  }
  std::vector<float> values;
  std::int64_t shape[2];
  cairn_tensor_view view{};
};

struct IntTensor {
  explicit IntTensor(std::int64_t rows) : values(static_cast<std::size_t>(rows), -7), shape{rows} {
    view.data = values.data();
    view.device = {CAIRN_DEVICE_CPU, 0};
    view.ndim = 1;
    view.dtype = {CAIRN_DTYPE_INT, 32, 1};
    view.shape = shape;
  }
  std::vector<std::int32_t> values;
  std::int64_t shape[1];
  cairn_tensor_view view{};
};

}  // namespace cairn::testing
