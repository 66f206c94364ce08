// From the command line to served models: configs, plugin, weights, runtime, text. The only file of the host that knows
// which ModelRuntime it makes.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "core/runtime/deployment.hpp"
#include "core/runtime/model_runtime.hpp"
#include "host/cli/commands.hpp"
#include "host/openai/served_model.hpp"

namespace cairn {

// The fraction of a model's weights that is ready, from 0 to 1.
using LoadProgress = std::function<void(double)>;

// One config per model that the source names; every one has a served_name.
std::vector<DeploymentConfig> deployments_of(const ModelSource& source);

// Loads the plugin and the weights of one config and starts its runtime. Throws what the loader and the readers throw.
ServedModel load_model(const DeploymentConfig& config, const std::vector<std::filesystem::path>& plugin_folders,
                       const LoadProgress& progress);

// All models of the source, one after the other, with a progress bar on a terminal.
std::vector<ServedModel> load_models(const ModelSource& source);

}  // namespace cairn
