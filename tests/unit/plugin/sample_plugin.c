/* A plugin for the loader's tests. Each SAMPLE_* macro makes one thing wrong with it. */
#include "cairn/abi.h"

#ifndef SAMPLE_FLAGS
#define SAMPLE_FLAGS CAIRN_IDENTITY_UNLOADABLE
#endif
#ifndef SAMPLE_CPU
#define SAMPLE_CPU ""
#endif
#ifndef SAMPLE_DEVICE
#define SAMPLE_DEVICE ""
#endif
#ifndef SAMPLE_NEEDS
#define SAMPLE_NEEDS "cairn.log/1 cairn.status/1"
#endif
#ifdef SAMPLE_MAJOR
#undef CAIRN_ABI_MAJOR
#define CAIRN_ABI_MAJOR SAMPLE_MAJOR
#endif
#ifdef SAMPLE_MIN_MINOR
#undef CAIRN_TARGET_MINOR
#define CAIRN_TARGET_MINOR SAMPLE_MIN_MINOR
#endif
#ifdef SAMPLE_MAGIC
#undef CAIRN_NOTE_MAGIC
#define CAIRN_NOTE_MAGIC SAMPLE_MAGIC
#endif
#ifdef SAMPLE_TARGET
#undef CAIRN_TARGET_TRIPLE
#define CAIRN_TARGET_TRIPLE SAMPLE_TARGET
#endif
#ifndef SAMPLE_DESCRIPTOR_ID
#define SAMPLE_DESCRIPTOR_ID "ai.cairn.sample"
#endif
#ifndef SAMPLE_DESCRIPTOR_MIN_MINOR
#define SAMPLE_DESCRIPTOR_MIN_MINOR CAIRN_TARGET_MINOR
#endif
#ifndef SAMPLE_DESCRIPTOR_SIZE
#define SAMPLE_DESCRIPTOR_SIZE sizeof(cairn_plugin)
#endif

#ifndef SAMPLE_NO_NOTE
CAIRN_PLUGIN_IDENTITY("ai.cairn.sample", "1.2.3", "Cairn tests", "test", SAMPLE_CPU, SAMPLE_DEVICE, SAMPLE_NEEDS,
                      "cairn.ops/1", "sample other", SAMPLE_FLAGS);
#endif

#ifdef SAMPLE_UNDEFINED_SYMBOL
int cairn_test_symbol_that_nobody_defines(void);
#endif

static const cairn_str tensor_id = CAIRN_STR(CAIRN_TENSOR_INTERFACE);
static const cairn_host* the_host;
static int calls; /* of init less those of shutdown: fresh code begins at 0 */

/* The tests reach these through get_interface("cairn.test.sample"). */
struct sample_table {
  int (*calls)(void);
  cairn_status (*wrap)(cairn_tensor** out, int* destroyed);
};

static int count_calls(void) {
  return calls;
}

static void mark_destroyed(void* context) {
  ++*(int*)context;
}

static cairn_status wrap_memory(cairn_tensor** out, int* destroyed) {
  static int32_t data[3] = {10, 20, 30};
  static const int64_t shape[1] = {3};
  const cairn_tensor_service* tensors = (const cairn_tensor_service*)the_host->get_interface(the_host, tensor_id, 1);
  const cairn_tensor_view view = {data, {CAIRN_DEVICE_CPU, 0}, 1, {CAIRN_DTYPE_INT, 32, 1}, shape, NULL, 0, 0, NULL};
  return tensors->wrap(&view, mark_destroyed, destroyed, out);
}

static const struct sample_table sample_table = {count_calls, wrap_memory};

#ifndef SAMPLE_NO_MODEL
static cairn_status open_model(const cairn_open_args* args, cairn_model** out) {
  (void)args, (void)out;
  return CAIRN_STATUS_UNSUPPORTED;
}
static cairn_status describe(cairn_model* model, const cairn_model_desc** out) {
  (void)model, (void)out;
  return CAIRN_STATUS_UNSUPPORTED;
}
static cairn_status initial_forward_args(cairn_model* model, const cairn_initial_args* args, cairn_forward_args* out) {
  (void)model, (void)args, (void)out;
  return CAIRN_STATUS_UNSUPPORTED;
}
#ifndef SAMPLE_NO_CREATE_NODE
static cairn_status create_node(cairn_model* model, uint32_t node, cairn_node** out, const cairn_node_api** out_api) {
  (void)model, (void)node, (void)out, (void)out_api;
  return CAIRN_STATUS_UNSUPPORTED;
}
#endif
/* As of a plugin built when the table ended with create_node; what lies behind must not be read. */
static const cairn_model_api model_api = {CAIRN_SIZE(cairn_model_api, create_node),
                                          .open = open_model,
                                          .describe = describe,
                                          .initial_forward_args = initial_forward_args,
#ifndef SAMPLE_NO_CREATE_NODE
                                          .create_node = create_node,
#endif
                                          .checkpoint_path = (void*)1};
#endif

static int same(cairn_str text, const char* other) {
  uint64_t i = 0;
  while (i < text.size && other[i] != 0 && text.data[i] == other[i]) ++i;
  return i == text.size && other[i] == 0;
}

static const void* get_interface(const cairn_plugin* plugin, cairn_str id, uint32_t min_revision) {
  (void)plugin, (void)min_revision;
  if (same(id, "cairn.test.sample")) return &sample_table;
#ifndef SAMPLE_NO_MODEL
  if (same(id, CAIRN_MODEL_INTERFACE)) return &model_api;
#endif
  return NULL;
}

static cairn_status init(const cairn_plugin* plugin, const cairn_host* host) {
  (void)plugin;
  the_host = host;
#ifdef SAMPLE_INIT_FAILS
  static const cairn_str status_id = CAIRN_STR(CAIRN_STATUS_INTERFACE);
  static const cairn_str reason = CAIRN_STR("the licence file is missing");
  const cairn_status_service* status = (const cairn_status_service*)host->get_interface(host, status_id, 1);
  return status->set(CAIRN_STATUS_PERMISSION_DENIED, reason);
#else
  ++calls;
  return CAIRN_STATUS_OK;
#endif
}

static void shutdown(const cairn_plugin* plugin) {
  (void)plugin;
  --calls;
}

static const cairn_plugin plugin = {SAMPLE_DESCRIPTOR_SIZE,
                                    CAIRN_ABI_MAJOR,
                                    CAIRN_ABI_MINOR,
                                    SAMPLE_DESCRIPTOR_MIN_MINOR,
                                    0,
                                    CAIRN_STR(SAMPLE_DESCRIPTOR_ID),
                                    CAIRN_STR("1.2.3"),
                                    CAIRN_STR("Cairn tests"),
                                    get_interface,
                                    init,
                                    shutdown};

#ifdef SAMPLE_NO_ENTRY
CAIRN_EXPORT const cairn_plugin* some_other_entry(const cairn_host* host) {
  (void)host;
  return &plugin;
}
#else
CAIRN_EXPORT const cairn_plugin* cairn_plugin_entry(const cairn_host* host) {
  (void)host;
#ifdef SAMPLE_UNDEFINED_SYMBOL
  if (cairn_test_symbol_that_nobody_defines()) return NULL;
#endif
#ifdef SAMPLE_NULL_ENTRY
  (void)plugin;
  return NULL;
#else
  return &plugin;
#endif
}
#endif
