// Builds cairn_model_desc structs for tests: owns every array, so that a test can say a graph in a few lines.
// Used by the tests of graph, conductor and contract.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "cairn/abi.h"

namespace cairn::testing {

using Indices = std::vector<std::uint32_t>;

struct Edge {
  std::uint32_t signal;
  std::uint32_t to;
  std::uint32_t flags = 0;
};
using Edges = std::vector<Edge>;
inline constexpr std::uint32_t kEmit = CAIRN_EMIT_TO_CLIENT;
inline constexpr std::uint32_t kNowhere = CAIRN_EMPTY_DESTINATION;

// One walk. Sections are made bottom-up; the last one made is the root. Addresses stay put (deques).
class WalkBuilder {
 public:
  explicit WalkBuilder(std::string name) : name_(std::move(name)) {}

  std::uint32_t node(std::uint32_t node, Indices inputs, Edges outputs) {
    cairn_graph_section section{};
    section.kind = CAIRN_SECTION_NODE;
    section.node = node;
    section.inputs = keep(std::move(inputs));
    section.outputs = keep(outputs);
    section.loop = CAIRN_NONE;
    return add(section);
  }
  std::uint32_t sequential(Indices children) { return group(CAIRN_SECTION_SEQUENTIAL, std::move(children)); }
  std::uint32_t parallel(Indices children) { return group(CAIRN_SECTION_PARALLEL, std::move(children)); }
  std::uint32_t loop(std::uint32_t body, std::int64_t max_iters, std::uint32_t model_loop = CAIRN_NONE,
                     Edges outputs = {}, Edges accumulated = {}) {
    cairn_graph_section section{};
    section.kind = CAIRN_SECTION_LOOP;
    section.children = keep(Indices{body});
    section.outputs = keep(outputs);
    section.accumulated_outputs = keep(accumulated);
    section.loop = model_loop;
    section.max_iters = max_iters;
    return add(section);
  }

  cairn_graph_section& section(std::uint32_t index) { return sections_[index]; }
  void set_root(std::uint32_t root) { root_ = root; }
  cairn_walk_desc desc() const {
    return {{name_.data(), name_.size()}, {sections_.data(), sections_.size(), 0}, root_, 0};
  }

 private:
  std::uint32_t group(std::uint32_t kind, Indices children) {
    cairn_graph_section section{};
    section.kind = kind;
    section.children = keep(std::move(children));
    section.loop = CAIRN_NONE;
    return add(section);
  }
  std::uint32_t add(const cairn_graph_section& section) {
    sections_.push_back(section);
    return root_ = static_cast<std::uint32_t>(sections_.size()) - 1;
  }
  cairn_u32_span keep(Indices indices) {
    indices_.push_back(std::move(indices));
    return {indices_.back().data(), indices_.back().size()};
  }
  cairn_graph_edge_span keep(const Edges& edges) {
    auto& kept = edges_.emplace_back();
    for (const Edge& edge : edges) {
      kept.push_back({edge.signal, edge.to, edge.flags, edge.to == kEmit ? 0 : CAIRN_NONE, CAIRN_NONE, 0, -1, 0});
    }
    return {kept.data(), kept.size(), 0};
  }

  std::string name_;
  std::vector<cairn_graph_section> sections_;
  std::deque<Indices> indices_;
  std::deque<std::vector<cairn_graph_edge>> edges_;
  std::uint32_t root_ = 0;
};

// A whole model: named signals, nodes and loops, one output modality "text".
class ModelBuilder {
 public:
  ModelBuilder(std::vector<std::string> signals, std::vector<std::string> nodes, std::vector<std::string> loops = {})
      : signals_(std::move(signals)), nodes_(std::move(nodes)), loops_(std::move(loops)) {}

  WalkBuilder& walk(std::string name) { return walks_.emplace_back(std::move(name)); }

  // Valid until the builder changes or goes.
  cairn_model_desc desc() {
    texts_.clear();
    cairn_model_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name = {"test", 4};
    desc.input_modalities = names({"text"});
    desc.output_modalities = names({"text"});
    desc.signals = names(signals_);
    desc.loops = names(loops_);
    node_descs_.clear();
    for (const std::string& node : nodes_) node_descs_.push_back({{node.data(), node.size()}, 0, 0});
    desc.nodes = {node_descs_.data(), node_descs_.size(), 0};
    walk_descs_.clear();
    for (const WalkBuilder& one : walks_) walk_descs_.push_back(one.desc());
    desc.walks = {walk_descs_.data(), walk_descs_.size(), 0};
    desc.combined_walks = {combined.data(), combined.size(), 0};
    desc.partitions = {partitions.data(), partitions.size(), 0};
    desc.connections = {connections.data(), connections.size(), 0};
    desc.resources = {resources.data(), resources.size(), 0};
    desc.max_seq_len = 128;
    desc.vocab_size = 256;
    return desc;
  }

  std::vector<cairn_combined_walk_desc> combined;
  std::vector<cairn_partition_definition> partitions;
  std::vector<cairn_connection_desc> connections;
  std::vector<cairn_resource_spec> resources;

 private:
  cairn_str_span names(const std::vector<std::string>& source) {
    std::deque<std::string>& kept = texts_.emplace_back(source.begin(), source.end());
    auto& list = name_lists_.emplace_back();
    for (const std::string& name : kept) list.push_back({name.data(), name.size()});
    return {list.data(), list.size(), 0};
  }

  std::vector<std::string> signals_;
  std::vector<std::string> nodes_;
  std::vector<std::string> loops_;
  std::deque<WalkBuilder> walks_;
  std::deque<std::deque<std::string>> texts_;
  std::deque<std::vector<cairn_str>> name_lists_;
  std::vector<cairn_node_desc> node_descs_;
  std::vector<cairn_walk_desc> walk_descs_;
};

inline cairn_str text(const char* literal) {
  return {literal, std::char_traits<char>::length(literal)};
}

}  // namespace cairn::testing
