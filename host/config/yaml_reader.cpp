#include "host/config/yaml_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "core/base/error.hpp"
#include "host/config/nearest_name.hpp"

namespace cairn {
namespace {

constexpr std::size_t kMaxNodes = 20'000;
constexpr int kMaxDepth = 32;
constexpr std::size_t kShown = 64;  // bytes of a wrong value that a message repeats

std::string shown(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, kShown)) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return out + (text.size() > kShown ? "..." : "");
}

const char* kind_of(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a map";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      return "a single value";
    default:
      return "nothing";
  }
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  const bool plus = text.starts_with('+');
  if (plus) text.remove_prefix(1);
  if (plus && text.starts_with('-')) return std::nullopt;
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0o")) {
    base = text[1] == 'x' ? 16 : 8;
    text.remove_prefix(2);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  if (text == ".inf" || text == "+.inf") return std::numeric_limits<double>::infinity();
  if (text == "-.inf") return -std::numeric_limits<double>::infinity();
  if (text == ".nan") return std::numeric_limits<double>::quiet_NaN();
  if (text.starts_with('+')) text.remove_prefix(1);
  // from_chars also knows "inf" and "nan", which are words in YAML.
  if (text.find_first_of("0123456789") == std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

void YamlReader::fail(const YAML::Mark& mark, const std::string& message) const {
  std::string where = name_;
  if (!mark.is_null()) where += ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
  throw BadFile(where + ": " + message);
}

void YamlReader::count(const YAML::Node& node) {
  if (++visited_ > kMaxNodes) {
    fail(node.Mark(), "The file has more than " + std::to_string(kMaxNodes) +
                          " values, those behind aliases counted each time they are used.");
  }
}

void YamlReader::each(
    const YAML::Node& map, const std::string& what,
    const std::function<void(const std::string&, const YAML::Node&, const YAML::Node& key_node)>& visit) {
  count(map);
  if (!map.IsMap()) fail(map.Mark(), what + " must be a map of keys to values, and is " + kind_of(map) + ".");
  std::set<std::string> seen;
  for (const auto& entry : map) {
    count(entry.first);
    if (!entry.first.IsScalar()) fail(entry.first.Mark(), "A key of " + what + " is not a single word.");
    const std::string key = entry.first.Scalar();
    if (!seen.insert(key).second)
      fail(entry.first.Mark(), "The key '" + shown(key) + "' occurs twice in " + what + ".");
    visit(key, entry.second, entry.first);
  }
}

void YamlReader::fail_unknown_key(const YAML::Node& key_node, const std::string& key, const std::string& what,
                                  std::span<const std::string_view> known) const {
  std::string message = "Unknown key '" + shown(key) + "' in " + what;
  const auto near = nearest_name(key, known, std::max<int>(2, static_cast<int>(key.size()) / 2));
  if (!near.empty()) {
    message += "; did you mean '" + std::string(near) + "'?";
  } else {
    message += "; the known keys are ";
    for (std::size_t i = 0; i < known.size(); ++i) message += (i > 0 ? ", " : "") + std::string(known[i]);
    message += ".";
  }
  fail(key_node.Mark(), message);
}

std::string YamlReader::string(const YAML::Node& node, const std::string& key) {
  count(node);
  if (!node.IsScalar()) fail(node.Mark(), "'" + key + "' must be a text, and is " + kind_of(node) + ".");
  return node.Scalar();
}

std::int64_t YamlReader::integer(const YAML::Node& node, const std::string& key, std::int64_t low, std::int64_t high) {
  count(node);
  if (!node.IsScalar()) fail(node.Mark(), "'" + key + "' must be an integer, and is " + kind_of(node) + ".");
  const auto parsed = node.Tag() == "!" ? std::nullopt : parse_integer(node.Scalar());  // "!": it was quoted
  if (!parsed) fail(node.Mark(), "'" + key + "' must be an integer; '" + shown(node.Scalar()) + "' is none.");
  if (*parsed < low || *parsed > high) {
    fail(node.Mark(), "'" + key + "' must be from " + std::to_string(low) + " to " + std::to_string(high) + "; " +
                          std::to_string(*parsed) + " was given.");
  }
  return *parsed;
}

std::vector<std::string> YamlReader::strings(const YAML::Node& node, const std::string& key) {
  count(node);
  if (!node.IsSequence()) fail(node.Mark(), "'" + key + "' must be a list, and is " + kind_of(node) + ".");
  std::vector<std::string> list;
  for (const auto& item : node) list.push_back(string(item, key));
  return list;
}

std::vector<std::int64_t> YamlReader::integers(const YAML::Node& node, const std::string& key, std::int64_t low,
                                               std::int64_t high) {
  count(node);
  if (!node.IsSequence()) fail(node.Mark(), "'" + key + "' must be a list, and is " + kind_of(node) + ".");
  std::vector<std::int64_t> list;
  for (const auto& item : node) list.push_back(integer(item, key, low, high));
  return list;
}

Value YamlReader::scalar(const YAML::Node& node) const {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (const auto integer = parse_integer(text)) return *integer;
  if (const auto number = parse_number(text)) return *number;
  return text;
}

Value YamlReader::value(const YAML::Node& node, int depth) {
  count(node);
  if (depth > kMaxDepth) fail(node.Mark(), "The file is nested deeper than " + std::to_string(kMaxDepth) + " levels.");
  if (node.IsScalar()) return scalar(node);
  if (node.IsSequence()) {
    ValueList list;
    for (const auto& item : node) list.push_back(value(item, depth + 1));
    return list;
  }
  if (node.IsMap()) {
    ValueMap map;
    each(node, "this map", [&](const std::string& key, const YAML::Node& item, const YAML::Node&) {
      map.emplace_back(key, value(item, depth + 1));
    });
    return map;
  }
  return {};
}

Value YamlReader::map_value(const YAML::Node& node, const std::string& key) {
  if (node.IsNull()) return ValueMap{};
  if (!node.IsMap()) fail(node.Mark(), "'" + key + "' must be a map, and is " + kind_of(node) + ".");
  return value(node);
}

}  // namespace cairn
