// ModelSpec: reading of everything but walks and resources, and look-ups.
#include "core/graph/model_spec.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/graph/spec_reader.hpp"
#include "core/graph/walk_plan.hpp"
#include "core/tensor/abi_struct.hpp"

namespace cairn {
namespace {

constexpr std::size_t kMaxEndTokens = 4096;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 31;

std::string optional_name(cairn_str text, const std::string& what) {
  return text.size == 0 ? std::string{} : read_name(text, what);
}

std::int64_t checked_count(std::int64_t value, const char* field) {
  if (value < 0 || value > kMaxCount) {
    throw InvalidArgument(std::string(field) + " is " + std::to_string(value) + "; it must be from 0 to " +
                          std::to_string(kMaxCount) + ".");
  }
  return value;
}

void read_nodes(const cairn_model_desc& desc, ModelSpec& spec) {
  check_span(desc.nodes, kMaxNodes, "nodes");
  if (desc.nodes.count == 0) throw InvalidArgument("The model has no nodes; it needs at least one.");
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < desc.nodes.count; ++i) {
    const cairn_node_desc node = span_element(desc.nodes, i);
    const std::string which = "nodes[" + std::to_string(i) + "].name";
    std::string name = read_name(node.name, which);
    check_new_name(names, name, which);
    spec.nodes.push_back({std::move(name), node.flags});
  }
}

PartitionSpec read_partition(const cairn_partition_definition& desc, std::size_t partition_count,
                             const std::string& which, const ModelSpec& spec) {
  PartitionSpec partition;
  partition.name = read_name(desc.name, which + ".name");
  const std::string where = "Partition \"" + partition.name + "\"";
  partition.graph_walks = read_indices(desc.graph_walks, spec.walks.size(), where + ": graph_walks", "walks");
  if (partition.graph_walks.empty()) {
    throw InvalidArgument(where + ": graph_walks is empty; a partition has at least one walk.");
  }
  partition.initial_walk = desc.initial_walk;
  if (desc.initial_walk != CAIRN_NONE) {
    check_index(desc.initial_walk, spec.walks.size(), where + ": initial_walk", "walks");
    const auto& walks = partition.graph_walks;
    if (std::find(walks.begin(), walks.end(), desc.initial_walk) == walks.end()) {
      throw InvalidArgument(where + ": initial_walk \"" + spec.walks[desc.initial_walk].name +
                            "\" is not among its graph_walks.");
    }
  }
  partition.producer_partitions =
      read_indices(desc.producer_partitions, partition_count, where + ": producer_partitions", "partitions");
  return partition;
}

void read_partitions(const cairn_model_desc& desc, ModelSpec& spec) {
  if (desc.partitions.count == 0) {
    PartitionSpec all;
    all.name = "default";
    for (std::uint32_t walk = 0; walk < spec.walks.size(); ++walk) all.graph_walks.push_back(walk);
    spec.partitions.push_back(std::move(all));
    return;
  }
  std::vector<std::string> names;
  std::vector<bool> owned(spec.walks.size(), false);
  for (std::uint64_t i = 0; i < desc.partitions.count; ++i) {
    const std::string which = "partitions[" + std::to_string(i) + "]";
    PartitionSpec partition =
        read_partition(span_element(desc.partitions, i), static_cast<std::size_t>(desc.partitions.count), which, spec);
    check_new_name(names, partition.name, which + ".name");
    for (const std::uint32_t walk : partition.graph_walks) {
      if (owned[walk]) {
        throw InvalidArgument("Walk \"" + spec.walks[walk].name + "\" is in two partitions; it belongs to one.");
      }
      owned[walk] = true;
    }
    spec.partitions.push_back(std::move(partition));
  }
  for (std::size_t walk = 0; walk < owned.size(); ++walk) {
    if (!owned[walk]) throw InvalidArgument("Walk \"" + spec.walks[walk].name + "\" is in no partition.");
  }
}

void read_connections(const cairn_model_desc& desc, ModelSpec& spec) {
  check_span(desc.connections, kMaxNames, "connections");
  for (std::uint64_t i = 0; i < desc.connections.count; ++i) {
    const cairn_connection_desc source = span_element(desc.connections, i);
    const std::string which = "connections[" + std::to_string(i) + "]";
    check_index(source.from_partition, spec.partitions.size(), which + ".from_partition", "partitions");
    check_index(source.to_partition, spec.partitions.size(), which + ".to_partition", "partitions");
    check_index(source.signal, spec.signals.size(), which + ".signal", "signals");
    if (source.policy > CAIRN_CHUNK_POLICY_LEFT_CONTEXT) {
      throw NotSupported(which + ".policy " + std::to_string(source.policy) + " is not known to this host.");
    }
    if (checked_count(source.chunk, "A connection's chunk") == 0) {
      throw InvalidArgument(which + ".chunk is 0; a chunk holds at least one item.");
    }
    checked_count(source.second, "A connection's stride or left context");
    if (source.policy == CAIRN_CHUNK_POLICY_SLIDING_WINDOW && source.second == 0) {
      throw InvalidArgument(which + ".second is 0; a sliding window advances by at least one item.");
    }
    if (source.policy == CAIRN_CHUNK_POLICY_LEFT_CONTEXT && source.second >= source.chunk) {
      throw InvalidArgument(which + ".second (left context) must be smaller than chunk.");
    }
    for (const ConnectionSpec& other : spec.connections) {
      if (other.from_partition == source.from_partition && other.to_partition == source.to_partition &&
          other.signal == source.signal) {
        throw InvalidArgument(which + " repeats the connection of signal \"" + spec.signals[source.signal] + "\".");
      }
    }
    spec.connections.push_back({source.from_partition, source.to_partition, source.signal, source.policy, source.chunk,
                                source.second, source.continue_after_done != 0});
  }
}

// A streaming edge must have a connection that carries it and lead to a node of the partition it names.
void check_streams(const ModelSpec& spec) {
  for (std::uint32_t from = 0; from < spec.partitions.size(); ++from) {
    for (const std::uint32_t walk : spec.partitions[from].graph_walks) {
      for (const SectionSpec& section : spec.walks[walk].sections) {
        for (const auto* edges : {&section.outputs, &section.accumulated_outputs}) {
          for (const EdgeSpec& edge : *edges) {
            if (!edge.streams()) continue;
            const std::string where = "Walk \"" + spec.walks[walk].name + "\": the streaming edge for signal \"" +
                                      spec.signals[edge.signal] + "\"";
            const auto carries = [&](const ConnectionSpec& connection) {
              return connection.from_partition == from && connection.to_partition == edge.target_partition &&
                     connection.signal == edge.signal;
            };
            if (std::none_of(spec.connections.begin(), spec.connections.end(), carries)) {
              throw InvalidArgument(where + " has no connection to partition \"" +
                                    spec.partitions[edge.target_partition].name + "\".");
            }
            const auto& targets = spec.partitions[edge.target_partition].graph_walks;
            const auto waits = [&](std::uint32_t target) {
              return spec.waits_for(target, edge.next_node, edge.signal);
            };
            if (std::none_of(targets.begin(), targets.end(), waits)) {
              throw InvalidArgument(where + " leads to node \"" + spec.nodes[edge.next_node].name +
                                    "\", which waits for it in no walk of partition \"" +
                                    spec.partitions[edge.target_partition].name + "\".");
            }
          }
        }
      }
    }
  }
}

}  // namespace

