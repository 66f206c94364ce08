// Loading step by step; whatever was built when a step fails is taken down by the owners on the stack.
#include "core/plugin/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/plugin/abi_value.hpp"
#include "core/plugin/host_services.hpp"
#include "core/plugin/plugin_mapping.hpp"
#include "core/plugin/refusal.hpp"
#include "core/plugin/status.hpp"
#include "core/plugin/thread_context.hpp"

namespace cairn {

namespace {

ThreadContext loading_context() {
  ThreadContext context = current_thread();
  context.classes |= CAIRN_THREAD_CONTROL;
  context.loading = true;
  return context;
}

std::string wanted(const PluginIdentity& identity) {
  return fmt::format("plugin ABI {}.{}", identity.abi_major, identity.min_host_minor);
}

[[noreturn]] void refuse(std::string_view file, const PluginIdentity& identity, std::string problem,
                         std::string action) {
  throw BadFile(refusal_text({.file = file,
                              .problem = std::move(problem),
                              .wants = wanted(identity),
                              .offers = host_offer(),
                              .too_old = "Neither side is too old",
                              .action = std::move(action)}));
}

void check_folder(const std::filesystem::path& file, const LoadPolicy& policy) {
  if (policy.allowed_folders.empty()) return;
  std::error_code error;
  const auto resolved = std::filesystem::canonical(file, error);
  if (error) throw NotFound(fmt::format("There is no plugin file {}; check the path.", file.string()));
  std::string folders;
  for (const auto& folder : policy.allowed_folders) {
    const auto allowed = std::filesystem::canonical(folder, error);
    if (!error) {
      const auto [end, ignored] = std::mismatch(allowed.begin(), allowed.end(), resolved.begin(), resolved.end());
      if (end == allowed.end()) return;
    }
    folders += (folders.empty() ? "" : ", ") + folder.string();
  }
  throw NotSupported(refusal_text({.file = file.string(),
                                   .problem = "it does not lie in a folder that plugins may come from",
                                   .wants = fmt::format("to be loaded from {}", resolved.parent_path().string()),
                                   .offers = fmt::format("{} with plugins from {}", host_offer(), folders),
                                   .too_old = "Neither side is too old",
                                   .action = "Move the plugin there, or add its folder to the host's configuration"}));
}

std::string unique_tag(const std::string& id) {
  static std::atomic<unsigned> counter{0};
  std::string name = id.substr(0, 100);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '/' || c == ' '; }, '_');
  return fmt::format("cairn-plugin-{}-{}", counter.fetch_add(1), name);
}

// Runs entry; a C++ exception out of it is turned into a refusal. The exception object, whose code may lie in the
// plugin, is gone before this returns.
const cairn_plugin* call_entry(cairn_plugin_entry_fn entry, std::string& thrown) {
  const ThreadScope scope(loading_context());
  try {
    return entry(host_base());
  } catch (const std::exception& e) {
    thrown = fmt::format("its entry function let an exception escape ({})", e.what());
  } catch (...) {
    thrown = "its entry function let an exception escape";
  }
  return nullptr;
}

cairn_status call_init(const cairn_plugin& plugin) {
  const ThreadScope scope(loading_context());
  take_status_message();
  return guard("init let an exception escape", [&] { return plugin.init(&plugin, host_base()); });
}

void cross_check(const PluginIdentity& note, const cairn_plugin& plugin, std::string_view file) {
  const std::string rebuild =
      "Rebuild the plugin so that CAIRN_PLUGIN_IDENTITY and its cairn_plugin agree; a file that was "
      "edited after the build must not be trusted";
  const auto text = [&](std::string_view name, std::string_view in_note, cairn_str in_plugin) {
    const std::string_view value = from_abi_str(in_plugin);
    if (in_note == value) return;
    refuse(file, note, fmt::format("its note says {} '{}' and its code says '{}'", name, in_note, value), rebuild);
  };
  const auto number = [&](std::string_view name, std::uint32_t in_note, std::uint32_t in_plugin) {
    if (in_note == in_plugin) return;
    refuse(file, note, fmt::format("its note says {} {} and its code says {}", name, in_note, in_plugin), rebuild);
  };
  number("abi_major", note.abi_major, plugin.abi_major);
  number("built_minor", note.built_minor, plugin.built_minor);
  number("min_host_minor", note.min_host_minor, plugin.min_host_minor);
  text("id", note.id, plugin.id);
  text("version", note.version, plugin.version);
  text("vendor", note.vendor, plugin.vendor);
}

}  // namespace

