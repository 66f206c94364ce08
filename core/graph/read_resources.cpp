// Reads and checks the resource specs of a model description and puts them in the order they are built in.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.hpp"
#include "core/graph/spec_reader.hpp"
#include "core/tensor/abi_struct.hpp"
#include "core/tensor/tensor.hpp"

namespace cairn {
namespace {

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 31;  // of any size in a config
constexpr std::size_t kMaxBlocks = 256;
constexpr std::size_t kMaxBlockDims = 8;

std::string quoted(const std::string& key) {
  return "Resource \"" + key + "\"";
}

}  // namespace

// Reads one resource's config. Not in the unnamed namespace because ResourceConfig befriends it.
class ResourceReader {
 public:
  ResourceReader(const ModelSpec& spec, const cairn_model_desc& desc, ResourceSpec& resource)
      : spec_(spec), desc_(desc), resource_(resource), where_(quoted(resource.key)) {}

  void read_config(const void* config) {
    if (config == nullptr) throw InvalidArgument(where_ + ": config is missing.");
    switch (resource_.kind) {
      case CAIRN_RESOURCE_KV:
        return read_kv(copy<cairn_kv_config>(config));
      case CAIRN_RESOURCE_RING_KV:
        return read_ring(copy<cairn_ring_kv_config>(config));
      case CAIRN_RESOURCE_BOUNDED_KV:
        return read_bounded(copy<cairn_bounded_kv_config>(config));
      case CAIRN_RESOURCE_ATTENTION:
        return read_attention(copy<cairn_attention_config>(config));
      case CAIRN_RESOURCE_CROSS_ATTENTION:
        return read_cross_attention(copy<cairn_cross_attention_config>(config));
      case CAIRN_RESOURCE_RAGGED_ATTENTION:
        return read_ragged_attention(copy<cairn_ragged_attention_config>(config));
      case CAIRN_RESOURCE_POSITION:
        return read_position(copy<cairn_position_config>(config));
      case CAIRN_RESOURCE_SAMPLER:
        return read_sampler(copy<cairn_sampler_config>(config));
      case CAIRN_RESOURCE_DIFFUSION_SAMPLER:
        return read_diffusion_sampler(copy<cairn_diffusion_sampler_config>(config));
      case CAIRN_RESOURCE_RECURRENT_STATE:
        return read_recurrent_state(copy<cairn_recurrent_state_config>(config));
      case CAIRN_RESOURCE_LINEAR_ATTENTION:
        return read_linear_attention(copy<cairn_linear_attention_config>(config));
      case CAIRN_RESOURCE_SLOT_STATE:
        return read_slot_state(copy<cairn_slot_state_config>(config));
      case CAIRN_RESOURCE_SPEC_ACCEPTANCE:
        return read_spec_acceptance(copy<cairn_spec_acceptance_config>(config));
      default:
        throw NotSupported(where_ + ": kind " + std::to_string(resource_.kind) +
                           " is not known to this host; a newer host may have it.");
    }
  }

 private:
  template <class T>
  static T copy(const void* config) {
    return copy_sized(static_cast<const T*>(config));
  }

  // `field` in [low, kMaxExtent].
  void extent(std::int64_t value, const char* field, std::int64_t low) const {
    if (value < low || value > kMaxExtent) {
      throw InvalidArgument(where_ + ": " + field + " is " + std::to_string(value) + "; it must be from " +
                            std::to_string(low) + " to " + std::to_string(kMaxExtent) + ".");
    }
  }
  void finite(double value, const char* field, double low) const {
    if (!std::isfinite(value) || value < low) {
      throw InvalidArgument(where_ + ": " + field + " is " + std::to_string(value) + "; it must be a number from " +
                            std::to_string(low) + ".");
    }
  }
  void known(std::uint32_t value, std::uint32_t last, const char* field) const {
    if (value > last) {
      throw NotSupported(where_ + ": " + field + " " + std::to_string(value) +
                         " is not known to this host; a newer host may have it.");
    }
  }

  // Adds the resource that a config names to the dependencies; it must be of one of `kinds`.
  void depend(std::uint32_t other, const char* field, std::initializer_list<std::uint32_t> kinds) {
    check_index(other, static_cast<std::size_t>(desc_.resources.count), where_ + ": " + field, "resources");
    const std::uint32_t kind = span_element(desc_.resources, other).kind;
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      throw InvalidArgument(where_ + ": " + field + " is resource " + std::to_string(other) + ", whose kind " +
                            std::to_string(kind) + " does not fit there.");
    }
    resource_.depends_on.push_back(other);
  }

