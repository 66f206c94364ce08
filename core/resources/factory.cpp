#include "core/resources/factory.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/resources/attention/attention.hpp"
#include "core/resources/position/position.hpp"
#include "core/resources/sampler/sampler.hpp"

namespace cairn {
namespace {

constexpr std::int64_t kCpuPageSize = 64;
constexpr double kFreeMemoryShare = 0.5;  // of what the system calls available; weights and activations need the rest

const char* kind_name(std::uint32_t kind) {
  static constexpr std::array<const char*, 14> kNames = {"unknown",          "kv",
                                                         "ring_kv",          "bounded_kv",
                                                         "attention",        "cross_attention",
                                                         "ragged_attention", "position",
                                                         "sampler",          "diffusion_sampler",
                                                         "recurrent_state",  "linear_attention",
                                                         "slot_state",       "spec_acceptance"};
  return kind < kNames.size() ? kNames[kind] : kNames[0];
}

// Bytes the system could give without swapping, or 0 when it does not say.
std::int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::int64_t kib = 0;
  std::string unit;
  while (file >> name >> kib >> unit) {
    if (name == "MemAvailable:") return kib << 10U;
  }
  return 0;
}

// The overrides of one resource, with every key checked against what its kind takes.
class Overrides {
 public:
  Overrides(const Value& all, const std::string& key, std::span<const std::string_view> known) : key_(key) {
    const Value* found = all.find(key);
    if (found == nullptr || found->is_none()) return;
    map_ = found->get_if<ValueMap>();
    if (map_ == nullptr) throw InvalidArgument("resources." + key + " must be a map of settings.", "resources");
    for (const auto& [name, value] : *map_) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        std::string text = "resources." + key + "." + name + " is not a setting of this resource; known are";
        for (const std::string_view candidate : known) text.append(" ").append(candidate);
        throw InvalidArgument(text + ".", "resources");
      }
    }
  }

  std::int64_t integer(std::string_view name, std::int64_t fallback, std::int64_t minimum) const {
    const Value* value = find(name);
    if (value == nullptr) return fallback;
    const auto* number = value->get_if<std::int64_t>();
    if (number == nullptr || *number < minimum) {
      throw InvalidArgument("resources." + key_ + "." + std::string(name) + " must be an integer of at least " +
                                std::to_string(minimum) + ".",
                            "resources");
    }
    return *number;
  }
  bool boolean(std::string_view name, bool fallback) const {
    const Value* value = find(name);
    if (value == nullptr) return fallback;
    const auto* flag = value->get_if<bool>();
    if (flag == nullptr) {
      throw InvalidArgument("resources." + key_ + "." + std::string(name) + " must be true or false.", "resources");
    }
    return *flag;
  }
  std::string text(std::string_view name, std::string fallback) const {
    const Value* value = find(name);
    if (value == nullptr) return fallback;
    const auto* string = value->get_if<std::string>();
    if (string == nullptr) {
      throw InvalidArgument("resources." + key_ + "." + std::string(name) + " must be a string.", "resources");
    }
    return *string;
  }

 private:
  const Value* find(std::string_view name) const {
    if (map_ == nullptr) return nullptr;
    for (const auto& [key, value] : *map_) {
      if (key == name) return &value;
    }
    return nullptr;
  }
  std::string key_;
  const ValueMap* map_ = nullptr;
};

kernels::KvType kv_type(const std::string& name, const std::string& key) {
  if (name == "float16") return kernels::KvType::kF16;
  if (name == "bfloat16") return kernels::KvType::kBF16;
  if (name == "float32") return kernels::KvType::kF32;
  throw InvalidArgument("resources." + key + ".dtype is '" + name + "'; it must be float16, bfloat16 or float32.",
                        "resources");
}

std::string kv_type_of(cairn_dtype dtype) {
  if (dtype.code == CAIRN_DTYPE_BFLOAT) return "bfloat16";
  if (dtype.code == CAIRN_DTYPE_FLOAT && dtype.bits == 32) return "float32";
  return "float16";
}

