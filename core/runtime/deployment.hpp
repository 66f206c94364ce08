// What the deployment file (or the command line) says about one model to serve. Plain data: host/config fills it from
// YAML, core/runtime builds a ModelRuntime from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/value.hpp"

namespace cairn {

// One placement rule of M*'s `node_groups`: these nodes, for these walks, on these ranks.
struct NodeGroup {
  std::vector<std::string> node_names;
  std::vector<std::int64_t> ranks;       // empty: rank 0
  std::vector<std::string> graph_walks;  // empty: every walk
  std::int64_t tp_size = 1;
  std::int64_t sp_size = 1;
};

struct DeploymentConfig {
  std::string model;        // the model as its plugin calls it (its architecture or class); may be empty
  std::string served_name;  // the name clients use; empty: derived from the weights
  std::string
      plugin;  // a plugin id ("ai.cairn.llama") or the path of a .so; empty: the first one that claims the weights
  std::filesystem::path weights;  // a GGUF or safetensors file or a directory; may be empty (a plugin without weights)
  std::vector<NodeGroup> node_groups;
  std::optional<std::int64_t> max_seq_len;              // prompt plus output tokens of one request
  std::optional<std::int64_t> max_concurrent_requests;  // requests that hold resources at a time
  std::optional<std::int64_t> max_batch_tokens;         // token budget of one step
  std::optional<std::int64_t> max_queue;                // requests that may wait beside the running ones
  std::optional<std::int64_t> kv_cache_bytes;           // bound of the KV pool; default: from free memory with a margin
  Value resources;                                      // a map: resource key -> map of overrides
  Value model_kwargs;                                   // a map, handed to the plugin as it is
  std::optional<std::string> autocast_dtype;            // "float32", "float16", "bfloat16"
  int threads = 0;                                      // 0: the runtime chooses from the machine
};

}  // namespace cairn
