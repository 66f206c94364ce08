// SafetensorsModel: which files a model folder is made of, and the JSON beside them.
#include "core/weights/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/weights/json_value.hpp"
#include "core/weights/quote_name.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWholeModel = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kTokenizer = "tokenizer.json";
constexpr std::size_t kMaxSideFile = std::size_t{16} << 20;
constexpr std::size_t kMaxIndexFile = std::size_t{64} << 20;
constexpr std::size_t kMaxTemplateFile = std::size_t{4} << 20;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// A plain file name: nothing that could leave the folder or be taken for another path.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20; });
}

// What is in a folder without safetensors, as advice.
std::string folder_advice(const fs::path& directory) {
  std::error_code error;
  bool pickle = false;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const fs::path& file = it->path();
    if (file.extension() == ".gguf") return fmt::format("It holds a GGUF file: open {} itself.", file.string());
    pickle = pickle || file.extension() == ".bin" || file.extension() == ".pth";
  }
  if (pickle) return "It holds PyTorch pickles, which are not read: convert them to safetensors.";
  return "Give a folder as downloaded from Hugging Face, or a .gguf or .safetensors file.";
}

}  // namespace

SafetensorsIndex parse_safetensors_index(std::string_view text, const std::string& name) {
  const Value json = parse_json_value(text, name);
  const Value* map_value = json.find("weight_map");
  const auto* map = map_value == nullptr ? nullptr : map_value->get_if<ValueMap>();
  if (map == nullptr) throw BadFile(fmt::format("{} has no object \"weight_map\"; download it again.", name));
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [tensor, file] : *map) {
    const auto* shard = file.get_if<std::string>();
    if (shard == nullptr || !is_plain_name(*shard)) {
      throw BadFile(
          fmt::format("{} puts tensor {} into {}, which is not a plain file name; shards must lie beside the index.",
                      name, quote_name(tensor), shard == nullptr ? "something that is no string" : quote_name(*shard)));
    }
    shards[*shard].push_back(tensor);
  }
  SafetensorsIndex index;
  for (auto& [file, tensors] : shards) index.shards.push_back({file, std::move(tensors)});
  return index;
}

SafetensorsModel::SafetensorsModel(fs::path path, fs::path directory)
    : WeightsFile(std::move(path), std::move(directory)) {}

std::shared_ptr<SafetensorsModel> SafetensorsModel::open_file(const fs::path& path) {
  const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::shared_ptr<SafetensorsModel> model(new SafetensorsModel(path, directory));
  model->load({path}, {});
  return model;
}

std::shared_ptr<SafetensorsModel> SafetensorsModel::open_directory(const fs::path& path) {
  std::shared_ptr<SafetensorsModel> model(new SafetensorsModel(path, path));
  if (is_file(path / kWholeModel)) {
    model->load({path / kWholeModel}, {});
  } else if (is_file(path / kIndex)) {
    const SafetensorsIndex index =
        parse_safetensors_index(read_text_file(path / kIndex, kMaxIndexFile), (path / kIndex).string());
    std::vector<fs::path> files;
    for (const auto& shard : index.shards) files.push_back(path / shard.file);
    model->load(files, index);
  } else if (is_file(path / kTokenizer)) {
    model->load({}, {});
  } else {
    throw NotFound(fmt::format("The folder {} has neither {} nor {} nor {}. {}", path.string(), kWholeModel, kIndex,
                               kTokenizer, folder_advice(path)));
  }
  return model;
}

void SafetensorsModel::load(const std::vector<fs::path>& files, const SafetensorsIndex& index) {
  std::vector<TensorInfo> tensors;
  Value header_metadata;
  for (const fs::path& file : files) {
    mappings_.emplace_back(file);
    SafetensorsContents contents = parse_safetensors(mappings_.back().bytes(), file.string());
    std::move(contents.tensors.begin(), contents.tensors.end(), std::back_inserter(tensors));
    if (header_metadata.is_none()) header_metadata = std::move(contents.metadata);
  }
  adopt_tensors(std::move(tensors));
  for (const auto& shard : index.shards) {
    const std::string file = (directory() / shard.file).string();
    for (const std::string& name : shard.tensors) {
      const TensorInfo* tensor = find(name);
      if (tensor == nullptr || tensor->file != file) {
        throw BadFile(fmt::format("{} says that tensor {} lies in {}, where it is not; download both again.",
                                  (directory() / kIndex).string(), quote_name(name), file));
      }
    }
  }
  Value metadata = read_side_files();
  if (!header_metadata.is_none()) metadata.set("safetensors_metadata", std::move(header_metadata));
  adopt_metadata(std::move(metadata));
}

Value SafetensorsModel::read_side_files() const {
  Value metadata{ValueMap{}};
  for (const std::string key : {"config", "tokenizer_config", "generation_config", "special_tokens_map"}) {
    const auto file = side_file(key + ".json");
    if (file) metadata.set(key, parse_json_value(read_text_file(*file, kMaxSideFile), file->string()));
  }
  if (const auto file = side_file("chat_template.jinja")) {
    metadata.set("chat_template", read_text_file(*file, kMaxTemplateFile));
  } else if (const auto json_file = side_file("chat_template.json")) {
    const Value json = parse_json_value(read_text_file(*json_file, kMaxSideFile), json_file->string());
    if (const Value* text = json.find("chat_template")) metadata.set("chat_template", *text);
  }
  return metadata;
}

std::string SafetensorsModel::architecture() const {
  const Value* config = metadata().find("config");
  if (config == nullptr) return {};
  if (const Value* type = config->find("model_type")) {
    if (const auto* text = type->get_if<std::string>()) return *text;
  }
  if (const Value* names = config->find("architectures")) {
    const auto* list = names->get_if<ValueList>();
    const auto* first = list == nullptr || list->empty() ? nullptr : list->front().get_if<std::string>();
    if (first != nullptr) return *first;
  }
  return {};
}

}  // namespace cairn
