// RequestSampling and ResourceReqConfigs: owned copies of per-request configs.
#include "core/conductor/request_configs.hpp"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/tensor/abi_struct.hpp"

namespace cairn {
namespace {

constexpr std::size_t kMaxBias = 1U << 20;
constexpr std::size_t kMaxStopTokens = 1U << 16;
constexpr std::size_t kMaxRules = 4096;

}  // namespace

RequestSampling::RequestSampling(const SamplingParams& params, std::uint64_t seed,
                                 std::vector<std::int32_t> stop_tokens, std::int64_t min_tokens, bool ignore_eos)
    : stop_tokens_(std::move(stop_tokens)) {
  for (const auto& [token, bias] : params.logit_bias) {
    bias_tokens_.push_back(token);
    bias_values_.push_back(bias);
  }
  config_.struct_size = sizeof(config_);
  config_.temperature = static_cast<double>(params.temperature);
  config_.top_k = params.top_k;
  config_.top_p = static_cast<double>(params.top_p);
  config_.min_p = static_cast<double>(params.min_p);
  config_.repetition_penalty = static_cast<double>(params.repetition_penalty);
  config_.presence_penalty = static_cast<double>(params.presence_penalty);
  config_.frequency_penalty = static_cast<double>(params.frequency_penalty);
  config_.seed = seed;
  config_.ignore_eos = ignore_eos ? 1 : 0;
  config_.logprobs = params.logprobs + 1;  // here -1 is none and 0 the chosen token; there 0 is none
  config_.prompt_logprobs = params.prompt_logprobs + 1;
  config_.bias_tokens = bias_tokens_.data();
  config_.bias_values = bias_values_.data();
  config_.bias_count = bias_tokens_.size();
  config_.stop_tokens = {stop_tokens_.data(), stop_tokens_.size()};
  config_.min_tokens = min_tokens;
}

// Fills one ResourceReqConfigs.
class ConfigCopier {
 public:
  ConfigCopier(const ModelSpec& spec, const cairn_sampling_req_config& sampling, std::int64_t prompt_tokens,
               std::int64_t max_tokens)
      : spec_(spec), sampling_(sampling), prompt_tokens_(prompt_tokens), max_tokens_(max_tokens) {}

  void add(const cairn_resource_req_config& source) {
    if (source.resource >= spec_.resources.size()) {
      throw InternalError("The model configured resource " + std::to_string(source.resource) + ", but it has " +
                          std::to_string(spec_.resources.size()) + " resources.");
    }
    const ResourceSpec& resource = spec_.resources[source.resource];
    where_ = "The model's request config of resource \"" + resource.key + "\"";
    if (source.kind != resource.kind) {
      throw InternalError(where_ + " has kind " + std::to_string(source.kind) + "; the resource is of kind " +
                          std::to_string(resource.kind) + ".");
    }
    if (source.config == nullptr) throw InternalError(where_ + " has no config.");
    if (has(source.resource)) throw InternalError(where_ + " is given twice.");
    switch (source.kind) {
      case CAIRN_RESOURCE_SAMPLER:
        return push(source, copy(copy_sized(static_cast<const cairn_sampling_req_config*>(source.config))));
      case CAIRN_RESOURCE_KV:
        return push(source, copy(copy_sized(static_cast<const cairn_kv_req_config*>(source.config))));
      case CAIRN_RESOURCE_DIFFUSION_SAMPLER:
        return push(source, copy_sized(static_cast<const cairn_diffusion_sampling_req_config*>(source.config)));
      default:
        throw InternalError(where_ + " is given, but resources of kind " + std::to_string(source.kind) + " take none.");
    }
  }

