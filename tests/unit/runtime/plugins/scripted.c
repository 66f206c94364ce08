/* See scripted.h. Prefill and decode of a Llama-type decoder in miniature: writes its tokens to the KV cache, reads
 * those before them back, and has the host's sampler choose. */
#include "tests/unit/runtime/plugins/scripted.h"

#include <stddef.h>

#include "cairn/abi.h"

enum { TEXT_INPUTS, NEW_TOKEN };
enum { PREFILL, DECODE };
enum { KV, SAMPLER, RESOURCES };
enum { HEAD_DIM = 16, MAX_SEQ_LEN = 4096 };

static const cairn_str signals[] = {CAIRN_STR("text_inputs"), CAIRN_STR("new_token")};
static const cairn_str loops[] = {CAIRN_STR("decode_loop")};
static const cairn_str modalities[] = {CAIRN_STR("text")};
static const cairn_node_desc nodes[] = {{CAIRN_STR("LLM"), CAIRN_NODE_AUTOREGRESSIVE | CAIRN_NODE_CHUNKED_PREFILL, 0}};
static const uint32_t input_signals[] = {TEXT_INPUTS};
static const uint32_t first_node[] = {0};
static const uint32_t loop_child[] = {1};
static const uint32_t combined_walks[] = {PREFILL, DECODE};
static const int32_t end_tokens[] = {SCRIPTED_END};
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
static const cairn_kv_config kv_config = {.struct_size = sizeof(cairn_kv_config),
                                          .num_layers = 1,
                                          .num_kv_heads = 1,
                                          .head_dim = HEAD_DIM,
                                          .max_seq_len = MAX_SEQ_LEN,
                                          .dtype = {CAIRN_DTYPE_FLOAT, 32, 1}};
static const cairn_sampler_config sampler_config = {
    .struct_size = sizeof(cairn_sampler_config), .vocab_size = SCRIPTED_VOCAB, .enable_min_p = 1};
static const cairn_resource_spec resources[] = {
    {CAIRN_STR("kv"), CAIRN_RESOURCE_KV, 0, {first_node, 1}, &kv_config, {NULL, 0}},
    {CAIRN_STR("sampler"), CAIRN_RESOURCE_SAMPLER, 0, {first_node, 1}, &sampler_config, {NULL, 0}}};
static const cairn_model_desc description = {.struct_size = sizeof(cairn_model_desc),
                                             .name = CAIRN_STR("scripted"),
                                             .architecture = CAIRN_STR("scripted"),
                                             .text = CAIRN_TEXT_BYTES,
                                             .input_modalities = CAIRN_SPAN(modalities),
                                             .output_modalities = CAIRN_SPAN(modalities),
                                             .signals = CAIRN_SPAN(signals),
                                             .loops = CAIRN_SPAN(loops),
                                             .nodes = CAIRN_SPAN(nodes),
                                             .walks = CAIRN_SPAN(walks),
                                             .combined_walks = CAIRN_SPAN(combined),
                                             .resources = CAIRN_SPAN(resources),
                                             .max_seq_len = MAX_SEQ_LEN,
                                             .vocab_size = SCRIPTED_VOCAB,
                                             .end_tokens = {end_tokens, 1}};

static scripted_control no_control;

/* One model at a time is open per test process and runtime; each has its own state. */
typedef struct state {
  scripted_control* control;
  const cairn_kv_api* kv;
  cairn_resource* kv_self;
  const cairn_sampler_api* sampler;
  cairn_resource* sampler_self;
  int used;
} state;
static state states[16];

static int32_t token_at(const cairn_tensor_view* view, int64_t i) {
  return ((const int32_t*)(const void*)((const char*)view->data + view->byte_offset))[i];
}

static int holds(const cairn_tensor_view* view, int32_t token) {
  for (int64_t i = 0; i < view->shape[0]; ++i) {
    if (token_at(view, i) == token) return 1;
  }
  return 0;
}

static cairn_status bind_node_resources(cairn_node* node, cairn_bound_resource_span bound) {
  state* self = (state*)(void*)node;
  for (uint64_t i = 0; i < bound.count; ++i) {
    const cairn_bound_resource* resource = CAIRN_AT(cairn_bound_resource, bound, i);
    if (resource->kind == CAIRN_RESOURCE_KV) {
      self->kv = resource->api;
      self->kv_self = resource->self;
    } else {
      self->sampler = resource->api;
      self->sampler_self = resource->self;
    }
  }
  return CAIRN_STATUS_OK;
}

