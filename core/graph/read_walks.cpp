// Reads and checks the walks of a model description: sections form one tree, every index is in range, every edge leads
// to somebody who waits for it. What needs the order of execution (loop-backs, loop outputs) is checked by WalkPlan.
#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/graph/spec_reader.hpp"
#include "core/tensor/abi_struct.hpp"

namespace cairn {
namespace {

class WalkReader {
 public:
  WalkReader(const ModelSpec& spec, std::size_t partition_count, WalkSpec& walk)
      : spec_(spec), partition_count_(partition_count), walk_(walk), where_("Walk \"" + walk.name + "\"") {}

  void read(const cairn_walk_desc& desc) {
    check_span(desc.sections, kMaxSections, where_ + ": sections");
    if (desc.sections.count == 0) throw InvalidArgument(where_ + " has no sections; it needs at least one node.");
    for (std::uint64_t i = 0; i < desc.sections.count; ++i) {
      walk_.sections.push_back(read_section(span_element(desc.sections, i), i));
    }
    check_index(desc.root, walk_.sections.size(), where_ + ": root", "sections in this walk");
    walk_.root = desc.root;
    walk_.flags = desc.flags;
    check_tree();
    for (const SectionSpec& section : walk_.sections) check_edges(section);
  }

 private:
  std::string describe(const SectionSpec& section, std::uint64_t index) const {
    if (section.kind == CAIRN_SECTION_NODE && section.node < spec_.nodes.size()) {
      return where_ + ", node \"" + spec_.nodes[section.node].name + "\"";
    }
    return where_ + ", section " + std::to_string(index);
  }
  std::string describe(const SectionSpec& section) const {
    return describe(section, static_cast<std::uint64_t>(&section - walk_.sections.data()));
  }

  SectionSpec read_section(const cairn_graph_section& desc, std::uint64_t index) {
    SectionSpec section;
    section.kind = desc.kind;
    section.flags = desc.flags;
    const std::string place = where_ + ", section " + std::to_string(index);
    if (desc.kind == CAIRN_SECTION_NODE) check_index(desc.node, spec_.nodes.size(), place + ": node", "nodes");
    section.node = desc.kind == CAIRN_SECTION_NODE ? desc.node : CAIRN_NONE;
    const std::string who = describe(section, index);
    switch (desc.kind) {
      case CAIRN_SECTION_NODE:
        read_node(desc, who, section);
        break;
      case CAIRN_SECTION_SEQUENTIAL:
      case CAIRN_SECTION_PARALLEL:
        section.children = read_children(desc, who);
        if (section.children.empty()) throw InvalidArgument(who + ": children is empty; a group needs a section.");
        refuse_edges(desc, who);
        break;
      case CAIRN_SECTION_LOOP:
        read_loop(desc, who, section);
        break;
      default:
        throw InvalidArgument(place + ": kind is " + std::to_string(desc.kind) +
                              "; known kinds are node (0), sequential (1), parallel (2) and loop (3).");
    }
    return section;
  }

  void read_node(const cairn_graph_section& desc, const std::string& who, SectionSpec& section) {
    const std::uint64_t bit = std::uint64_t{1} << desc.node;
    if ((walk_.nodes & bit) != 0) {
      throw InvalidArgument(who + " is in this walk twice; a walk has at most one section per node.");
    }
    walk_.nodes |= bit;
    if (desc.children.count != 0) throw InvalidArgument(who + ": children is not empty; a node has none.");
    if (desc.accumulated_outputs.count != 0) {
      throw InvalidArgument(who + ": accumulated_outputs is not empty; only loops accumulate.");
    }
    section.inputs = read_indices(desc.inputs, spec_.signals.size(), who + ": inputs", "signals");
    section.outputs = read_edges(desc.outputs, who + ": outputs");
  }

