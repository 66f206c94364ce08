// Boost.JSON does the parsing; this bounds it and turns its tree into a Value.
#include "core/weights/json_value.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstddef>

#include "core/base/error.hpp"

namespace cairn {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxValues = std::size_t{4} << 20;

// Values cost far more memory than their text; every value after the first of its container follows a comma, and every
// container has its own opening bracket, so this bounds their number before any is made.
std::size_t count_values_bound(std::string_view text) {
  std::size_t count = 1;
  for (const char c : text) count += static_cast<std::size_t>(c == ',' || c == '[' || c == '{');
  return count;
}

}  // namespace

Value to_value(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return {};
    case json::kind::bool_:
      return value.get_bool();
    case json::kind::int64:
      return value.get_int64();
    case json::kind::uint64:
      return static_cast<double>(value.get_uint64());
    case json::kind::double_:
      return value.get_double();
    case json::kind::string:
      return std::string_view(value.get_string());
    case json::kind::array: {
      ValueList list;
      list.reserve(value.get_array().size());
      for (const auto& item : value.get_array()) list.push_back(to_value(item));
      return list;
    }
    case json::kind::object: {
      ValueMap map;
      map.reserve(value.get_object().size());
      for (const auto& [key, item] : value.get_object()) map.emplace_back(std::string(key), to_value(item));
      return map;
    }
  }
  return {};
}

Value parse_json_value(std::string_view text, const std::string& name) {
  if (count_values_bound(text) > kMaxValues) {
    throw BadFile(fmt::format("{} holds more than {} values; such a file is not read.", name, kMaxValues));
  }
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::stream_parser parser({}, options);
  json::error_code error;
  const std::size_t used = parser.write_some(text.data(), text.size(), error);
  if (!error) parser.finish(error);
  const std::size_t rest = error ? text.size() : text.find_first_not_of(" \t\r\n", used);
  if (error || rest < text.size()) {
    throw BadFile(fmt::format("{} is not valid JSON at byte {} (or nests deeper than {} levels); download it again.",
                              name, error ? used : rest, kMaxDepth));
  }
  return to_value(parser.release());
}

}  // namespace cairn
