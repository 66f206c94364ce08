#include "host/config/deployment_yaml.hpp"

#include <fstream>
#include <limits>
#include <set>

#include "core/base/error.hpp"
#include "host/config/document_count.hpp"
#include "host/config/utf8.hpp"
#include "host/config/yaml_reader.hpp"

namespace cairn {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::int64_t kMaxCount = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxRanks = 65536;

constexpr std::string_view kModelKeys[] = {"model",
                                           "served_name",
                                           "plugin",
                                           "weights",
                                           "node_groups",
                                           "max_seq_len",
                                           "max_concurrent_requests",
                                           "max_batch_tokens",
                                           "max_queue",
                                           "kv_cache_bytes",
                                           "resources",
                                           "model_kwargs",
                                           "autocast_dtype",
                                           "threads"};
constexpr std::string_view kGroupKeys[] = {"node_names", "ranks", "graph_walks", "tp_size", "sp_size"};
constexpr std::string_view kTopKeys[] = {"models"};
constexpr std::string_view kDtypes[] = {"float32", "float16", "bfloat16"};

// The YAML library's scanner may not come back from bytes that are no text.
void check_characters(std::string_view text, const std::string& name) {
  std::size_t line = 1;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t invalid = 0;
    const std::size_t length = utf8_length(text, i, invalid);
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool control = (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F;
    if (length == 0 || control) {
      throw BadFile(name + ":" + std::to_string(line) + ": The deployment file must be UTF-8 text without control " +
                    "characters; this line holds other bytes.");
    }
    if (byte == '\n') ++line;
    i += length;
  }
}

NodeGroup read_group(YamlReader& reader, const YAML::Node& node) {
  NodeGroup group;
  reader.each(node, "a node group", [&](const std::string& key, const YAML::Node& value, const YAML::Node& key_node) {
    if (key == "node_names") {
      group.node_names = reader.strings(value, key);
    } else if (key == "ranks") {
      group.ranks = reader.integers(value, key, 0, kMaxRanks - 1);
    } else if (key == "graph_walks") {
      if (!value.IsNull()) group.graph_walks = reader.strings(value, key);
    } else if (key == "tp_size") {
      group.tp_size = reader.integer(value, key, 1, kMaxRanks);
    } else if (key == "sp_size") {
      group.sp_size = reader.integer(value, key, 1, kMaxRanks);
    } else {
      reader.fail_unknown_key(key_node, key, "a node group", kGroupKeys);
    }
  });
  if (group.node_names.empty()) {
    reader.fail(node.Mark(), "A node group must name its nodes under 'node_names'.");
  }
  return group;
}

std::string read_dtype(YamlReader& reader, const YAML::Node& node) {
  std::string dtype = reader.string(node, "autocast_dtype");
  for (const auto known : kDtypes) {
    if (dtype == known) return dtype;
  }
  reader.fail(node.Mark(), "'autocast_dtype' must be float32, float16 or bfloat16.");
}

void read_resources(YamlReader& reader, const YAML::Node& node, DeploymentConfig& config) {
  config.resources = reader.map_value(node, "resources");
  for (const auto& entry : node) {
    if (!entry.second.IsMap()) {
      reader.fail(entry.second.Mark(),
                  "The overrides of the resource '" + entry.first.Scalar().substr(0, 64) + "' must be a map.");
    }
  }
}

void read_key(YamlReader& reader, const std::string& key, const YAML::Node& value, const YAML::Node& key_node,
              const std::filesystem::path& base, DeploymentConfig& config) {
  const auto path = [&](const std::string& text) { return (base / text).lexically_normal(); };
  if (key == "model") {
    config.model = reader.string(value, key);
  } else if (key == "served_name") {
    config.served_name = reader.string(value, key);
  } else if (key == "plugin") {
    config.plugin = reader.string(value, key);
    // A plugin with a slash or the ending of a library is a file, anything else an id.
    if (config.plugin.ends_with(".so") || config.plugin.find('/') != std::string::npos) {
      config.plugin = path(config.plugin).string();
    }
  } else if (key == "weights") {
    config.weights = path(reader.string(value, key));
  } else if (key == "node_groups") {
    if (!value.IsSequence()) reader.fail(value.Mark(), "'node_groups' must be a list.");
    for (const auto& item : value) config.node_groups.push_back(read_group(reader, item));
  } else if (key == "max_seq_len") {
    config.max_seq_len = reader.integer(value, key, 1, kMaxCount);
  } else if (key == "max_concurrent_requests") {
    config.max_concurrent_requests = reader.integer(value, key, 1, 65536);
  } else if (key == "max_batch_tokens") {
    config.max_batch_tokens = reader.integer(value, key, 1, kMaxCount);
  } else if (key == "max_queue") {
    config.max_queue = reader.integer(value, key, 0, 1'000'000);
  } else if (key == "kv_cache_bytes") {
    config.kv_cache_bytes = reader.integer(value, key, 1, std::numeric_limits<std::int64_t>::max());
  } else if (key == "resources") {
    read_resources(reader, value, config);
  } else if (key == "model_kwargs") {
    config.model_kwargs = reader.map_value(value, key);
  } else if (key == "autocast_dtype") {
    config.autocast_dtype = read_dtype(reader, value);
  } else if (key == "threads") {
    config.threads = static_cast<int>(reader.integer(value, key, 1, 1024));
  } else {
    reader.fail_unknown_key(key_node, key, "a model", kModelKeys);
  }
}

DeploymentConfig read_model(YamlReader& reader, const YAML::Node& node, const std::filesystem::path& base) {
  DeploymentConfig config;
  reader.each(node, "a model", [&](const std::string& key, const YAML::Node& value, const YAML::Node& key_node) {
    read_key(reader, key, value, key_node, base, config);
  });
  if (config.weights.empty() && config.plugin.empty()) {
    reader.fail(node.Mark(), "A model needs 'weights', 'plugin' or both.");
  }
  return config;
}

void read_document(YamlReader& reader, const YAML::Node& document, const std::filesystem::path& base,
                   std::vector<DeploymentConfig>& configs) {
  if (!document.IsMap() || !document["models"].IsDefined()) {
    configs.push_back(read_model(reader, document, base));
    return;
  }
  reader.each(document, "the file", [&](const std::string& key, const YAML::Node& value, const YAML::Node& key_node) {
    if (key != "models") reader.fail_unknown_key(key_node, key, "a file with 'models'", kTopKeys);
    if (!value.IsSequence()) reader.fail(value.Mark(), "'models' must be a list.");
    for (const auto& item : value) configs.push_back(read_model(reader, item, base));
  });
}

}  // namespace

