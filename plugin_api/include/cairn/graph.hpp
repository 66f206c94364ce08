// The building blocks of a walk (GraphNode, Sequential, Parallel, Loop, GraphEdge), as values that nest.
#pragma once

#include <cstdint>
#include <vector>

#include "cairn/abi.h"

namespace cairn {

// One named output routed to one destination.
struct GraphEdge {
  std::uint32_t signal = 0;
  std::uint32_t next_node = CAIRN_EMPTY_DESTINATION;
  std::uint32_t flags = 0;
  std::uint32_t output_modality = CAIRN_NONE;
  std::uint32_t target_partition = CAIRN_NONE;
  std::uint32_t chunk_output = CAIRN_CHUNK_CONCAT;
  std::int32_t shard_dim = -1;

  // To another node, or back to the same one inside a loop.
  static GraphEdge to_node(std::uint32_t signal, std::uint32_t node) { return {.signal = signal, .next_node = node}; }
  static GraphEdge to_client(std::uint32_t signal, std::uint32_t modality) {
    return {.signal = signal, .next_node = CAIRN_EMIT_TO_CLIENT, .output_modality = modality};
  }
  // To a node of another partition, through a stream buffer.
  static GraphEdge to_stream(std::uint32_t signal, std::uint32_t node, std::uint32_t partition) {
    return {.signal = signal, .next_node = node, .flags = CAIRN_EDGE_STREAMING, .target_partition = partition};
  }
  // Also kept for the conductor: get_partition_forward_pass_args receives it.
  GraphEdge persist() const { return with(CAIRN_EDGE_PERSIST); }
  // Its elements count as output tokens.
  GraphEdge new_token() const { return with(CAIRN_EDGE_NEW_TOKEN); }
  GraphEdge chunks(std::uint32_t policy) const {
    GraphEdge edge = *this;
    edge.chunk_output = policy;
    return edge;
  }

 private:
  GraphEdge with(std::uint32_t flag) const {
    GraphEdge edge = *this;
    edge.flags |= flag;
    return edge;
  }

 public:
  cairn_graph_edge abi() const {
    return {signal, next_node, flags, output_modality, target_partition, chunk_output, shard_dim, 0};
  }
};

// A section of a walk. Made by the four functions below.
struct Section {
  std::uint32_t kind = CAIRN_SECTION_NODE;
  std::uint32_t node = 0;
  std::uint32_t loop = CAIRN_NONE;
  std::uint32_t flags = 0;
  std::int64_t max_iters = 0;
  std::vector<std::uint32_t> inputs;
  std::vector<GraphEdge> outputs;
  std::vector<GraphEdge> accumulated_outputs;
  std::vector<Section> children;
};

// A node that runs when every signal in `inputs` is there.
inline Section GraphNode(std::uint32_t node, std::vector<std::uint32_t> inputs, std::vector<GraphEdge> outputs,
                         std::uint32_t flags = 0) {
  Section section;
  section.node = node;
  section.flags = flags;
  section.inputs = std::move(inputs);
  section.outputs = std::move(outputs);
  return section;
}
inline Section Sequential(std::vector<Section> children) {
  Section section;
  section.kind = CAIRN_SECTION_SEQUENTIAL;
  section.children = std::move(children);
  return section;
}
inline Section Parallel(std::vector<Section> children) {
  Section section;
  section.kind = CAIRN_SECTION_PARALLEL;
  section.children = std::move(children);
  return section;
}
// Repeats its body until check_stop names `loop`, or for max_iters iterations. loop CAIRN_NONE: it cannot be stopped.
inline Section Loop(std::uint32_t loop, std::int64_t max_iters, Section body, std::vector<GraphEdge> outputs = {},
                    std::vector<GraphEdge> accumulated_outputs = {}) {
  Section section;
  section.kind = CAIRN_SECTION_LOOP;
  section.loop = loop;
  section.max_iters = max_iters;
  section.outputs = std::move(outputs);
  section.accumulated_outputs = std::move(accumulated_outputs);
  section.children.push_back(std::move(body));
  return section;
}

}  // namespace cairn
