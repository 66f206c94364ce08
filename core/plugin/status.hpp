// Where C++ exceptions and ABI statuses meet: the thread's status message behind the "cairn.status" service, and the
// two translations. Used by every host function a plugin can call and by everything that calls into a plugin.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cairn/abi.h"

namespace cairn {

// A plugin answered CAIRN_STATUS_CANCELLED: the load or the request should stop, nothing is wrong.
class Cancelled : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "INVALID_ARGUMENT", ...; "INTERNAL" for a code this host does not know.
std::string_view status_name(cairn_status status) noexcept;

// Sets this thread's message and returns `code`. Never throws: without memory the message is empty.
cairn_status set_status(cairn_status code, std::string_view text) noexcept;
// Adds " (key: value)" to this thread's message.
void add_status_detail(std::string_view key, std::string_view value) noexcept;
// This thread's message, valid until the next call that sets it.
std::string_view last_status_message() noexcept;
// The message, which is empty afterwards; take it right after the failed call.
std::string take_status_message();

// Throws the exception that fits the code, with "what: message" where `what` says who answered and this thread's
// message says why: INVALID_ARGUMENT and OUT_OF_RANGE: InvalidArgument. NOT_FOUND: NotFound. RESOURCE_EXHAUSTED and
// UNAVAILABLE: ResourceExhausted. UNSUPPORTED: NotSupported. DATA_LOSS: BadFile. CANCELLED: Cancelled. All others:
// InternalError.
[[noreturn]] void throw_status(cairn_status status, std::string_view what);
inline void check_status(cairn_status status, std::string_view what) {
  if (status != CAIRN_STATUS_OK) throw_status(status, what);
}

// Only inside a catch block: the status for the exception in flight, its text as this thread's message, with
// "function: " before it unless `function` is empty.
cairn_status status_of_current_exception(std::string_view function) noexcept;

// Runs `body` (returning nothing or a cairn_status) so that nothing unwinds out of it.
template <class Body>
cairn_status guard(std::string_view function, Body&& body) noexcept {
  try {
    if constexpr (std::is_same_v<std::invoke_result_t<Body>, cairn_status>) {
      return std::forward<Body>(body)();
    } else {
      std::forward<Body>(body)();
      return CAIRN_STATUS_OK;
    }
  } catch (...) {
    return status_of_current_exception(function);
  }
}
template <class Body>
cairn_status guard(Body&& body) noexcept {
  return guard(std::string_view{}, std::forward<Body>(body));
}

inline cairn_str to_abi_str(std::string_view text) noexcept {
  return {text.data(), text.size()};
}
inline std::string_view from_abi_str(cairn_str text) noexcept {
  return text.data == nullptr ? std::string_view{} : std::string_view{text.data, text.size};
}

}  // namespace cairn