ModelSpec ModelSpec::from_desc(const cairn_model_desc& source) {
  const cairn_model_desc desc = copy_sized(&source);
  ModelSpec spec;
  spec.name = optional_name(desc.name, "name");
  spec.architecture = optional_name(desc.architecture, "architecture");
  if (desc.text <= CAIRN_TEXT_BYTES) spec.text = desc.text;
  spec.flags = desc.flags;
  spec.input_modalities = read_names(desc.input_modalities, kMaxNames, "input_modalities");
  spec.output_modalities = read_names(desc.output_modalities, kMaxNames, "output_modalities");
  spec.signals = read_names(desc.signals, kMaxSignals, "signals");
  spec.labels = read_names(desc.labels, kMaxNames, "labels");
  if (spec.labels.empty()) spec.labels.emplace_back("main");
  spec.loops = read_names(desc.loops, kMaxLoops, "loops");
  spec.regions = read_names(desc.regions, kMaxNames, "regions");
  read_nodes(desc, spec);
  check_span(desc.partitions, kMaxNames, "partitions");
  read_walks(desc, std::max<std::size_t>(1, static_cast<std::size_t>(desc.partitions.count)), spec);
  read_partitions(desc, spec);
  read_connections(desc, spec);
  check_streams(spec);
  read_resources(desc, spec);
  spec.max_seq_len = checked_count(desc.max_seq_len, "max_seq_len");
  spec.max_output_tokens = checked_count(desc.max_output_tokens, "max_output_tokens");
  spec.vocab_size = checked_count(desc.vocab_size, "vocab_size");
  spec.autocast_dtype = desc.autocast_dtype;
  if (const auto rate = checked_count(desc.output_sample_rate, "output_sample_rate")) spec.output_sample_rate = rate;
  if (const auto channels = checked_count(desc.output_audio_channels, "output_audio_channels")) {
    spec.output_audio_channels = channels;
  }
  check_span(desc.end_tokens, kMaxEndTokens, "end_tokens");
  for (std::uint64_t i = 0; i < desc.end_tokens.count; ++i) {
    const std::int32_t token = desc.end_tokens.data[i];
    if (token < 0 || (spec.vocab_size > 0 && token >= spec.vocab_size)) {
      throw InvalidArgument("end_tokens[" + std::to_string(i) + "] is " + std::to_string(token) +
                            ", which is no token of a vocabulary of " + std::to_string(spec.vocab_size) + ".");
    }
    spec.end_tokens.push_back(token);
  }
  if (spec.partitions.size() > 1 || !spec.connections.empty()) {
    throw NotSupported("The model has " + std::to_string(spec.partitions.size()) + " partitions and " +
                       std::to_string(spec.connections.size()) +
                       " streaming connections; this host drives models of one partition without streaming.");
  }
  for (std::uint32_t walk = 0; walk < spec.walks.size(); ++walk) WalkPlan::compile(spec, walk);
  return spec;
}

