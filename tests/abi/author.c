/* What abi.h offers to authors in C, used once each: it must compile without a warning. */
#include "cairn/abi.h"

static const cairn_str names[] = {CAIRN_STR("one"), CAIRN_STR("two")};
static const cairn_str_span span = CAIRN_SPAN(names);
static const cairn_model_api model_api = {.struct_size = CAIRN_SIZE(cairn_model_api, checkpoint_path)};
CAIRN_MODEL_PLUGIN("ai.cairn.test", "1.0", "Cairn", "none", model_api);

int64_t* author(cairn_arena* arena, cairn_node_inputs* rows, const cairn_model_api* api) {
  cairn_node_inputs* row = CAIRN_OUT_ROW(cairn_node_inputs, rows, sizeof *rows, 1);
  row->input_seq_len = (int64_t)CAIRN_AT(cairn_str, span, 1)->size;
  return CAIRN_HAS(api, cairn_model_api, open) ? CAIRN_ARENA_NEW(arena, int64_t, 4) : NULL;
}
