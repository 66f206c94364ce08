/* A plugin built without cairn_add_plugin: it exports a function of its own. */
#include "cairn/abi.h"

static const cairn_model_api model_api = {.struct_size = CAIRN_SIZE(cairn_model_api, checkpoint_path)};
CAIRN_MODEL_PLUGIN("ai.cairn.bad", "1.0", "Cairn", "none", model_api);

CAIRN_EXPORT int helper(void);
int helper(void) {
  return 1;
}
