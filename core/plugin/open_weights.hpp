// What cairn_weights is on the host's side: an open weights file with the tokenizer and chat template it carries.
// Opened by the runtime, used by the weights, tokenizer and chat template services and by the front end.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/abi.h"
#include "core/plugin/arena.hpp"
#include "core/text/template/chat_template.hpp"
#include "core/text/tokenizer.hpp"
#include "core/weights/weights_file.hpp"

namespace cairn {

// Any thread. Must outlive every model that was opened with it.
class OpenWeights {
 public:
  // Throws what WeightsFile::open throws.
  static std::shared_ptr<OpenWeights> open(const std::filesystem::path& path);
  explicit OpenWeights(std::shared_ptr<const WeightsFile> file);
  ~OpenWeights();
  OpenWeights(const OpenWeights&) = delete;
  OpenWeights& operator=(const OpenWeights&) = delete;

  const WeightsFile& file() const { return *file_; }
  // Built at the first call. Throws NotFound when the file carries none, BadFile or NotSupported when it cannot be
  // used.
  std::shared_ptr<const Tokenizer> tokenizer() const;
  std::shared_ptr<const ChatTemplate> chat_template() const;
  // The source of the chat template as the file gives it, or no value.
  std::optional<std::string> chat_template_source() const;
  // Spelling of the tokenizer's BOS and EOS; empty without one.
  std::string bos_text() const;
  std::string eos_text() const;

  std::string_view architecture() const { return architecture_; }
  // Metadata by GGUF key, or by dotted path into config.json ("rope_scaling.factor", "architectures.0"). The answer
  // lives as long as this object. Throws NotFound.
  cairn_value metadata(std::string_view key) const;

  cairn_weights* handle() noexcept { return reinterpret_cast<cairn_weights*>(this); }
  static const OpenWeights* from_handle(const cairn_weights* handle) noexcept {
    return reinterpret_cast<const OpenWeights*>(handle);
  }

 private:
  cairn_value long_gguf_array(std::string_view key) const;

  std::shared_ptr<const WeightsFile> file_;
  std::string architecture_;
  mutable std::mutex mutex_;  // guards everything below
  mutable std::shared_ptr<const Tokenizer> tokenizer_;
  mutable std::shared_ptr<const ChatTemplate> chat_template_;
  mutable Arena arena_;
  mutable std::map<std::string, cairn_value, std::less<>> metadata_;
};

}  // namespace cairn