  // Copies `count` elements into memory of the config and answers with their new address.
  template <class T>
  T* keep(const T* source, std::size_t count) {
    if (count == 0) return nullptr;
    auto memory = std::make_unique<std::byte[]>(count * sizeof(T));
    std::memcpy(memory.get(), source, count * sizeof(T));
    T* kept = reinterpret_cast<T*>(memory.get());
    resource_.config.memory_.push_back(std::move(memory));
    return kept;
  }
  cairn_str keep_text(cairn_str text, const char* field) {
    if (text.size == 0) return {nullptr, 0};
    const std::string name = read_name(text, where_ + ": " + field);
    return {keep(name.data(), name.size()), name.size()};
  }
  template <class T>
  void store(const T& config) {
    T copy = config;
    copy.struct_size = sizeof(T);
    resource_.config.config_ = copy;
  }

  void read_kv(cairn_kv_config config) {
    extent(config.num_layers, "num_layers", 1);
    extent(config.num_kv_heads, "num_kv_heads", 1);
    extent(config.head_dim, "head_dim", 1);
    extent(config.max_seq_len, "max_seq_len", 0);
    extent(config.max_num_pages, "max_num_pages", 0);
    extent(config.page_size, "page_size", 0);
    extent(config.cpu_offload_pages, "cpu_offload_pages", 0);
    extent(config.window, "window", 0);
    if (config.num_qo_heads == 0) config.num_qo_heads = config.num_kv_heads;
    extent(config.num_qo_heads, "num_qo_heads", 1);
    if (config.num_qo_heads % config.num_kv_heads != 0) {
      throw InvalidArgument(where_ + ": num_qo_heads is " + std::to_string(config.num_qo_heads) +
                            ", which is no multiple of num_kv_heads, " + std::to_string(config.num_kv_heads) + ".");
    }
    known(config.layout, CAIRN_KV_LAYOUT_HND, "layout");
    if (config.leader != CAIRN_NONE) check_index(config.leader, spec_.nodes.size(), where_ + ": leader", "nodes");
    config.prefix_cache_salt = keep_text(config.prefix_cache_salt, "prefix_cache_salt");
    store(config);
  }

  void read_ring(const cairn_ring_kv_config& config) {
    extent(config.num_layers, "num_layers", 1);
    extent(config.num_kv_heads, "num_kv_heads", 1);
    extent(config.head_dim, "head_dim", 1);
    extent(config.ring_tokens, "ring_tokens", 1);
    extent(config.num_sessions, "num_sessions", 1);
    extent(config.worlds, "worlds", 0);
    store(config);
  }

  void read_bounded(const cairn_bounded_kv_config& config) {
    extent(config.num_layers, "num_layers", 1);
    extent(config.max_slots, "max_slots", 1);
    extent(config.rows_per_request, "rows_per_request", 0);
    extent(config.num_heads, "num_heads", 1);
    extent(config.slot_tokens, "slot_tokens", 1);
    extent(config.head_dim, "head_dim", 1);
    extent(config.max_source_len, "max_source_len", 0);
    extent(config.sink_capacity, "sink_capacity", 0);
    store(config);
  }

  void read_attention(const cairn_attention_config& config) {
    depend(config.kv_cache, "kv_cache", {CAIRN_RESOURCE_KV, CAIRN_RESOURCE_RING_KV, CAIRN_RESOURCE_BOUNDED_KV});
    known(config.backend, CAIRN_ATTENTION_MLA, "backend");
    finite(config.sm_scale, "sm_scale", 0.0);
    finite(config.logit_soft_cap, "logit_soft_cap", 0.0);
    store(config);
  }

  void read_cross_attention(const cairn_cross_attention_config& config) {
    depend(config.kv_cache, "kv_cache", {CAIRN_RESOURCE_KV, CAIRN_RESOURCE_BOUNDED_KV});
    if (config.query_kv_cache != CAIRN_NONE) depend(config.query_kv_cache, "query_kv_cache", {CAIRN_RESOURCE_KV});
    check_index(config.context_label, spec_.labels.size(), where_ + ": context_label", "labels");
    known(config.backend, CAIRN_ATTENTION_MLA, "backend");
    store(config);
  }

  void read_ragged_attention(const cairn_ragged_attention_config& config) {
    extent(config.num_qo_heads, "num_qo_heads", 1);
    extent(config.num_kv_heads, "num_kv_heads", 1);
    extent(config.head_dim, "head_dim", 1);
    extent(config.max_segments_per_request, "max_segments_per_request", 0);
    extent(config.max_tokens_per_request, "max_tokens_per_request", 0);
    finite(config.sm_scale, "sm_scale", 0.0);
    store(config);
  }

