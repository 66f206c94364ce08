// Typed, range-checked access to the fields of a JSON request. Every fault becomes an ApiError that names the field.
// Used by the request parsers only.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/value.hpp"

namespace cairn {

// A null field counts as absent everywhere. `prefix` goes before names in messages: "stream_options.".
class FieldReader {
 public:
  explicit FieldReader(const boost::json::object& object, std::string prefix = {})
      : object_(object), prefix_(std::move(prefix)) {}

  const boost::json::value* get(std::string_view name) const;
  bool has(std::string_view name) const { return get(name) != nullptr; }
  std::optional<double> number(std::string_view name, double low, double high) const;
  // `low` itself is not allowed.
  std::optional<double> number_above(std::string_view name, double low, double high) const;
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high) const;
  std::optional<bool> boolean(std::string_view name) const;
  std::optional<std::string_view> string(std::string_view name) const;
  const boost::json::object* object(std::string_view name) const;
  const boost::json::array* array(std::string_view name) const;
  std::string param(std::string_view name) const { return prefix_ + std::string(name); }

  // A field that is none of `known`: an error when it is close to one of them, since it is then most likely a slip that
  // would change the answer; else it is some other server's extension and is ignored, with a line in the debug log.
  void check_unknown(std::span<const std::string_view> known) const;

 private:
  const boost::json::object& object_;
  std::string prefix_;
};

// Parses a request body: an object of at most 64 levels. Throws ApiError.
boost::json::object parse_body(std::string_view body);

// The integer in `value` when it is one that fits; numbers with a fraction or exponent are not integers.
std::optional<std::int64_t> as_integer(const boost::json::value& value);

}  // namespace cairn
