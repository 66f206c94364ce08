// ModelDescription: builds the cairn_model_desc of a model. Names are given once and answered with their index.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/graph.hpp"
#include "cairn/request_info.hpp"

namespace cairn {

class ModelDescription {
 public:
  ModelDescription(std::string_view name, std::string_view architecture) {
    desc_.struct_size = CAIRN_SIZE(cairn_model_desc, end_tokens);
    desc_.name = keep(name);
    desc_.architecture = keep(architecture);
  }
  ModelDescription(const ModelDescription&) = delete;
  ModelDescription& operator=(const ModelDescription&) = delete;

  // Plain fields (text, max_seq_len, vocab_size, ...) are set on the struct itself; spans are filled by the functions
  // below.
  cairn_model_desc& fields() noexcept { return desc_; }

  std::uint32_t input_modality(std::string_view name) { return add(input_modalities_, name); }
  std::uint32_t output_modality(std::string_view name) { return add(output_modalities_, name); }
  std::uint32_t signal(std::string_view name) { return add(signals_, name); }
  std::uint32_t label(std::string_view name) { return add(labels_, name); }
  std::uint32_t loop(std::string_view name) { return add(loops_, name); }
  std::uint32_t region(std::string_view name) { return add(regions_, name); }
  std::uint32_t node(std::string_view name, std::uint32_t flags = 0) {
    nodes_.push_back({keep(name), flags, 0});
    return last(nodes_);
  }
  std::uint32_t walk(std::string_view name, const Section& root) {
    std::vector<cairn_graph_section> sections;
    const std::uint32_t root_index = flatten(root, sections);
    walks_.push_back({keep(name), keep_array<cairn_graph_section_span>(std::move(sections)), root_index, 0});
    return last(walks_);
  }
  // A step name under which rows of several walks of one node may share a step. Its index follows the walks', so every
  // walk must be there already.
  std::uint32_t combined_walk(std::string_view name, std::uint32_t node, std::vector<std::uint32_t> walks) {
    combined_walks_.push_back({keep(name), node, 0, keep_array<cairn_u32_span>(std::move(walks))});
    return static_cast<std::uint32_t>(walks_.size()) + last(combined_walks_);
  }
  std::uint32_t partition(const PartitionDefinition& partition) {
    partitions_.push_back({keep(partition.name),
                           keep_array<cairn_u32_span>(
                               std::vector<std::uint32_t>(partition.graph_walks.begin(), partition.graph_walks.end())),
                           partition.initial_walk.value_or(CAIRN_NONE), 0,
                           keep_array<cairn_u32_span>(partition.producer_partitions)});
    return last(partitions_);
  }
  std::uint32_t connection(const cairn_connection_desc& connection) {
    connections_.push_back(connection);
    return last(connections_);
  }
  // `config` is one of abi.h's resource configs; it is copied and its struct_size set. Pointers inside it must outlive
  // the model.
  template <class Config>
  std::uint32_t resource(std::string_view key, std::uint32_t kind, std::vector<std::uint32_t> nodes, Config config,
                         std::vector<std::uint32_t> depends_on = {}) {
    static_assert(std::is_trivially_copyable_v<Config>);
    config.struct_size = sizeof(Config);
    auto kept = std::make_shared<Config>(config);
    resources_.push_back({keep(key), kind, 0, keep_array<cairn_u32_span>(std::move(nodes)), kept.get(),
                          keep_array<cairn_u32_span>(std::move(depends_on))});
    kept_.push_back(std::move(kept));
    return last(resources_);
  }
  void end_tokens(std::vector<std::int32_t> ids) { desc_.end_tokens = keep_array<cairn_i32_span>(std::move(ids)); }

  // The finished description; valid while this object lives and nothing is added.
  const cairn_model_desc* get() {
    desc_.input_modalities = span_of<cairn_str_span>(input_modalities_.data(), input_modalities_.size());
    desc_.output_modalities = span_of<cairn_str_span>(output_modalities_.data(), output_modalities_.size());
    desc_.signals = span_of<cairn_str_span>(signals_.data(), signals_.size());
    desc_.labels = span_of<cairn_str_span>(labels_.data(), labels_.size());
    desc_.loops = span_of<cairn_str_span>(loops_.data(), loops_.size());
    desc_.regions = span_of<cairn_str_span>(regions_.data(), regions_.size());
    desc_.nodes = span_of<cairn_node_desc_span>(nodes_.data(), nodes_.size());
    desc_.walks = span_of<cairn_walk_desc_span>(walks_.data(), walks_.size());
    desc_.combined_walks = span_of<cairn_combined_walk_desc_span>(combined_walks_.data(), combined_walks_.size());
    desc_.partitions = span_of<cairn_partition_definition_span>(partitions_.data(), partitions_.size());
    desc_.connections = span_of<cairn_connection_desc_span>(connections_.data(), connections_.size());
    desc_.resources = span_of<cairn_resource_spec_span>(resources_.data(), resources_.size());
    return &desc_;
  }

 private:
  cairn_str keep(std::string_view value) { return str(strings_.emplace_back(value)); }
  template <class T>
  static std::uint32_t last(const std::vector<T>& array) {
    return static_cast<std::uint32_t>(array.size() - 1);
  }
  std::uint32_t add(std::vector<cairn_str>& names, std::string_view name) {
    names.push_back(keep(name));
    return last(names);
  }
  template <class Span, class T>
  Span keep_array(std::vector<T> values) {
    auto kept = std::make_shared<std::vector<T>>(std::move(values));
    const Span span = span_of<Span>(kept->data(), kept->size());
    kept_.push_back(std::move(kept));
    return span;
  }
  cairn_graph_edge_span keep_edges(const std::vector<GraphEdge>& edges) {
    std::vector<cairn_graph_edge> made;
    for (const GraphEdge& edge : edges) made.push_back(edge.abi());
    return keep_array<cairn_graph_edge_span>(std::move(made));
  }
  // Children before their parent; returns the index of `section`.
  std::uint32_t flatten(const Section& section, std::vector<cairn_graph_section>& sections) {
    std::vector<std::uint32_t> children;
    for (const Section& child : section.children) children.push_back(flatten(child, sections));
    sections.push_back({section.kind, section.node, keep_array<cairn_u32_span>(section.inputs),
                        keep_edges(section.outputs), keep_edges(section.accumulated_outputs),
                        keep_array<cairn_u32_span>(std::move(children)), section.loop, section.flags,
                        section.max_iters});
    return last(sections);
  }

  cairn_model_desc desc_{};
  std::deque<std::string> strings_;          // pointers into it stay valid
  std::vector<std::shared_ptr<void>> kept_;  // arrays and configs the description points to
  std::vector<cairn_str> input_modalities_, output_modalities_, signals_, labels_, loops_, regions_;
  std::vector<cairn_node_desc> nodes_;
  std::vector<cairn_walk_desc> walks_;
  std::vector<cairn_combined_walk_desc> combined_walks_;
  std::vector<cairn_partition_definition> partitions_;
  std::vector<cairn_connection_desc> connections_;
  std::vector<cairn_resource_spec> resources_;
};

}  // namespace cairn
