// CurrentForwardPassInfo of one (request, partition): owns its memory and shows it as the ABI's struct, whose address
// and pointers repeat from step to step. Owned by the conductor, handed to every node hook by the worker.
#pragma once

#include <cstdint>
#include <string>

#include "cairn/abi.h"
#include "core/conductor/request_configs.hpp"
#include "core/graph/walk_state.hpp"
#include "core/tensor/value_abi.hpp"

namespace cairn {

// Written by the main thread, between steps only: the device thread reads it while a step runs.
class ForwardInfo {
 public:
  ForwardInfo(cairn_request request, std::string request_id, std::uint32_t partition, std::uint64_t random_seed);
  ForwardInfo(const ForwardInfo&) = delete;
  ForwardInfo& operator=(const ForwardInfo&) = delete;

  const cairn_forward_info* view() const { return &info_; }

  // Once, when the request starts. `configs` must outlive this object.
  void set_request(std::int64_t prompt_tokens, std::int64_t max_tokens, const ResourceReqConfigs& configs);
  // A walk starts.
  void begin_walk(std::uint32_t walk, std::int64_t fwd_index, OwnedMap step_metadata);
  // Before each step: points at the walk's loop counters and counts tokens. Allocates nothing.
  void refresh(const WalkState& state, std::int64_t output_tokens);

 private:
  std::string request_id_;
  OwnedMap step_metadata_;
  cairn_forward_info info_{};
};

}  // namespace cairn