std::shared_ptr<PluginLibrary> PluginLibrary::load(const std::filesystem::path& file, const LoadPolicy& policy) {
  const std::string name = file.string();
  check_folder(file, policy);
  const FileDescriptor original = open_plugin_file(file);
  // Refused cheaply from the file first; what counts is the note of the copy, whose bytes are the ones that run.
  check_identity(read_identity_note(original.get(), name), policy, name);
  const std::string tag = unique_tag(file.filename().string());
  FileDescriptor sealed = sealed_copy(original.get(), name, tag);

  std::shared_ptr<PluginLibrary> library(new PluginLibrary());
  library->file_ = file;
  library->identity_ = read_identity_note(sealed.get(), name);
  const PluginIdentity& note = library->identity_;
  check_identity(note, policy, name);

  std::string problem;
  try {
    library->mapping_ = std::make_shared<PluginMapping>(std::move(sealed), tag);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    problem = fmt::format("the system's loader does not take it ({})", e.what());
  }
  if (!problem.empty()) {
    refuse(name, note, problem,
           "Build the plugin so that it needs nothing but libc and libstdc++ of this system (cairn_add_plugin() does)");
  }
  const cairn_plugin_entry_fn entry = library->mapping_->entry();
  if (entry == nullptr) {
    refuse(name, note, "it does not export " CAIRN_ENTRY_SYMBOL,
           "Define " CAIRN_ENTRY_SYMBOL " and mark it CAIRN_EXPORT");
  }
  const cairn_plugin* plugin = call_entry(entry, problem);
  if (!problem.empty())
    refuse(name, note, problem, "Report it to the plugin's vendor: nothing may unwind out of a plugin");
  if (plugin == nullptr) {
    throw NotSupported(refusal_text(
        {.file = name,
         .problem = "it looked at this host and declined (its entry function returned NULL)",
         .wants = wanted(note),
         .offers = host_offer(),
         .too_old = "The plugin does not say which side is too old",
         .action = "Look at the log for its reason, and try the newest Cairn and the newest build of the plugin"}));
  }
  if (plugin->struct_size < CAIRN_SIZE(cairn_plugin, shutdown) || plugin->get_interface == nullptr) {
    refuse(name, note,
           fmt::format("its description is incomplete ({} bytes, get_interface {})", plugin->struct_size,
                       plugin->get_interface == nullptr ? "missing" : "present"),
           "Fill struct_size with sizeof(cairn_plugin) and set get_interface");
  }
  cross_check(note, *plugin, name);
  register_mapping(library->mapping_);
  if (plugin->init != nullptr) {
    const cairn_status status = call_init(*plugin);
    if (status != CAIRN_STATUS_OK) {
      const std::string reason = take_status_message();
      refuse(
          name, note,
          fmt::format("its init failed with {} ({})", status_name(status), reason.empty() ? "no reason given" : reason),
          "Do what the plugin's message says, or report it to the plugin's vendor");
    }
  }
  library->descriptor_ = plugin;
  library->initialised_ = true;
  // What does not claim to be unloadable may have threads or thread-local objects that need its code until the end.
  if ((note.flags & CAIRN_IDENTITY_UNLOADABLE) == 0) library->mapping_->keep_mapped();
  library->model_api_ = read_sized(
      static_cast<const cairn_model_api*>(library->find_interface(CAIRN_MODEL_INTERFACE, CAIRN_MODEL_REVISION)));
  return library;
}

PluginLibrary::~PluginLibrary() {
  if (!initialised_) return;
  try {
    const UnloadReport report = unload();
    if (!report.unmapped) {
      log(LogLevel::kInfo, "plugin", fmt::format("{} stays mapped: {}.", file_.string(), report.detail));
    }
  } catch (...) {
    log(LogLevel::kError, "plugin", "A plugin could not be unloaded for lack of memory.");
  }
}

const void* PluginLibrary::find_interface(std::string_view id, std::uint32_t min_revision) const {
  if (descriptor_ == nullptr) return nullptr;
  return descriptor_->get_interface(descriptor_, to_abi_str(id), min_revision);
}

const cairn_model_api& PluginLibrary::model_api() const {
  if (model_api_.struct_size == 0) {
    throw NotSupported(refusal_text({.file = file_.string(),
                                     .problem = "it offers no " CAIRN_MODEL_INTERFACE "/1",
                                     .wants = wanted(identity_),
                                     .offers = fmt::format("{}, which serves models only", host_offer()),
                                     .too_old = "Neither side is too old",
                                     .action = "Choose a plugin that implements a model"}));
  }
  const auto require = [&](bool present, const char* function) {
    if (!present) {
      refuse(file_.string(), identity_, fmt::format("its model table lacks the required function {}", function),
             "Report it to the plugin's vendor");
    }
  };
  require(model_api_.open != nullptr, "open");
  require(model_api_.describe != nullptr, "describe");
  require(model_api_.initial_forward_args != nullptr, "initial_forward_args");
  require(model_api_.create_node != nullptr, "create_node");
  return model_api_;
}

UnloadReport PluginLibrary::unload() {
  if (mapping_ == nullptr) return {.unmapped = true, .detail = {}};
  if (initialised_ && descriptor_->shutdown != nullptr) {
    ThreadContext context = current_thread();
    context.classes |= CAIRN_THREAD_CONTROL;
    const ThreadScope scope(context);
    (void)guard("shutdown", [&] { descriptor_->shutdown(descriptor_); });
  }
  initialised_ = false;
  descriptor_ = nullptr;
  model_api_ = {};
  const std::string tag = mapping_->tag();
  const std::weak_ptr<PluginMapping> watch = mapping_;
  mapping_.reset();
  if (!is_mapped(tag)) return {.unmapped = true, .detail = {}};
  if (const long holders = watch.use_count(); holders > 0) {
    return {.unmapped = false, .detail = fmt::format("{} host objects still use its code", holders)};
  }
  if ((identity_.flags & CAIRN_IDENTITY_UNLOADABLE) == 0) {
    return {.unmapped = false, .detail = "it does not claim to be unloadable, so its code is kept to the end"};
  }
  return {.unmapped = false,
          .detail =
              "it claims to be unloadable, but the system's loader keeps it (a thread-local destructor, a unique "
              "symbol, or another user)"};
}

}  // namespace cairn
