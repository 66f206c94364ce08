/* A language model whose forward does nothing: the walks, resources and step declarations of a Llama-type decoder, and
 * token 1 for every row. Used by step_bench to time the host alone. */
#include "cairn/abi.h"

enum { TEXT_INPUTS, NEW_TOKEN };
enum { PREFILL, DECODE, COMBINED };
enum { KV, ATTENTION, POSITION, SAMPLER, RESOURCES };

static const cairn_str signals[] = {CAIRN_STR("text_inputs"), CAIRN_STR("new_token")};
static const cairn_str loops[] = {CAIRN_STR("decode_loop")};
static const cairn_str modalities[] = {CAIRN_STR("text")};
static const cairn_node_desc nodes[] = {{CAIRN_STR("LLM"), CAIRN_NODE_AUTOREGRESSIVE | CAIRN_NODE_CHUNKED_PREFILL, 0}};
static const uint32_t input_signals[] = {TEXT_INPUTS};
static const uint32_t first_node[] = {0};
static const uint32_t loop_child[] = {1};
static const uint32_t combined_walks[] = {PREFILL, DECODE};

static const cairn_graph_edge prefill_edges[] = {
    {NEW_TOKEN, CAIRN_EMIT_TO_CLIENT, CAIRN_EDGE_NEW_TOKEN | CAIRN_EDGE_PERSIST, 0, CAIRN_NONE, 0, -1, 0}};
static const cairn_graph_edge decode_edges[] = {
    {NEW_TOKEN, CAIRN_EMIT_TO_CLIENT, CAIRN_EDGE_NEW_TOKEN, 0, CAIRN_NONE, 0, -1, 0},
    {TEXT_INPUTS, 0, 0, CAIRN_NONE, CAIRN_NONE, 0, -1, 0}};
static const cairn_graph_section prefill_sections[] = {{.kind = CAIRN_SECTION_NODE,
                                                        .inputs = {input_signals, 1},
                                                        .outputs = CAIRN_SPAN(prefill_edges),
                                                        .loop = CAIRN_NONE}};
static const cairn_graph_section decode_sections[] = {
    {.kind = CAIRN_SECTION_LOOP, .children = {loop_child, 1}, .loop = 0, .max_iters = INT32_MAX},
    {.kind = CAIRN_SECTION_NODE,
     .inputs = {input_signals, 1},
     .outputs = CAIRN_SPAN(decode_edges),
     .loop = CAIRN_NONE}};
static const cairn_walk_desc walks[] = {{CAIRN_STR("prefill"), CAIRN_SPAN(prefill_sections), 0, 0},
                                        {CAIRN_STR("decode"), CAIRN_SPAN(decode_sections), 0, 0}};
static const cairn_combined_walk_desc combined[] = {{CAIRN_STR("prefill_decode"), 0, 0, {combined_walks, 2}}};

static const cairn_kv_config kv = {
    .struct_size = sizeof(cairn_kv_config), .num_layers = 1, .num_kv_heads = 1, .head_dim = 16, .max_seq_len = 1 << 16};
static const cairn_attention_config attention = {.struct_size = sizeof(cairn_attention_config), .kv_cache = KV};
static const cairn_position_config position = {
    .struct_size = sizeof(cairn_position_config), .kv_cache = KV, .head_dim = 16};
static const cairn_sampler_config sampler = {.struct_size = sizeof(cairn_sampler_config), .vocab_size = 256};
static const cairn_resource_spec resources[] = {
    {CAIRN_STR("kv"), CAIRN_RESOURCE_KV, 0, {first_node, 1}, &kv, {NULL, 0}},
    {CAIRN_STR("attn"), CAIRN_RESOURCE_ATTENTION, 0, {first_node, 1}, &attention, {NULL, 0}},
    {CAIRN_STR("rope"), CAIRN_RESOURCE_POSITION, 0, {first_node, 1}, &position, {NULL, 0}},
    {CAIRN_STR("sampler"), CAIRN_RESOURCE_SAMPLER, 0, {first_node, 1}, &sampler, {NULL, 0}}};
