// The host's own, fully checked copy of a plugin's model description: nothing in it points into the plugin, every index
// is in range and every rule of abi.h section 6 holds. Made once when a model opens; read by everything after that.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cairn/abi.h"

namespace cairn {

// Masks over nodes, signals and loops are 64-bit words (abi.h: cairn_stop_check), so 64 is the most of each.
inline constexpr std::size_t kMaxNodes = 64;
inline constexpr std::size_t kMaxSignals = 64;
inline constexpr std::size_t kMaxLoops = 64;
// Bounds on everything else a description can hold; a description beyond them is refused.
inline constexpr std::size_t kMaxWalks = 256;
inline constexpr std::size_t kMaxSections = 1024;  // of one walk
inline constexpr std::size_t kMaxSectionDepth = 64;
inline constexpr std::size_t kMaxEdges = 256;   // of one section
inline constexpr std::size_t kMaxNames = 1024;  // modalities, labels, regions, resources, partitions, connections
inline constexpr std::size_t kMaxNameBytes = 256;

struct EdgeSpec {
  std::uint32_t signal = 0;
  std::uint32_t next_node = CAIRN_EMPTY_DESTINATION;  // node, CAIRN_EMIT_TO_CLIENT or CAIRN_EMPTY_DESTINATION
  std::uint32_t flags = 0;                            // CAIRN_EDGE_*
  std::uint32_t output_modality = CAIRN_NONE;
  std::uint32_t target_partition = CAIRN_NONE;
  std::uint32_t chunk_output = CAIRN_CHUNK_CONCAT;
  std::int32_t shard_dim = -1;

  bool persists() const { return (flags & CAIRN_EDGE_PERSIST) != 0; }
  bool counts_tokens() const { return (flags & CAIRN_EDGE_NEW_TOKEN) != 0; }
  bool streams() const { return (flags & CAIRN_EDGE_STREAMING) != 0; }
  bool to_node() const { return next_node < CAIRN_EMIT_TO_CLIENT; }
};

struct SectionSpec {
  std::uint32_t kind = CAIRN_SECTION_NODE;  // CAIRN_SECTION_*
  std::uint32_t node = CAIRN_NONE;
  std::vector<std::uint32_t> inputs;
  std::vector<EdgeSpec> outputs;
  std::vector<EdgeSpec> accumulated_outputs;
  std::vector<std::uint32_t> children;
  std::uint32_t loop = CAIRN_NONE;
  std::uint32_t flags = 0;
  std::int64_t max_iters = 0;
};

struct WalkSpec {
  std::string name;
  std::vector<SectionSpec> sections;
  std::uint32_t root = 0;
  std::uint32_t flags = 0;
  std::uint64_t nodes = 0;  // bit n: node n is in this walk (exactly once)
};

struct NodeSpec {
  std::string name;
  std::uint32_t flags = 0;  // CAIRN_NODE_*
};

// Rows of `walks` at `node` may share a step under this walk; its index is walks.size() + its position.
struct CombinedWalkSpec {
  std::string name;
  std::uint32_t node = 0;
  std::vector<std::uint32_t> walks;
};

struct PartitionSpec {
  std::string name;
  std::vector<std::uint32_t> graph_walks;
  std::uint32_t initial_walk = CAIRN_NONE;
  std::vector<std::uint32_t> producer_partitions;
};

struct ConnectionSpec {
  std::uint32_t from_partition = 0;
  std::uint32_t to_partition = 0;
  std::uint32_t signal = 0;
  std::uint32_t policy = CAIRN_CHUNK_POLICY_FIXED;
  std::int64_t chunk = 0;
  std::int64_t second = 0;
  bool continue_after_done = false;
};

// A resource's config struct, copied; whatever its pointers and spans named is owned here too. Move-only.
class ResourceConfig {
 public:
  using Storage = std::variant<std::monostate, cairn_kv_config, cairn_ring_kv_config, cairn_bounded_kv_config,
                               cairn_attention_config, cairn_cross_attention_config, cairn_ragged_attention_config,
                               cairn_position_config, cairn_sampler_config, cairn_diffusion_sampler_config,
                               cairn_recurrent_state_config, cairn_linear_attention_config, cairn_slot_state_config,
                               cairn_spec_acceptance_config>;

  // The struct of the resource's kind. Asking for another one is a bug and throws std::bad_variant_access.
  template <class T>
  const T& as() const {
    return std::get<T>(config_);
  }

 private:
  friend class ResourceReader;
  Storage config_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

struct ResourceSpec {
  std::string key;
  std::uint32_t kind = 0;  // CAIRN_RESOURCE_*
  std::vector<std::uint32_t> nodes;
  std::vector<std::uint32_t> depends_on;  // with those the config names; sorted, no duplicates
  ResourceConfig config;
};

struct ModelSpec {
  std::string name;
  std::string architecture;
  std::uint32_t text = CAIRN_TEXT_NONE;
  std::uint32_t flags = 0;
  std::vector<std::string> input_modalities;
  std::vector<std::string> output_modalities;
  std::vector<std::string> signals;
  std::vector<std::string> labels;  // at least one
  std::vector<std::string> loops;
  std::vector<std::string> regions;
  std::vector<NodeSpec> nodes;
  std::vector<WalkSpec> walks;
  std::vector<CombinedWalkSpec> combined_walks;
  std::vector<PartitionSpec> partitions;  // at least one
  std::vector<ConnectionSpec> connections;
  std::vector<ResourceSpec> resources;
  std::vector<std::uint32_t> resource_order;  // dependencies first; by key inside a layer
  std::int64_t max_seq_len = 0;
  std::int64_t max_output_tokens = 0;  // 0: what the context leaves
  std::int64_t vocab_size = 0;
  cairn_dtype autocast_dtype{};
  std::int64_t output_sample_rate = 24000;
  std::int64_t output_audio_channels = 1;
  std::vector<std::int32_t> end_tokens;

  // Throws InvalidArgument, whose text names the walk, node or resource and the field, or NotSupported for what a
  // description may say and this host does not drive yet (streaming, several partitions).
  static ModelSpec from_desc(const cairn_model_desc& desc);

  // Walks and combined walks together.
  std::size_t walk_count() const { return walks.size() + combined_walks.size(); }
  // Names for messages; "walk 7" for an index that does not exist.
  std::string walk_name(std::uint32_t walk) const;
  std::string node_name(std::uint32_t node) const;
  std::string signal_name(std::uint32_t signal) const;
  std::string partition_name(std::uint32_t partition) const;
  // Index of a name, or CAIRN_NONE.
  std::uint32_t find_node(std::string_view node_name) const;
  std::uint32_t find_walk(std::string_view walk_name) const;
  std::uint32_t find_resource(std::string_view key) const;
  // The section of `node` in `walk`, or nullptr when the node is not in it.
  const SectionSpec* node_section(std::uint32_t walk, std::uint32_t node) const;
  bool waits_for(std::uint32_t walk, std::uint32_t node, std::uint32_t signal) const;
};

}  // namespace cairn
