// A server over one FakeRuntime for a test, on a free port of the loopback address.
#pragma once

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/openai/server_app.hpp"
#include "tests/unit/host/fake_runtime.hpp"
#include "tests/unit/host/http_client.hpp"

namespace cairn::testing {

inline constexpr const char kTemplate[] =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% "
    "endif %}";

class TestServer {
 public:
  explicit TestServer(FakeRuntime::Options runtime_options = {}, ServerAppOptions options = {},
                      const std::string& chat_template = kTemplate) {
    options.port = 0;
    app_ = std::make_unique<ServerApp>(options);
    auto owned = std::make_unique<FakeRuntime>(std::move(runtime_options));
    runtime_ = owned.get();
    std::vector<ServedModel> models;
    models.push_back(make_model(std::move(owned), chat_template));
    models_ = std::make_shared<const ModelSet>(std::move(models));
    app_->serve(models_);
  }

  std::uint16_t port() const { return app_->port(); }
  FakeRuntime& runtime() { return *runtime_; }
  ServerApp& app() { return *app_; }

 private:
  std::shared_ptr<const ModelSet> models_;  // outlives the app: its runtime is a test's to the end
  FakeRuntime* runtime_ = nullptr;
  std::unique_ptr<ServerApp> app_;
};

// A runtime that answers every request with this text.
inline FakeRuntime::Options always(std::string text) {
  return {.script = [text = std::move(text)](const RequestSpec&) { return text; }};
}

inline boost::json::value parsed(const std::string& text) {
  return boost::json::parse(text);
}

}  // namespace cairn::testing
