// Errors in OpenAI's shape: {"error": {"message", "type", "param", "code"}}. Thrown by the parsers and the service,
// turned into an answer in one place.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "host/http/message.hpp"

namespace cairn {

// The message is a full sentence in our own words; `param` is the offending parameter, e.g. "messages[2].role".
class ApiError : public std::runtime_error {
 public:
  // A NUL, from a client's own words, shows as '?': what() would end there.
  ApiError(int status, std::string code, std::string message, std::string param = {});
  int status() const noexcept { return status_; }
  const std::string& code() const noexcept { return code_; }
  const std::string& param() const noexcept { return param_; }

 private:
  int status_;
  std::string code_;
  std::string param_;
};

// Shorthands for the faults every parser meets.
ApiError invalid_value(std::string param, const std::string& message);
ApiError invalid_type(std::string param, const std::string& expected);
ApiError missing_parameter(std::string param);
ApiError unsupported(std::string param, const std::string& message);

// What the exception means to the client. Anything that is not one of our types is our fault: 500, and the text goes to
// the log only.
ApiError to_api_error(const std::exception& error);

// The error object alone, for an event in a stream: {"error": {...}}.
std::string error_json(const ApiError& error, std::string_view request_id);
HttpResponse error_response(const ApiError& error, std::string_view request_id);

}  // namespace cairn
