// What the conductor and the worker know about a request (seed: mstar.conductor.request_info), as C++ values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cairn/value.hpp"

namespace cairn {

// Indices into the arrays of the model description.
using Walk = std::uint32_t;
using Signal = std::uint32_t;
using Label = std::uint32_t;
using LoopIndex = std::uint32_t;
using Request = cairn_request;

// One resource's published state. Opaque to most plugins; a resource folds a newer state into what is held.
struct PublishedInfo {
  ValueMap info;
  void update(const PublishedInfo& other) { info.update(other.info); }
};
using PublishedInfos = std::map<std::uint32_t, PublishedInfo>;  // by resource index

// Folds one set of published states into another: an existing entry is updated, a new one is taken whole.
inline void merge_publish_info(PublishedInfos& into, const PublishedInfos& other) {
  for (const auto& [resource, published] : other) {
    const auto [held, inserted] = into.try_emplace(resource, published);
    if (!inserted) held->second.update(published);
  }
}

// A logical time stamp of nested loops, outer to inner.
struct NestedLoopIndices {
  std::int64_t forward_index = 0;
  std::vector<std::pair<LoopIndex, std::int64_t>> indices;
};

// What every node hook receives about a request. `raw` gives the ABI struct for what is not copied (resource_configs).
struct CurrentForwardPassInfo {
  Request request = 0;
  std::string request_id;
  Walk graph_walk = 0;
  std::int64_t fwd_index = 0;
  std::uint64_t random_seed = 0;
  std::int64_t max_tokens = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  ValueMap step_metadata;
  PublishedInfos resource_publish_info;
  std::uint32_t partition = 0;
  std::map<LoopIndex, NestedLoopIndices> loop_stop_times;
  std::map<LoopIndex, std::int64_t> dynamic_loop_iter_counts;
  const cairn_forward_info* raw = nullptr;  // valid for the call

  CurrentForwardPassInfo() = default;
  explicit CurrentForwardPassInfo(const cairn_forward_info& info) : raw(&info) {
    request = info.request;
    request_id = text(info.request_id);
    graph_walk = info.graph_walk;
    partition = info.partition;
    fwd_index = info.fwd_index;
    random_seed = info.random_seed;
    max_tokens = info.max_tokens;
    if (CAIRN_HAS(raw, cairn_forward_info, output_tokens)) {
      prompt_tokens = info.prompt_tokens;
      output_tokens = info.output_tokens;
    }
    if (CAIRN_HAS(raw, cairn_forward_info, step_metadata)) step_metadata = ValueMap(info.step_metadata);
    if (CAIRN_HAS(raw, cairn_forward_info, resource_publish_info)) {
      for (const auto& published : elements(info.resource_publish_info)) {
        resource_publish_info[published.resource].info = ValueMap(published.info);
      }
    }
    if (CAIRN_HAS(raw, cairn_forward_info, loop_stop_times)) {
      for (const auto& stop : elements(info.loop_stop_times)) {
        NestedLoopIndices& held = loop_stop_times[stop.loop];
        held.forward_index = stop.forward_index;
        for (const auto& index : elements(stop.indices)) held.indices.emplace_back(index.loop, index.iterations);
      }
    }
    if (CAIRN_HAS(raw, cairn_forward_info, dynamic_loop_iter_counts)) {
      for (const auto& count : elements(info.dynamic_loop_iter_counts))
        dynamic_loop_iter_counts[count.loop] = count.iterations;
    }
  }

  // The request's config of one resource, or NULL.
  const void* resource_config(std::uint32_t resource) const noexcept {
    if (!CAIRN_HAS(raw, cairn_forward_info, resource_configs)) return nullptr;
    for (const auto& config : elements(raw->resource_configs)) {
      if (config.resource == resource) return config.config;
    }
    return nullptr;
  }
  void clear_loop_stop_info() {
    loop_stop_times.clear();
    dynamic_loop_iter_counts.clear();
  }
  void update_publish_info(const PublishedInfos& other) { merge_publish_info(resource_publish_info, other); }
};

// Per-partition metadata, handed to the model at every transition.
struct CurrentForwardConductorMetadata {
  Walk graph_walk = 0;
  bool is_prefill = false;
  std::vector<std::uint32_t> input_modalities;
  std::vector<std::uint32_t> output_modalities;
  ValueMap kwargs;

  CurrentForwardConductorMetadata() = default;
  CurrentForwardConductorMetadata(Walk walk, bool prefill) : graph_walk(walk), is_prefill(prefill) {}
  explicit CurrentForwardConductorMetadata(const cairn_conductor_metadata& metadata)
      : graph_walk(metadata.graph_walk), is_prefill(metadata.is_prefill != 0) {
    const auto inputs = elements(metadata.input_modalities), outputs = elements(metadata.output_modalities);
    input_modalities.assign(inputs.begin(), inputs.end());
    output_modalities.assign(outputs.begin(), outputs.end());
    kwargs = ValueMap(metadata.kwargs);
  }
  cairn_conductor_metadata in(const Arena& arena) const {
    cairn_conductor_metadata metadata{};
    metadata.struct_size = CAIRN_SIZE(cairn_conductor_metadata, kwargs);
    metadata.graph_walk = graph_walk;
    metadata.is_prefill = is_prefill ? 1 : 0;
    metadata.input_modalities = arena.span<cairn_u32_span>(input_modalities);
    metadata.output_modalities = arena.span<cairn_u32_span>(output_modalities);
    metadata.kwargs = kwargs.in(arena);
    return metadata;
  }
};

// A set of walks that advances on its own.
struct PartitionDefinition {
  std::string name;
  std::set<Walk> graph_walks;
  std::optional<Walk> initial_walk;
  std::vector<std::uint32_t> producer_partitions;
};

// The conductor's state of one partition of one request, for plugins and tests that follow transitions.
struct PartitionState {
  std::uint32_t partition = 0;
  CurrentForwardConductorMetadata metadata;
  std::int64_t fwd_pass_number = 0;
  std::uint64_t random_seed = 0;
  bool is_done = false;
  std::set<std::string> completed_worker_graph_ids;
  std::set<std::string> current_worker_graph_ids;
  std::map<std::string, int> wg_rank_completions;
  std::int64_t num_output_tokens = 0;
  std::vector<Signal> curr_forward_outputs;
  PublishedInfos resource_publish_info;
};

// One incoming streaming connection of a partition.
struct StreamingConnectionState {
  std::uint32_t from_partition = 0;
  std::uint32_t to_partition = 0;
  Signal edge = 0;
  std::int64_t token_count = 0;
  std::int64_t consumed_count = 0;
  bool producer_done = false;

  StreamingConnectionState() = default;
  explicit StreamingConnectionState(const cairn_connection_state& state)
      : from_partition(state.from_partition),
        to_partition(state.to_partition),
        edge(state.signal),
        token_count(state.token_count),
        consumed_count(state.consumed_count),
        producer_done(state.producer_done != 0) {}
};

}  // namespace cairn
