// Serves the scripted runtime on a port, for trying real clients against the front end without a model:
// fake_server PORT. It answers with the prompt's own bytes.
#include <cstdio>
#include <cstdlib>

#include "host/openai/server_app.hpp"
#include "tests/unit/host/fake_runtime.hpp"

int main(int argc, char** argv) {
  using namespace cairn;
  ServerAppOptions options;
  options.port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 8000);
  options.handle_signals = true;
  ServerApp app(options);
  std::vector<ServedModel> models;
  models.push_back(testing::make_model(
      std::make_unique<testing::FakeRuntime>(testing::FakeRuntime::Options{
          .max_seq_len = 4096,
          .script =
              [](const RequestSpec& spec) { return std::string(spec.prompt_ids.begin(), spec.prompt_ids.end()); }}),
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% "
      "endif %}"));
  app.serve(std::make_shared<const ModelSet>(std::move(models)));
  std::printf("serving on port %u\n", app.port());
  app.run();
  return 0;
}
