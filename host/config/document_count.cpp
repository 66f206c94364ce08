#include "host/config/document_count.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <sstream>

#include "core/base/error.hpp"

namespace cairn {
namespace {

// Takes every event and does nothing.
class Ignore final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { (void)mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { (void)mark, (void)anchor; }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { (void)mark, (void)anchor; }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    (void)mark, (void)tag, (void)anchor, (void)value;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    (void)mark, (void)tag, (void)anchor, (void)style;
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    (void)mark, (void)tag, (void)anchor, (void)style;
  }
  void OnMapEnd() override {}
};

}  // namespace

void check_document_count(const std::string& text, const std::string& name) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Ignore ignore;
  for (int documents = 0; parser.HandleNextDocument(ignore); ++documents) {
    if (documents >= kMaxDocuments) {
      throw BadFile(name + ": The deployment file holds more than " + std::to_string(kMaxDocuments) +
                    " documents; a stray ',' at its start reads like that too.");
    }
  }
}

}  // namespace cairn
