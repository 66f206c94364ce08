#include "host/openai/field_reader.hpp"

#include <boost/json/array.hpp>
#include <boost/json/stream_parser.hpp>
#include <cmath>
#include <limits>

#include "core/base/log.hpp"
#include "host/config/nearest_name.hpp"
#include "host/openai/api_error.hpp"
#include "host/openai/json_writer.hpp"

namespace cairn {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 64;

std::string plain(double value) {
  std::string text;
  JsonWriter(text).number(value);
  return text;
}

std::optional<double> as_number(const json::value& value) {
  if (value.is_double() && std::isfinite(value.get_double())) return value.get_double();
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> as_integer(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  return std::nullopt;  // a uint64 is one only when int64 cannot hold it
}

const json::value* FieldReader::get(std::string_view name) const {
  const auto* value = object_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<double> FieldReader::number(std::string_view name, double low, double high) const {
  const auto* value = get(name);
  if (value == nullptr) return std::nullopt;
  const auto number = as_number(*value);
  if (!number) throw invalid_type(param(name), "a number");
  if (*number < low || *number > high) {
    throw invalid_value(param(name), "'" + param(name) + "' must be from " + plain(low) + " to " + plain(high) + "; " +
                                         plain(*number) + " was given.");
  }
  return number;
}

std::optional<double> FieldReader::number_above(std::string_view name, double low, double high) const {
  const auto value = number(name, low, high);
  if (value && *value <= low) {
    throw invalid_value(param(name), "'" + param(name) + "' must be over " + plain(low) + " and at most " +
                                         plain(high) + "; " + plain(*value) + " was given.");
  }
  return value;
}

std::optional<std::int64_t> FieldReader::integer(std::string_view name, std::int64_t low, std::int64_t high) const {
  const auto* value = get(name);
  if (value == nullptr) return std::nullopt;
  const auto integer = as_integer(*value);
  if (!integer && !value->is_uint64()) throw invalid_type(param(name), "an integer");
  if (!integer || *integer < low || *integer > high) {
    throw invalid_value(param(name), "'" + param(name) + "' must be an integer from " + std::to_string(low) + " to " +
                                         std::to_string(high) + "; " +
                                         (integer ? std::to_string(*integer) : std::to_string(value->get_uint64())) +
                                         " was given.");
  }
  return integer;
}

std::optional<bool> FieldReader::boolean(std::string_view name) const {
  const auto* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) throw invalid_type(param(name), "true or false");
  return value->get_bool();
}

std::optional<std::string_view> FieldReader::string(std::string_view name) const {
  const auto* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) throw invalid_type(param(name), "a string");
  return std::string_view(value->get_string());
}

const json::object* FieldReader::object(std::string_view name) const {
  const auto* value = get(name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) throw invalid_type(param(name), "an object");
  return &value->get_object();
}

const json::array* FieldReader::array(std::string_view name) const {
  const auto* value = get(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) throw invalid_type(param(name), "an array");
  return &value->get_array();
}

void FieldReader::check_unknown(std::span<const std::string_view> known) const {
  for (const auto& entry : object_) {
    const std::string_view name = entry.key();
    bool is_known = false;
    for (const auto candidate : known) is_known = is_known || candidate == name;
    if (is_known) continue;
    const int slips = name.size() <= 2 ? 0 : (name.size() <= 4 ? 1 : 2);
    const auto near = nearest_name(name, known, slips);
    if (!near.empty()) {
      throw ApiError(400, "unknown_parameter",
                     "Unknown parameter '" + param(name) + "'; did you mean '" + param(near) + "'?", param(name));
    }
    log(LogLevel::kDebug, "openai", "The unknown parameter '" + param(name.substr(0, 64)) + "' is ignored.");
  }
}

json::object parse_body(std::string_view body) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::stream_parser parser({}, options);
  boost::system::error_code error;
  const std::size_t used = parser.write_some(body.data(), body.size(), error);
  if (!error) parser.finish(error);
  if (error == json::error::too_deep) {
    throw ApiError(400, "invalid_json",
                   "The request body is nested deeper than " + std::to_string(kMaxDepth) + " levels.");
  }
  if (error || used != body.size()) {
    throw ApiError(400, "invalid_json",
                   body.empty()
                       ? "The request has no body; a JSON object is expected."
                       : "The request body is not valid JSON: the error is near byte " + std::to_string(used) + ".");
  }
  json::value value = parser.release();
  if (!value.is_object()) throw ApiError(400, "invalid_json", "The request body must be a JSON object.");
  return std::move(value.get_object());
}

}  // namespace cairn
