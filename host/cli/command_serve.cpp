// cairn serve: answers at once, loads the models, serves until a signal.
#include <iostream>

#include "core/base/log.hpp"
#include "host/cli/commands.hpp"
#include "host/cli/model_loading.hpp"
#include "host/openai/server_app.hpp"
#include "host/openai/version.hpp"

namespace cairn {

int run_serve(const ServeOptions& options) {
  ServerAppOptions app_options;
  app_options.host = options.host;
  app_options.port = options.port;
  app_options.io_threads = options.io_threads;
  app_options.http.body_bytes = options.max_body_bytes;
  app_options.http.connections = options.max_connections;
  app_options.drain_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options.drain_timeout_s * 1000));
  app_options.handle_signals = true;
  ServerApp app(app_options);  // first: a taken port shows before the weights are read
  const std::string host = options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
  const std::string url = "http://" + host + ":" + std::to_string(app.port());
  log(LogLevel::kInfo, "serve", "Cairn " + std::string(kVersion) + " listens on " + url + " and loads its models.");

  auto models = std::make_shared<const ModelSet>(load_models(options.source));
  for (const auto& model : models->models()) {
    const auto& about = model.runtime->describe();
    log(LogLevel::kInfo, "serve",
        "Serving '" + about.id + "' (" + about.architecture + ", plugin " + about.plugin_id + " " +
            about.plugin_version + ", context of " + std::to_string(about.max_seq_len) + " tokens).");
  }
  app.serve(std::move(models));
  std::cout << "Ready: an OpenAI client points at " << url << "/v1" << std::endl;
  app.run();
  log(LogLevel::kInfo, "serve", "Stopped.");
  return 0;
}

}  // namespace cairn
