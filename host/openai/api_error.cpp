#include "host/openai/api_error.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "host/openai/json_writer.hpp"

namespace cairn {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 429:
      return "rate_limit_error";
    case 503:
      return "service_unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

std::string without_nul(std::string text) {
  std::replace(text.begin(), text.end(), '\0', '?');
  return text;
}

}  // namespace

ApiError::ApiError(int status, std::string code, std::string message, std::string param)
    : std::runtime_error(without_nul(std::move(message))),
      status_(status),
      code_(std::move(code)),
      param_(std::move(param)) {}

ApiError invalid_value(std::string param, const std::string& message) {
  return {400, "invalid_value", message, std::move(param)};
}

ApiError invalid_type(std::string param, const std::string& expected) {
  const std::string message = "'" + param + "' must be " + expected + ".";
  return {400, "invalid_type", message, std::move(param)};
}

ApiError missing_parameter(std::string param) {
  const std::string message = "The parameter '" + param + "' is required.";
  return {400, "missing_required_parameter", message, std::move(param)};
}

ApiError unsupported(std::string param, const std::string& message) {
  return {400, "unsupported_parameter", message, std::move(param)};
}

ApiError to_api_error(const std::exception& error) {
  if (const auto* api = dynamic_cast<const ApiError*>(&error)) return *api;
  if (const auto* invalid = dynamic_cast<const InvalidArgument*>(&error)) {
    return {400, "invalid_value", invalid->what(), invalid->param()};
  }
  if (dynamic_cast<const NotSupported*>(&error) != nullptr) return {400, "unsupported", error.what()};
  if (dynamic_cast<const NotFound*>(&error) != nullptr) return {404, "not_found", error.what()};
  if (dynamic_cast<const ResourceExhausted*>(&error) != nullptr) return {429, "queue_full", error.what()};
  return {500, "internal_error", "The server failed on this request."};
}

std::string error_json(const ApiError& error, std::string_view request_id) {
  std::string message = error.what();
  if (error.status() >= 500) message.append(" (request id ").append(request_id).append(")");
  std::string out;
  JsonWriter json(out);
  json.begin_object().key("error").begin_object();
  json.field("message", message).field("type", type_of(error.status()));
  json.key("param");
  error.param().empty() ? json.null() : json.string(error.param());
  json.field("code", error.code()).end_object().end_object();
  return out;
}

HttpResponse error_response(const ApiError& error, std::string_view request_id) {
  HttpResponse response{.status = error.status(), .body = error_json(error, request_id)};
  if (error.status() == 429 || error.status() == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace cairn
