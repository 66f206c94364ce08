/* The smallest Cairn plugin: a model that answers with its own prompt, one token per step. It needs nothing but abi.h.
 *
 * The model is one walk, a loop around one node:   prompt -> text_inputs -> [echo] -> new_token -> client
 *                                                                ^--- the rest ---'
 * clang-format off: laid out by hand, to be read on one page. */
#include "cairn/abi.h"

/* 1. The model as data. A name becomes a number once: its place in its array. */
enum { TEXT_INPUTS, NEW_TOKEN };
static const cairn_str signals[] = {CAIRN_STR("text_inputs"), CAIRN_STR("new_token")};
static const cairn_str loops[] = {CAIRN_STR("echo_loop")}, modalities[] = {CAIRN_STR("text")};
static const cairn_node_desc nodes[] = {{CAIRN_STR("echo"), 0, 0}};
static const cairn_graph_edge edges[] = {{NEW_TOKEN, CAIRN_EMIT_TO_CLIENT, CAIRN_EDGE_NEW_TOKEN, 0, CAIRN_NONE, 0, -1},
                                         {TEXT_INPUTS, 0, 0, CAIRN_NONE, CAIRN_NONE, 0, -1}};
static const cairn_graph_section sections[] = {
    {.kind = CAIRN_SECTION_LOOP, .children = {(const uint32_t[]){1}, 1}, .loop = 0, .max_iters = INT32_MAX},
    {.kind = CAIRN_SECTION_NODE, .inputs = {(const uint32_t[]){TEXT_INPUTS}, 1}, .outputs = CAIRN_SPAN(edges)}};
static const cairn_model_desc description = {sizeof description, CAIRN_STR("echo"), CAIRN_STR("echo"),
    .text = CAIRN_TEXT_BYTES, .input_modalities = CAIRN_SPAN(modalities), .output_modalities = CAIRN_SPAN(modalities),
    .signals = CAIRN_SPAN(signals), .loops = CAIRN_SPAN(loops), .nodes = CAIRN_SPAN(nodes), .vocab_size = 256,
    .walks = {&(const cairn_walk_desc){CAIRN_STR("echo"), CAIRN_SPAN(sections), 0, 0}, 1, 0}, .max_seq_len = 1 << 20};

/* 2. The node. Each hook gets all rows of a step at once. A row takes what was routed to it: the ids that remain. */
static cairn_status prepare_inputs(cairn_node* node, cairn_row_signals_span rows, cairn_arena* arena,
                                   cairn_node_inputs* out, uint64_t out_stride) {
  for (uint64_t i = 0; i < rows.count; ++i) {
    cairn_node_inputs* row = CAIRN_OUT_ROW(cairn_node_inputs, out, out_stride, i);
    row->input_ids = *CAIRN_AT(cairn_row_signals, rows, i)->inputs.data->tensors.data;
    row->row_status = row->input_ids.shape[0] > 0 ? CAIRN_ROW_OK : CAIRN_ROW_SKIP;
    row->input_seq_len = 1;
  }
  return CAIRN_STATUS_OK;
}
static cairn_status can_batch(cairn_node* node, const cairn_engine_inputs* in, uint32_t* out) { return *out = 1, 0; }

/* A row answers with two views into its ids, the rest (even answers) and the first (odd ones). No id is copied. */
struct answer { cairn_row_output output; cairn_tensor_view view; int64_t length; };
static cairn_status forward_batched(cairn_node* node, const cairn_engine_inputs* in, cairn_named_tensor_span tensors,
                                    cairn_batched_output* out) {
  struct answer* answers = CAIRN_ARENA_NEW(in->arena, struct answer, 2 * in->row_count);
  if (answers == NULL) return CAIRN_STATUS_RESOURCE_EXHAUSTED;
  for (uint32_t i = 0; i < 2 * in->row_count; ++i) {
    cairn_tensor_view ids = CAIRN_AT(cairn_node_inputs, in->inputs, i / 2)->input_ids;
    answers[i] = (struct answer){{i / 2, i % 2, {&answers[i].view, 1, 0}}, ids, i % 2 ? 1 : ids.shape[0] - 1};
    answers[i].view.shape = &answers[i].length;
    answers[i].view.byte_offset += i % 2 ? 0 : sizeof(int32_t);
  }
  return out->per_rid_outputs = (cairn_row_output_span){&answers->output, 2 * in->row_count, sizeof *answers}, 0;
}

/* After the step, on the main thread: a row of which nothing remains stops loop 0. */
static cairn_status check_stop(cairn_node* node, const cairn_host_rows* rows, cairn_stop_check* results) {
  for (uint64_t i = 0; i < rows->row_outputs.count; ++i) {
    const cairn_row_output* output = CAIRN_AT(cairn_row_output, rows->row_outputs, i);
    if (output->signal == TEXT_INPUTS && output->tensors.data->shape[0] == 0) results[output->row].stops = 1u << 0;
  }
  return CAIRN_STATUS_OK;
}
static const cairn_node_api node_api = {sizeof node_api, .prepare_inputs = prepare_inputs, .can_batch = can_batch,
                                        .forward_batched = forward_batched, .check_stop = check_stop};

/* 3. The model. It has no weights and no state; a request starts here, and is done when its first walk is. */
static cairn_status open_model(const cairn_open_args* args, cairn_model** out) { return *out = (void*)&nodes, 0; }
static cairn_status describe(cairn_model* model, const cairn_model_desc** out) { return *out = &description, 0; }
static cairn_status create_node(cairn_model* model, uint32_t i, cairn_node** out, const cairn_node_api** out_api) {
  return *out = (void*)&nodes[i], *out_api = &node_api, 0; }
static cairn_status initial_forward_args(cairn_model* model, const cairn_initial_args* args, cairn_forward_args* out) {
  cairn_input_edge* edge = CAIRN_ARENA_NEW(args->arena, cairn_input_edge, 1);
  if (edge == NULL) return CAIRN_STATUS_RESOURCE_EXHAUSTED;
  *edge = (cairn_input_edge){TEXT_INPUTS, 0, args->input_signals.data->tensors};
  return out->inputs = (cairn_input_edge_span){edge, 1, 0}, 0;
}
static const cairn_model_api model_api = {sizeof model_api, .open = open_model, .describe = describe,
    .create_node = create_node, .initial_forward_args = initial_forward_args};

CAIRN_MODEL_PLUGIN("ai.cairn.echo", "0.1.0", "Cairn", "echo", model_api);