  void read_loop(const cairn_graph_section& desc, const std::string& who, SectionSpec& section) {
    section.children = read_children(desc, who);
    if (section.children.size() != 1) {
      throw InvalidArgument(who + ": children has " + std::to_string(section.children.size()) +
                            " entries; a loop has exactly one, its body.");
    }
    if (desc.inputs.count != 0) throw InvalidArgument(who + ": inputs is not empty; only nodes wait for signals.");
    if (desc.max_iters <= 0) {
      throw InvalidArgument(who + ": max_iters is " + std::to_string(desc.max_iters) +
                            "; a loop runs at least one iteration.");
    }
    section.max_iters = desc.max_iters;
    section.loop = desc.loop;
    if (desc.loop != CAIRN_NONE) {
      check_index(desc.loop, spec_.loops.size(), who + ": loop", "loops");
      if ((loops_ >> desc.loop & 1) != 0) {
        throw InvalidArgument(who + ": loop \"" + spec_.loops[desc.loop] + "\" is in this walk twice.");
      }
      loops_ |= std::uint64_t{1} << desc.loop;
    }
    section.outputs = read_edges(desc.outputs, who + ": outputs");
    section.accumulated_outputs = read_edges(desc.accumulated_outputs, who + ": accumulated_outputs");
    for (const EdgeSpec& edge : section.accumulated_outputs) {
      const auto same = [&](const EdgeSpec& other) { return other.signal == edge.signal; };
      if (std::any_of(section.outputs.begin(), section.outputs.end(), same)) {
        throw InvalidArgument(
            who + ": signal \"" + spec_.signals[edge.signal] +
            "\" is in outputs and in accumulated_outputs; a loop keeps either the last value or all.");
      }
    }
  }

  std::vector<std::uint32_t> read_children(const cairn_graph_section& desc, const std::string& who) const {
    check_span(desc.children, kMaxSections, who + ": children");
    return {desc.children.data, desc.children.data + desc.children.count};
  }

  void refuse_edges(const cairn_graph_section& desc, const std::string& who) const {
    if (desc.inputs.count != 0 || desc.outputs.count != 0 || desc.accumulated_outputs.count != 0) {
      throw InvalidArgument(who + " is a group and has inputs or outputs; they belong to its nodes and loops.");
    }
  }

  std::vector<EdgeSpec> read_edges(const cairn_graph_edge_span& edges, const std::string& what) const {
    check_span(edges, kMaxEdges, what);
    std::vector<EdgeSpec> result;
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    for (std::uint64_t i = 0; i < edges.count; ++i) {
      const std::string which = what + "[" + std::to_string(i) + "]";
      result.push_back(read_edge(span_element(edges, i), which));
      if (!seen.emplace(result.back().signal, result.back().next_node).second) {
        throw InvalidArgument(which + ": signal \"" + spec_.signals[result.back().signal] +
                              "\" has two edges to the same destination.");
      }
    }
    return result;
  }

  EdgeSpec read_edge(const cairn_graph_edge& desc, const std::string& which) const {
    EdgeSpec edge;
    check_index(desc.signal, spec_.signals.size(), which + ": signal", "signals");
    edge.signal = desc.signal;
    edge.next_node = desc.next_node;
    edge.flags = desc.flags;
    edge.shard_dim = desc.shard_dim;
    if (desc.chunk_output <= CAIRN_CHUNK_FINAL) edge.chunk_output = desc.chunk_output;
    if (edge.to_node()) check_index(edge.next_node, spec_.nodes.size(), which + ": next_node", "nodes");
    if (edge.next_node == CAIRN_EMIT_TO_CLIENT) {
      if (desc.output_modality == CAIRN_NONE) {
        throw InvalidArgument(which + ": output_modality is missing; an edge to the client must name one.");
      }
      check_index(desc.output_modality, spec_.output_modalities.size(), which + ": output_modality",
                  "output modalities");
      edge.output_modality = desc.output_modality;
    }
    if (edge.streams()) {
      if (desc.target_partition == CAIRN_NONE) {
        throw InvalidArgument(which + ": target_partition is missing; a streaming edge must name one.");
      }
      check_index(desc.target_partition, partition_count_, which + ": target_partition", "partitions");
      if (!edge.to_node()) throw InvalidArgument(which + ": next_node of a streaming edge must be a node.");
      edge.target_partition = desc.target_partition;
    }
    return edge;
  }

