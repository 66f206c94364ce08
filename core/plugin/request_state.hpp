// Per-request state kept for plugins (M*'s PerRequestState): small values by (node, request, key), behind
// "cairn.request". One per model; the runtime points ThreadContext::request_state at it and drops a request's state
// when it ends.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "cairn/abi.h"

namespace cairn {

// Any thread. A value given out stays valid until the next call for that request.
class RequestStateStore {
 public:
  RequestStateStore();
  ~RequestStateStore();
  RequestStateStore(const RequestStateStore&) = delete;
  RequestStateStore& operator=(const RequestStateStore&) = delete;

  // Retains tensors, copies all else; takes over an opaque value, whose destroy runs when it is replaced or dropped (on
  // failure it stays the caller's). Throws InvalidArgument (nesting, sizes), std::bad_alloc.
  void add(const cairn_node* node, cairn_request request, std::string_view key, const cairn_value& value);
  // Throws NotFound.
  cairn_value get(const cairn_node* node, cairn_request request, std::string_view key) const;
  void remove(const cairn_node* node, cairn_request request, std::string_view key);
  // The request left the model: all its values on every node. Idempotent.
  void drop_request(cairn_request request) noexcept;
  // All values of one node, before it is destroyed.
  void drop_node(const cairn_node* node) noexcept;

  std::int64_t live_values() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn
