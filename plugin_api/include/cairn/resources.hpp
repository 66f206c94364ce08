// Handles to the resources a node was bound to: what a layer calls in a forward. Shapes and rules are abi.h's
// section 12.
#pragma once

#include <map>
#include <string>

#include "cairn/tensor.hpp"

namespace cairn {

// One bound resource, before it is known as what.
struct Resource {
  std::string key;
  std::uint32_t index = CAIRN_NONE;  // in the model description
  std::uint32_t kind = 0;
  cairn_resource* self = nullptr;
  const void* api = nullptr;
};

// The resources of one node by key.
class NodeResources {
 public:
  NodeResources() = default;
  explicit NodeResources(cairn_bound_resource_span bound) {
    for (const auto& resource : elements(bound)) {
      std::string key(text(resource.resource_key));
      map_[key] = {key, resource.resource, resource.kind, resource.self, resource.api};
    }
  }
  // A missing key fails here, at load, and names what there is.
  const Resource& at(const std::string& key) const {
    const auto found = map_.find(key);
    if (found != map_.end()) return found->second;
    std::string known;
    for (const auto& [name, resource] : map_) known += (known.empty() ? "" : ", ") + name;
    throw Error(CAIRN_STATUS_NOT_FOUND,
                "the node has no resource '" + key + "'; it is bound to: " + (known.empty() ? "none" : known));
  }
  bool contains(const std::string& key) const { return map_.contains(key); }
  std::size_t size() const noexcept { return map_.size(); }
  auto begin() const noexcept { return map_.begin(); }
  auto end() const noexcept { return map_.end(); }

 private:
  std::map<std::string, Resource> map_;
};

// Common to the typed handles: checks the kind once, at bind.
template <class Api>
class TypedResource {
 public:
  TypedResource() = default;
  bool bound() const noexcept { return api_ != nullptr; }
  std::uint32_t index() const noexcept { return index_; }
  const Api* api() const noexcept { return api_; }
  cairn_resource* self() const noexcept { return self_; }