  // Every section is reached exactly once from the root, at most kMaxSectionDepth deep.
  void check_tree() const {
    std::vector<std::uint32_t> depth(walk_.sections.size(), 0);  // 0: not reached
    std::vector<std::uint32_t> open{walk_.root};
    depth[walk_.root] = 1;
    while (!open.empty()) {
      const std::uint32_t index = open.back();
      open.pop_back();
      const SectionSpec& section = walk_.sections[index];
      if (depth[index] > kMaxSectionDepth) {
        throw InvalidArgument(describe(section) + " is nested more than " + std::to_string(kMaxSectionDepth) +
                              " sections deep.");
      }
      for (const std::uint32_t child : section.children) {
        check_index(child, walk_.sections.size(), describe(section) + ": children", "sections in this walk");
        if (depth[child] != 0) {
          throw InvalidArgument(where_ + ": section " + std::to_string(child) +
                                " is reached twice (two parents, or a section inside itself).");
        }
        depth[child] = depth[index] + 1;
        open.push_back(child);
      }
    }
    for (std::size_t i = 0; i < depth.size(); ++i) {
      if (depth[i] == 0) {
        throw InvalidArgument(where_ + ": section " + std::to_string(i) + " is not reached from the root.");
      }
    }
  }

  void check_edges(const SectionSpec& section) const {
    for (const auto* edges : {&section.outputs, &section.accumulated_outputs}) {
      for (const EdgeSpec& edge : *edges) {
        if (!edge.to_node() || edge.streams()) continue;
        check_destination(edge, describe(section));
      }
    }
  }

  void check_destination(const EdgeSpec& edge, const std::string& who) const {
    const std::string& signal = spec_.signals[edge.signal];
    const std::string& node = spec_.nodes[edge.next_node].name;
    for (const SectionSpec& target : walk_.sections) {
      if (target.kind != CAIRN_SECTION_NODE || target.node != edge.next_node) continue;
      if (std::find(target.inputs.begin(), target.inputs.end(), edge.signal) != target.inputs.end()) return;
      throw InvalidArgument(who + ": the edge for signal \"" + signal + "\" leads to node \"" + node +
                            "\", which does not wait for it; add the signal to that node's inputs.");
    }
    throw InvalidArgument(who + ": the edge for signal \"" + signal + "\" leads to node \"" + node +
                          "\", which is not in this walk.");
  }

  const ModelSpec& spec_;
  std::size_t partition_count_;
  WalkSpec& walk_;
  std::string where_;
  std::uint64_t loops_ = 0;  // model loops seen in this walk
};

}  // namespace

void read_walks(const cairn_model_desc& desc, std::size_t partition_count, ModelSpec& spec) {
  check_span(desc.walks, kMaxWalks, "walks");
  check_span(desc.combined_walks, kMaxWalks, "combined_walks");
  if (desc.walks.count == 0) throw InvalidArgument("The model has no walks; it needs at least one.");
  std::vector<std::string> names;
  std::uint64_t walked = 0;
  for (std::uint64_t i = 0; i < desc.walks.count; ++i) {
    const cairn_walk_desc walk_desc = span_element(desc.walks, i);
    const std::string which = "walks[" + std::to_string(i) + "].name";
    WalkSpec walk;
    walk.name = read_name(walk_desc.name, which);
    check_new_name(names, walk.name, which);
    WalkReader(spec, partition_count, walk).read(walk_desc);
    walked |= walk.nodes;
    spec.walks.push_back(std::move(walk));
  }
  for (std::size_t node = 0; node < spec.nodes.size(); ++node) {
    if ((walked >> node & 1) == 0) {
      throw InvalidArgument("Node \"" + spec.nodes[node].name + "\" is in no walk; remove it or add it to one.");
    }
  }
  for (std::uint64_t i = 0; i < desc.combined_walks.count; ++i) {
    const cairn_combined_walk_desc combined = span_element(desc.combined_walks, i);
    const std::string which = "combined_walks[" + std::to_string(i) + "]";
    CombinedWalkSpec result;
    result.name = read_name(combined.name, which + ".name");
    check_new_name(names, result.name, which + ".name");
    const std::string where = "Combined walk \"" + result.name + "\"";
    check_index(combined.node, spec.nodes.size(), where + ": node", "nodes");
    result.node = combined.node;
    result.walks = read_indices(combined.walks, spec.walks.size(), where + ": walks", "walks");
    if (result.walks.empty()) throw InvalidArgument(where + ": walks is empty; it must name the walks it combines.");
    for (const std::uint32_t walk : result.walks) {
      if ((spec.walks[walk].nodes >> result.node & 1) == 0) {
        throw InvalidArgument(where + ": walk \"" + spec.walks[walk].name + "\" does not run node \"" +
                              spec.nodes[result.node].name + "\".");
      }
    }
    spec.combined_walks.push_back(std::move(result));
  }
}

}  // namespace cairn
