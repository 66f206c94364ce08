// CAIRN_PLUGIN: the entry, the descriptor and the identity note of a C++ plugin with one model class.
#pragma once

#include "cairn/model_table.hpp"

namespace cairn::detail {

inline cairn_status plugin_init(const cairn_plugin*, const cairn_host* host) {
  services() = Services::from(host);
  return CAIRN_STATUS_OK;
}

template <class Concrete>
const void* plugin_interface(const cairn_plugin*, cairn_str id, std::uint32_t min_revision) {
  return text(id) == CAIRN_MODEL_INTERFACE && min_revision <= CAIRN_MODEL_REVISION ? ModelTable<Concrete>::get()
                                                                                   : nullptr;
}

}  // namespace cairn::detail

// At file scope, outside any namespace, once per plugin. Texts are literals: id in reverse DNS; needs and optional list
// host services as "cairn.ops/1 cairn.weights/1"; architectures lists the weights architectures the plugin serves.
#define CAIRN_PLUGIN(model_class, id_, version_, vendor_, needs_, optional_, architectures_)       \
  CAIRN_PLUGIN_IDENTITY(id_, version_, vendor_, "", "", "", needs_, optional_, architectures_, 0); \
  extern "C" CAIRN_EXPORT const cairn_plugin* cairn_plugin_entry(const cairn_host*) {              \
    static const cairn_plugin plugin = {CAIRN_SIZE(cairn_plugin, shutdown),                        \
                                        CAIRN_ABI_MAJOR,                                           \
                                        CAIRN_ABI_MINOR,                                           \
                                        CAIRN_TARGET_MINOR,                                        \
                                        0,                                                         \
                                        CAIRN_STR(id_),                                            \
                                        CAIRN_STR(version_),                                       \
                                        CAIRN_STR(vendor_),                                        \
                                        &cairn::detail::plugin_interface<model_class>,             \
                                        &cairn::detail::plugin_init,                               \
                                        nullptr};                                                  \
    return &plugin;                                                                                \
  }                                                                                                \
  static_assert(true, "a semicolon follows")
