// Per-request state that lives from step to step (seed: PerRequestState, LazyRequestStates). The host owns its life: it
// is dropped when the request is removed, after cleanup_request.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>

#include "cairn/request_info.hpp"

namespace cairn {

struct PerRequestState {
  std::map<std::string, Tensor> tensors;
  ValueMap kwargs;
  std::set<std::string> disag_shared_keys;  // keys that would travel with the request; no effect yet

  // Stores a value under its kind; a key lives in one of the two places only.
  void add(const std::string& key, Value value) {
    if (const Tensor* tensor = value.get_if<Tensor>()) {
      kwargs.erase(key);
      tensors[key] = *tensor;
    } else {
      tensors.erase(key);
      kwargs.set(key, std::move(value));
    }
  }
  void add_all(const ValueMap& values) {
    for (const auto& [key, value] : values) add(key, value);
  }
  void remove(const std::string& key) {
    tensors.erase(key);
    kwargs.erase(key);
  }
  void remove(std::initializer_list<std::string> keys) {
    for (const std::string& key : keys) remove(key);
  }
  Value get(const std::string& key, Value fallback = {}) const {
    const auto tensor = tensors.find(key);
    if (tensor != tensors.end()) return tensor->second;
    const Value* value = kwargs.find(key);
    return value == nullptr ? std::move(fallback) : *value;
  }
  Value operator[](const std::string& key) const {
    if (!contains(key)) throw std::out_of_range("the request's state has no key '" + key + "'");
    return get(key);
  }
  bool contains(const std::string& key) const { return tensors.contains(key) || kwargs.contains(key); }
};

// The states of one node. Kept by the host under one key per request; kept here when the host offers no service for it.
class RequestStates {
 public:
  explicit RequestStates(cairn_node* node) : node_(node) {}

  // Created on first use.
  PerRequestState& of(Request request) {
    const cairn_request_service* service = services().request;
    if (!CAIRN_HAS(service, cairn_request_service, state_get)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      return local_[request];
    }
    cairn_value held{};
    if (service->state_get(node_, request, str(kKey), &held) == CAIRN_STATUS_OK && held.kind == CAIRN_VALUE_OPAQUE) {
      return *static_cast<PerRequestState*>(held.as.opaque.object);
    }
    auto state = std::make_unique<PerRequestState>();
    cairn_value value{};
    value.kind = CAIRN_VALUE_OPAQUE;
    value.as.opaque = {state.get(), [](void* object) { delete static_cast<PerRequestState*>(object); }};
    check(service->state_add(node_, request, str(kKey), &value));
    return *state.release();
  }
  // After cleanup_request; the host drops what it holds by itself.
  void drop(Request request) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    local_.erase(request);
  }
  std::size_t local_size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return local_.size();
  }

 private:
  static constexpr std::string_view kKey = "cairn.sdk.state";
  cairn_node* node_;
  mutable std::mutex mutex_;
  std::map<Request, PerRequestState> local_;
};

// The step's states, created when first read. Iterating the requests creates none.
class LazyRequestStates {
 public:
  LazyRequestStates(RequestStates& states, std::span<const Request> requests) : states_(&states), requests_(requests) {}
  PerRequestState& operator[](Request request) const {
    if (!contains(request)) throw std::out_of_range("request " + std::to_string(request) + " is not in this step");
    return states_->of(request);
  }
  bool contains(Request request) const noexcept {
    for (Request held : requests_) {
      if (held == request) return true;
    }
    return false;
  }
  std::size_t size() const noexcept { return requests_.size(); }
  std::span<const Request>::iterator begin() const noexcept { return requests_.begin(); }
  std::span<const Request>::iterator end() const noexcept { return requests_.end(); }

 private:
  RequestStates* states_;
  std::span<const Request> requests_;
};

}  // namespace cairn