  void read_position(cairn_position_config config) {
    depend(config.kv_cache, "kv_cache", {CAIRN_RESOURCE_KV, CAIRN_RESOURCE_RING_KV, CAIRN_RESOURCE_BOUNDED_KV});
    known(config.backend, CAIRN_POSITION_COUNTER, "backend");
    known(config.scheme, CAIRN_POSITION_BLOCK, "scheme");
    known(config.scaling, CAIRN_ROPE_SCALING_LONGROPE, "scaling");
    extent(config.block_step, "block_step", 0);
    extent(config.head_dim, "head_dim", config.backend == CAIRN_POSITION_ROPE ? 2 : 0);
    if (config.rotary_dim == 0) config.rotary_dim = config.head_dim;
    extent(config.rotary_dim, "rotary_dim", 0);
    if (config.rotary_dim > config.head_dim || config.rotary_dim % 2 != 0) {
      throw InvalidArgument(where_ + ": rotary_dim is " + std::to_string(config.rotary_dim) +
                            "; it must be even and at most head_dim, " + std::to_string(config.head_dim) + ".");
    }
    extent(config.old_context_len, "old_context_len", 0);
    extent(config.original_max_position, "original_max_position", 0);
    extent(config.max_position, "max_position", 0);
    finite(config.rope_scale, "rope_scale", 0.0);
    finite(config.rope_theta, "rope_theta", 0.0);
    finite(config.low_freq_factor, "low_freq_factor", 0.0);
    finite(config.high_freq_factor, "high_freq_factor", 0.0);
    finite(config.attention_factor, "attention_factor", 0.0);
    finite(config.beta_fast, "beta_fast", 0.0);
    finite(config.beta_slow, "beta_slow", 0.0);
    finite(config.mscale, "mscale", 0.0);
    finite(config.mscale_all_dim, "mscale_all_dim", 0.0);
    if (config.scaling == CAIRN_ROPE_SCALING_LLAMA3) {
      const bool all = config.low_freq_factor > 0 && config.high_freq_factor > 0 && config.old_context_len > 0;
      const bool none = config.low_freq_factor == 0 && config.high_freq_factor == 0 && config.old_context_len == 0;
      if (!all && !none) {
        throw InvalidArgument(where_ +
                              ": low_freq_factor, high_freq_factor and old_context_len go together; give all " +
                              "three or none.");
      }
    }
    if (config.scaling == CAIRN_ROPE_SCALING_LONGROPE &&
        (config.short_factor == nullptr || config.long_factor == nullptr)) {
      throw InvalidArgument(where_ + ": longrope scaling needs short_factor and long_factor.");
    }
    config.short_factor = keep_factors(config.short_factor, config.rotary_dim, "short_factor");
    config.long_factor = keep_factors(config.long_factor, config.rotary_dim, "long_factor");
    config.freq_factors = keep_factors(config.freq_factors, config.rotary_dim, "freq_factors");
    store(config);
  }

  const float* keep_factors(const float* factors, std::int64_t rotary_dim, const char* field) {
    if (factors == nullptr) return nullptr;
    const auto count = static_cast<std::size_t>(rotary_dim / 2);
    for (std::size_t i = 0; i < count; ++i) {
      if (!std::isfinite(factors[i]) || factors[i] <= 0.0F) {
        throw InvalidArgument(where_ + ": " + field + "[" + std::to_string(i) + "] is " + std::to_string(factors[i]) +
                              "; factors are positive numbers.");
      }
    }
    return keep(factors, count);
  }

  void read_sampler(const cairn_sampler_config& config) {
    extent(config.vocab_size, "vocab_size", 0);
    if (config.vocab_size == 0 && config.no_repetition_penalty == 0) {
      throw InvalidArgument(where_ + ": vocab_size is 0, which is allowed only with no_repetition_penalty.");
    }
    store(config);
  }

  void read_diffusion_sampler(const cairn_diffusion_sampler_config& config) {
    extent(config.vocab_size, "vocab_size", 1);
    extent(config.num_rows, "num_rows", 0);
    extent(config.forbidden_class, "forbidden_class", -1);
    store(config);
  }

  void read_recurrent_state(cairn_recurrent_state_config config) {
    extent(config.num_layers, "num_layers", 1);
    extent(config.max_slots, "max_slots", 1);
    config.blocks = keep_blocks(config.blocks, "blocks");
    store(config);
  }

  void read_linear_attention(const cairn_linear_attention_config& config) {
    depend(config.recurrent_state, "recurrent_state", {CAIRN_RESOURCE_RECURRENT_STATE});
    known(config.variant, CAIRN_LINEAR_ATTENTION_MAMBA2, "variant");
    store(config);
  }

  void read_slot_state(cairn_slot_state_config config) {
    extent(config.max_slots, "max_slots", 1);
    config.tensors = keep_blocks(config.tensors, "tensors");
    store(config);
  }

