#include "host/cli/model_loading.hpp"

#include "core/base/log.hpp"
#include "core/plugin/open_weights.hpp"
#include "core/plugin/plugin_registry.hpp"
#include "core/runtime/local_runtime.hpp"
#include "host/cli/progress_bar.hpp"

namespace cairn {
namespace {

class ProgressForwarder final : public ProgressSink {
 public:
  explicit ProgressForwarder(const LoadProgress& progress) : progress_(progress) {}
  bool report(double fraction, std::string_view) override {
    if (progress_) progress_(fraction);
    return true;
  }

 private:
  const LoadProgress& progress_;
};

// A template that cannot be run is an error for chat only.
void load_template(const OpenWeights& weights, ServedModel& model) {
  model.bos_token = weights.bos_text();
  model.eos_token = weights.eos_text();
  if (!weights.chat_template_source()) {
    model.chat_template_error = "its file carries no chat template.";
    return;
  }
  try {
    model.chat_template = weights.chat_template();
  } catch (const std::exception& error) {
    model.chat_template_error = std::string("its chat template cannot be run (") + error.what() + ").";
    log(LogLevel::kWarning, "load", "Chat is off: " + model.chat_template_error);
  }
}

}  // namespace

ServedModel load_model(const DeploymentConfig& config, const std::vector<std::filesystem::path>& plugin_folders,
                       const LoadProgress& progress) {
  PluginRegistry registry;
  for (const auto& folder : plugin_folders) registry.scan(folder);
  const auto weights = config.weights.empty() ? nullptr : OpenWeights::open(config.weights);
  const PluginEntry entry = registry.choose(config.plugin, weights == nullptr ? config.model : weights->architecture());
  const auto plugin = PluginLibrary::load(entry.file, registry.policy());
  ProgressForwarder forwarder(progress);
  auto runtime = std::make_unique<LocalRuntime>(plugin, weights, config, &forwarder);

  ServedModel model;
  model.tokenizer = runtime->tokenizer();
  if (runtime->describe().text == TextSource::kBytes) {
    // Without a vocabulary there is no template either: the prompt of a conversation is its last message.
    model.chat_template = std::make_shared<const ChatTemplate>("{{ messages[-1].content }}", "bytes");
  } else if (weights != nullptr) {
    load_template(*weights, model);
  } else {
    model.chat_template_error = "it has no weights file that could carry a chat template.";
  }
  model.runtime = std::move(runtime);
  return model;
}

std::vector<ServedModel> load_models(const ModelSource& source) {
  std::vector<ServedModel> models;
  for (const auto& config : deployments_of(source)) {
    ProgressBar bar("Loading " + config.served_name);
    models.push_back(load_model(config, source.plugins, [&](double fraction) { bar.show(fraction); }));
  }
  return models;
}

}  // namespace cairn
