// The exception types of the host. Each carries one full sentence: what was wrong, with the values, and what to do.
// Used by every layer of core and by the host; never crosses the C ABI (the adapters turn them into a status).
#pragma once

#include <stdexcept>
#include <string>

namespace cairn {

// The caller gave something that cannot be accepted: maps to HTTP 400 and CAIRN_STATUS_INVALID_ARGUMENT.
class InvalidArgument : public std::runtime_error {
 public:
  explicit InvalidArgument(const std::string& message, std::string param = {})
      : std::runtime_error(message), param_(std::move(param)) {}
  // The name of the offending request parameter or key, empty when there is none.
  const std::string& param() const noexcept { return param_; }

 private:
  std::string param_;
};

// A named thing does not exist: HTTP 404.
class NotFound : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A file (weights, tokenizer, plugin, YAML) is damaged or not what it says it is.
class BadFile : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The request or file is well formed and asks for something this build or this model does not do.
class NotSupported : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A limit was reached: queue full, more pages than the pool has. HTTP 429 or 503.
class ResourceExhausted : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Our own fault or a plugin's: HTTP 500.
class InternalError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace cairn
