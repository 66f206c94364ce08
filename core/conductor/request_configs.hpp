// What resources are told about one request: the client's sampling parameters and one config per resource
// (get_request_resource_configs). Owned copies that stay put as long as the request lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cairn/abi.h"
#include "core/graph/model_spec.hpp"
#include "core/runtime/model_runtime.hpp"

namespace cairn {

// SamplingParams as the ABI's struct. Not movable: the struct points into the members.
class RequestSampling {
 public:
  // stop_tokens: ids that end the request, the model's own included. seed: the request's resolved one.
  RequestSampling(const SamplingParams& params, std::uint64_t seed, std::vector<std::int32_t> stop_tokens,
                  std::int64_t min_tokens, bool ignore_eos);
  RequestSampling(const RequestSampling&) = delete;
  RequestSampling& operator=(const RequestSampling&) = delete;

  const cairn_sampling_req_config& view() const { return config_; }

 private:
  std::vector<std::int32_t> stop_tokens_;
  std::vector<std::int32_t> bias_tokens_;
  std::vector<float> bias_values_;
  cairn_sampling_req_config config_{};
};

// At most one config per resource. Move-only; views stay valid across moves.
class ResourceReqConfigs {
 public:
  ResourceReqConfigs() = default;
  ResourceReqConfigs(ResourceReqConfigs&&) noexcept = default;
  ResourceReqConfigs& operator=(ResourceReqConfigs&&) noexcept = default;

  // The default of a NULL request_resource_configs: the sampling parameters for every sampler, prompt plus max_tokens
  // on label 0 for every KV pool.
  static ResourceReqConfigs defaults(const ModelSpec& spec, const cairn_sampling_req_config& sampling,
                                     std::int64_t prompt_tokens, std::int64_t max_tokens);
  // A checked copy of what a plugin answered. Samplers the plugin does not mention get the sampling parameters and KV
  // pools it does not mention get the default above. Throws InternalError naming the resource and the field.
  static ResourceReqConfigs copy_of(const ModelSpec& spec, const cairn_resource_req_config_span& configs,
                                    const cairn_sampling_req_config& sampling, std::int64_t prompt_tokens,
                                    std::int64_t max_tokens);

  std::span<const cairn_resource_req_config> view() const { return configs_; }
  // The config of a resource when it is of type T, or nullptr: cairn_sampling_req_config for samplers,
  // cairn_kv_req_config for KV pools, cairn_diffusion_sampling_req_config for diffusion samplers.
  const cairn_sampling_req_config* sampling(std::uint32_t resource) const;
  const cairn_kv_req_config* kv(std::uint32_t resource) const;

 private:
  friend class ConfigCopier;
  std::vector<cairn_resource_req_config> configs_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

}  // namespace cairn