std::unique_ptr<KvPool> build_kv(const ModelSpec& spec, const ResourceSpec& resource, std::uint32_t index,
                                 const Value& overrides, const ResourceOptions& options, std::size_t pool_count) {
  static constexpr std::array<std::string_view, 7> kKeys = {
      "max_num_pages", "page_size", "max_seq_len", "dtype", "cpu_offload_pages", "prefix_cache", "prefix_cache_salt"};
  const Overrides set(overrides, resource.key, kKeys);
  const auto& given = resource.config.as<cairn_kv_config>();
  if (set.integer("cpu_offload_pages", given.cpu_offload_pages, 0) != 0) {
    throw NotSupported("resources." + resource.key +
                       ".cpu_offload_pages: this host does not offload pages yet; set it "
                       "to 0.");
  }
  if (set.boolean("prefix_cache", false)) {
    throw NotSupported("resources." + resource.key + ".prefix_cache: this host has no prefix cache yet; leave it out.");
  }
  KvPoolConfig config;
  config.num_layers = given.num_layers;
  config.layout.kv_heads = given.num_kv_heads;
  config.layout.head_dim = given.head_dim;
  config.layout.page_size = set.integer("page_size", given.page_size > 0 ? given.page_size : kCpuPageSize, 16);
  if (config.layout.page_size > 256 || config.layout.page_size % 16 != 0) {
    throw InvalidArgument("resources." + resource.key + ".page_size is " + std::to_string(config.layout.page_size) +
                              "; it must be a multiple of 16 between 16 and 256.",
                          "resources");
  }
  config.layout.type = kv_type(set.text("dtype", kv_type_of(given.dtype)), resource.key);
  config.num_labels = static_cast<std::uint32_t>(spec.labels.size());
  config.max_requests = options.max_slots;
  config.max_seq_len = set.integer("max_seq_len", options.max_seq_len, 1);
  const auto page_bytes = static_cast<std::int64_t>(kernels::kv_page_bytes(config.layout)) * config.num_layers;
  std::int64_t pages = set.integer("max_num_pages", given.max_num_pages, 0);
  if (pages == 0) {
    const std::int64_t per_request = (config.max_seq_len + config.layout.page_size - 1) / config.layout.page_size;
    std::int64_t bytes = options.kv_cache_bytes;
    if (bytes == 0) bytes = static_cast<std::int64_t>(static_cast<double>(available_memory()) * kFreeMemoryShare);
    bytes /= static_cast<std::int64_t>(pool_count);
    pages = std::min(per_request * std::int64_t{options.max_requests}, bytes / page_bytes);
    pages = std::min<std::int64_t>(pages, std::int64_t{1} << 24U);
  }
  if (pages < 1) {
    throw ResourceExhausted("KV pool '" + resource.key + "': one page of " + std::to_string(page_bytes) +
                            " bytes does not fit the memory set aside for it; free memory or raise kv_cache_bytes.");
  }
  config.num_pages = pages + 1;  // and the sink
  log(LogLevel::kInfo, "resources",
      "KV pool '" + resource.key + "': " + std::to_string(pages) + " pages of " +
          std::to_string(config.layout.page_size) + " tokens, " + std::to_string(pages * page_bytes >> 20U) +
          " MiB when full");
  return std::make_unique<KvPool>(resource.key, index, config);
}