static const cairn_model_desc description = {.struct_size = sizeof(cairn_model_desc),
                                             .name = CAIRN_STR("null"),
                                             .architecture = CAIRN_STR("null"),
                                             .text = CAIRN_TEXT_BYTES,
                                             .input_modalities = CAIRN_SPAN(modalities),
                                             .output_modalities = CAIRN_SPAN(modalities),
                                             .signals = CAIRN_SPAN(signals),
                                             .loops = CAIRN_SPAN(loops),
                                             .nodes = CAIRN_SPAN(nodes),
                                             .walks = CAIRN_SPAN(walks),
                                             .combined_walks = CAIRN_SPAN(combined),
                                             .resources = CAIRN_SPAN(resources),
                                             .max_seq_len = 1 << 16,
                                             .vocab_size = 256};

static cairn_status prepare_inputs(cairn_node* node, cairn_row_signals_span rows, cairn_arena* arena,
                                   cairn_node_inputs* out, uint64_t out_stride) {
  (void)node, (void)arena;
  for (uint64_t i = 0; i < rows.count; ++i) {
    cairn_node_inputs* row = CAIRN_OUT_ROW(cairn_node_inputs, out, out_stride, i);
    row->input_ids = *CAIRN_AT(cairn_row_signals, rows, i)->inputs.data->tensors.data;
    row->input_seq_len = row->input_ids.shape[0];
  }
  return CAIRN_STATUS_OK;
}

static cairn_status can_batch(cairn_node* node, const cairn_engine_inputs* inputs, uint32_t* out) {
  (void)node, (void)inputs;
  *out = 1;
  return CAIRN_STATUS_OK;
}

static cairn_status declare_step(cairn_node* node, const cairn_engine_inputs* inputs, const cairn_step** out) {
  (void)node;
  cairn_segment* segments = CAIRN_ARENA_NEW(inputs->arena, cairn_segment, inputs->row_count);
  cairn_resource_step* steps = CAIRN_ARENA_NEW(inputs->arena, cairn_resource_step, RESOURCES);
  cairn_step* step = CAIRN_ARENA_NEW(inputs->arena, cairn_step, 1);
  if (segments == NULL || steps == NULL || step == NULL) return CAIRN_STATUS_RESOURCE_EXHAUSTED;
  for (uint32_t i = 0; i < inputs->row_count; ++i) {
    const int64_t tokens = CAIRN_AT(cairn_node_inputs, inputs->inputs, i)->input_seq_len;
    segments[i] = (cairn_segment){inputs->request_ids[i], 0, i, tokens};
  }
  for (uint32_t i = 0; i < RESOURCES; ++i) steps[i] = (cairn_resource_step){.resource = i};
  *step = (cairn_step){.struct_size = sizeof(cairn_step),
                       .segments = {segments, inputs->row_count, sizeof *segments},
                       .steps = {steps, RESOURCES, sizeof *steps}};
  *out = step;
  return CAIRN_STATUS_OK;
}

/* new_token for the client and for the conductor, the same under text_inputs for the loop. */
static cairn_status forward_batched(cairn_node* node, const cairn_engine_inputs* inputs,
                                    cairn_named_tensor_span tensors, cairn_batched_output* out) {
  (void)node, (void)tensors;
  int32_t* tokens = CAIRN_ARENA_NEW(inputs->arena, int32_t, inputs->row_count);
  int64_t* shape = CAIRN_ARENA_NEW(inputs->arena, int64_t, 1);
  cairn_batch_tensor* batch = CAIRN_ARENA_NEW(inputs->arena, cairn_batch_tensor, 2);
  if (tokens == NULL || shape == NULL || batch == NULL) return CAIRN_STATUS_RESOURCE_EXHAUSTED;
  for (uint32_t i = 0; i < inputs->row_count; ++i) tokens[i] = 1;
  shape[0] = inputs->row_count;
  batch[0] = (cairn_batch_tensor){
      NEW_TOKEN,
      0,
      {.data = tokens, .device = {CAIRN_DEVICE_CPU, 0}, .ndim = 1, .dtype = {CAIRN_DTYPE_INT, 32, 1}, .shape = shape}};
  batch[1] = batch[0];
  batch[1].signal = TEXT_INPUTS;
  out->row_outputs = (cairn_batch_tensor_span){batch, 2, sizeof *batch};
  out->check_stop_buffers = (cairn_batch_tensor_span){batch, 1, sizeof *batch};
  return CAIRN_STATUS_OK;
}

