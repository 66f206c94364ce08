// A plugin that breaks the first rule: its entry function lets an exception escape.
#include <stdexcept>

#include "cairn/abi.h"

CAIRN_PLUGIN_IDENTITY("ai.cairn.throws", "1.0", "Cairn tests", "test", "", "", "", "", "", CAIRN_IDENTITY_UNLOADABLE);

const cairn_plugin* cairn_plugin_entry(const cairn_host*) {
  throw std::runtime_error("thrown by the plugin");
}