  // Configs for the samplers and KV pools that have none yet.
  ResourceReqConfigs finish() && {
    for (std::uint32_t i = 0; i < spec_.resources.size(); ++i) {
      if (has(i)) continue;
      where_ = "The default request config of resource \"" + spec_.resources[i].key + "\"";
      const cairn_resource_req_config target{i, spec_.resources[i].kind, nullptr};
      if (target.kind == CAIRN_RESOURCE_SAMPLER) push(target, copy(sampling_));
      if (target.kind == CAIRN_RESOURCE_KV) push(target, copy(cairn_kv_req_config{}));
    }
    return std::move(result_);
  }

 private:
  bool has(std::uint32_t resource) const {
    for (const cairn_resource_req_config& config : result_.configs_) {
      if (config.resource == resource) return true;
    }
    return false;
  }

  template <class T>
  T* keep(const T* source, std::uint64_t count) {
    if (count == 0) return nullptr;
    auto memory = std::make_unique<std::byte[]>(static_cast<std::size_t>(count) * sizeof(T));
    std::memcpy(memory.get(), source, static_cast<std::size_t>(count) * sizeof(T));
    T* kept = reinterpret_cast<T*>(memory.get());
    result_.memory_.push_back(std::move(memory));
    return kept;
  }

  template <class T>
  void push(const cairn_resource_req_config& source, T config) {
    config.struct_size = sizeof(T);
    result_.configs_.push_back({source.resource, source.kind, keep(&config, 1)});
  }

  void in_range(double value, double low, double high, const char* field) const {
    if (!(value >= low && value <= high)) {
      throw InternalError(where_ + ": " + field + " is " + std::to_string(value) + "; it must be from " +
                          std::to_string(low) + " to " + std::to_string(high) + ".");
    }
  }
  void check_list(const void* data, std::uint64_t count, std::size_t limit, const char* field) const {
    if (count > limit || (count > 0 && data == nullptr)) {
      throw InternalError(where_ + ": " + field + " has " + std::to_string(count) +
                          " entries, more than its data or the limit of " + std::to_string(limit) + " allow.");
    }
  }

  cairn_sampling_req_config copy(cairn_sampling_req_config config) {
    in_range(config.temperature, 0.0, 1e6, "temperature");
    in_range(static_cast<double>(config.top_k), 0.0, 2147483647.0, "top_k");
    in_range(config.top_p, 0.0, 1.0, "top_p");
    in_range(config.min_p, 0.0, 1.0, "min_p");
    in_range(config.repetition_penalty, 0.0, 1e6, "repetition_penalty");
    in_range(config.presence_penalty, -1e6, 1e6, "presence_penalty");
    in_range(config.frequency_penalty, -1e6, 1e6, "frequency_penalty");
    in_range(config.logprobs, 0, kMaxTopLogprobs + 1, "logprobs");
    in_range(config.prompt_logprobs, 0, kMaxTopLogprobs + 1, "prompt_logprobs");
    in_range(static_cast<double>(config.min_tokens), 0.0, 2147483647.0, "min_tokens");
    check_list(config.bias_tokens, config.bias_count, kMaxBias, "bias_tokens");
    check_list(config.bias_values, config.bias_count, kMaxBias, "bias_values");
    check_list(config.stop_tokens.data, config.stop_tokens.count, kMaxStopTokens, "stop_tokens");
    config.bias_tokens = keep(config.bias_tokens, config.bias_count);
    config.bias_values = keep(config.bias_values, config.bias_count);
    config.stop_tokens.data = keep(config.stop_tokens.data, config.stop_tokens.count);
    return config;
  }

