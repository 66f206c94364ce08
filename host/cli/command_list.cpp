// cairn models and cairn plugins: what lies in a folder, without loading any of it.
#include <iomanip>
#include <iostream>

#include "core/base/error.hpp"
#include "core/plugin/plugin_registry.hpp"
#include "core/weights/weights_file.hpp"
#include "host/cli/commands.hpp"
#include "host/cli/model_files.hpp"
#include "host/openai/json_writer.hpp"

namespace cairn {
namespace {

struct ModelRow {
  ModelFile file;
  std::string architecture;
  const char* format = "";
  std::size_t tensors = 0;
  std::size_t bytes = 0;
  std::string error;
};

ModelRow inspect_model(const ModelFile& file) {
  ModelRow row{.file = file};
  try {
    const auto weights = WeightsFile::open(file.path);
    row.architecture = weights->architecture();
    row.format = weights->format() == WeightsFormat::kGguf ? "gguf" : "safetensors";
    row.tensors = weights->tensors().size();
    row.bytes = weights->total_bytes();
  } catch (const std::exception& error) {
    row.error = error.what();
  }
  return row;
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + item;
  return text.empty() ? "-" : text;
}

std::string one_line(const PluginIdentity& identity) {
  return identity.id + " " + identity.version + " by " + (identity.vendor.empty() ? "unknown" : identity.vendor) +
         "; models: " + joined(identity.architectures);
}

void print_json(const std::vector<ModelRow>& rows) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const auto& row : rows) {
    json.begin_object().field("name", row.file.name).field("path", row.file.path.string());
    if (row.error.empty()) {
      json.field("format", row.format).field("architecture", row.architecture);
      json.field("tensors", static_cast<std::int64_t>(row.tensors));
      json.field("weight_bytes", static_cast<std::int64_t>(row.bytes));
    } else {
      json.field("error", row.error);
    }
    json.end_object();
  }
  json.end_array();
  std::cout << out << '\n';
}

}  // namespace

int run_models(const std::filesystem::path& folder, bool json) {
  std::vector<ModelRow> rows;
  for (const auto& file : find_models(folder)) rows.push_back(inspect_model(file));
  if (json) {
    print_json(rows);
    return 0;
  }
  if (rows.empty()) std::cerr << "There is no model in " << folder.string() << ".\n";
  for (const auto& row : rows) {
    std::cout << row.file.name << '\n';
    if (!row.error.empty()) {
      std::cout << "  cannot be read: " << row.error << '\n';
      continue;
    }
    std::cout << "  " << row.format << ", " << (row.architecture.empty() ? "unknown architecture" : row.architecture)
              << ", " << row.tensors << " tensors, " << std::fixed << std::setprecision(1)
              << static_cast<double>(row.bytes) / 1e6 << " MB\n";
  }
  return 0;
}

int run_plugins_list(const std::vector<std::filesystem::path>& folders) {
  PluginRegistry registry;
  for (const auto& folder : folders) registry.scan(folder);
  for (const auto& entry : registry.entries()) {
    std::cout << entry.file.string() << '\n';
    if (entry.identity) std::cout << "  " << one_line(*entry.identity) << '\n';
    if (!entry.usable()) std::cout << "  cannot be loaded: " << entry.refusal << '\n';
  }
  if (registry.entries().empty()) std::cerr << "There is no plugin in these folders.\n";
  return 0;
}

int run_plugins_inspect(const std::filesystem::path& file) {
  const PluginIdentity identity = read_identity_note(file);
  std::cout << "id                  " << identity.id << '\n'
            << "version             " << identity.version << '\n'
            << "vendor              " << identity.vendor << '\n'
            << "build               " << identity.build << '\n'
            << "plugin ABI          " << identity.abi_major << "." << identity.built_minor << ", needs a host with "
            << identity.abi_major << "." << identity.min_host_minor << " or newer\n"
            << "target              " << identity.target << '\n'
            << "CPU features        " << joined(identity.cpu_features) << '\n'
            << "device runtime      " << (identity.device_runtime.empty() ? "-" : identity.device_runtime) << '\n'
            << "interfaces          " << joined(identity.interfaces) << '\n'
            << "optional interfaces " << joined(identity.optional_interfaces) << '\n'
            << "architectures       " << joined(identity.architectures) << '\n'
            << "toolchain           " << identity.toolchain << '\n';
  try {
    check_identity(identity, {}, file.string());
    std::cout << "this host           can load it\n";
  } catch (const NotSupported& refusal) {
    std::cout << "this host           cannot load it: " << refusal.what() << '\n';
  }
  return 0;
}

}  // namespace cairn
