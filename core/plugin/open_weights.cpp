// The open weights file, its metadata in ABI form, and the tokenizer and chat template built from it on demand.
#include "core/plugin/open_weights.hpp"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "core/base/error.hpp"
#include "core/plugin/abi_value.hpp"
#include "core/plugin/status.hpp"
#include "core/weights/gguf.hpp"

namespace cairn {

namespace {

constexpr std::size_t kMaxMetadataKey = 1024;

const std::string* string_in(const Value* map, std::string_view key) {
  const Value* value = map == nullptr ? nullptr : map->find(key);
  return value == nullptr ? nullptr : value->get_if<std::string>();
}

// Hugging Face writes a template as one string, or as a list of {name, template} of which "default" is the chat's.
const std::string* template_in(const Value* value) {
  if (value == nullptr) return nullptr;
  if (const auto* text = value->get_if<std::string>()) return text;
  const auto* list = value->get_if<ValueList>();
  if (list == nullptr) return nullptr;
  for (const Value& entry : *list) {
    const std::string* name = string_in(&entry, "name");
    if (name != nullptr && *name == "default") return string_in(&entry, "template");
  }
  return nullptr;
}

// "rope_scaling.factor" in config.json. A part that is a number indexes a list. The whole rest of the path is tried as
// one key first, since keys may hold dots.
const Value* find_path(const Value* value, std::string_view path) {
  while (value != nullptr) {
    if (const Value* found = value->find(path)) return found;
    const std::size_t dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    if (const auto* list = value->get_if<ValueList>()) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
      const bool valid = error == std::errc() && end == part.data() + part.size() && index < list->size();
      value = valid ? &(*list)[index] : nullptr;
      if (dot == std::string_view::npos) return value;
    } else {
      if (dot == std::string_view::npos) return nullptr;
      value = value->find(part);
    }
    path.remove_prefix(dot + 1);
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<OpenWeights> OpenWeights::open(const std::filesystem::path& path) {
  return std::make_shared<OpenWeights>(WeightsFile::open(path));
}

OpenWeights::OpenWeights(std::shared_ptr<const WeightsFile> file)
    : file_(std::move(file)), architecture_(file_->architecture()) {}

OpenWeights::~OpenWeights() = default;

std::shared_ptr<const Tokenizer> OpenWeights::tokenizer() const {
  const std::lock_guard lock(mutex_);
  if (tokenizer_ == nullptr) tokenizer_ = Tokenizer::from_weights(*file_);
  return tokenizer_;
}

std::optional<std::string> OpenWeights::chat_template_source() const {
  if (const auto* gguf = dynamic_cast<const GgufFile*>(file_.get())) {
    const auto text = gguf->str("tokenizer.chat_template");
    return text ? std::optional<std::string>(*text) : std::nullopt;
  }
  const Value& metadata = file_->metadata();
  if (const std::string* text = template_in(metadata.find("chat_template"))) return *text;
  const Value* config = metadata.find("tokenizer_config");
  if (config == nullptr) return std::nullopt;
  const std::string* text = template_in(config->find("chat_template"));
  return text == nullptr ? std::nullopt : std::optional<std::string>(*text);
}

std::shared_ptr<const ChatTemplate> OpenWeights::chat_template() const {
  const std::lock_guard lock(mutex_);
  if (chat_template_ == nullptr) {
    const auto source = chat_template_source();
    if (!source) {
      throw NotFound(fmt::format("{} carries no chat template; use plain completions, or give a template.",
                                 file_->path().string()));
    }
    chat_template_ = std::make_shared<const ChatTemplate>(*source, file_->path().filename().string());
  }
  return chat_template_;
}

std::string OpenWeights::bos_text() const {
  const auto vocabulary = tokenizer();
  const auto id = vocabulary->bos_id();
  return id ? vocabulary->token_text(*id) : std::string();
}

std::string OpenWeights::eos_text() const {
  const auto vocabulary = tokenizer();
  const auto id = vocabulary->eos_id();
  return id ? vocabulary->token_text(*id) : std::string();
}

cairn_value OpenWeights::metadata(std::string_view key) const {
  if (key.size() > kMaxMetadataKey) throw NotFound("There is no metadata key of more than 1024 bytes.");
  const std::lock_guard lock(mutex_);
  if (const auto known = metadata_.find(key); known != metadata_.end()) return known->second;
  cairn_value result{};
  if (file_->format() == WeightsFormat::kGguf) {
    const Value* value = file_->metadata().find(key);
    result = value != nullptr ? to_abi_value(*value, arena_) : long_gguf_array(key);
  } else {
    const Value* value = find_path(file_->metadata().find("config"), key);
    if (value == nullptr) {
      throw NotFound(fmt::format("{} has no key '{}' in config.json.", file_->path().string(), key));
    }
    result = to_abi_value(*value, arena_);
  }
  metadata_.emplace(key, result);
  return result;
}

// Arrays over kMaxMetadataArray elements are not in metadata(); they are turned into lists when asked for.
cairn_value OpenWeights::long_gguf_array(std::string_view key) const {
  const auto* gguf = dynamic_cast<const GgufFile*>(file_.get());
  if (gguf == nullptr || !gguf->has(key)) {
    throw NotFound(fmt::format("{} has no metadata key '{}'.", file_->path().string(), key));
  }
  cairn_value result{};
  const auto fill = [&](std::size_t count, auto&& element) {
    auto* data = arena_.array<cairn_value>(count);
    for (std::size_t i = 0; i < count; ++i) element(i, data[i]);
    result.kind = CAIRN_VALUE_LIST;
    result.as.list = {data, count};
  };
  // The accessors throw BadFile for another kind of element, so each kind is tried in turn.
  const auto accept = [&](auto&& attempt) {
    try {
      return attempt();
    } catch (const BadFile&) {
      return false;
    }
  };
  const bool found = accept([&] {
                       const auto* strings = gguf->string_array(key);
                       if (strings == nullptr) return false;
                       fill(strings->size(), [&](std::size_t i, cairn_value& value) {
                         value.kind = CAIRN_VALUE_STRING;
                         value.as.string = to_abi_str((*strings)[i]);  // in the file's mapping
                       });
                       return true;
                     }) ||
                     accept([&] {
                       const auto integers = gguf->int_array(key);
                       if (!integers) return false;
                       fill(integers->size(), [&](std::size_t i, cairn_value& value) {
                         value.kind = CAIRN_VALUE_INT;
                         value.as.integer = (*integers)[i];
                       });
                       return true;
                     }) ||
                     accept([&] {
                       const auto floats = gguf->float_array(key);
                       if (!floats) return false;
                       fill(floats->size(), [&](std::size_t i, cairn_value& value) {
                         value.kind = CAIRN_VALUE_FLOAT;
                         value.as.real = static_cast<double>((*floats)[i]);
                       });
                       return true;
                     }) ||
                     accept([&] {
                       const auto bytes = gguf->byte_array(key);
                       if (!bytes) return false;
                       result.kind = CAIRN_VALUE_BYTES;
                       result.as.bytes = {bytes->data(), bytes->size()};
                       return true;
                     });
  if (!found) {
    throw NotFound(fmt::format("{} has a metadata key '{}' of a kind that cannot be passed to a plugin.",
                               file_->path().string(), key));
  }
  return result;
}

}  // namespace cairn
