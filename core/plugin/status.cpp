// The thread's status message and the translations between statuses and exceptions.
#include "core/plugin/status.hpp"

#include <exception>
#include <new>

#include "core/base/error.hpp"

namespace cairn {

namespace {

std::string& message() {
  thread_local std::string text;
  return text;
}

cairn_status fail_with(cairn_status code, std::string_view function, std::string_view text) noexcept {
  if (function.empty()) return set_status(code, text);
  try {
    std::string full(function);
    full += ": ";
    full += text;
    return set_status(code, full);
  } catch (...) {
    return set_status(code, text);
  }
}

}  // namespace

std::string_view status_name(cairn_status status) noexcept {
  switch (status) {
    case CAIRN_STATUS_OK:
      return "OK";
    case CAIRN_STATUS_CANCELLED:
      return "CANCELLED";
    case CAIRN_STATUS_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case CAIRN_STATUS_DEADLINE_EXCEEDED:
      return "DEADLINE_EXCEEDED";
    case CAIRN_STATUS_NOT_FOUND:
      return "NOT_FOUND";
    case CAIRN_STATUS_ALREADY_EXISTS:
      return "ALREADY_EXISTS";
    case CAIRN_STATUS_PERMISSION_DENIED:
      return "PERMISSION_DENIED";
    case CAIRN_STATUS_RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case CAIRN_STATUS_FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case CAIRN_STATUS_ABORTED:
      return "ABORTED";
    case CAIRN_STATUS_OUT_OF_RANGE:
      return "OUT_OF_RANGE";
    case CAIRN_STATUS_UNSUPPORTED:
      return "UNSUPPORTED";
    case CAIRN_STATUS_UNAVAILABLE:
      return "UNAVAILABLE";
    case CAIRN_STATUS_DATA_LOSS:
      return "DATA_LOSS";
    default:
      return "INTERNAL";
  }
}

cairn_status set_status(cairn_status code, std::string_view text) noexcept {
  try {
    message().assign(text);
  } catch (...) {
    message().clear();
  }
  return code;
}

void add_status_detail(std::string_view key, std::string_view value) noexcept {
  try {
    std::string detail(" (");
    detail.append(key).append(": ").append(value).append(")");
    message() += detail;
  } catch (...) {
    return;  // the message without the detail is still right
  }
}

std::string_view last_status_message() noexcept {
  return message();
}

std::string take_status_message() {
  std::string taken;
  taken.swap(message());
  return taken;
}

void throw_status(cairn_status status, std::string_view what) {
  const std::string reason = take_status_message();
  std::string text(what);
  if (reason.empty()) {
    text.append(" failed with ").append(status_name(status)).append(" and gave no reason");
  } else {
    text.append(": ").append(reason);
  }
  switch (status) {
    case CAIRN_STATUS_INVALID_ARGUMENT:
    case CAIRN_STATUS_OUT_OF_RANGE:
      throw InvalidArgument(text);
    case CAIRN_STATUS_NOT_FOUND:
      throw NotFound(text);
    case CAIRN_STATUS_RESOURCE_EXHAUSTED:
    case CAIRN_STATUS_UNAVAILABLE:
      throw ResourceExhausted(text);
    case CAIRN_STATUS_UNSUPPORTED:
      throw NotSupported(text);
    case CAIRN_STATUS_DATA_LOSS:
      throw BadFile(text);
    case CAIRN_STATUS_CANCELLED:
      throw Cancelled(text);
    default:
      throw InternalError(text);
  }
}

cairn_status status_of_current_exception(std::string_view function) noexcept {
  try {
    throw;
  } catch (const InvalidArgument& e) {
    return fail_with(CAIRN_STATUS_INVALID_ARGUMENT, function, e.what());
  } catch (const NotFound& e) {
    return fail_with(CAIRN_STATUS_NOT_FOUND, function, e.what());
  } catch (const BadFile& e) {
    return fail_with(CAIRN_STATUS_DATA_LOSS, function, e.what());
  } catch (const NotSupported& e) {
    return fail_with(CAIRN_STATUS_UNSUPPORTED, function, e.what());
  } catch (const ResourceExhausted& e) {
    return fail_with(CAIRN_STATUS_RESOURCE_EXHAUSTED, function, e.what());
  } catch (const Cancelled& e) {
    return fail_with(CAIRN_STATUS_CANCELLED, function, e.what());
  } catch (const std::out_of_range& e) {
    return fail_with(CAIRN_STATUS_OUT_OF_RANGE, function, e.what());
  } catch (const std::invalid_argument& e) {
    return fail_with(CAIRN_STATUS_INVALID_ARGUMENT, function, e.what());
  } catch (const std::bad_alloc&) {
    return fail_with(CAIRN_STATUS_RESOURCE_EXHAUSTED, function, "the host is out of memory");
  } catch (const std::length_error&) {
    return fail_with(CAIRN_STATUS_RESOURCE_EXHAUSTED, function, "the host cannot hold a value of that size");
  } catch (const std::exception& e) {
    return fail_with(CAIRN_STATUS_INTERNAL, function, e.what());
  } catch (...) {
    return fail_with(CAIRN_STATUS_INTERNAL, function, "an exception that is not a std::exception");
  }
}

}  // namespace cairn
