// What a completing node sends out of the graph, for one request at a time: client output to the sink, persisted
// values to the record. Used by the worker inside WalkState::complete. Device thread only.
#pragma once

#include "core/graph/walk_state.hpp"
#include "core/worker/request_record.hpp"

namespace cairn {

class OutputRouter final : public RoutedSink {
 public:
  OutputRouter(const ModelSpec& spec, const cairn_model_api& api, cairn_model* model)
      : spec_(spec), api_(api), model_(model) {}

  // The request whose node completes now, and the row it ran in (for logprobs).
  void aim(RequestRecord& record, const EngineRow& row) {
    record_ = &record;
    row_ = &row;
  }

  void emit(std::uint32_t signal, std::uint32_t modality, const SignalValue& value, bool new_token) override;
  void persist(std::uint32_t signal, const SignalValue& value) override;

 private:
  void emit_tokens(const Tensor& tensor);
  void emit_token(std::int32_t token);
  void emit_bytes(std::uint32_t modality, Tensor& tensor);

  const ModelSpec& spec_;
  const cairn_model_api& api_;
  cairn_model* model_;
  RequestRecord* record_ = nullptr;
  const EngineRow* row_ = nullptr;
  Arena arena_{std::size_t{16} << 10U};
};

}  // namespace cairn
