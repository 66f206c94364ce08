// "cairn.request": the request state of the model this thread works for, and cancellation.
#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/plugin/request_state.hpp"
#include "core/plugin/service_tables.hpp"
#include "core/plugin/status.hpp"
#include "core/plugin/thread_context.hpp"

namespace cairn {

namespace {

// Runs body(store) for a call that is allowed here.
template <class Body>
cairn_status with_store(const char* function, const cairn_node* node, Body&& body) {
  RequestStateStore* store = current_thread().request_state;
  if (store == nullptr) {
    return guard(function, [&]() -> cairn_status {
      return set_status(
          CAIRN_STATUS_FAILED_PRECONDITION,
          fmt::format("{}: request state exists only inside node hooks on the device and main threads", function));
    });
  }
  if (node == nullptr) {
    return guard(function, [] { throw InvalidArgument("node is NULL"); });
  }
  return guard(function, [&] { body(*store); });
}

}  // namespace

const cairn_request_service kRequestService = {
    .struct_size = sizeof(cairn_request_service),
    .state_add =
        [](cairn_node* node, cairn_request request, cairn_str key, const cairn_value* value) {
          return with_store("request.state_add", node, [&](RequestStateStore& store) {
            if (value == nullptr) throw InvalidArgument("value is NULL");
            store.add(node, request, from_abi_str(key), *value);
          });
        },
    .state_get =
        [](cairn_node* node, cairn_request request, cairn_str key, cairn_value* out) {
          return with_store("request.state_get", node, [&](RequestStateStore& store) {
            if (out == nullptr) throw InvalidArgument("out is NULL");
            *out = store.get(node, request, from_abi_str(key));
          });
        },
    .state_remove =
        [](cairn_node* node, cairn_request request, cairn_str key) {
          return with_store("request.state_remove", node,
                            [&](RequestStateStore& store) { store.remove(node, request, from_abi_str(key)); });
        },
    // With one rank there is nowhere to share a key to; the key must exist all the same.
    .state_share =
        [](cairn_node* node, cairn_request request, cairn_str key) {
          return with_store("request.state_share", node,
                            [&](RequestStateStore& store) { (void)store.get(node, request, from_abi_str(key)); });
        },
    .is_cancelled = [](cairn_request request) -> std::uint32_t {
      const CancellationView* cancellation = current_thread().cancellation;
      return cancellation != nullptr && cancellation->is_cancelled(request) ? 1 : 0;
    },
};

}  // namespace cairn