/* Looks at every token, as a model does, and stops none. */
static cairn_status check_stop_batched(cairn_node* node, const cairn_host_rows* rows, cairn_stop_check* results) {
  (void)node;
  const int32_t* tokens = (const int32_t*)rows->buffers.data->view.data;
  for (uint32_t i = 0; i < rows->row_count; ++i) results[i].stops = tokens[i] == 0;
  return CAIRN_STATUS_OK;
}

static const cairn_node_api node_api = {.struct_size = sizeof(cairn_node_api),
                                        .prepare_inputs = prepare_inputs,
                                        .can_batch = can_batch,
                                        .declare_step = declare_step,
                                        .forward_batched = forward_batched,
                                        .check_stop_batched = check_stop_batched};

static cairn_status open_model(const cairn_open_args* args, cairn_model** out) {
  (void)args;
  *out = (cairn_model*)(void*)&nodes;
  return CAIRN_STATUS_OK;
}

static cairn_status describe(cairn_model* model, const cairn_model_desc** out) {
  (void)model;
  *out = &description;
  return CAIRN_STATUS_OK;
}

static cairn_status create_node(cairn_model* model, uint32_t node, cairn_node** out, const cairn_node_api** out_api) {
  (void)model;
  *out = (cairn_node*)(void*)&nodes[node];
  *out_api = &node_api;
  return CAIRN_STATUS_OK;
}

static cairn_status start_walk(cairn_arena* arena, uint32_t walk, cairn_tensor_view_span tensors,
                               cairn_forward_args* out) {
  cairn_input_edge* edge = CAIRN_ARENA_NEW(arena, cairn_input_edge, 1);
  if (edge == NULL) return CAIRN_STATUS_RESOURCE_EXHAUSTED;
  *edge = (cairn_input_edge){TEXT_INPUTS, 0, tensors};
  out->metadata.graph_walk = walk;
  out->metadata.is_prefill = walk == PREFILL;
  out->inputs = (cairn_input_edge_span){edge, 1, sizeof *edge};
  return CAIRN_STATUS_OK;
}

static cairn_status initial_forward_args(cairn_model* model, const cairn_initial_args* args, cairn_forward_args* out) {
  (void)model;
  return start_walk(args->arena, PREFILL, args->input_signals.data->tensors, out);
}

static cairn_status partition_forward_args(cairn_model* model, const cairn_transition_args* args,
                                           cairn_forward_args* out) {
  (void)model;
  if (args->metadata->graph_walk == DECODE) {
    out->request_done = 1;
    return CAIRN_STATUS_OK;
  }
  for (uint64_t i = 0; i < args->persist_signals.count; ++i) {
    const cairn_signal_tensors* kept = CAIRN_AT(cairn_signal_tensors, args->persist_signals, i);
    if (kept->signal == NEW_TOKEN) return start_walk(args->arena, DECODE, kept->tensors, out);
  }
  return CAIRN_STATUS_INTERNAL;
}

static const cairn_model_api model_api = {.struct_size = sizeof(cairn_model_api),
                                          .open = open_model,
                                          .describe = describe,
                                          .create_node = create_node,
                                          .initial_forward_args = initial_forward_args,
                                          .partition_forward_args = partition_forward_args};

CAIRN_MODEL_PLUGIN("ai.cairn.null", "0.1.0", "Cairn", "null", model_api);