kernels::RopeConfig rope_config(const cairn_position_config& given, std::int64_t max_seq_len) {
  kernels::RopeConfig rope;
  rope.style = given.interleave != 0 ? kernels::RopeStyle::kInterleaved : kernels::RopeStyle::kNeox;
  rope.head_dim = given.head_dim;
  rope.rotary_dim = given.rotary_dim;
  if (given.rope_theta != 0) rope.theta = given.rope_theta;
  if (given.rope_scale != 0) rope.factor = given.rope_scale;
  switch (given.scaling) {
    case CAIRN_ROPE_SCALING_LINEAR:
      rope.scaling = kernels::RopeScaling::kLinear;
      break;
    case CAIRN_ROPE_SCALING_DYNAMIC:
      rope.scaling = kernels::RopeScaling::kDynamicNtk;
      break;
    case CAIRN_ROPE_SCALING_YARN:
      rope.scaling = kernels::RopeScaling::kYarn;
      break;
    case CAIRN_ROPE_SCALING_LLAMA3:
      rope.scaling = kernels::RopeScaling::kLlama3;
      break;
    case CAIRN_ROPE_SCALING_LONGROPE:
      rope.scaling = kernels::RopeScaling::kLongRope;
      break;
    default:
      rope.scaling = kernels::RopeScaling::kNone;
      break;
  }
  rope.original_max_position = given.original_max_position != 0 ? given.original_max_position : given.old_context_len;
  rope.max_position = given.max_position != 0 ? given.max_position : max_seq_len;
  if (given.low_freq_factor != 0) rope.low_freq_factor = given.low_freq_factor;
  if (given.high_freq_factor != 0) rope.high_freq_factor = given.high_freq_factor;
  if (given.beta_fast != 0) rope.beta_fast = given.beta_fast;
  if (given.beta_slow != 0) rope.beta_slow = given.beta_slow;
  rope.mscale = given.mscale;
  rope.mscale_all_dim = given.mscale_all_dim;
  rope.attention_factor = given.attention_factor;
  const std::int64_t half = (given.rotary_dim != 0 ? given.rotary_dim : given.head_dim) / 2;
  if (given.short_factor != nullptr) rope.short_factors.assign(given.short_factor, given.short_factor + half);
  if (given.long_factor != nullptr) rope.long_factors.assign(given.long_factor, given.long_factor + half);
  if (given.freq_factors != nullptr) rope.freq_factors.assign(given.freq_factors, given.freq_factors + half);
  return rope;
}

std::unique_ptr<Position> build_position(const ResourceSpec& resource, std::uint32_t index, KvPool& kv) {
  const auto& given = resource.config.as<cairn_position_config>();
  PositionConfig config;
  config.rope = given.backend == CAIRN_POSITION_ROPE;
  config.block = given.scheme == CAIRN_POSITION_BLOCK;
  config.block_step = given.block_step != 0 ? given.block_step : 1;
  if (config.rope) config.rope_config = rope_config(given, kv.config().max_seq_len);
  try {
    return std::make_unique<Position>(resource.key, index, config, kv);
  } catch (const std::invalid_argument& error) {
    throw InvalidArgument("Position resource '" + resource.key + "': " + error.what());
  }
}

KvPool& kv_of(ModelResources& built, std::uint32_t index, const ResourceSpec& user) {
  auto* kv = dynamic_cast<KvPool*>(built.all[index].get());
  if (kv == nullptr) throw InvalidArgument("Resource '" + user.key + "' needs a KV pool, and its kv_cache is none.");
  return *kv;
}

// The pool a sampler's rows are laid out by: of the same node.
KvPool& kv_for_nodes(ModelResources& built, const ModelSpec& spec, const ResourceSpec& sampler) {
  for (std::size_t i = 0; i < spec.resources.size(); ++i) {
    const ResourceSpec& candidate = spec.resources[i];
    if (candidate.kind != CAIRN_RESOURCE_KV) continue;
    for (const std::uint32_t node : sampler.nodes) {
      if (std::find(candidate.nodes.begin(), candidate.nodes.end(), node) != candidate.nodes.end()) {
        return kv_of(built, static_cast<std::uint32_t>(i), sampler);
      }
    }
  }
  throw NotSupported("Sampler '" + sampler.key +
                     "': a sampler on a node without a KV pool is not driven by this host "
                     "yet.");
}

