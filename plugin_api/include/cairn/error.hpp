// Errors of the SDK: exceptions inside the plugin, statuses with a message at the boundary. Used by every SDK header.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "cairn/services.hpp"

namespace cairn {

// What a plugin throws to answer with a certain status. Any other std::exception becomes CAIRN_STATUS_INTERNAL.
class Error : public std::runtime_error {
 public:
  Error(cairn_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  cairn_status status() const noexcept { return status_; }

 private:
  cairn_status status_;
};

// The request's fault: HTTP 400.
inline Error invalid_argument(const std::string& message) {
  return {CAIRN_STATUS_INVALID_ARGUMENT, message};
}
// The weights' fault.
inline Error data_loss(const std::string& message) {
  return {CAIRN_STATUS_DATA_LOSS, message};
}
inline Error unsupported(const std::string& message) {
  return {CAIRN_STATUS_UNSUPPORTED, message};
}

// Throws the host's message when a host call failed.
inline void check(cairn_status status) {
  if (status == CAIRN_STATUS_OK) return;
  const cairn_status_service* service = services().status;
  throw Error(status, CAIRN_HAS(service, cairn_status_service, last)
                          ? std::string(text(service->last()))
                          : "a host call failed with status " + std::to_string(status));
}

// Leaves this thread's error text with the host and returns `status`.
inline cairn_status report(cairn_status status, std::string_view message) noexcept {
  const cairn_status_service* service = services().status;
  if (CAIRN_HAS(service, cairn_status_service, set)) service->set(status, str(message));
  return status;
}

// The catch-all every thunk runs its body in: nothing unwinds into the host.
template <class Body>
cairn_status guarded(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return CAIRN_STATUS_OK;
  } catch (const Error& error) {
    return report(error.status() == CAIRN_STATUS_OK ? CAIRN_STATUS_INTERNAL : error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return report(CAIRN_STATUS_RESOURCE_EXHAUSTED, "the plugin ran out of memory");
  } catch (const std::invalid_argument& error) {
    return report(CAIRN_STATUS_INVALID_ARGUMENT, error.what());
  } catch (const std::exception& error) {
    return report(CAIRN_STATUS_INTERNAL, error.what());
  } catch (...) {
    return report(CAIRN_STATUS_INTERNAL, "the plugin threw something that is no std::exception");
  }
}

}  // namespace cairn
