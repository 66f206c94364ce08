// Builds a model's resources from its specs and the deployment's overrides. Used by the runtime when a model opens.
#pragma once

#include <memory>
#include <vector>

#include "core/base/value.hpp"
#include "core/graph/model_spec.hpp"
#include "core/resources/resource.hpp"

namespace cairn {

struct ResourceOptions {
  std::uint32_t max_slots = 0;      // request slots, running and waiting
  std::uint32_t max_requests = 0;   // requests that hold resources at a time
  std::int64_t max_seq_len = 0;     // of one request, resolved
  std::int64_t kv_cache_bytes = 0;  // bound of all KV pools together; 0: from free memory
};

struct ModelResources {
  std::vector<std::unique_ptr<Resource>> all;  // by resource index
  std::vector<Resource*> order;                // dependencies first
};

// `overrides` is the deployment's `resources` map: resource key -> map of that kind's keys. Throws InvalidArgument for
// an unknown resource or key or a bad value, NotSupported for a kind this host does not drive, ResourceExhausted when
// the pools do not fit.
ModelResources build_resources(const ModelSpec& spec, const Value& overrides, const ResourceOptions& options);

}  // namespace cairn
