// The models a host serves: each a runtime with what turns its clients' text into ids and back. Used by the OpenAI
// routes and the command line.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/runtime/model_runtime.hpp"
#include "core/text/template/chat_template.hpp"
#include "core/text/tokenizer.hpp"

namespace cairn {

// Immutable once served.
struct ServedModel {
  std::unique_ptr<ModelRuntime> runtime;
  std::shared_ptr<const Tokenizer> tokenizer;         // null when the model takes no text (TextSource::kNone)
  std::shared_ptr<const ChatTemplate> chat_template;  // null when it has none; then chat_template_error says why
  std::string chat_template_error;
  std::string bos_token;  // spellings that the template sees
  std::string eos_token;
};

// Shared by the routes; a request keeps the set it started with alive.
class ModelSet {
 public:
  explicit ModelSet(std::vector<ServedModel> models) : models_(std::move(models)) {}
  const std::vector<ServedModel>& models() const { return models_; }
  // nullptr when no model has that id.
  const ServedModel* find(std::string_view id) const {
    for (const auto& model : models_) {
      if (model.runtime->describe().id == id) return &model;
    }
    return nullptr;
  }

 private:
  std::vector<ServedModel> models_;
};

}  // namespace cairn