std::unique_ptr<Resource> build_one(ModelResources& built, const ModelSpec& spec, std::uint32_t index,
                                    const Value& overrides, const ResourceOptions& options, std::size_t pool_count) {
  const ResourceSpec& resource = spec.resources[index];
  switch (resource.kind) {
    case CAIRN_RESOURCE_KV:
      return build_kv(spec, resource, index, overrides, options, pool_count);
    case CAIRN_RESOURCE_ATTENTION: {
      const Overrides none(overrides, resource.key, {});
      const auto& given = resource.config.as<cairn_attention_config>();
      KvPool& kv = kv_of(built, given.kv_cache, resource);
      const auto& kv_given = spec.resources[given.kv_cache].config.as<cairn_kv_config>();
      AttentionConfig config;
      config.num_qo_heads = kv_given.num_qo_heads != 0 ? kv_given.num_qo_heads : kv_given.num_kv_heads;
      if (config.num_qo_heads % kv_given.num_kv_heads != 0) {
        throw InvalidArgument("Attention resource '" + resource.key + "': " + std::to_string(config.num_qo_heads) +
                              " query heads are no multiple of " + std::to_string(kv_given.num_kv_heads) +
                              " key/value heads.");
      }
      config.sm_scale = static_cast<float>(
          given.sm_scale != 0 ? given.sm_scale : 1.0 / std::sqrt(static_cast<double>(kv_given.head_dim)));
      config.logit_soft_cap = static_cast<float>(given.logit_soft_cap);
      config.window = kv_given.window;
      return std::make_unique<Attention>(resource.key, index, config, kv);
    }
    case CAIRN_RESOURCE_POSITION: {
      const Overrides none(overrides, resource.key, {});
      return build_position(resource, index,
                            kv_of(built, resource.config.as<cairn_position_config>().kv_cache, resource));
    }
    case CAIRN_RESOURCE_SAMPLER: {
      const Overrides none(overrides, resource.key, {});
      const auto& given = resource.config.as<cairn_sampler_config>();
      SamplerConfig config;
      config.vocab_size = given.vocab_size;
      config.repetition_penalty = given.no_repetition_penalty == 0;
      config.min_p = given.enable_min_p != 0;
      config.max_requests = options.max_slots;
      if (config.vocab_size <= 0) {
        throw InvalidArgument("Sampler '" + resource.key + "': vocab_size must be given.");
      }
      return std::make_unique<Sampler>(resource.key, index, config, kv_for_nodes(built, spec, resource));
    }
    default:
      throw NotSupported("Resource '" + resource.key + "' is of kind " + kind_name(resource.kind) +
                         ", which this host does not drive yet.");
  }
}

}  // namespace

ModelResources build_resources(const ModelSpec& spec, const Value& overrides, const ResourceOptions& options) {
  if (!overrides.is_none()) {
    const auto* map = overrides.get_if<ValueMap>();
    if (map == nullptr) throw InvalidArgument("resources must be a map of resource keys.", "resources");
    for (const auto& [key, value] : *map) {
      if (spec.find_resource(key) != CAIRN_NONE) continue;
      std::string text = "resources." + key + ": the model has no such resource; it has";
      for (const ResourceSpec& resource : spec.resources) text += " " + resource.key;
      throw InvalidArgument(text + ".", "resources");
    }
  }
  const auto pool_count = static_cast<std::size_t>(
      std::count_if(spec.resources.begin(), spec.resources.end(),
                    [](const ResourceSpec& resource) { return resource.kind == CAIRN_RESOURCE_KV; }));
  ModelResources built;
  built.all.resize(spec.resources.size());
  // KV pools first: samplers are laid out by one without naming it as a dependency.
  for (const bool pools : {true, false}) {
    for (const std::uint32_t index : spec.resource_order) {
      if ((spec.resources[index].kind == CAIRN_RESOURCE_KV) != pools) continue;
      built.all[index] = build_one(built, spec, index, overrides, options, pool_count);
    }
  }
  for (const bool pools : {true, false}) {
    for (const std::uint32_t index : spec.resource_order) {
      if ((spec.resources[index].kind == CAIRN_RESOURCE_KV) == pools) built.order.push_back(built.all[index].get());
    }
  }
  return built;
}

}  // namespace cairn