static cairn_status prepare_inputs(cairn_node* node, cairn_row_signals_span rows, cairn_arena* arena,
                                   cairn_node_inputs* out, uint64_t out_stride) {
  (void)arena;
  scripted_control* control = ((state*)(void*)node)->control;
  for (uint64_t i = 0; i < rows.count; ++i) {
    cairn_node_inputs* row = CAIRN_OUT_ROW(cairn_node_inputs, out, out_stride, i);
    row->input_ids = *CAIRN_AT(cairn_row_signals, rows, i)->inputs.data->tensors.data;
    row->input_seq_len = row->input_ids.shape[0];
    if (holds(&row->input_ids, SCRIPTED_FAIL_PREPARE)) {
      row->row_status = CAIRN_ROW_FAILED;
      row->error = (cairn_str)CAIRN_STR("this row was told to fail");
    } else if (holds(&row->input_ids, SCRIPTED_SKIP) && __atomic_load_n(&control->skipping, __ATOMIC_ACQUIRE) != 0) {
      row->row_status = CAIRN_ROW_SKIP;
      __atomic_fetch_add(&control->skipped, 1, __ATOMIC_ACQ_REL);
    }
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

/* A float matrix in step memory. */
static cairn_tensor_view matrix(cairn_arena* arena, int64_t rows, int64_t columns) {
  int64_t* shape = CAIRN_ARENA_NEW(arena, int64_t, 2);
  float* data = CAIRN_ARENA_NEW(arena, float, (uint64_t)(rows * columns) + 1);
  cairn_tensor_view view = {
      .data = data, .device = {CAIRN_DEVICE_CPU, 0}, .ndim = 2, .dtype = {CAIRN_DTYPE_FLOAT, 32, 1}, .shape = shape};
  if (shape == NULL || data == NULL) return (cairn_tensor_view){0};
  shape[0] = rows;
  shape[1] = columns;
  for (int64_t i = 0; i < rows * columns; ++i) data[i] = 0;
  return view;
}

/* Blocks as ordered; a resource call that says the step is given up ends it. */
static cairn_status wait_unblocked(state* self, cairn_step_context* context) {
  __atomic_fetch_add(&self->control->blocked, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(&self->control->blocking, __ATOMIC_ACQUIRE) != 0) {
    int64_t rows = 0;
    const cairn_status status = self->sampler->num_logit_rows(self->sampler_self, context, &rows);
    if (status != CAIRN_STATUS_OK) return status;
  }
  return CAIRN_STATUS_OK;
}

/* hidden[t][0]: the sum up to token t of the packed rows, from the tokens the cache holds and the new ones. */
static cairn_status compute_hidden(state* self, const cairn_engine_inputs* inputs, float* hidden, float* k) {
  int64_t token = 0;
  for (uint32_t i = 0; i < inputs->row_count; ++i) {
    const cairn_node_inputs* row = CAIRN_AT(cairn_node_inputs, inputs->inputs, i);
    int64_t stored = 0;
    cairn_status status = self->kv->seq_len(self->kv_self, inputs->request_ids[i], 0, &stored);
    if (status != CAIRN_STATUS_OK) return status;
    const cairn_tensor_view past_k = matrix(inputs->arena, stored, HEAD_DIM);
    const cairn_tensor_view past_v = matrix(inputs->arena, stored, HEAD_DIM);
    if (past_k.data == NULL || past_v.data == NULL) return CAIRN_STATUS_RESOURCE_EXHAUSTED;
    status =
        self->kv->read_kv(self->kv_self, inputs->context, 0, inputs->request_ids[i], 0, 0, stored, &past_k, &past_v);
    if (status != CAIRN_STATUS_OK) return status;
    uint32_t sum = 0;
    for (int64_t p = 0; p < stored; ++p) sum = scripted_sum(sum, p, (int32_t)((const float*)past_k.data)[p * HEAD_DIM]);
    for (int64_t t = 0; t < row->input_seq_len; ++t, ++token) {
      const int32_t id = token_at(&row->input_ids, t);
      if (id == SCRIPTED_FAIL_FORWARD) return CAIRN_STATUS_INTERNAL;
      sum = scripted_sum(sum, stored + t, id);
      hidden[token * HEAD_DIM] = (float)sum;
      k[token * HEAD_DIM] = (float)id;
    }
  }
  return CAIRN_STATUS_OK;
}

static cairn_status forward_batched(cairn_node* node, const cairn_engine_inputs* inputs,
                                    cairn_named_tensor_span tensors, cairn_batched_output* out) {
  (void)tensors;
  state* self = (state*)(void*)node;
  if ((int)inputs->row_count > __atomic_load_n(&self->control->largest_batch, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&self->control->largest_batch, (int)inputs->row_count, __ATOMIC_RELEASE);
  }
  int64_t tokens = 0;
  int block = 0;
  for (uint32_t i = 0; i < inputs->row_count; ++i) {
    const cairn_node_inputs* row = CAIRN_AT(cairn_node_inputs, inputs->inputs, i);
    tokens += row->input_seq_len;
    block = block || holds(&row->input_ids, SCRIPTED_BLOCK);
  }
  cairn_tensor_view hidden = matrix(inputs->arena, tokens, HEAD_DIM);
  cairn_tensor_view k = matrix(inputs->arena, tokens, HEAD_DIM);
  if (hidden.data == NULL || k.data == NULL) return CAIRN_STATUS_RESOURCE_EXHAUSTED;
  cairn_status status = compute_hidden(self, inputs, hidden.data, k.data);
  if (status != CAIRN_STATUS_OK) return status;
  if (block && (status = wait_unblocked(self, inputs->context)) != CAIRN_STATUS_OK) return status;
  status = self->kv->write_kv(self->kv_self, inputs->context, 0, 0, &k, &hidden);
  if (status != CAIRN_STATUS_OK) return status;

  int64_t rows = 0;
  status = self->sampler->num_logit_rows(self->sampler_self, inputs->context, &rows);
  if (status != CAIRN_STATUS_OK) return status;
  const cairn_tensor_view chosen = matrix(inputs->arena, rows, HEAD_DIM);
  const cairn_tensor_view logits = matrix(inputs->arena, rows, SCRIPTED_VOCAB);
  int32_t* ids = CAIRN_ARENA_NEW(inputs->arena, int32_t, inputs->row_count);
  int64_t* shape = CAIRN_ARENA_NEW(inputs->arena, int64_t, 1);
  cairn_batch_tensor* batch = CAIRN_ARENA_NEW(inputs->arena, cairn_batch_tensor, 2);
  if (chosen.data == NULL || logits.data == NULL || ids == NULL || shape == NULL || batch == NULL) {
    return CAIRN_STATUS_RESOURCE_EXHAUSTED;
  }
  status = self->sampler->select_hidden(self->sampler_self, inputs->context, &hidden, &chosen);
  if (status != CAIRN_STATUS_OK) return status;
  for (int64_t r = 0; r < rows; ++r) {
    const uint32_t sum = (uint32_t)((const float*)chosen.data)[r * HEAD_DIM];
    for (int32_t t = 0; t < SCRIPTED_VOCAB; ++t) ((float*)logits.data)[r * SCRIPTED_VOCAB + t] = scripted_logit(sum, t);
  }
  shape[0] = inputs->row_count;
  const cairn_tensor_view sampled = {
      .data = ids, .device = {CAIRN_DEVICE_CPU, 0}, .ndim = 1, .dtype = {CAIRN_DTYPE_INT, 32, 1}, .shape = shape};
  status = self->sampler->sample(self->sampler_self, inputs->context, &logits, &sampled);
  if (status != CAIRN_STATUS_OK) return status;
  batch[0] = (cairn_batch_tensor){NEW_TOKEN, 0, sampled};
  batch[1] = (cairn_batch_tensor){TEXT_INPUTS, 0, sampled};
  out->row_outputs = (cairn_batch_tensor_span){batch, 2, sizeof *batch};
  out->check_stop_buffers = (cairn_batch_tensor_span){batch, 1, sizeof *batch};
  return CAIRN_STATUS_OK;
}

/* A row whose order to fail lies in its prompt fails once the prompt is through. */
static cairn_status check_stop(cairn_node* node, const cairn_host_rows* rows, cairn_stop_check* results) {
  (void)node;
  const int32_t* tokens = (const int32_t*)rows->buffers.data->view.data;
  for (uint32_t i = 0; i < rows->row_count; ++i) results[i].stops = tokens[i] == SCRIPTED_END;
  return CAIRN_STATUS_OK;
}

static cairn_status postprocess(cairn_node* node, const cairn_engine_inputs* inputs, cairn_batched_output* outputs,
                                cairn_row_result* results) {
  (void)node, (void)outputs;
  for (uint32_t i = 0; i < inputs->row_count; ++i) {
    if (!holds(&CAIRN_AT(cairn_node_inputs, inputs->inputs, i)->input_ids, SCRIPTED_FAIL_STOP)) continue;
    results[i].row_status = CAIRN_ROW_FAILED;
    results[i].error = (cairn_str)CAIRN_STR("this row was told to fail after forward");
  }
  return CAIRN_STATUS_OK;
}

static cairn_status on_request_added(cairn_node* node, const cairn_forward_info* info) {
  (void)info;
  __atomic_fetch_add(&((state*)(void*)node)->control->added, 1, __ATOMIC_ACQ_REL);
  return CAIRN_STATUS_OK;
}

static void cleanup_request(cairn_node* node, cairn_request request) {
  (void)request;
  __atomic_fetch_add(&((state*)(void*)node)->control->cleaned, 1, __ATOMIC_ACQ_REL);
}

static const cairn_node_api node_api = {.struct_size = sizeof(cairn_node_api),
                                        .prepare_inputs = prepare_inputs,
                                        .can_batch = can_batch,
                                        .declare_step = declare_step,
                                        .forward_batched = forward_batched,
                                        .postprocess = postprocess,
                                        .check_stop_batched = check_stop,
                                        .on_request_added = on_request_added,
                                        .cleanup_request = cleanup_request,
                                        .bind_node_resources = bind_node_resources};

static cairn_status open_model(const cairn_open_args* args, cairn_model** out) {
  for (size_t i = 0; i < sizeof states / sizeof *states; ++i) {
    if (states[i].used) continue;
    states[i] = (state){.control = &no_control, .used = 1};
    for (uint64_t e = 0; e < args->model_kwargs.count; ++e) {
      const cairn_entry* entry = &args->model_kwargs.data[e];
      if (entry->value.kind == CAIRN_VALUE_INT)
        states[i].control = (scripted_control*)(intptr_t)entry->value.as.integer;
    }
    *out = (cairn_model*)(void*)&states[i];
    return CAIRN_STATUS_OK;
  }
  return CAIRN_STATUS_RESOURCE_EXHAUSTED;
}

static void close_model(cairn_model* model) {
  ((state*)(void*)model)->used = 0;
}

static cairn_status describe(cairn_model* model, const cairn_model_desc** out) {
  (void)model;
  *out = &description;
  return CAIRN_STATUS_OK;
}

static cairn_status create_node(cairn_model* model, uint32_t node, cairn_node** out, const cairn_node_api** out_api) {
  (void)node;
  *out = (cairn_node*)(void*)model;
  *out_api = &node_api;
  return CAIRN_STATUS_OK;
}

/* The ids as they are, from the request's own memory. */
static cairn_status process_prompt(cairn_model* model, const cairn_prompt_args* args, cairn_prompt_result* out) {
  (void)model;
  const cairn_prompt_part* part = args->parts.data;
  for (uint64_t i = 0; i < part->token_ids.count; ++i) {
    if (part->token_ids.data[i] == SCRIPTED_REFUSE_PROMPT) return CAIRN_STATUS_INVALID_ARGUMENT;
  }
  cairn_tensor_view* view = CAIRN_ARENA_NEW(args->arena, cairn_tensor_view, 1);
  cairn_signal_tensors* tensors = CAIRN_ARENA_NEW(args->arena, cairn_signal_tensors, 1);
  int64_t* shape = CAIRN_ARENA_NEW(args->arena, int64_t, 1);
  if (view == NULL || tensors == NULL || shape == NULL) return CAIRN_STATUS_RESOURCE_EXHAUSTED;
  shape[0] = (int64_t)part->token_ids.count;
  *view = (cairn_tensor_view){.data = (void*)(uintptr_t)part->token_ids.data,
                              .device = {CAIRN_DEVICE_CPU, 0},
                              .ndim = 1,
                              .dtype = {CAIRN_DTYPE_INT, 32, 1},
                              .shape = shape};
  *tensors = (cairn_signal_tensors){TEXT_INPUTS, 0, {view, 1, sizeof *view}};
  out->tensors = (cairn_signal_tensors_span){tensors, 1, sizeof *tensors};
  out->prompt_tokens = shape[0];
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

/* The order to fail here is the first token that was generated, so that a test can choose it by logit_bias. */
static cairn_status partition_forward_args(cairn_model* model, const cairn_transition_args* args,
                                           cairn_forward_args* out) {
  (void)model;
  if (args->metadata->graph_walk == DECODE) {
    out->request_done = 1;
    return CAIRN_STATUS_OK;
  }
  cairn_tensor_view_span first = {NULL, 0, 0};
  for (uint64_t i = 0; i < args->persist_signals.count; ++i) {
    const cairn_signal_tensors* kept = CAIRN_AT(cairn_signal_tensors, args->persist_signals, i);
    if (kept->signal == NEW_TOKEN) first = kept->tensors;
  }
  if (first.count == 0) return CAIRN_STATUS_FAILED_PRECONDITION;
  if (token_at(first.data, 0) == SCRIPTED_FAIL_TRANSITION) return CAIRN_STATUS_INTERNAL;
  return start_walk(args->arena, DECODE, first, out);
}

static void request_closed(cairn_model* model, cairn_request request) {
  (void)request;
  __atomic_fetch_add(&((state*)(void*)model)->control->closed, 1, __ATOMIC_ACQ_REL);
}

static const cairn_model_api model_api = {.struct_size = sizeof(cairn_model_api),
                                          .open = open_model,
                                          .describe = describe,
                                          .create_node = create_node,
                                          .close = close_model,
                                          .process_prompt = process_prompt,
                                          .initial_forward_args = initial_forward_args,
                                          .partition_forward_args = partition_forward_args,
                                          .request_closed = request_closed};

CAIRN_MODEL_PLUGIN("ai.cairn.tests.scripted", "0.1.0", "Cairn", "scripted", model_api);