namespace {

template <class Name>
std::string name_or_index(std::size_t count, std::uint32_t index, const char* thing, Name name) {
  return index < count ? name(index) : std::string(thing) + " " + std::to_string(index);
}

}  // namespace

std::string ModelSpec::walk_name(std::uint32_t walk) const {
  return name_or_index(walk_count(), walk, "walk", [&](std::uint32_t i) {
    return i < walks.size() ? walks[i].name : combined_walks[i - walks.size()].name;
  });
}

std::string ModelSpec::node_name(std::uint32_t node) const {
  return name_or_index(nodes.size(), node, "node", [&](std::uint32_t i) { return nodes[i].name; });
}

std::string ModelSpec::signal_name(std::uint32_t signal) const {
  return name_or_index(signals.size(), signal, "signal", [&](std::uint32_t i) { return signals[i]; });
}

std::string ModelSpec::partition_name(std::uint32_t partition) const {
  return name_or_index(partitions.size(), partition, "partition", [&](std::uint32_t i) { return partitions[i].name; });
}

std::uint32_t ModelSpec::find_node(std::string_view node_name) const {
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].name == node_name) return i;
  }
  return CAIRN_NONE;
}

std::uint32_t ModelSpec::find_walk(std::string_view walk_name) const {
  for (std::uint32_t i = 0; i < walks.size(); ++i) {
    if (walks[i].name == walk_name) return i;
  }
  for (std::uint32_t i = 0; i < combined_walks.size(); ++i) {
    if (combined_walks[i].name == walk_name) return static_cast<std::uint32_t>(walks.size()) + i;
  }
  return CAIRN_NONE;
}

std::uint32_t ModelSpec::find_resource(std::string_view key) const {
  for (std::uint32_t i = 0; i < resources.size(); ++i) {
    if (resources[i].key == key) return i;
  }
  return CAIRN_NONE;
}

const SectionSpec* ModelSpec::node_section(std::uint32_t walk, std::uint32_t node) const {
  if (walk >= walks.size()) return nullptr;
  for (const SectionSpec& section : walks[walk].sections) {
    if (section.kind == CAIRN_SECTION_NODE && section.node == node) return &section;
  }
  return nullptr;
}

bool ModelSpec::waits_for(std::uint32_t walk, std::uint32_t node, std::uint32_t signal) const {
  const SectionSpec* section = node_section(walk, node);
  return section != nullptr &&
         std::find(section->inputs.begin(), section->inputs.end(), signal) != section->inputs.end();
}

}  // namespace cairn