std::vector<DeploymentConfig> parse_deployment(std::string_view text, const std::string& name,
                                               const std::filesystem::path& base) {
  if (text.size() > kMaxFileBytes) {
    throw BadFile(name + ": The deployment file has " + std::to_string(text.size()) + " bytes; at most " +
                  std::to_string(kMaxFileBytes) + " are allowed.");
  }
  check_characters(text, name);
  YamlReader reader(name);
  std::vector<DeploymentConfig> configs;
  try {
    const std::string copy(text);
    check_document_count(copy, name);
    for (const auto& document : YAML::LoadAll(copy)) {
      if (!document.IsNull()) read_document(reader, document, base, configs);
    }
  } catch (const YAML::Exception& error) {
    reader.fail(error.mark, "This is not valid YAML: " + error.msg + ".");
  }
  if (configs.empty()) throw BadFile(name + ": The deployment file names no model.");
  std::set<std::string> names;
  for (const auto& config : configs) {
    if (!config.served_name.empty() && !names.insert(config.served_name).second) {
      throw BadFile(name + ": Two models have the served_name '" + config.served_name + "'.");
    }
  }
  return configs;
}

std::vector<DeploymentConfig> load_deployment(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw NotFound("Cannot read the deployment file " + file.string() + ".");
  std::string text(kMaxFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return parse_deployment(text, file.string(), file.parent_path());
}

}  // namespace cairn
