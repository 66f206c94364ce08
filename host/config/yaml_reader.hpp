// Typed access to YAML nodes with positions in every message, and the limits that keep hostile files cheap. Private to
// host/config.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/value.hpp"

namespace cairn {

class YamlReader {
 public:
  explicit YamlReader(std::string name) : name_(std::move(name)) {}

  // "name:line:column: message" as a BadFile.
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const;

  // Calls `visit(key, value)` for every entry. `what` names the map in messages. Keys must be plain strings, each once.
  void each(const YAML::Node& map, const std::string& what,
            const std::function<void(const std::string&, const YAML::Node&, const YAML::Node& key_node)>& visit);
  [[noreturn]] void fail_unknown_key(const YAML::Node& key_node, const std::string& key, const std::string& what,
                                     std::span<const std::string_view> known) const;

  std::string string(const YAML::Node& node, const std::string& key);
  std::int64_t integer(const YAML::Node& node, const std::string& key, std::int64_t low, std::int64_t high);
  std::vector<std::string> strings(const YAML::Node& node, const std::string& key);
  std::vector<std::int64_t> integers(const YAML::Node& node, const std::string& key, std::int64_t low,
                                     std::int64_t high);
  // Any node, as YAML 1.2's core schema reads it.
  Value value(const YAML::Node& node, int depth = 0);
  Value map_value(const YAML::Node& node, const std::string& key);

 private:
  // Every node that is looked at counts, again each time an alias leads to it.
  void count(const YAML::Node& node);
  Value scalar(const YAML::Node& node) const;

  std::string name_;
  std::size_t visited_ = 0;
};

}  // namespace cairn
