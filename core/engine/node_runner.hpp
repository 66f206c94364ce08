// One node of an open model as the engine sees it: the plugin's table, the resources bound to it in the order in which
// a step sweeps them, and the answers to questions that are asked once. Built at load; device thread afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cairn/abi.h"
#include "core/resources/sampler/sampler.hpp"

namespace cairn {

class NodeRunner {
 public:
  // `resources` in dependency order. Binds them: throws the plugin's error when a layer misses one.
  NodeRunner(std::uint32_t index, std::string name, std::uint32_t flags, cairn_node* node, const cairn_node_api& api,
             std::vector<Resource*> resources);

  std::uint32_t index() const { return index_; }
  const std::string& name() const { return name_; }
  cairn_node* node() const { return node_; }
  const cairn_node_api& api() const { return api_; }
  std::span<Resource* const> resources() const { return resources_; }
  Sampler* sampler() const { return sampler_; }
  bool chunked_prefill() const { return (flags_ & CAIRN_NODE_CHUNKED_PREFILL) != 0; }
  bool autoregressive() const { return (flags_ & CAIRN_NODE_AUTOREGRESSIVE) != 0; }

  // Rows [start, end) of prepared inputs: the node's split_inputs, or the default cut of ids, embeds and positions.
  // Throws the plugin's error, or InvalidArgument when the row cannot be cut.
  cairn_node_inputs split(const cairn_forward_info& info, const cairn_node_inputs& row, std::int64_t start,
                          std::int64_t end, cairn_arena* arena) const;

 private:
  std::uint32_t index_;
  std::string name_;
  std::uint32_t flags_;
  cairn_node* node_;
  cairn_node_api api_;  // cut or zero-filled to this host's size
  std::vector<Resource*> resources_;
  std::vector<cairn_bound_resource> bound_;
  Sampler* sampler_ = nullptr;
};

}  // namespace cairn
