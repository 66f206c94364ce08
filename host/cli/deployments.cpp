// Which models the command line asks for: --model, --models, --config or a plugin alone.
#include <set>

#include "core/base/error.hpp"
#include "host/cli/model_files.hpp"
#include "host/cli/model_loading.hpp"
#include "host/config/deployment_yaml.hpp"

namespace cairn {
namespace {

// The command line wins over the file.
void apply_overrides(const ModelSource& source, DeploymentConfig& config) {
  if (source.max_seq_len) config.max_seq_len = source.max_seq_len;
  if (source.max_concurrent_requests) config.max_concurrent_requests = source.max_concurrent_requests;
  if (source.max_batch_tokens) config.max_batch_tokens = source.max_batch_tokens;
  if (source.max_queue) config.max_queue = source.max_queue;
  if (source.kv_cache_bytes) config.kv_cache_bytes = source.kv_cache_bytes;
  if (source.threads > 0) config.threads = source.threads;
}

std::string default_name(const DeploymentConfig& config) {
  if (!config.weights.empty()) return model_name_of(config.weights);
  if (!config.model.empty()) return config.model;
  const std::filesystem::path plugin(config.plugin);
  return plugin.extension() == ".so" ? plugin.stem().string() : config.plugin;
}

}  // namespace

std::vector<DeploymentConfig> deployments_of(const ModelSource& source) {
  std::vector<DeploymentConfig> configs;
  if (!source.config.empty()) {
    configs = load_deployment(source.config);
  } else if (!source.models.empty()) {
    for (const auto& file : find_models(source.models)) {
      configs.push_back({.served_name = file.name, .plugin = source.plugin, .weights = file.path});
    }
    if (configs.empty()) throw NotFound("There is no model in the folder " + source.models.string() + ".");
  } else {
    configs.push_back({.served_name = source.served_name, .plugin = source.plugin, .weights = source.model});
  }
  std::set<std::string> names;
  for (auto& config : configs) {
    apply_overrides(source, config);
    if (config.served_name.empty()) config.served_name = default_name(config);
    if (!names.insert(config.served_name).second) {
      throw InvalidArgument("Two models would be served as '" + config.served_name + "'; give one another served_name.",
                            "served_name");
    }
  }
  return configs;
}

}  // namespace cairn