 protected:
  TypedResource(const Resource& resource, std::initializer_list<std::uint32_t> kinds)
      : self_(resource.self), index_(resource.index) {
    for (std::uint32_t kind : kinds) {
      if (kind == resource.kind) api_ = static_cast<const Api*>(resource.api);
    }
    if (api_ == nullptr) {
      throw invalid_argument("resource '" + resource.key + "' is of kind " + std::to_string(resource.kind) +
                             ", which this layer cannot use");
    }
  }
  cairn_resource* self_ = nullptr;
  const Api* api_ = nullptr;
  std::uint32_t index_ = CAIRN_NONE;
};

class KVCache : public TypedResource<cairn_kv_api> {
 public:
  KVCache() = default;
  explicit KVCache(const Resource& resource) : TypedResource(resource, {CAIRN_RESOURCE_KV}) {}
  void write_kv(cairn_step_context* step, std::int64_t layer, std::uint32_t label, const cairn_tensor_view& k,
                const cairn_tensor_view& v) const {
    check(api_->write_kv(self_, step, layer, label, &k, &v));
  }
  std::int64_t seq_len(cairn_request request, std::uint32_t label) const {
    std::int64_t length = 0;
    check(api_->seq_len(self_, request, label, &length));
    return length;
  }
  void read_kv(cairn_step_context* step, std::int64_t layer, cairn_request request, std::uint32_t label,
               std::int64_t start, std::int64_t end, const cairn_tensor_view& k, const cairn_tensor_view& v) const {
    check(api_->read_kv(self_, step, layer, request, label, start, end, &k, &v));
  }
  void protect_prefix(cairn_request request, std::uint32_t label, std::int64_t tokens) const {
    check(api_->protect_prefix(self_, request, label, tokens));
  }
  void release_oldest(cairn_request request, std::uint32_t label, std::int64_t tokens) const {
    check(api_->release_oldest(self_, request, label, tokens));
  }
};

class Attention : public TypedResource<cairn_attention_api> {
 public:
  Attention() = default;
  explicit Attention(const Resource& resource)
      : TypedResource(resource,
                      {CAIRN_RESOURCE_ATTENTION, CAIRN_RESOURCE_CROSS_ATTENTION, CAIRN_RESOURCE_RAGGED_ATTENTION}) {}
  void run(cairn_step_context* step, std::int64_t layer, std::uint32_t label, const cairn_tensor_view& q,
           const cairn_tensor_view& k, const cairn_tensor_view& v, const cairn_tensor_view& out) const {
    check(api_->run(self_, step, layer, label, &q, &k, &v, &out));
  }
  // Cross attention: keys and values are already in the context cache.
  void run(cairn_step_context* step, std::int64_t layer, std::uint32_t label, const cairn_tensor_view& q,
           const cairn_tensor_view& out) const {
    check(api_->run(self_, step, layer, label, &q, nullptr, nullptr, &out));
  }
  void select_last_hidden(cairn_step_context* step, std::uint32_t label, const cairn_tensor_view& hidden,
                          const cairn_tensor_view& out) const {
    check(api_->select_last_hidden(self_, step, label, &hidden, &out));
  }
  cairn_tensor_view qo_indptr(cairn_step_context* step, std::uint32_t label) const {
    cairn_tensor_view view{};
    check(api_->qo_indptr(self_, step, label, &view));
    return view;
  }
};

class Position : public TypedResource<cairn_position_api> {
 public:
  Position() = default;
  explicit Position(const Resource& resource) : TypedResource(resource, {CAIRN_RESOURCE_POSITION}) {}
  void apply_qk(cairn_step_context* step, std::uint32_t label, const cairn_tensor_view& q,
                const cairn_tensor_view& k) const {
    check(api_->apply_qk(self_, step, label, &q, &k));
  }
  cairn_tensor_view pos_ids(cairn_step_context* step, std::uint32_t label) const {
    cairn_tensor_view view{};
    check(api_->pos_ids(self_, step, label, &view));
    return view;
  }
};

class Sampler : public TypedResource<cairn_sampler_api> {
 public:
  Sampler() = default;
  explicit Sampler(const Resource& resource) : TypedResource(resource, {CAIRN_RESOURCE_SAMPLER}) {}
  std::int64_t num_logit_rows(cairn_step_context* step) const {
    std::int64_t rows = 0;
    check(api_->num_logit_rows(self_, step, &rows));
    return rows;
  }
  void select_hidden(cairn_step_context* step, const cairn_tensor_view& hidden, const cairn_tensor_view& out) const {
    check(api_->select_hidden(self_, step, &hidden, &out));
  }
  void sample(cairn_step_context* step, const cairn_tensor_view& logits, const cairn_tensor_view& out_tokens) const {
    check(api_->sample(self_, step, &logits, &out_tokens));
  }
  void loopback_tokens(cairn_step_context* step, const cairn_tensor_view& out) const {
    check(api_->loopback_tokens(self_, step, &out));
  }
};

class DiffusionSampler : public TypedResource<cairn_diffusion_sampler_api> {
 public:
  DiffusionSampler() = default;
  explicit DiffusionSampler(const Resource& resource) : TypedResource(resource, {CAIRN_RESOURCE_DIFFUSION_SAMPLER}) {}
  void sample(cairn_step_context* step, const cairn_tensor_view& c_logits, const cairn_tensor_view* u_logits,
              const cairn_tensor_view& tokens, const cairn_tensor_view& log_probs) const {
    check(api_->sample(self_, step, &c_logits, u_logits, &tokens, &log_probs));
  }
};

// Recurrent state, linear attention and slot state: slots of named blocks.
class StateSlots : public TypedResource<cairn_state_api> {
 public:
  StateSlots() = default;
  explicit StateSlots(const Resource& resource)
      : TypedResource(resource,
                      {CAIRN_RESOURCE_RECURRENT_STATE, CAIRN_RESOURCE_LINEAR_ATTENTION, CAIRN_RESOURCE_SLOT_STATE}) {}
  cairn_tensor_view block(cairn_step_context* step, std::int64_t layer, std::string_view name) const {
    cairn_tensor_view view{};
    check(api_->block(self_, step, layer, str(name), &view));
    return view;
  }
  cairn_tensor_view slot_index(cairn_step_context* step, std::uint32_t label) const {
    cairn_tensor_view view{};
    check(api_->slot_index(self_, step, label, &view));
    return view;
  }
  cairn_tensor_view has_state(cairn_step_context* step, std::uint32_t label) const {
    cairn_tensor_view view{};
    check(api_->has_state(self_, step, label, &view));
    return view;
  }
};

// Ring KV and bounded KV.
class SlotKV : public TypedResource<cairn_slot_kv_api> {
 public:
  SlotKV() = default;
  explicit SlotKV(const Resource& resource)
      : TypedResource(resource, {CAIRN_RESOURCE_RING_KV, CAIRN_RESOURCE_BOUNDED_KV}) {}
  void write(cairn_step_context* step, std::int64_t layer, std::uint32_t label, const cairn_tensor_view& k,
             const cairn_tensor_view& v) const {
    check(api_->write(self_, step, layer, label, &k, &v));
  }
  void run(cairn_step_context* step, std::int64_t layer, std::uint32_t label, const cairn_tensor_view& q,
           const cairn_tensor_view& out) const {
    check(api_->run(self_, step, layer, label, &q, &out));
  }
};

class SpecAcceptance : public TypedResource<cairn_spec_acceptance_api> {
 public:
  SpecAcceptance() = default;
  explicit SpecAcceptance(const Resource& resource) : TypedResource(resource, {CAIRN_RESOURCE_SPEC_ACCEPTANCE}) {}
  void stage(cairn_step_context* step, const cairn_tensor_view& counts) const {
    check(api_->stage(self_, step, &counts));
  }
};

}  // namespace cairn
