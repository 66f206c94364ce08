/* A plugin that forgot its identity note. */
#include "cairn/abi.h"

const cairn_plugin* cairn_plugin_entry(const cairn_host* host) {
  return (void)host, (const cairn_plugin*)0;
}
