// ForwardInfo: fills the ABI's cairn_forward_info in place.
#include "core/conductor/forward_info.hpp"

#include <utility>

namespace cairn {

ForwardInfo::ForwardInfo(cairn_request request, std::string request_id, std::uint32_t partition,
                         std::uint64_t random_seed)
    : request_id_(std::move(request_id)) {
  info_.struct_size = sizeof(info_);
  info_.request = request;
  info_.request_id = {request_id_.data(), request_id_.size()};
  info_.partition = partition;
  info_.random_seed = random_seed;
}

void ForwardInfo::set_request(std::int64_t prompt_tokens, std::int64_t max_tokens, const ResourceReqConfigs& configs) {
  info_.prompt_tokens = prompt_tokens;
  info_.max_tokens = max_tokens;
  const auto view = configs.view();
  info_.resource_configs = {view.data(), view.size(), sizeof(cairn_resource_req_config)};
}

void ForwardInfo::begin_walk(std::uint32_t walk, std::int64_t fwd_index, OwnedMap step_metadata) {
  step_metadata_ = std::move(step_metadata);
  info_.graph_walk = walk;
  info_.fwd_index = fwd_index;
  info_.step_metadata = step_metadata_.view();
  info_.loop_stop_times = {};
  info_.dynamic_loop_iter_counts = {};
}

void ForwardInfo::refresh(const WalkState& state, std::int64_t output_tokens) {
  info_.output_tokens = output_tokens;
  const auto counts = state.loop_counts();
  info_.dynamic_loop_iter_counts = {counts.data(), counts.size(), sizeof(cairn_loop_count)};
  const auto stops = state.loop_stop_times();
  info_.loop_stop_times = {stops.data(), stops.size(), sizeof(cairn_loop_stop_time)};
}

}  // namespace cairn