  cairn_kv_req_config copy(cairn_kv_req_config config) {
    check_list(config.needed_labels.data, config.needed_labels.count, kMaxRules, "needed_labels");
    check_list(config.prompt_slots.data, config.prompt_slots.count, kMaxRules, "prompt_slots");
    in_range(static_cast<double>(config.max_tokens), 0.0, 2147483647.0, "max_tokens");
    if (config.max_tokens == 0) config.max_tokens = max_tokens_;
    std::vector<cairn_needed_labels> needed;
    for (std::uint64_t i = 0; i < config.needed_labels.count; ++i) {
      cairn_needed_labels rule = span_element(config.needed_labels, i);
      if (rule.node != CAIRN_NONE) check_bound(rule.node, spec_.nodes.size(), "needed_labels.node");
      if (rule.walk != CAIRN_NONE) check_bound(rule.walk, spec_.walk_count(), "needed_labels.walk");
      check_list(rule.labels.data, rule.labels.count, spec_.labels.size(), "needed_labels.labels");
      for (std::uint64_t k = 0; k < rule.labels.count; ++k) {
        check_bound(rule.labels.data[k], spec_.labels.size(), "needed_labels.labels");
      }
      rule.labels.data = keep(rule.labels.data, rule.labels.count);
      needed.push_back(rule);
    }
    std::vector<cairn_label_tokens> slots;
    for (std::uint64_t i = 0; i < config.prompt_slots.count; ++i) {
      slots.push_back(span_element(config.prompt_slots, i));
      check_bound(slots.back().label, spec_.labels.size(), "prompt_slots.label");
      in_range(static_cast<double>(slots.back().tokens), 0.0, 2147483647.0, "prompt_slots.tokens");
    }
    if (slots.empty()) slots.push_back({0, 1, prompt_tokens_});
    config.needed_labels = {keep(needed.data(), needed.size()), needed.size(), sizeof(cairn_needed_labels)};
    config.prompt_slots = {keep(slots.data(), slots.size()), slots.size(), sizeof(cairn_label_tokens)};
    return config;
  }

  void check_bound(std::uint32_t index, std::size_t bound, const char* field) const {
    if (index >= bound) {
      throw InternalError(where_ + ": " + field + " is " + std::to_string(index) + ", but there are " +
                          std::to_string(bound) + ".");
    }
  }

  const ModelSpec& spec_;
  const cairn_sampling_req_config& sampling_;
  std::int64_t prompt_tokens_;
  std::int64_t max_tokens_;
  std::string where_;
  ResourceReqConfigs result_;
};

ResourceReqConfigs ResourceReqConfigs::defaults(const ModelSpec& spec, const cairn_sampling_req_config& sampling,
                                                std::int64_t prompt_tokens, std::int64_t max_tokens) {
  return ConfigCopier(spec, sampling, prompt_tokens, max_tokens).finish();
}

ResourceReqConfigs ResourceReqConfigs::copy_of(const ModelSpec& spec, const cairn_resource_req_config_span& configs,
                                               const cairn_sampling_req_config& sampling, std::int64_t prompt_tokens,
                                               std::int64_t max_tokens) {
  if (configs.count > spec.resources.size() || (configs.count > 0 && configs.data == nullptr)) {
    throw InternalError("The model gave " + std::to_string(configs.count) + " request configs for " +
                        std::to_string(spec.resources.size()) + " resources.");
  }
  ConfigCopier copier(spec, sampling, prompt_tokens, max_tokens);
  for (std::uint64_t i = 0; i < configs.count; ++i) copier.add(span_element(configs, i));
  return std::move(copier).finish();
}

namespace {

const void* find_config(std::span<const cairn_resource_req_config> configs, std::uint32_t resource,
                        std::uint32_t kind) {
  for (const cairn_resource_req_config& config : configs) {
    if (config.resource == resource && config.kind == kind) return config.config;
  }
  return nullptr;
}

}  // namespace

const cairn_sampling_req_config* ResourceReqConfigs::sampling(std::uint32_t resource) const {
  return static_cast<const cairn_sampling_req_config*>(find_config(configs_, resource, CAIRN_RESOURCE_SAMPLER));
}

const cairn_kv_req_config* ResourceReqConfigs::kv(std::uint32_t resource) const {
  return static_cast<const cairn_kv_req_config*>(find_config(configs_, resource, CAIRN_RESOURCE_KV));
}

}  // namespace cairn