  void read_spec_acceptance(const cairn_spec_acceptance_config& config) {
    extent(config.num_speculative, "num_speculative", 1);
    store(config);
  }

  cairn_state_block_span keep_blocks(const cairn_state_block_span& blocks, const char* field) {
    const std::string what = where_ + ": " + field;
    check_span(blocks, kMaxBlocks, what);
    if (blocks.count == 0) throw InvalidArgument(what + " is empty; name at least one.");
    std::vector<cairn_state_block> kept;
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < blocks.count; ++i) {
      cairn_state_block block = span_element(blocks, i);
      const std::string which = what + "[" + std::to_string(i) + "]";
      const std::string name = read_name(block.name, which + ".name");
      check_new_name(names, name, which + ".name");
      block.name = {keep(name.data(), name.size()), name.size()};
      if (element_size(block.dtype) == 0) throw InvalidArgument(which + ".dtype is not a plain numeric type.");
      if (block.shape.count > kMaxBlockDims || (block.shape.count > 0 && block.shape.data == nullptr)) {
        throw InvalidArgument(which + ".shape has " + std::to_string(block.shape.count) + " dimensions; at most " +
                              std::to_string(kMaxBlockDims) + " are supported.");
      }
      for (std::uint64_t dim = 0; dim < block.shape.count; ++dim) extent(block.shape.data[dim], "a block's extent", 1);
      block.shape.data = keep(block.shape.data, static_cast<std::size_t>(block.shape.count));
      kept.push_back(block);
    }
    return {keep(kept.data(), kept.size()), kept.size(), sizeof(cairn_state_block)};
  }

  const ModelSpec& spec_;
  const cairn_model_desc& desc_;
  ResourceSpec& resource_;
  std::string where_;
};

namespace {

// Kahn's algorithm in layers; keys are sorted inside a layer, so that the order does not depend on the plugin's.
std::vector<std::uint32_t> dependency_order(const std::vector<ResourceSpec>& resources) {
  std::vector<std::size_t> missing(resources.size());
  std::vector<std::uint32_t> layer;
  for (std::uint32_t i = 0; i < resources.size(); ++i) {
    missing[i] = resources[i].depends_on.size();
    if (missing[i] == 0) layer.push_back(i);
  }
  std::vector<std::uint32_t> order;
  while (!layer.empty()) {
    std::sort(layer.begin(), layer.end(),
              [&](std::uint32_t a, std::uint32_t b) { return resources[a].key < resources[b].key; });
    std::vector<std::uint32_t> next;
    for (const std::uint32_t built : layer) {
      order.push_back(built);
      for (std::uint32_t i = 0; i < resources.size(); ++i) {
        const auto& depends = resources[i].depends_on;
        if (std::binary_search(depends.begin(), depends.end(), built) && --missing[i] == 0) next.push_back(i);
      }
    }
    layer = std::move(next);
  }
  if (order.size() == resources.size()) return order;
  std::string cycle;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    if (missing[i] > 0) cycle += (cycle.empty() ? "\"" : ", \"") + resources[i].key + "\"";
  }
  throw InvalidArgument("Resources " + cycle + " depend on each other in a circle; remove one of the dependencies.");
}

}  // namespace

void read_resources(const cairn_model_desc& desc, ModelSpec& spec) {
  check_span(desc.resources, kMaxNames, "resources");
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < desc.resources.count; ++i) {
    const cairn_resource_spec source = span_element(desc.resources, i);
    const std::string which = "resources[" + std::to_string(i) + "].resource_key";
    ResourceSpec resource;
    resource.key = read_name(source.resource_key, which);
    check_new_name(keys, resource.key, which);
    resource.kind = source.kind;
    const std::string where = quoted(resource.key);
    resource.nodes = read_indices(source.nodes, spec.nodes.size(), where + ": nodes", "nodes");
    if (resource.nodes.empty()) throw InvalidArgument(where + ": nodes is empty; a resource serves at least one node.");
    resource.depends_on = read_indices(source.depends_on, static_cast<std::size_t>(desc.resources.count),
                                       where + ": depends_on", "resources");
    ResourceReader(spec, desc, resource).read_config(source.config);
    auto& depends = resource.depends_on;
    std::sort(depends.begin(), depends.end());
    depends.erase(std::unique(depends.begin(), depends.end()), depends.end());
    if (std::binary_search(depends.begin(), depends.end(), static_cast<std::uint32_t>(i))) {
      throw InvalidArgument(where + " depends on itself.");
    }
    spec.resources.push_back(std::move(resource));
  }
  spec.resource_order = dependency_order(spec.resources);
}

}  // namespace cairn
