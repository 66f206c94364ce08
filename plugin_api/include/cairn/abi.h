/* Cairn plugin ABI 1.0: the whole contract between the host and a model plugin, in C11 (also valid C++20). clang-format off:
 * laid out by hand, as a page to be read.
 * A plugin is a shared object that exports ONE function, cairn_plugin_entry, links against nothing of the host, and
 * carries an identity note (CAIRN_PLUGIN_IDENTITY) that the host reads before it runs a byte of the plugin's code.
 * The tables below mirror M*'s Model and NodeSubmodule: each hook has the name and the meaning of its M* counterpart;
 * a NULL hook means M*'s default, which is written next to it.
 *
 * Rules that hold everywhere
 *  - Structs that cross alone begin with struct_size, set by whoever fills the struct to the offset of the last field
 *    it knows plus that field's size (CAIRN_SIZE). The receiver reads only what lies inside (CAIRN_HAS) and takes the
 *    rest as zero; zero always means "not given". Unknown tail bytes are ignored.
 *  - Structs that occur as elements of an array have no size of their own: their span carries the stride. Walk an
 *    array with CAIRN_AT, never with [].
 *  - Strings are UTF-8, {pointer, length}, not NUL-terminated. What a call passes in is valid for that call, unless the
 *    field says otherwise. What a describe-like call returns is valid as long as the object it describes.
 *  - Every fallible function returns a cairn_status. On anything but CAIRN_STATUS_OK out-parameters are untouched,
 *    ownership of the inputs is unchanged and there is nothing to free; text goes through the status service.
 *  - Nothing may unwind (no exception, no longjmp) across the boundary, and a plugin must not call exit, abort or
 *    install signal or terminate handlers.
 *  - Who allocates frees. Memory from an arena belongs to the arena and is never freed by the plugin. Destroy functions
 *    return void and accept NULL.
 *  - Names become numbers once: walks, nodes, signals, labels, resources, loops, partitions, modalities and regions are
 *    arrays of the model description; everywhere else they are indices into those arrays.
 *  - Enumerations are fixed-width integers; a value the receiver does not know is treated as written at the enum.
 *
 * Tags. Every function carries [thread: class] and [state: states].
 *   thread classes: any; control (model life, conductor-side hooks: never two at once for one model); pool (prompt
 *   processing and output encoding: possibly several at once, never two for one request); main (the worker's main
 *   thread); device (the step, one thread per device at a time); plan (may run beside device for the same node).
 *   "One thread" is symbolic: any OS thread, never two at once for one object.
 *   states: loaded (after init), open (after model open), bound (after bind_node_resources), running (requests exist),
 *   draining (no new requests).
 */
#ifndef CAIRN_ABI_H
#define CAIRN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Versions ------------------------------------------------------------------------------------------------ */

#define CAIRN_ABI_MAJOR 1 /* differs: refused */
#define CAIRN_ABI_MINOR 0 /* a plugin loads when its min_host_minor is not above the host's minor */

/* The minor a plugin is written for. Defining it lower hides newer members, so that over-use does not compile. */
#ifndef CAIRN_TARGET_MINOR
#define CAIRN_TARGET_MINOR CAIRN_ABI_MINOR
#endif
#if CAIRN_TARGET_MINOR > CAIRN_ABI_MINOR
#error "CAIRN_TARGET_MINOR is above this header's CAIRN_ABI_MINOR: take a newer header or lower the target."
#endif

#if defined(__GNUC__) || defined(__clang__)
#define CAIRN_EXPORT __attribute__((visibility("default")))
#else
#define CAIRN_EXPORT
#endif

/* Size of a struct up to and including its last known field, and the test for a field inside a given size. */
#define CAIRN_SIZE(type, last) ((uint64_t)(offsetof(type, last) + sizeof(((type*)0)->last)))
#define CAIRN_HAS(ptr, type, field) ((ptr) != NULL && (ptr)->struct_size >= CAIRN_SIZE(type, field))
/* Element i of a span of `type`, honouring the stride (0 means sizeof(type)). */
#define CAIRN_STRIDE(type, span) ((span).stride ? (span).stride : (uint64_t)sizeof(type))
#define CAIRN_AT(type, span, i) \
  ((const type*)(const void*)((const char*)(const void*)(span).data + CAIRN_STRIDE(type, span) * (uint64_t)(i)))
/* Element i of a row array the host hands out to be filled (out_rows with out_stride). */
#define CAIRN_OUT_ROW(type, rows, stride, i) ((type*)(void*)((char*)(void*)(rows) + (uint64_t)(stride) * (uint64_t)(i)))
/* Initialisers for a cairn_str of a literal and for a span of a whole array. */
#define CAIRN_STR(literal) {literal, sizeof(literal) - 1}
#define CAIRN_SPAN(array) {array, sizeof(array) / sizeof((array)[0]), sizeof((array)[0])}
/* A span type: `count` elements of at least the fields known to the writer, `stride` bytes apart. */
#define CAIRN_DECLARE_SPAN(type)  \
  typedef struct type##_span {    \
    const struct type* data;      \
    uint64_t count;               \
    uint64_t stride;              \
  } type##_span

/* ---- 2. Basic types --------------------------------------------------------------------------------------------- */

/* Result of every fallible call; unknown codes are treated as CAIRN_STATUS_INTERNAL. */
typedef int32_t cairn_status;
enum {
  CAIRN_STATUS_OK = 0,
  CAIRN_STATUS_CANCELLED = 1,           /* the request was cancelled while the call ran */
  CAIRN_STATUS_INVALID_ARGUMENT = 3,    /* the caller's (often the client's) fault: HTTP 400 */
  CAIRN_STATUS_DEADLINE_EXCEEDED = 4,
  CAIRN_STATUS_NOT_FOUND = 5,           /* a name, tensor or file that does not exist */
  CAIRN_STATUS_ALREADY_EXISTS = 6,
  CAIRN_STATUS_PERMISSION_DENIED = 7,
  CAIRN_STATUS_RESOURCE_EXHAUSTED = 8,  /* out of pages, slots, memory */
  CAIRN_STATUS_FAILED_PRECONDITION = 9, /* called in a wrong state */
  CAIRN_STATUS_ABORTED = 10,
  CAIRN_STATUS_OUT_OF_RANGE = 11,
  CAIRN_STATUS_UNSUPPORTED = 12,        /* this host or plugin does not do that (yet) */
  CAIRN_STATUS_INTERNAL = 13,           /* a bug on the side that answers */
  CAIRN_STATUS_UNAVAILABLE = 14,        /* try again later */
  CAIRN_STATUS_DATA_LOSS = 15           /* damaged weights or files */
};

/* UTF-8 text, not NUL-terminated. {NULL, 0} is the empty string. */
typedef struct cairn_str {
  const char* data;
  uint64_t size;
} cairn_str;
CAIRN_DECLARE_SPAN(cairn_str);

/* Raw bytes. */
typedef struct cairn_bytes {
  const void* data;
  uint64_t size;
} cairn_bytes;

/* Plain number arrays (stride is the element size). */
typedef struct cairn_u32_span {
  const uint32_t* data;
  uint64_t count;
} cairn_u32_span;
typedef struct cairn_i32_span {
  const int32_t* data;
  uint64_t count;
} cairn_i32_span;
typedef struct cairn_i64_span {
  const int64_t* data;
  uint64_t count;
} cairn_i64_span;

/* A request inside one model: slot and generation, so a stale handle is noticed. Negative: a padding row of a captured
 * replay (such a row has a state, streams and made-up info; a plugin must not key anything of its own by it). */
typedef int64_t cairn_request;

/* "No index": in every field that holds an index of the model description. */
#define CAIRN_NONE UINT32_MAX

/* Opaque host objects. */
typedef struct cairn_tensor cairn_tensor;               /* reference counted, see cairn_tensor_service */
typedef struct cairn_weights cairn_weights;             /* an open weights file or directory */
typedef struct cairn_matrix cairn_matrix;               /* one prepacked weight matrix */
typedef struct cairn_tokenizer cairn_tokenizer;
typedef struct cairn_chat_template cairn_chat_template;
typedef struct cairn_step_context cairn_step_context;   /* one step in flight */
typedef struct cairn_region_runner cairn_region_runner; /* a captured piecewise region */
typedef struct cairn_comm cairn_comm;                   /* a collective group */
typedef struct cairn_metric cairn_metric;
typedef struct cairn_resource cairn_resource;           /* a bound resource: KV pool, attention, sampler, ... */

/* Opaque plugin objects: the plugin defines these structs as it likes. */
typedef struct cairn_model cairn_model;
typedef struct cairn_node cairn_node;

/* ---- 3. Tensors ------------------------------------------------------------------------------------------------- */

/* Element type in DLPack's form. Unknown codes: the tensor can be passed on and released, not read. */
typedef struct cairn_dtype {
  uint8_t code;
  uint8_t bits;   /* bits of one element; for CAIRN_DTYPE_BLOCK the GGUF type number of the block format */
  uint16_t lanes; /* 1 */
} cairn_dtype;
enum {
  CAIRN_DTYPE_INT = 0,
  CAIRN_DTYPE_UINT = 1,
  CAIRN_DTYPE_FLOAT = 2, /* IEEE: bits 16, 32, 64 */
  CAIRN_DTYPE_OPAQUE = 3,
  CAIRN_DTYPE_BFLOAT = 4, /* bits 16 */
  CAIRN_DTYPE_COMPLEX = 5,
  CAIRN_DTYPE_BOOL = 6, /* bits 8 */
  CAIRN_DTYPE_FLOAT8_E4M3FN = 10,
  CAIRN_DTYPE_FLOAT8_E5M2 = 12,
  CAIRN_DTYPE_BLOCK = 200 /* GGUF block-quantised: only weights, only through cairn_weights_service */
};

typedef struct cairn_device {
  int32_t type; /* DLPack's numbers */
  int32_t index;
} cairn_device;
enum { CAIRN_DEVICE_CPU = 1, CAIRN_DEVICE_CUDA = 2, CAIRN_DEVICE_CUDA_PINNED = 3 };

/* A borrowed look at memory. The fields from data to byte_offset are DLPack's DLTensor, in its order. */
typedef struct cairn_tensor_view {
  void* data;            /* NULL only when the tensor has no elements */
  cairn_device device;
  int32_t ndim;
  cairn_dtype dtype;
  const int64_t* shape;   /* ndim extents, outermost first */
  const int64_t* strides; /* in elements; NULL means row-major and compact */
  uint64_t byte_offset;
  uint64_t flags;         /* CAIRN_TENSOR_* */
  cairn_tensor* owner;    /* borrowed; retain it to keep the memory past the call. NULL: step memory, copy to keep */
} cairn_tensor_view;
CAIRN_DECLARE_SPAN(cairn_tensor_view);
enum { CAIRN_TENSOR_READ_ONLY = 1 };

/* One named tensor of a small dictionary. */
typedef struct cairn_named_tensor {
  cairn_str name;
  cairn_tensor_view view;
} cairn_named_tensor;
CAIRN_DECLARE_SPAN(cairn_named_tensor);

/* ---- 4. Values of any type -------------------------------------------------------------------------------------- */

/* M*'s kwargs, step_metadata, model_kwargs, PerRequestState.kwargs. Unknown kinds are read as none. */
enum {
  CAIRN_VALUE_NONE = 0,
  CAIRN_VALUE_BOOL = 1,   /* as.integer, 0 or 1 */
  CAIRN_VALUE_INT = 2,    /* as.integer */
  CAIRN_VALUE_FLOAT = 3,  /* as.real */
  CAIRN_VALUE_STRING = 4, /* as.string */
  CAIRN_VALUE_BYTES = 5,  /* as.bytes */
  CAIRN_VALUE_TENSOR = 6, /* as.tensor, borrowed */
  CAIRN_VALUE_LIST = 7,   /* as.list */
  CAIRN_VALUE_MAP = 8,    /* as.map: keys unique, in order of insertion */
  CAIRN_VALUE_OPAQUE = 9  /* as.opaque: a plugin's own object, passed back to that plugin only */
};
struct cairn_value;
struct cairn_entry;
typedef struct cairn_list {
  const struct cairn_value* data;
  uint64_t count;
} cairn_list;
typedef struct cairn_map {
  const struct cairn_entry* data;
  uint64_t count;
} cairn_map;
typedef struct cairn_opaque {
  void* object;
  /* The host keeps the library mapped until it has run. [thread: any] [state: loaded, open, bound, running, draining] */
  void (*destroy)(void* object);
} cairn_opaque;
typedef union cairn_value_payload {
  int64_t integer;
  double real;
  cairn_str string;
  cairn_bytes bytes;
  cairn_tensor* tensor;
  cairn_list list;
  cairn_map map;
  cairn_opaque opaque;
} cairn_value_payload;
/* Frozen: 24 bytes. */
typedef struct cairn_value {
  uint32_t kind;
  uint32_t reserved;
  cairn_value_payload as;
} cairn_value;
/* Frozen: 40 bytes. */
typedef struct cairn_entry {
  cairn_str key;
  cairn_value value;
} cairn_entry;

/* ---- 5. Entry, handshake, identity ------------------------------------------------------------------------------ */

/* What the host hands to cairn_plugin_entry. FROZEN FOR EVER: size, offsets and signature. Lives as long as the process. */
typedef struct cairn_host {
  uint64_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  /* A host service table by id ("cairn.log") at revision min_revision or newer, or NULL when absent. The pointer is
   * valid as long as the process. [thread: any] [state: loaded, open, bound, running, draining] */
  const void* (*get_interface)(const struct cairn_host* host, cairn_str id, uint32_t min_revision);
  cairn_str version; /* the host's own version, for messages */
} cairn_host;

/* What cairn_plugin_entry returns: static memory of the plugin, valid until the library is unmapped. FROZEN FOR EVER up to
 * and including shutdown. */
typedef struct cairn_plugin {
  uint64_t struct_size;
  uint32_t abi_major;      /* CAIRN_ABI_MAJOR it was built with */
  uint32_t built_minor;    /* CAIRN_ABI_MINOR of the header it was built with */
  uint32_t min_host_minor; /* the lowest host minor it can work with */
  uint32_t reserved;
  cairn_str id;      /* reverse-DNS, e.g. "ai.cairn.llama"; equals the note's */
  cairn_str version; /* equals the note's */
  cairn_str vendor;  /* equals the note's */
  /* A plugin table by id ("cairn.model") at min_revision or newer, or NULL. Must answer NULL for unknown ids.
   * [thread: any] [state: loaded, open, bound, running, draining] */
  const void* (*get_interface)(const struct cairn_plugin* plugin, cairn_str id, uint32_t min_revision);
  /* Called after entry, before anything else; calls to init and shutdown pair up and may nest. NULL: nothing to do.
   * [thread: control] [state: loaded] */
  cairn_status (*init)(const struct cairn_plugin* plugin, const cairn_host* host);
  /* Must join every thread the plugin started and release every host object. [thread: control] [state: loaded] */
  void (*shutdown)(const struct cairn_plugin* plugin);
} cairn_plugin;

/* THE exported symbol. `host` is valid for the life of the process. Returns NULL when this host is of no use to it.
 * Must be cheap: no allocation of weights, no threads. [thread: control] [state: loaded] */
#define CAIRN_ENTRY_SYMBOL "cairn_plugin_entry"
typedef const cairn_plugin* (*cairn_plugin_entry_fn)(const cairn_host* host);
CAIRN_EXPORT const cairn_plugin* cairn_plugin_entry(const cairn_host* host);

/* The identity, as an ELF note (owner "Cairn", type 1) that is read without loading. NUL-padded UTF-8; lists are
 * space-separated. FROZEN FOR EVER; later revisions append and raise note_size. */
#define CAIRN_NOTE_OWNER "Cairn"
#define CAIRN_NOTE_TYPE 1u
#define CAIRN_NOTE_MAGIC 0x4e524943u /* "CIRN" */
typedef struct cairn_identity {
  uint32_t magic;
  uint32_t note_size; /* sizeof(cairn_identity) of the header it was built with */
  uint32_t abi_major;
  uint32_t built_minor;
  uint32_t min_host_minor;
  uint32_t flags; /* CAIRN_IDENTITY_* */
  char id[96];
  char version[32];
  char vendor[64];
  char build[64];          /* fingerprint of the build: commit, "debug", a vendor's fork; for policies */
  char target[48];         /* e.g. "x86_64-linux-gnu" */
  char cpu_features[128];  /* needed beyond the target's baseline, Linux names: "avx2 fma" */
  char device_runtime[64]; /* "" or e.g. "cuda>=12.4" */
  char interfaces[256];    /* host services it cannot work without: "cairn.ops/1 cairn.weights/1" */
  char optional_interfaces[256];
  char architectures[256]; /* weights architectures it serves, for choosing a plugin for a file: "llama qwen2" */
  char toolchain[64];
} cairn_identity;
enum {
  CAIRN_IDENTITY_UNLOADABLE = 1,  /* the plugin claims that dlclose really unmaps it */
  CAIRN_IDENTITY_EXPERIMENTAL = 2 /* uses draft interfaces; production hosts may refuse it */
};
typedef struct cairn_identity_note {
  uint32_t name_size;
  uint32_t desc_size;
  uint32_t type;
  char name[8]; /* "Cairn\0" padded to a multiple of four */
  cairn_identity identity;
} cairn_identity_note;

#if defined(__x86_64__)
#define CAIRN_TARGET_TRIPLE "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define CAIRN_TARGET_TRIPLE "aarch64-linux-gnu"
#else
#define CAIRN_TARGET_TRIPLE "unknown-linux-gnu"
#endif
#if defined(__VERSION__)
#define CAIRN_TOOLCHAIN_NAME __VERSION__
#else
#define CAIRN_TOOLCHAIN_NAME "unknown"
#endif

/* Emits the note. Once per plugin, at file scope; strings are literals that fit the fields above. */
#define CAIRN_PLUGIN_IDENTITY(id_, version_, vendor_, build_, cpu_, device_, needs_, optional_, architectures_, flags_) \
  __attribute__((section(".note.cairn"), used, aligned(4))) static const cairn_identity_note cairn_identity_note_ = {  \
      6u,                                                                                                               \
      (uint32_t)sizeof(cairn_identity),                                                                                 \
      CAIRN_NOTE_TYPE,                                                                                                  \
      CAIRN_NOTE_OWNER,                                                                                                 \
      {CAIRN_NOTE_MAGIC, (uint32_t)sizeof(cairn_identity), CAIRN_ABI_MAJOR, CAIRN_ABI_MINOR, CAIRN_TARGET_MINOR,        \
       (flags_), id_, version_, vendor_, build_, CAIRN_TARGET_TRIPLE, cpu_, device_, needs_, optional_, architectures_, \
       CAIRN_TOOLCHAIN_NAME}}

/* ---- 6. Model description (data) -------------------------------------------------------------------------------- */

/* A node: a unit of compute, one NodeSubmodule. Appears in any number of walks under the same index. */
typedef struct cairn_node_desc {
  cairn_str name;
  uint32_t flags; /* CAIRN_NODE_* */
  uint32_t reserved;
} cairn_node_desc;
CAIRN_DECLARE_SPAN(cairn_node_desc);
enum {
  CAIRN_NODE_AUTOREGRESSIVE = 1, /* an ARNodeSubmodule: rows carry input_ids or input_embeds, default cut applies */
  CAIRN_NODE_TP_ENABLED = 2,
  CAIRN_NODE_SP_ENABLED = 4,
  CAIRN_NODE_CHUNKED_PREFILL = 8 /* its rows may be cut into chunks by split_inputs */
};

/* Where an edge goes, beside a node index. */
#define CAIRN_EMIT_TO_CLIENT 0xfffffffeu
#define CAIRN_EMPTY_DESTINATION 0xffffffffu

/* How a chunked row's outputs are joined before they are routed. Unknown: CONCAT. */
enum { CAIRN_CHUNK_CONCAT = 0, CAIRN_CHUNK_LIST = 1, CAIRN_CHUNK_FINAL = 2 };

/* One named output routed to one destination (GraphEdge; StreamingGraphEdge with STREAMING set). */
typedef struct cairn_graph_edge {
  uint32_t signal;
  uint32_t next_node; /* node index, CAIRN_EMIT_TO_CLIENT or CAIRN_EMPTY_DESTINATION */
  uint32_t flags;     /* CAIRN_EDGE_* */
  uint32_t output_modality;  /* required with CAIRN_EMIT_TO_CLIENT, else CAIRN_NONE */
  uint32_t target_partition; /* required with CAIRN_EDGE_STREAMING, else CAIRN_NONE */
  uint32_t chunk_output;     /* CAIRN_CHUNK_* */
  int32_t shard_dim;         /* dimension this signal is sharded along across ranks, or -1 */
  uint32_t reserved;
} cairn_graph_edge;
CAIRN_DECLARE_SPAN(cairn_graph_edge);
enum {
  CAIRN_EDGE_PERSIST = 1,   /* also kept alive for the conductor: partition_forward_args receives it */
  CAIRN_EDGE_NEW_TOKEN = 2, /* its elements count as output tokens of the partition (conductor_new_token) */
  CAIRN_EDGE_STREAMING = 4  /* crosses partitions through a stream buffer */
};

/* A section of a walk's graph. Children are indices into the walk's sections; a child appears under one parent. */
enum { CAIRN_SECTION_NODE = 0, CAIRN_SECTION_SEQUENTIAL = 1, CAIRN_SECTION_PARALLEL = 2, CAIRN_SECTION_LOOP = 3 };
typedef struct cairn_graph_section {
  uint32_t kind;
  uint32_t node;                  /* NODE: the node index */
  cairn_u32_span inputs;          /* NODE: signals it waits for */
  cairn_graph_edge_span outputs;  /* NODE: its outputs. LOOP: outputs of the last iteration */
  cairn_graph_edge_span accumulated_outputs; /* LOOP: outputs collected over all iterations; disjoint from outputs */
  cairn_u32_span children;        /* SEQUENTIAL, PARALLEL: sections in order. LOOP: exactly one */
  uint32_t loop;                  /* LOOP: index into the model's loops, or CAIRN_NONE for one that cannot be stopped */
  uint32_t flags;                 /* CAIRN_SECTION_* flags */
  int64_t max_iters;              /* LOOP: > 0 */
} cairn_graph_section;
CAIRN_DECLARE_SPAN(cairn_graph_section);
enum {
  CAIRN_SECTION_CONSUMES_STREAM = 1,
  CAIRN_SECTION_NO_ASYNC_SCHEDULING = 2 /* enable_async_scheduling = False: never speculated as source or target */
};

/* A named traversal of the model's graph (prefill, decode, image_gen). */
typedef struct cairn_walk_desc {
  cairn_str name;
  cairn_graph_section_span sections;
  uint32_t root; /* index of the outermost section */
  uint32_t flags;
} cairn_walk_desc;
CAIRN_DECLARE_SPAN(cairn_walk_desc);

/* A walk under which rows of several walks of one node may share a step (mixed prefill and decode). Its name is an
 * index after the walks: walk index = walks.count + position here. Rows keep their own walk. */
typedef struct cairn_combined_walk_desc {
  cairn_str name;
  uint32_t node;
  uint32_t reserved;
  cairn_u32_span walks;
} cairn_combined_walk_desc;
CAIRN_DECLARE_SPAN(cairn_combined_walk_desc);

/* PartitionDefinition: a set of walks that advances on its own. */
typedef struct cairn_partition_definition {
  cairn_str name;
  cairn_u32_span graph_walks;
  uint32_t initial_walk; /* or CAIRN_NONE */
  uint32_t reserved;
  cairn_u32_span producer_partitions;
} cairn_partition_definition;
CAIRN_DECLARE_SPAN(cairn_partition_definition);

/* A streaming connection between partitions with its chunk policy. Unknown policy: the model is refused. */
enum { CAIRN_CHUNK_POLICY_FIXED = 0, CAIRN_CHUNK_POLICY_SLIDING_WINDOW = 1, CAIRN_CHUNK_POLICY_LEFT_CONTEXT = 2 };
typedef struct cairn_connection_desc {
  uint32_t from_partition;
  uint32_t to_partition;
  uint32_t signal;
  uint32_t policy;
  int64_t chunk;      /* FIXED: n. SLIDING_WINDOW: window. LEFT_CONTEXT: chunk */
  int64_t second;     /* SLIDING_WINDOW: stride. LEFT_CONTEXT: left context */
  uint32_t continue_after_done; /* FIXED: 1 = empty chunks for ever after the producer ended, never final */
  uint32_t reserved;
} cairn_connection_desc;
CAIRN_DECLARE_SPAN(cairn_connection_desc);

/* Resource kinds. A kind the host does not know or does not drive yet: the model is refused with CAIRN_STATUS_UNSUPPORTED
 * and a message that names the resource. */
enum {
  CAIRN_RESOURCE_KV = 1,
  CAIRN_RESOURCE_RING_KV = 2,
  CAIRN_RESOURCE_BOUNDED_KV = 3,
  CAIRN_RESOURCE_ATTENTION = 4,
  CAIRN_RESOURCE_CROSS_ATTENTION = 5,
  CAIRN_RESOURCE_RAGGED_ATTENTION = 6,
  CAIRN_RESOURCE_POSITION = 7,
  CAIRN_RESOURCE_SAMPLER = 8,
  CAIRN_RESOURCE_DIFFUSION_SAMPLER = 9,
  CAIRN_RESOURCE_RECURRENT_STATE = 10,
  CAIRN_RESOURCE_LINEAR_ATTENTION = 11,
  CAIRN_RESOURCE_SLOT_STATE = 12,
  CAIRN_RESOURCE_SPEC_ACCEPTANCE = 13
};

/* KVSpec / PagedKVConfig. */
typedef struct cairn_kv_config {
  uint64_t struct_size;
  int64_t num_layers;
  int64_t num_kv_heads;
  int64_t head_dim;
  int64_t max_seq_len;
  int64_t max_num_pages; /* 0: sized by the host from free memory and the deployment */
  int64_t page_size;     /* 0: 128 on an accelerator, the host's choice on the CPU */
  int64_t num_qo_heads;  /* 0: num_kv_heads */
  uint32_t layout;       /* CAIRN_KV_LAYOUT_*; a CPU host may store pages as its kernels like best */
  uint32_t leader;       /* node whose pool decides admission, or CAIRN_NONE */
  int64_t cpu_offload_pages; /* 0: no offload */
  uint32_t no_prefix_cache;  /* 1: prefix_cache = False */
  uint32_t reserved;
  cairn_str prefix_cache_salt;
  cairn_dtype dtype;    /* all zero: the host's choice (f16 on the CPU, the autocast dtype elsewhere) */
  int64_t window;       /* attention reads at most this many last tokens; 0: all */
} cairn_kv_config;
enum { CAIRN_KV_LAYOUT_NHD = 0, CAIRN_KV_LAYOUT_HND = 1 };

/* RingKVConfig: per-session rings for world models. */
typedef struct cairn_ring_kv_config {
  uint64_t struct_size;
  int64_t num_layers, num_kv_heads, head_dim, ring_tokens, num_sessions, worlds;
} cairn_ring_kv_config;

/* BoundedKVSpec. */
typedef struct cairn_bounded_kv_config {
  uint64_t struct_size;
  int64_t num_layers, max_slots, rows_per_request, num_heads, slot_tokens, head_dim, max_source_len, sink_capacity;
  cairn_dtype dtype;
  uint32_t reverse_step_order;
} cairn_bounded_kv_config;

/* AttentionConfig. */
enum { CAIRN_ATTENTION_AUTO = 0, CAIRN_ATTENTION_FLASHINFER = 1, CAIRN_ATTENTION_DENSE = 2, CAIRN_ATTENTION_FLEX = 3, CAIRN_ATTENTION_MLA = 4 };
typedef struct cairn_attention_config {
  uint64_t struct_size;
  uint32_t kv_cache; /* resource index */
  uint32_t backend;  /* CAIRN_ATTENTION_*; a hint on a host without that backend */
  double sm_scale;   /* 0: head_dim^-0.5 */
  double logit_soft_cap; /* 0: none */
} cairn_attention_config;

/* CrossAttentionConfig. */
typedef struct cairn_cross_attention_config {
  uint64_t struct_size;
  uint32_t kv_cache;       /* the context cache */
  uint32_t query_kv_cache; /* or CAIRN_NONE */
  uint32_t context_label;  /* label index */
  uint32_t backend;
} cairn_cross_attention_config;

/* RaggedAttentionSpec. */
typedef struct cairn_ragged_attention_config {
  uint64_t struct_size;
  int64_t num_qo_heads, num_kv_heads, head_dim, max_segments_per_request, max_tokens_per_request;
  double sm_scale; /* 0: head_dim^-0.5 */
  uint32_t block_causal;
} cairn_ragged_attention_config;

/* PositionConfig, with the published rotary scalings. Unknown scaling: the model is refused. */
enum { CAIRN_POSITION_ROPE = 0, CAIRN_POSITION_COUNTER = 1 };
enum { CAIRN_POSITION_SEQUENTIAL = 0, CAIRN_POSITION_BLOCK = 1 };
enum {
  CAIRN_ROPE_SCALING_NONE = 0,
  CAIRN_ROPE_SCALING_LINEAR = 1,  /* rope_scale */
  CAIRN_ROPE_SCALING_DYNAMIC = 2, /* dynamic NTK: rope_scale, original_max_position */
  CAIRN_ROPE_SCALING_YARN = 3,    /* rope_scale, original_max_position, beta_*, attention_factor, mscale* */
  CAIRN_ROPE_SCALING_LLAMA3 = 4,  /* rope_scale, low/high_freq_factor, old_context_len: all or none */
  CAIRN_ROPE_SCALING_LONGROPE = 5 /* short_factor, long_factor, original_max_position, attention_factor */
};
typedef struct cairn_position_config {
  uint64_t struct_size;
  uint32_t kv_cache; /* resource index */
  uint32_t backend;  /* CAIRN_POSITION_ROPE or _COUNTER */
  uint32_t scheme;   /* CAIRN_POSITION_SEQUENTIAL or _BLOCK */
  uint32_t interleave; /* 1: rotate (2i, 2i+1) pairs; 0: the two halves */
  int64_t block_step;  /* 0: 1 */
  int64_t head_dim;
  int64_t rotary_dim;  /* 0: head_dim */
  double rope_scale;   /* 0: 1 */
  double rope_theta;   /* 0: 10000 */
  uint32_t scaling;    /* CAIRN_ROPE_SCALING_* */
  uint32_t reserved;
  double low_freq_factor, high_freq_factor;
  int64_t old_context_len;
  int64_t original_max_position;
  double attention_factor; /* 0: as published for the scaling */
  double beta_fast, beta_slow; /* 0: 32 and 1 */
  double mscale, mscale_all_dim;
  const float* short_factor; /* rotary_dim / 2 values each, or NULL; copied by the host at open */
  const float* long_factor;
  const float* freq_factors; /* explicit divisor per frequency (GGUF rope_freqs), rotary_dim / 2 values or NULL */
  int64_t max_position;      /* model's context, for dynamic and longrope */
} cairn_position_config;

/* SamplerSpec. enable_repetition_penalty is M*'s enable_repetion_penalty (sic). */
typedef struct cairn_sampler_config {
  uint64_t struct_size;
  int64_t vocab_size; /* 0 is allowed only without penalties */
  uint32_t no_repetition_penalty; /* 1: enable_repetion_penalty = False */
  uint32_t enable_min_p;
} cairn_sampler_config;

/* DiffusionSamplerSpec. */
typedef struct cairn_diffusion_sampler_config {
  uint64_t struct_size;
  int64_t vocab_size, num_rows, forbidden_class; /* forbidden_class -1: none */
} cairn_diffusion_sampler_config;

/* One named block of a RecurrentStateSpec or tensor of a SlotStateConfig. */
typedef struct cairn_state_block {
  cairn_str name;
  cairn_dtype dtype;
  uint32_t slot_dim;
  cairn_i64_span shape;
} cairn_state_block;
CAIRN_DECLARE_SPAN(cairn_state_block);
typedef struct cairn_recurrent_state_config {
  uint64_t struct_size;
  int64_t num_layers, max_slots;
  cairn_state_block_span blocks;
  uint32_t disable_sink_slot;
} cairn_recurrent_state_config;

/* LinearAttnSpec. */
enum { CAIRN_LINEAR_ATTENTION_GDN = 0, CAIRN_LINEAR_ATTENTION_KDA = 1, CAIRN_LINEAR_ATTENTION_MAMBA2 = 2 };
typedef struct cairn_linear_attention_config {
  uint64_t struct_size;
  uint32_t recurrent_state; /* resource index */
  uint32_t variant;
} cairn_linear_attention_config;

/* SlotStateSpec. */
typedef struct cairn_slot_state_config {
  uint64_t struct_size;
  int64_t max_slots;
  cairn_state_block_span tensors;
} cairn_slot_state_config;

/* SpecAcceptanceSpec. */
typedef struct cairn_spec_acceptance_config {
  uint64_t struct_size;
  int64_t num_speculative;
} cairn_spec_acceptance_config;

/* A resource spec: get_node_resources()'s element. Two nodes named by one spec share one object. */
typedef struct cairn_resource_spec {
  cairn_str resource_key; /* name used at bind and under `resources:` in the deployment file */
  uint32_t kind;          /* CAIRN_RESOURCE_* */
  uint32_t reserved;
  cairn_u32_span nodes;
  const void* config;     /* the kind's config struct above */
  cairn_u32_span depends_on; /* other resources, beside those the config names */
} cairn_resource_spec;
CAIRN_DECLARE_SPAN(cairn_resource_spec);

/* One key of model_kwargs or plugin configuration (R38): validated before open; an unknown key is an error. */
typedef struct cairn_config_key {
  cairn_str name;
  uint32_t kind;     /* CAIRN_VALUE_* */
  uint32_t required;
  cairn_value default_value;
  cairn_str help;
  cairn_str_span choices; /* for strings; empty: any */
  double minimum, maximum; /* for numbers; equal: no limits */
} cairn_config_key;
CAIRN_DECLARE_SPAN(cairn_config_key);

/* How text and token ids meet for this model. Unknown: CAIRN_TEXT_NONE. */
enum {
  CAIRN_TEXT_NONE = 0,      /* text prompts go to process_prompt as text; text output comes from postprocess */
  CAIRN_TEXT_VOCABULARY = 1,/* the host's tokenizer and chat template from the weights make ids of text and back */
  CAIRN_TEXT_BYTES = 2      /* ids 0..255 are the bytes of UTF-8 text */
};

/* The whole model as data. Memory of the plugin, valid until close; the host validates all of it and refuses the model
 * with the node and the field. */
typedef struct cairn_model_desc {
  uint64_t struct_size;
  cairn_str name;
  cairn_str architecture;
  uint32_t text; /* CAIRN_TEXT_* */
  uint32_t flags;
  cairn_str_span input_modalities;  /* "text", "image", "audio", "video", "action", ... */
  cairn_str_span output_modalities;
  cairn_str_span signals;
  cairn_str_span labels; /* stream labels; none given: one label "main" */
  cairn_str_span loops;
  cairn_str_span regions; /* piecewise region labels */
  cairn_node_desc_span nodes;
  cairn_walk_desc_span walks;                   /* get_graph_walk_graphs() */
  cairn_combined_walk_desc_span combined_walks;
  cairn_partition_definition_span partitions;   /* get_partitions(); none: one "default" with all walks */
  cairn_connection_desc_span connections;       /* get_partition_topology() */
  cairn_resource_spec_span resources;           /* get_node_resources() */
  int64_t max_seq_len;       /* prompt plus output of one request */
  int64_t max_output_tokens; /* get_max_output_tokens(); 0: what the context leaves */
  int64_t vocab_size;
  cairn_dtype autocast_dtype;    /* get_autocast_dtype(); zero: float32 on the CPU */
  int64_t output_sample_rate;    /* get_output_sample_rate(); 0: 24000 */
  int64_t output_audio_channels; /* get_output_audio_channels(); 0: 1 */
  cairn_i32_span end_tokens;     /* ids that end generation, beside the tokenizer's own */
} cairn_model_desc;

/* ---- 7. Requests and forward passes (seed: mstar.conductor.request_info) ---------------------------------------- */

/* StreamChunkInfo. */
typedef struct cairn_stream_chunk_info {
  uint32_t signal;
  uint32_t is_final;
  int64_t chunk_index;  /* counts pops */
  int64_t start_offset; /* global index of the chunk's first item */
  int64_t num_items;
} cairn_stream_chunk_info;
CAIRN_DECLARE_SPAN(cairn_stream_chunk_info);

/* Iterations of one dynamic loop as of this step. */
typedef struct cairn_loop_count {
  uint32_t loop;
  uint32_t reserved;
  int64_t iterations;
} cairn_loop_count;
CAIRN_DECLARE_SPAN(cairn_loop_count);

/* NestedLoopIndices: a logical time stamp. */
typedef struct cairn_loop_stop_time {
  uint32_t loop;
  uint32_t reserved;
  int64_t forward_index;
  cairn_loop_count_span indices; /* outer to inner */
} cairn_loop_stop_time;
CAIRN_DECLARE_SPAN(cairn_loop_stop_time);

/* One resource's published state (PublishedInfo): opaque to plugins. */
typedef struct cairn_published_info {
  uint32_t resource;
  uint32_t reserved;
  cairn_map info;
} cairn_published_info;
CAIRN_DECLARE_SPAN(cairn_published_info);

/* SamplingReqConfig with the OpenAI parameters beside M*'s. All fields have a "not given" zero except where said. */
typedef struct cairn_sampling_req_config {
  uint64_t struct_size;
  double temperature; /* 0: greedy */
  int64_t top_k;      /* 0: off */
  double top_p;       /* 0 or 1: off */
  double min_p;       /* 0: off */
  double repetition_penalty; /* 0 or 1: off */
  double presence_penalty;
  double frequency_penalty;
  uint64_t seed;
  uint32_t ignore_eos;
  int32_t logprobs;        /* 0: none; n: the chosen token and the n - 1 best */
  int32_t prompt_logprobs; /* the same for prompt tokens */
  uint32_t reserved;
  const int32_t* bias_tokens; /* logit bias */
  const float* bias_values;
  uint64_t bias_count;
  cairn_i32_span stop_tokens; /* tokens that end the request; never sampled before min_tokens */
  int64_t min_tokens;
} cairn_sampling_req_config;

/* One (node, walk) rule of KVReqConfig's needed labels; CAIRN_NONE matches all. Precedence: (node, walk), node, all. */
typedef struct cairn_needed_labels {
  uint32_t node;
  uint32_t walk;
  cairn_u32_span labels;
} cairn_needed_labels;
CAIRN_DECLARE_SPAN(cairn_needed_labels);

/* Tokens a label's prompt will hold (prompt_slots). */
typedef struct cairn_label_tokens {
  uint32_t label;
  uint32_t decodes; /* 1: the label also grows by max_tokens */
  int64_t tokens;
} cairn_label_tokens;
CAIRN_DECLARE_SPAN(cairn_label_tokens);

/* KVReqConfig. */
typedef struct cairn_kv_req_config {
  uint64_t struct_size;
  cairn_needed_labels_span needed_labels; /* none: label 0 */
  cairn_label_tokens_span prompt_slots;   /* exact admission; none: prompt + max_tokens on label 0 */
  int64_t max_tokens;                     /* 0: the request's */
  uint32_t no_prefix_cache;
  uint32_t reserved;
} cairn_kv_req_config;

/* DiffusionSamplingReqConfig. */
typedef struct cairn_diffusion_sampling_req_config {
  uint64_t struct_size;
  double guidance_scale, temperature, top_ratio;
  uint64_t seed;
} cairn_diffusion_sampling_req_config;

/* ResourceReqConfig of one resource. */
typedef struct cairn_resource_req_config {
  uint32_t resource;
  uint32_t kind;      /* CAIRN_RESOURCE_*: says which struct config points to */
  const void* config;
} cairn_resource_req_config;
CAIRN_DECLARE_SPAN(cairn_resource_req_config);

/* CurrentForwardPassInfo: what every node hook receives about a request. Valid for the call; the host keeps one per
 * request and partition, so pointers repeat from step to step. */
typedef struct cairn_forward_info {
  uint64_t struct_size;
  cairn_request request;
  cairn_str request_id; /* for logs */
  uint32_t graph_walk;
  uint32_t partition;   /* partition_name */
  int64_t fwd_index;
  uint64_t random_seed;
  int64_t max_tokens;
  int64_t prompt_tokens; /* tokens of the prompt, once known */
  int64_t output_tokens; /* new tokens so far */
  cairn_map step_metadata;
  cairn_resource_req_config_span resource_configs;
  cairn_published_info_span resource_publish_info;
  cairn_loop_stop_time_span loop_stop_times;
  cairn_loop_count_span dynamic_loop_iter_counts;
} cairn_forward_info;

/* CurrentForwardConductorMetadata: per partition, handed to the model at each transition. */
typedef struct cairn_conductor_metadata {
  uint64_t struct_size;
  uint32_t graph_walk;
  uint32_t is_prefill;
  cairn_u32_span input_modalities; /* indices into the model's input_modalities, one per prompt element */
  cairn_u32_span output_modalities;
  cairn_map kwargs;
} cairn_conductor_metadata;

/* StreamingConnectionState: one incoming connection of a partition. */
typedef struct cairn_connection_state {
  uint32_t from_partition;
  uint32_t to_partition;
  uint32_t signal; /* edge_name */
  uint32_t producer_done;
  int64_t token_count;
  int64_t consumed_count;
} cairn_connection_state;
CAIRN_DECLARE_SPAN(cairn_connection_state);

/* Tensors under one signal. No tensors: a signal-only edge, which counts as ready. */
typedef struct cairn_signal_tensors {
  uint32_t signal;
  uint32_t reserved;
  cairn_tensor_view_span tensors;
} cairn_signal_tensors;
CAIRN_DECLARE_SPAN(cairn_signal_tensors);

/* One input edge of a forward pass: the signal, where it goes, and its tensors. */
typedef struct cairn_input_edge {
  uint32_t signal;
  uint32_t node;
  cairn_tensor_view_span tensors; /* views must have an owner */
} cairn_input_edge;
CAIRN_DECLARE_SPAN(cairn_input_edge);

/* ForwardPassArgs. Filled by the plugin; pointers live in the arena the call was given. */
typedef struct cairn_forward_args {
  uint64_t struct_size;
  cairn_conductor_metadata metadata; /* full_metadata */
  cairn_input_edge_span inputs;      /* none and not done: the partition starts itself from its stream buffers */
  cairn_u32_span unpersist;          /* signals whose persisted tensors are no longer needed */
  uint32_t request_done;
  uint32_t reserved;
  cairn_map step_metadata;
} cairn_forward_args;

/* ---- 8. Arena --------------------------------------------------------------------------------------------------- */

/* Host memory that lives until the end of the step (node hooks) or of the call (model hooks). All variable-size answers
 * of a plugin go here, so nothing is freed across the boundary and a steady step allocates nothing.
 * [thread: that of the call it was passed to] [state: open, bound, running, draining] */
typedef struct cairn_arena {
  uint64_t struct_size;
  /* `size` bytes aligned to `alignment` (a power of two, at most 64), uninitialised; NULL when out of memory. */
  void* (*alloc)(struct cairn_arena* arena, uint64_t size, uint64_t alignment);
} cairn_arena;
/* `count` uninitialised objects of `type` from an arena, or NULL. */
#define CAIRN_ARENA_NEW(arena, type, count) \
  ((type*)(arena)->alloc((arena), (uint64_t)sizeof(type) * (uint64_t)(count), sizeof(uint64_t)))

/* ---- 9. Model table (mirror of M*'s Model) ---------------------------------------------------------------------- */

#define CAIRN_MODEL_INTERFACE "cairn.model"
#define CAIRN_MODEL_REVISION 1

/* What a model is opened with. Valid for the call; weights stays open until close. */
typedef struct cairn_open_args {
  uint64_t struct_size;
  const cairn_host* host;
  cairn_weights* weights;  /* NULL: the deployment names no weights file */
  cairn_str name;          /* `model` of the deployment */
  cairn_map model_kwargs;  /* validated against config_schema, defaults filled in */
  cairn_device device;
  int32_t tp_world_size, tp_rank, sp_world_size, sp_rank;
  int64_t max_seq_len;     /* of the deployment; 0: the model's own */
  cairn_dtype autocast_dtype; /* of the deployment; zero: the model's own */
} cairn_open_args;

/* One prompt element for process_prompt. */
typedef struct cairn_prompt_part {
  uint32_t modality; /* index into input_modalities */
  uint32_t reserved;
  cairn_str text;            /* modality text without ids */
  cairn_i32_span token_ids;  /* modality text, when the host's tokenizer made ids */
  cairn_tensor_view media;   /* decoded media; data NULL when there is none */
} cairn_prompt_part;
CAIRN_DECLARE_SPAN(cairn_prompt_part);

typedef struct cairn_prompt_args {
  uint64_t struct_size;
  cairn_str request_id;
  cairn_prompt_part_span parts; /* prompt_parts, in prompt order */
  cairn_u32_span output_modalities;
  cairn_map model_kwargs; /* the request's */
  cairn_arena* arena;
} cairn_prompt_args;

/* What process_prompt answers: named input tensors (persisted by the host for the request) and the token count that
 * usage and admission go by. */
typedef struct cairn_prompt_result {
  uint64_t struct_size;
  cairn_signal_tensors_span tensors;
  int64_t prompt_tokens;
  cairn_map metadata; /* goes to initial_forward_args */
} cairn_prompt_result;

typedef struct cairn_initial_args {
  uint64_t struct_size;
  uint32_t partition;
  uint32_t reserved;
  cairn_u32_span input_modalities;
  cairn_u32_span output_modalities;
  cairn_signal_tensors_span input_signals; /* process_prompt's tensors */
  cairn_map prompt_metadata;
  cairn_map model_kwargs;
  cairn_arena* arena;
} cairn_initial_args;

typedef struct cairn_transition_args {
  uint64_t struct_size;
  uint32_t partition;
  uint32_t reserved;
  const cairn_conductor_metadata* metadata; /* of the walk that just ended */
  cairn_signal_tensors_span persist_signals;
  cairn_connection_state_span incoming_connections;
  int64_t fwd_index;
  int64_t num_output_tokens;
  cairn_u32_span curr_forward_outputs;
  cairn_arena* arena;
} cairn_transition_args;

typedef struct cairn_request_config_args {
  uint64_t struct_size;
  const cairn_forward_args* const* partition_fwd_args; /* one per partition */
  uint64_t partition_count;
  cairn_map model_kwargs;
  const cairn_sampling_req_config* sampling; /* the client's parameters, already validated */
  int64_t prompt_tokens;
  int64_t max_tokens;
  cairn_arena* arena;
} cairn_request_config_args;

typedef struct cairn_postprocess_args {
  uint64_t struct_size;
  cairn_str request_id;
  cairn_request request;
  uint32_t modality; /* index into output_modalities */
  uint32_t is_final; /* 1: the request's last output of this modality; tensor may be empty */
  const cairn_tensor_view* tensor;
  cairn_map request_kwargs;
  cairn_arena* arena;
} cairn_postprocess_args;

/* prefix_key_streams(): which tensor keys a label's pages. */
typedef struct cairn_prefix_stream {
  uint32_t resource;
  uint32_t label;
  uint32_t signal;      /* tensor */
  uint32_t walk;
  uint32_t decode_walk; /* or CAIRN_NONE */
  uint32_t keyed_by;    /* 0: ids */
} cairn_prefix_stream;
CAIRN_DECLARE_SPAN(cairn_prefix_stream);

struct cairn_node_api;

typedef struct cairn_model_api {
  uint64_t struct_size;
  /* The keys model_kwargs may have. NULL: none. Memory of the plugin. [thread: control] [state: loaded] */
  cairn_status (*config_schema)(cairn_config_key_span* out);
  /* Opens a model: reads hyperparameters, checks the weights it needs; heavy weights are loaded in create_node.
   * INVALID_ARGUMENT, NOT_FOUND, DATA_LOSS, UNSUPPORTED with a message. [thread: control] [state: loaded] */
  cairn_status (*open)(const cairn_open_args* args, cairn_model** out_owned);
  /* After every node was destroyed and every request ended. NULL: nothing to free. [thread: control] [state: open] */
  void (*close)(cairn_model* model);
  /* The model as data; the same answer every time. [thread: control] [state: open] */
  cairn_status (*describe)(cairn_model* model, const cairn_model_desc** out_borrowed);
  /* process_prompt: text, ids and media to named tensors. INVALID_ARGUMENT is the client's fault (HTTP 400). NULL: the
   * ids become one int32 tensor [n] under signal 0. [thread: pool] [state: bound, running] */
  cairn_status (*process_prompt)(cairn_model* model, const cairn_prompt_args* args, cairn_prompt_result* out);
  /* get_initial_forward_pass_args: pure; a failure fails that request at once. Required.
   * [thread: control] [state: bound, running] */
  cairn_status (*initial_forward_args)(cairn_model* model, const cairn_initial_args* args, cairn_forward_args* out);
  /* get_partition_forward_pass_args: after every completed walk of the partition. Pure. NULL: the request is done when
   * its first walk is. [thread: control] [state: running, draining] */
  cairn_status (*partition_forward_args)(cairn_model* model, const cairn_transition_args* args, cairn_forward_args* out);
  /* get_request_resource_configs: asked once per request, after the initial arguments. NULL: the client's sampling
   * parameters for every sampler, prompt plus max_tokens on label 0 for every KV pool.
   * [thread: control] [state: bound, running] */
  cairn_status (*request_resource_configs)(cairn_model* model, const cairn_request_config_args* args,
                                           cairn_resource_req_config_span* out);
  /* postprocess: an output tensor to client bytes, incremental per request. NULL: tensors go out as raw bytes; for text
   * with CAIRN_TEXT_VOCABULARY or _BYTES the host decodes the ids itself. [thread: pool] [state: running, draining] */
  cairn_status (*postprocess)(cairn_model* model, const cairn_postprocess_args* args, cairn_bytes* out);
  /* The request is gone on the model's side too (after its last postprocess). NULL: nothing.
   * [thread: pool] [state: running, draining] */
  void (*request_closed)(cairn_model* model, cairn_request request);
  /* get_submodule: builds one node and loads its weights; reports progress. out_api is the node's table, memory of the
   * plugin. Required. [thread: control] [state: open] */
  cairn_status (*create_node)(cairn_model* model, uint32_t node, cairn_node** out_owned,
                              const struct cairn_node_api** out_api);
  /* After the node's last step. NULL: nothing to free. [thread: control] [state: open, bound] */
  void (*destroy_node)(cairn_model* model, cairn_node* node);
  /* prefix_key_streams(). NULL: no prefix cache. [thread: control] [state: open] */
  cairn_status (*prefix_key_streams)(cairn_model* model, cairn_prefix_stream_span* out);
  /* checkpoint_path(): what identifies the weights, for prefix keys. NULL: the weights file.
   * [thread: control] [state: open] */
  cairn_status (*checkpoint_path)(cairn_model* model, cairn_str* out);
} cairn_model_api;

/* The whole entry of a plugin whose only table is one static cairn_model_api: note, descriptor, cairn_plugin_entry. Once per
 * plugin, at file scope; the texts are literals. A plugin with more to say writes these three itself. */
#define CAIRN_MODEL_PLUGIN(id_, version_, vendor_, architectures_, model_api_)                                          \
  CAIRN_PLUGIN_IDENTITY(id_, version_, vendor_, "", "", "", "", "", architectures_, 0);                                 \
  static const void* cairn_get_interface_(const cairn_plugin* plugin, cairn_str name, uint32_t min_revision) {          \
    const char known[] = CAIRN_MODEL_INTERFACE;                                                                         \
    uint64_t i = 0;                                                                                                     \
    (void)plugin;                                                                                                       \
    if (name.size != sizeof known - 1 || min_revision > CAIRN_MODEL_REVISION) return NULL;                              \
    while (i < name.size && name.data[i] == known[i]) ++i;                                                              \
    return i == name.size ? (const void*)&(model_api_) : NULL;                                                          \
  }                                                                                                                     \
  static const cairn_plugin cairn_plugin_ = {                                                                           \
      CAIRN_SIZE(cairn_plugin, shutdown), CAIRN_ABI_MAJOR,      CAIRN_ABI_MINOR, CAIRN_TARGET_MINOR, 0, CAIRN_STR(id_), \
      CAIRN_STR(version_),                CAIRN_STR(vendor_),   cairn_get_interface_, NULL, NULL};                      \
  CAIRN_EXPORT const cairn_plugin* cairn_plugin_entry(const cairn_host* host) { return (void)host, &cairn_plugin_; }    \
  typedef int cairn_model_plugin_needs_a_semicolon_

/* ---- 10. The step: rows, declaration, engine inputs, outputs (seed: mstar.model.submodule_base) ------------------ */

/* What the worker routed to one row, for prepare_inputs. With InputMetadata's fields. */
typedef struct cairn_row_signals {
  cairn_request request;
  const cairn_forward_info* info;
  uint32_t graph_walk;            /* the row's real walk, in a mixed step too */
  uint32_t flags;                 /* CAIRN_ROW_* */
  cairn_signal_tensors_span inputs;
  cairn_stream_chunk_info_span stream_chunks;        /* InputMetadata.stream_chunks */
  cairn_loop_count_span dynamic_loop_iter_counts;    /* InputMetadata.dynamic_loop_iter_counts */
} cairn_row_signals;
CAIRN_DECLARE_SPAN(cairn_row_signals);
enum {
  CAIRN_ROW_HAS_LOOPBACK = 1,       /* its last step here kept the loop-back value on the device */
  CAIRN_ROW_FINAL_STREAM_CHUNK = 2, /* is_final_stream_chunk */
  CAIRN_ROW_SYNTHETIC = 4           /* made up for capture or warm-up */
};

/* A row's fate in a batch-shaped hook. Unknown: FAILED. */
enum { CAIRN_ROW_OK = 0, CAIRN_ROW_SKIP = 1, CAIRN_ROW_FAILED = 2 };

/* Explicit positions of one label. */
typedef struct cairn_label_tensor {
  uint32_t label;
  uint32_t reserved;
  cairn_tensor_view view;
} cairn_label_tensor;
CAIRN_DECLARE_SPAN(cairn_label_tensor);

/* NodeInputs and ARNodeInputs of one row. The host hands out a zeroed array, the plugin fills it; pointers live in the
 * step's arena, in the routed inputs, or in the plugin until the step ends. A row of uniform_row_inputs is shared by the
 * step's rows: never change it per row. */
typedef struct cairn_node_inputs {
  uint32_t row_status;  /* CAIRN_ROW_*: skip = this step only; failed = the request, with error */
  uint32_t graph_walk;  /* the row's real walk; filled in by the host */
  int64_t input_seq_len;  /* tokens this row contributes; required for autoregressive nodes */
  cairn_tensor_view input_ids;     /* int32 [input_seq_len]; data NULL: none */
  cairn_tensor_view input_embeds;  /* [input_seq_len, hidden]; data NULL: none */
  cairn_label_tensor_span custom_pos_ids; /* none: the position resource counts */
  cairn_named_tensor_span tensor_inputs;
  cairn_map kwargs;
  const void* resource_step_info; /* for declare_step only; its presence disables the default cut */
  cairn_str error;                /* with CAIRN_ROW_FAILED */
  int64_t chunk_start; /* set by the host: this row carries tokens [chunk_start, chunk_end) of its prompt */
  int64_t chunk_end;
  uint32_t is_last_chunk; /* 0: a non-final chunk: it does not sample and routes nothing */
  uint32_t reserved;
} cairn_node_inputs;
CAIRN_DECLARE_SPAN(cairn_node_inputs);

/* Segment: one stream's growth this step. The ordered list is the packed per-token layout. */
typedef struct cairn_segment {
  cairn_request request;
  uint32_t label;
  uint32_t row;  /* index of the row it belongs to */
  int64_t span;  /* tokens; 0 reads without extending */
} cairn_segment;
CAIRN_DECLARE_SPAN(cairn_segment);

/* A copy of a stream: to becomes from (pre: before the step's growth, post: after it). */
typedef struct cairn_fork {
  uint32_t from_label;
  uint32_t to_label;
} cairn_fork;
CAIRN_DECLARE_SPAN(cairn_fork);

/* combined_labels: one plan over several labels' segments, label-major. */
typedef struct cairn_combined_label {
  uint32_t label;
  uint32_t reserved;
  cairn_u32_span sources;
} cairn_combined_label;
CAIRN_DECLARE_SPAN(cairn_combined_label);

/* RetentionPolicy of one (request, label). */
typedef struct cairn_retention {
  cairn_request request;
  uint32_t label;
  uint32_t reserved;
  int64_t protected_prefix;
  int64_t context_budget;
} cairn_retention;
CAIRN_DECLARE_SPAN(cairn_retention);

/* KVStep, RecurrentStep. */
typedef struct cairn_kv_step {
  uint64_t struct_size;
  uint32_t no_commit; /* 1: commit = False: lengths do not move (denoise loops) */
  uint32_t reserved;
  cairn_combined_label_span combined_labels;
  cairn_fork_span pre_forks;
  cairn_fork_span post_forks;
  cairn_retention_span retention;
} cairn_kv_step;
/* AttentionStep. */
typedef struct cairn_attention_step {
  uint64_t struct_size;
  uint32_t not_causal; /* 1: causal = False */
} cairn_attention_step;
/* PositionStep. */
typedef struct cairn_position_step {
  uint64_t struct_size;
  cairn_label_tensor_span pos_ids; /* explicit ids per plan label; none: by the scheme */
  cairn_i64_span advance;          /* one per segment; none: the span */
} cairn_position_step;
/* One row's prompt tokens for the penalties (prefill_tracked_tokens). */
typedef struct cairn_tracked_tokens {
  cairn_request request;
  cairn_tensor_view ids;
} cairn_tracked_tokens;
CAIRN_DECLARE_SPAN(cairn_tracked_tokens);
/* SamplerStep. */
typedef struct cairn_sampler_step {
  uint64_t struct_size;
  uint32_t no_penalty; /* 1: apply_penalty = False */
  uint32_t reserved;
  cairn_tracked_tokens_span prefill_tracked_tokens;
} cairn_sampler_step;
/* DiffusionSamplerStep. */
typedef struct cairn_diffusion_sampler_step {
  uint64_t struct_size;
  int64_t iteration;
} cairn_diffusion_sampler_step;
/* BoundedKVStep: (source_len, written) per row. */
typedef struct cairn_bounded_position {
  cairn_request request;
  int64_t source_len;
  int64_t written;
} cairn_bounded_position;
CAIRN_DECLARE_SPAN(cairn_bounded_position);
typedef struct cairn_bounded_kv_step {
  uint64_t struct_size;
  cairn_bounded_position_span positions;
} cairn_bounded_kv_step;
/* SlotStateStep. */
typedef struct cairn_slot_state_step {
  uint64_t struct_size;
  uint32_t chunked; /* 0: mode "step" */
  uint32_t no_commit;
} cairn_slot_state_step;

/* ResourceStep of one resource. */
typedef struct cairn_resource_step {
  uint32_t resource;
  uint32_t reserved;
  cairn_segment_span segments; /* none: the SubmoduleStep's */
  const void* detail;          /* the kind's step struct above; NULL: its defaults */
} cairn_resource_step;
CAIRN_DECLARE_SPAN(cairn_resource_step);

/* SubmoduleStep. Lives in the step's arena. */
typedef struct cairn_step {
  uint64_t struct_size;
  cairn_segment_span segments; /* fills every resource step that has none */
  cairn_resource_step_span steps;
  cairn_value cg_key_info;
} cairn_step;

/* A lease on a captured slot. */
typedef struct cairn_slot_lease {
  uint64_t struct_size;
  uint32_t slot;
  uint32_t graph_walk; /* the walk it was captured under */
  int64_t batch_size;
  int64_t num_tokens;
  cairn_value cg_key_info;
} cairn_slot_lease;

/* What a region holds for this step. */
typedef struct cairn_region_lease {
  uint32_t region;
  uint32_t slot;
} cairn_region_lease;
CAIRN_DECLARE_SPAN(cairn_region_lease);

/* ModelInputsFromEngine, and what every step-scoped hook receives. Arrays have row_count entries, padding rows last. */
typedef struct cairn_engine_inputs {
  uint64_t struct_size;
  uint32_t graph_walk;  /* the step's walk: a combined one in a mixed step */
  uint32_t flags;       /* CAIRN_STEP_* */
  uint32_t row_count;      /* rows with padding */
  uint32_t real_row_count; /* real rows come first */
  const cairn_request* request_ids;
  const cairn_forward_info* const* per_request_info;
  cairn_node_inputs_span inputs;          /* after prepare_inputs */
  cairn_row_signals_span row_signals;     /* per_request_input_metadata and routed inputs */
  const cairn_step* step;                 /* NULL when undeclared */
  cairn_step_context* context;            /* passed to every resource call of this step */
  const cairn_slot_lease* slot_lease;     /* NULL: eager */
  cairn_region_lease_span piecewise_leases;
  cairn_region_runner* const* piecewise_runners; /* by region index; NULL entries: not captured */
  uint32_t piecewise_runner_count;
  uint32_t reserved;
  int64_t real_seq_len; /* real tokens of a padded step; 0: not padded */
  cairn_arena* arena;   /* until the end of the step */
  void* stream;         /* the device stream all work must be ordered on; NULL on the CPU */
} cairn_engine_inputs;
enum {
  CAIRN_STEP_CAPTURED = 1,  /* captured: at capture and replay */
  CAIRN_STEP_SYNTHETIC = 2, /* the rows are made up (capture, warm-up) */
  CAIRN_STEP_PREPLAN = 4    /* asked ahead of the step, perhaps over template rows */
};

/* One request's tensors under one signal (per_rid_outputs). */
typedef struct cairn_row_output {
  uint32_t row;
  uint32_t signal;
  cairn_tensor_view_span tensors;
} cairn_row_output;
CAIRN_DECLARE_SPAN(cairn_row_output);
/* One batch tensor under a signal: row i belongs to row i of the step. */
typedef struct cairn_batch_tensor {
  uint32_t signal;
  uint32_t reserved;
  cairn_tensor_view view;
} cairn_batch_tensor;
CAIRN_DECLARE_SPAN(cairn_batch_tensor);

/* BatchedModelOutput. Filled by forward / forward_batched; arrays live in the step's arena. Views without an owner are
 * step memory: the host copies what it must keep. A view with an owner may show any part of the owner's memory; the host
 * retains the owner for as long as it needs it. */
typedef struct cairn_batched_output {
  uint64_t struct_size;
  cairn_row_output_span per_rid_outputs;
  cairn_named_tensor_span packed_outputs;      /* cut later by unpack_packed_outputs */
  cairn_batch_tensor_span check_stop_buffers;  /* what the stop check reads; none: the per-request outputs */
  cairn_batch_tensor_span row_outputs;
  cairn_batch_tensor_span output_spans;        /* int64 [rows, 2]: valid [start, end) of the last dimension */
  const uint8_t* loopback_rids;                /* row_count flags, or NULL: value left on the device */
  uint32_t rows_only;                          /* 1: no per-request outputs at all */
  uint32_t reserved;
} cairn_batched_output;

/* HostRows: row-addressed outputs on the host, for the stop check. */
typedef struct cairn_host_rows {
  uint64_t struct_size;
  const cairn_request* request_ids; /* forward order */
  uint32_t row_count;
  uint32_t step_walk; /* the walk every row ran, or CAIRN_NONE in a mixed step */
  const cairn_forward_info* const* infos;
  cairn_batch_tensor_span buffers;      /* first row_count rows are real */
  cairn_row_output_span row_outputs;    /* per-request outputs on the host, when there are no buffers */
} cairn_host_rows;

/* StopCheck of one row. Zeroed by the host. Frozen: 40 bytes. */
typedef struct cairn_stop_check {
  uint32_t row_status; /* CAIRN_ROW_OK or CAIRN_ROW_FAILED */
  uint32_t reserved;
  uint64_t stops;    /* bit i: loop i stops after this step */
  uint64_t withheld; /* bit i: output signal i is not routed this step */
  cairn_str error;
} cairn_stop_check;

/* Per-row status of the other batch-shaped hooks; zeroed by the host. Frozen: 24 bytes. */
typedef struct cairn_row_result {
  uint32_t row_status;
  uint32_t reserved;
  cairn_str error; /* with CAIRN_ROW_FAILED; arena memory */
} cairn_row_result;

/* One bound resource: `api` is the table of its kind (section 12). */
typedef struct cairn_bound_resource {
  cairn_str resource_key;
  uint32_t resource; /* index in the model description */
  uint32_t kind;
  cairn_resource* self;
  const void* api;
} cairn_bound_resource;
CAIRN_DECLARE_SPAN(cairn_bound_resource);

/* One signal and the stop buffer that carries its value. */
typedef struct cairn_inline_signal {
  uint32_t signal;
  uint32_t buffer; /* signal of the check_stop_buffers entry */
} cairn_inline_signal;
CAIRN_DECLARE_SPAN(cairn_inline_signal);

/* AcceleratorGraphConfig. */
enum { CAIRN_CAPTURE_BATCHED = 0, CAIRN_CAPTURE_PACKED = 1 };
typedef struct cairn_capture_config {
  uint32_t kind;               /* CAIRN_CAPTURE_* */
  uint32_t capture_graph_walk;
  cairn_u32_span replay_graph_walks;   /* none: just the capture walk */
  cairn_value additional_key_info;
  cairn_i64_span capture_batch_sizes;  /* none: 1 2 4 8 16 32 64 */
  cairn_i64_span capture_token_lengths;/* PACKED */
  int64_t row_seq_len;                 /* BATCHED: tokens of the template row */
  int64_t total_tokens_multiplier;     /* BATCHED; 0: 1 */
  uint32_t no_compile;
  uint32_t uncapped_eager_batch_size;  /* 1: caps_eager_batch_size = False */
} cairn_capture_config;
CAIRN_DECLARE_SPAN(cairn_capture_config);

/* PiecewiseAcceleratorGraphConfig: one inner callable captured by itself. */
typedef struct cairn_region_call {
  uint64_t struct_size;
  const cairn_engine_inputs* engine_inputs;
  cairn_named_tensor_span static_inputs;
  int64_t batch_size;
  int64_t total_tokens;
  cairn_map kwargs;
} cairn_region_call;
typedef struct cairn_region_config {
  uint32_t region;
  uint32_t kind; /* CAIRN_CAPTURE_* */
  cairn_i64_span capture_batch_sizes;
  cairn_i64_span total_tokens; /* PACKED */
  int64_t seq_len;             /* BATCHED */
  uint32_t lease_before_step;
  uint32_t reserved;
  /* capture_fn: the region's body. [thread: device] [state: bound, running] */
  cairn_status (*capture_fn)(cairn_node* node, const cairn_region_call* call, cairn_named_tensor_span* out);
  /* make_static_inputs: shapes of the static inputs for one capture shape. [thread: device] [state: bound] */
  cairn_status (*make_static_inputs)(cairn_node* node, const cairn_region_call* call, cairn_named_tensor_span* out);
  /* declare_step of the region; NULL: it touches no resource. [thread: device] [state: bound, running] */
  cairn_status (*declare_step)(cairn_node* node, const cairn_engine_inputs* inputs, const cairn_i64_span* seq_lens,
                               const cairn_step** out);
} cairn_region_config;
CAIRN_DECLARE_SPAN(cairn_region_config);

/* NodeSubmodule's class attributes. */
typedef struct cairn_node_attributes {
  uint64_t struct_size;
  uint32_t disable_torch_compile;
  uint32_t disable_autocast;
  int32_t cudnn_allow_tf32; /* 0: not given, 1: yes, -1: no */
  uint32_t reads_device_loopback;
  cairn_str float32_matmul_precision;
  cairn_dtype autocast_dtype; /* get_autocast_dtype(); zero: the model's */
  cairn_device device;        /* get_device(); type 0: the model's */
  uint32_t cuts_tensor_inputs;
  uint32_t reserved;
} cairn_node_attributes;

/* ---- 11. Node table (mirror of NodeSubmodule and ARNodeSubmodule) ----------------------------------------------- */

/* Every hook of the seeds under its name; batch-shaped where M*'s is per request (one call over n rows, a status per row).
 * A failed row fails that request; a failed call fails the batch. NULL means the default written at the hook. */
typedef struct cairn_node_api {
  uint64_t struct_size;
  /* Class attributes. NULL: all defaults. [thread: control] [state: open] */
  cairn_status (*attributes)(cairn_node* node, cairn_node_attributes* out);
  /* bind_node_resources: once at load; a label or kind a layer needs and the node does not have fails here. The span
   * stays valid until destroy_node. NULL: the node calls no resource. [thread: control] [state: open] */
  cairn_status (*bind_node_resources)(cairn_node* node, cairn_bound_resource_span resources);
  /* on_request_added: the request reached this worker; no device work here. NULL: nothing.
   * [thread: main] [state: bound, running] */
  cairn_status (*on_request_added)(cairn_node* node, const cairn_forward_info* info);
  /* cleanup_request: the request left; drop private state. The host's request state is freed after it. NULL: nothing.
   * [thread: main] [state: running, draining] */
  void (*cleanup_request)(cairn_node* node, cairn_request request);
  /* prepare_inputs: fills out_rows[i] (stride out_stride) from rows element i. Required.
   * [thread: device] [state: running, draining] */
  cairn_status (*prepare_inputs)(cairn_node* node, cairn_row_signals_span rows, cairn_arena* arena,
                                 cairn_node_inputs* out_rows, uint64_t out_stride);
  /* uniform_row_inputs: the inputs every row of this walk gets, or *out_used = 0 to prepare row by row. NULL: row by
   * row. [thread: device] [state: running, draining] */
  cairn_status (*uniform_row_inputs)(cairn_node* node, uint32_t graph_walk, uint32_t has_loopback, cairn_arena* arena,
                                     cairn_node_inputs* out, uint32_t* out_used);
  /* split_inputs: `row` restricted to tokens [start, end). NULL: ids, embeds and positions are cut along tokens; a row
   * with tensor_inputs, kwargs or resource_step_info then cannot be cut. [thread: device] [state: running, draining] */
  cairn_status (*split_inputs)(cairn_node* node, const cairn_forward_info* info, const cairn_node_inputs* row,
                               int64_t start, int64_t end, cairn_arena* arena, cairn_node_inputs* out);
  /* can_batch: whether these rows may share one forward_batched. NULL: no (one forward per row).
   * [thread: device] [state: running, draining] */
  cairn_status (*can_batch)(cairn_node* node, const cairn_engine_inputs* inputs, uint32_t* out);
  /* max_batch_size(walk): rows; 0: no cap. NULL: no cap. Asked once per walk. [thread: main] [state: bound] */
  int64_t (*max_batch_size)(cairn_node* node, uint32_t graph_walk);
  /* max_batch_tokens(walk): tokens in one step; 0: the deployment's budget. NULL: that. [thread: main] [state: bound] */
  int64_t (*max_batch_tokens)(cairn_node* node, uint32_t graph_walk);
  /* max_rows_in_combined(walk): rows of this real walk inside a mixed step; 0: no cap. NULL: no cap.
   * [thread: main] [state: bound] */
  int64_t (*max_rows_in_combined)(cairn_node* node, uint32_t graph_walk);
  /* cg_key_info: which capture bucket a batch belongs to; touches no device value; may run beside a forward of the same
   * node. NULL: one capture per walk. [thread: device, plan, main] [state: bound, running] */
  cairn_status (*cg_key_info)(cairn_node* node, uint32_t graph_walk, cairn_row_signals_span rows, cairn_value* out);
  /* split_batches_by_capture_key(walk). NULL: no. [thread: main] [state: bound] */
  uint32_t (*split_batches_by_capture_key)(cairn_node* node, uint32_t graph_walk);
  /* can_use_accelerator_graphs. NULL: when a config replays the walk. [thread: device] [state: running] */
  cairn_status (*can_use_accelerator_graphs)(cairn_node* node, const cairn_engine_inputs* inputs, uint32_t* out);
  /* get_accelerator_graph_configs. NULL: none. [thread: control] [state: bound] */
  cairn_status (*get_accelerator_graph_configs)(cairn_node* node, cairn_device device, int32_t tp_world_size,
                                                cairn_capture_config_span* out);
  /* get_piecewise_accelerator_graph_configs. NULL: none. [thread: control] [state: bound] */
  cairn_status (*get_piecewise_accelerator_graph_configs)(cairn_node* node, cairn_device device,
                                                          cairn_dtype autocast_dtype, int32_t tp_world_size,
                                                          cairn_region_config_span* out);
  /* Template inputs of a captured shape: `rows` rows sharing `tokens` tokens. Required with capture configs.
   * [thread: control] [state: bound] */
  cairn_status (*make_capture_inputs)(cairn_node* node, const cairn_capture_config* config, int64_t rows,
                                      int64_t tokens, cairn_arena* arena, cairn_node_inputs* out_rows,
                                      uint64_t out_stride);
  /* declare_step: which streams the batch touches, what grows, what forks, what commits. inputs->step is NULL;
   * slot_lease and piecewise_leases say what is leased. *out NULL: the node drives no resource. NULL hook: that.
   * Re-entrant with a running forward; touches no device value. [thread: device, plan] [state: running, draining] */
  cairn_status (*declare_step)(cairn_node* node, const cairn_engine_inputs* inputs, const cairn_step** out);
  /* step_is_input_free(walk). NULL: no. [thread: main] [state: bound] */
  uint32_t (*step_is_input_free)(cairn_node* node, uint32_t graph_walk);
  /* preprocess: after plan; builds the tensors forward gets. NULL: tensor_inputs of a single row.
   * [thread: device] [state: running, draining] */
  cairn_status (*preprocess)(cairn_node* node, const cairn_engine_inputs* inputs, cairn_named_tensor_span* out);
  /* forward: one row. NULL is allowed when forward_batched is given. [thread: device] [state: running, draining] */
  cairn_status (*forward)(cairn_node* node, const cairn_engine_inputs* inputs, cairn_named_tensor_span tensors,
                          cairn_batched_output* out);
  /* forward_batched: the whole batch. One of forward and forward_batched is required.
   * [thread: device] [state: running, draining] */
  cairn_status (*forward_batched)(cairn_node* node, const cairn_engine_inputs* inputs, cairn_named_tensor_span tensors,
                                  cairn_batched_output* out);
  /* filter_batched_output: keep[i] = 0 drops per_rid_outputs element i for its request. NULL: keep all.
   * [thread: device] [state: running, draining] */
  cairn_status (*filter_batched_output)(cairn_node* node, const cairn_engine_inputs* inputs,
                                        const cairn_batched_output* outputs, uint8_t* keep);
  /* unpack_packed_outputs: cuts packed_outputs per request. NULL: none. [thread: device] [state: running, draining] */
  cairn_status (*unpack_packed_outputs)(cairn_node* node, const cairn_engine_inputs* inputs,
                                        const cairn_batched_output* outputs, cairn_row_output_span* out);
  /* postprocess: per-request work on outputs, in place; not on rows-only steps. results[i] for row i. NULL: nothing.
   * [thread: device] [state: running, draining] */
  cairn_status (*postprocess)(cairn_node* node, const cairn_engine_inputs* inputs, cairn_batched_output* outputs,
                              cairn_row_result* results);
  /* batch_postprocess: once per step after every postprocess; a failure fails every row. NULL: nothing.
   * [thread: device] [state: running, draining] */
  cairn_status (*batch_postprocess)(cairn_node* node, const cairn_engine_inputs* inputs, cairn_batched_output* outputs);
  /* check_stop, for n rows at once: results[i] for row i. NULL: nothing stops.
   * [thread: main] [state: running, draining] */
  cairn_status (*check_stop)(cairn_node* node, const cairn_host_rows* rows, cairn_stop_check* results);
  /* check_stop_batched: off the row buffers; UNSUPPORTED falls back to check_stop. Must agree with it. NULL: check_stop.
   * [thread: main] [state: running, draining] */
  cairn_status (*check_stop_batched)(cairn_node* node, const cairn_host_rows* rows, cairn_stop_check* results);
  /* inline_client_signals(walk). NULL: none. [thread: main] [state: bound] */
  cairn_status (*inline_client_signals)(cairn_node* node, uint32_t graph_walk, cairn_inline_signal_span* out);
  /* device_loopback_signals(walk). NULL: none. [thread: main] [state: bound] */
  cairn_status (*device_loopback_signals)(cairn_node* node, uint32_t graph_walk, cairn_u32_span* out);
  /* spanned_outputs(walk). NULL: none. [thread: main] [state: bound] */
  cairn_status (*spanned_outputs)(cairn_node* node, uint32_t graph_walk, cairn_u32_span* out);
  /* warmup_compiles: end of warm-up, once; resources are bound, nothing is admitted. NULL: nothing.
   * [thread: device] [state: bound] */
  cairn_status (*warmup_compiles)(cairn_node* node);
} cairn_node_api;

/* ---- 12. Resources a node's layers call ------------------------------------------------------------------------- */
/* All calls take the step's context and are ordered on its stream. Views are row-major and compact unless said.
 * [thread: device] [state: running, draining]; a call outside forward answers FAILED_PRECONDITION. */

/* Kind KV. T: the plan's tokens of `label`. */
typedef struct cairn_kv_api {
  uint64_t struct_size;
  /* write_kv: k and v are [>= T, num_kv_heads, head_dim]; the first T rows go to the plan's slots of `layer`. Their token
   * stride may be larger than compact. */
  cairn_status (*write_kv)(cairn_resource* self, cairn_step_context* context, int64_t layer, uint32_t label,
                           const cairn_tensor_view* k, const cairn_tensor_view* v);
  /* Tokens stored for one stream, the current step's growth excluded. */
  cairn_status (*seq_len)(cairn_resource* self, cairn_request request, uint32_t label, int64_t* out);
  /* read_kv: tokens [start, end) of one stream, copied to k and v [end - start, num_kv_heads, head_dim]. */
  cairn_status (*read_kv)(cairn_resource* self, cairn_step_context* context, int64_t layer, cairn_request request,
                          uint32_t label, int64_t start, int64_t end, const cairn_tensor_view* k,
                          const cairn_tensor_view* v);
  /* protect_prefix / release_oldest: explicit retention; refused while the stream is in flight. */
  cairn_status (*protect_prefix)(cairn_resource* self, cairn_request request, uint32_t label, int64_t tokens);
  cairn_status (*release_oldest)(cairn_resource* self, cairn_request request, uint32_t label, int64_t tokens);
} cairn_kv_api;

/* Kinds ATTENTION, CROSS_ATTENTION and RAGGED_ATTENTION. */
typedef struct cairn_attention_api {
  uint64_t struct_size;
  /* run: writes k and v where the backend wants it, then attends. q and out are [T, num_qo_heads, head_dim], k and v
   * [T, num_kv_heads, head_dim] (NULL for cross attention), all float32 on the CPU. out may not overlap q. The token
   * stride of q, k and v may be larger than compact (parts of one fused [T, q + k + v] matrix); heads and head_dim are
   * compact. */
  cairn_status (*run)(cairn_resource* self, cairn_step_context* context, int64_t layer, uint32_t label,
                      const cairn_tensor_view* q, const cairn_tensor_view* k, const cairn_tensor_view* v,
                      const cairn_tensor_view* out);
  /* select_last_hidden: the last token's row of every segment of `label`, in order: hidden [T, n] to out [rows, n]. */
  cairn_status (*select_last_hidden)(cairn_resource* self, cairn_step_context* context, uint32_t label,
                                     const cairn_tensor_view* hidden, const cairn_tensor_view* out);
  /* qo_indptr: int64 [segments + 1], where each segment's tokens begin. Valid for the step. */
  cairn_status (*qo_indptr)(cairn_resource* self, cairn_step_context* context, uint32_t label, cairn_tensor_view* out);
} cairn_attention_api;

/* Kind POSITION. */
typedef struct cairn_position_api {
  uint64_t struct_size;
  /* apply_qk: rotates q [T, heads, head_dim] and k [T, kv_heads, head_dim] in place at the plan's positions. The token
   * stride of both may be larger than compact, as in attention.run. */
  cairn_status (*apply_qk)(cairn_resource* self, cairn_step_context* context, uint32_t label, const cairn_tensor_view* q,
                           const cairn_tensor_view* k);
  /* pos_ids: int64 [T]. Valid for the step. */
  cairn_status (*pos_ids)(cairn_resource* self, cairn_step_context* context, uint32_t label, cairn_tensor_view* out);
} cairn_position_api;

/* Kind SAMPLER. The host decides which positions need logits: the last token of a row that samples, every token of a row
 * whose prompt is scored, none of a non-final chunk. */
typedef struct cairn_sampler_api {
  uint64_t struct_size;
  /* Rows of logits this step needs (S), at most the step's tokens. 0: skip the head; sample may still be called with an empty tensor. */
  cairn_status (*num_logit_rows)(cairn_resource* self, cairn_step_context* context, int64_t* out);
  /* Gathers those S rows, in the order sample wants them, from the step's packed hidden states: hidden [T, n] float32 to out [S, n]. */
  cairn_status (*select_hidden)(cairn_resource* self, cairn_step_context* context, const cairn_tensor_view* hidden,
                                const cairn_tensor_view* out);
  /* sample: logits [S, vocab_size] float32, changed in place; out_tokens int32 [row_count]: the sampled token of row i,
   * or -1 for a row that does not sample. Deterministic: keyed by (seed, position), never by row index. */
  cairn_status (*sample)(cairn_resource* self, cairn_step_context* context, const cairn_tensor_view* logits,
                         const cairn_tensor_view* out_tokens);
  /* loopback_tokens: int32 [row_count], each row's last sampled token (device loop-back). */
  cairn_status (*loopback_tokens)(cairn_resource* self, cairn_step_context* context, const cairn_tensor_view* out);
} cairn_sampler_api;

/* Kind DIFFUSION_SAMPLER: c_logits and u_logits (NULL: no guidance) [rows, positions, vocab]; tokens int32 and
 * log_probs float32 [rows, positions]. */
typedef struct cairn_diffusion_sampler_api {
  uint64_t struct_size;
  cairn_status (*sample)(cairn_resource* self, cairn_step_context* context, const cairn_tensor_view* c_logits,
                         const cairn_tensor_view* u_logits, const cairn_tensor_view* tokens,
                         const cairn_tensor_view* log_probs);
} cairn_diffusion_sampler_api;

/* Kinds RECURRENT_STATE, LINEAR_ATTENTION and SLOT_STATE: slots of named blocks. */
typedef struct cairn_state_api {
  uint64_t struct_size;
  /* The block's storage over all slots (layer < 0: not layered) and this step's int64 slot index per segment. */
  cairn_status (*block)(cairn_resource* self, cairn_step_context* context, int64_t layer, cairn_str name,
                        cairn_tensor_view* out);
  cairn_status (*slot_index)(cairn_resource* self, cairn_step_context* context, uint32_t label, cairn_tensor_view* out);
  /* uint8 per segment: 0 = a fresh slot, which reads as zeros. */
  cairn_status (*has_state)(cairn_resource* self, cairn_step_context* context, uint32_t label, cairn_tensor_view* out);
} cairn_state_api;

/* Kinds RING_KV and BOUNDED_KV. */
typedef struct cairn_slot_kv_api {
  uint64_t struct_size;
  cairn_status (*write)(cairn_resource* self, cairn_step_context* context, int64_t layer, uint32_t label,
                        const cairn_tensor_view* k, const cairn_tensor_view* v);
  cairn_status (*run)(cairn_resource* self, cairn_step_context* context, int64_t layer, uint32_t label,
                      const cairn_tensor_view* q, const cairn_tensor_view* out);
} cairn_slot_kv_api;

/* Kind SPEC_ACCEPTANCE: counts int64 [rows] of accepted draft tokens, staged inside the forward. */
typedef struct cairn_spec_acceptance_api {
  uint64_t struct_size;
  cairn_status (*stage)(cairn_resource* self, cairn_step_context* context, const cairn_tensor_view* counts);
} cairn_spec_acceptance_api;

/* ---- 13. Host services (asked for by name with cairn_host.get_interface) ---------------------------------------- */

/* "cairn.log": the level check first. [thread: any] [state: loaded, open, bound, running, draining] */
#define CAIRN_LOG_INTERFACE "cairn.log"
#define CAIRN_LOG_REVISION 1
enum { CAIRN_LOG_TRACE = 0, CAIRN_LOG_DEBUG = 1, CAIRN_LOG_INFO = 2, CAIRN_LOG_WARNING = 3, CAIRN_LOG_ERROR = 4 };
typedef struct cairn_log_service {
  uint64_t struct_size;
  uint32_t (*enabled)(uint32_t level);
  void (*write)(uint32_t level, cairn_str component, cairn_str message);
} cairn_log_service;

/* "cairn.status": the text of the error this thread is about to return. Kept by the host, readable after unload.
 * [thread: any] [state: loaded, open, bound, running, draining] */
#define CAIRN_STATUS_INTERFACE "cairn.status"
#define CAIRN_STATUS_REVISION 1
typedef struct cairn_status_service {
  uint64_t struct_size;
  /* Sets this thread's message and returns `code`, so that "return status->set(code, text);" reads well. */
  cairn_status (*set)(cairn_status code, cairn_str message);
  /* Adds key/value details to the message just set. */
  void (*detail)(cairn_str key, cairn_str value);
  /* The message of the last host call that failed on this thread; valid until this thread's next call. */
  cairn_str (*last)(void);
} cairn_status_service;

/* "cairn.tensor": host tensors. [thread: any] [state: loaded, open, bound, running, draining] */
#define CAIRN_TENSOR_INTERFACE "cairn.tensor"
#define CAIRN_TENSOR_REVISION 1
typedef struct cairn_tensor_service {
  uint64_t struct_size;
  /* A new tensor with one reference; contents uninitialised; 64-byte aligned. */
  cairn_status (*create)(cairn_dtype dtype, const int64_t* shape, int32_t ndim, cairn_device device,
                         cairn_tensor** out_owned);
  void (*retain)(cairn_tensor* tensor);
  void (*release)(cairn_tensor* tensor); /* NULL is allowed */
  /* A view that is valid while the caller holds a reference. */
  cairn_status (*view)(cairn_tensor* tensor, cairn_tensor_view* out);
  /* A tensor over elements [start, end) of dimension 0, sharing memory. */
  cairn_status (*slice)(cairn_tensor* tensor, int64_t start, int64_t end, cairn_tensor** out_owned);
  /* Wraps plugin memory; destroy may run late and on any thread (the host keeps the library mapped until then). */
  cairn_status (*wrap)(const cairn_tensor_view* view, void (*destroy)(void* context), void* context,
                       cairn_tensor** out_owned);
  /* Hands one reference to an arena, which releases it when it ends: how a tensor made for an output is let go. NULL: the
   * host does not offer it, and the plugin copies into the arena instead. [thread: that of the arena's call] */
  void (*give)(struct cairn_arena* arena, cairn_tensor* tensor);
} cairn_tensor_service;

/* "cairn.memory": memory that outlives a step, counted for the model. [thread: any]
 * [state: loaded, open, bound, running] */
#define CAIRN_MEMORY_INTERFACE "cairn.memory"
#define CAIRN_MEMORY_REVISION 1
typedef struct cairn_memory_service {
  uint64_t struct_size;
  cairn_status (*allocate)(cairn_device device, uint64_t size, uint64_t alignment, void** out_owned);
  void (*release)(cairn_device device, void* memory); /* NULL is allowed */
  /* Free and total bytes of a device, for sizing. */
  cairn_status (*capacity)(cairn_device device, uint64_t* out_free, uint64_t* out_total);
} cairn_memory_service;

/* The format of open weights. */
enum { CAIRN_WEIGHTS_GGUF = 1, CAIRN_WEIGHTS_SAFETENSORS = 2 };
/* How prepack lays rows out. GATED: the first half of the rows is the gate, the second the up projection, for
 * ops.linear_gated. */
enum { CAIRN_PREPACK_PLAIN = 0, CAIRN_PREPACK_GATED = 1 };
/* "cairn.weights": the open weights of a model: a GGUF file, a safetensors file or a Hugging Face directory.
 * [thread: any] [state: loaded, open, bound] */
#define CAIRN_WEIGHTS_INTERFACE "cairn.weights"
#define CAIRN_WEIGHTS_REVISION 1
typedef struct cairn_weights_service {
  uint64_t struct_size;
  /* CAIRN_WEIGHTS_*. */
  uint32_t (*format)(const cairn_weights* weights);
  /* "llama", "LlamaForCausalLM", ...; empty when the file does not say. */
  cairn_str (*architecture)(const cairn_weights* weights);
  /* Metadata by key: GGUF keys as they are; for directories a dotted path into config.json ("rope_scaling.factor").
   * ("architectures.0" indexes a list). NOT_FOUND when absent. An array is a LIST, one of bytes is BYTES. Valid until
   * close. */
  cairn_status (*metadata)(const cairn_weights* weights, cairn_str key, cairn_value* out);
  uint64_t (*tensor_count)(const cairn_weights* weights);
  cairn_status (*tensor_name)(const cairn_weights* weights, uint64_t index, cairn_str* out);
  /* Maps one tensor, read-only, for the life of the model. Shape is row-major, outermost first. NOT_FOUND. */
  cairn_status (*tensor)(const cairn_weights* weights, cairn_str name, cairn_tensor_view* out);
  /* One tensor converted to float32, a new tensor. */
  cairn_status (*tensor_f32)(const cairn_weights* weights, cairn_str name, cairn_tensor** out_owned);
  /* Prepacks one matrix from `count` tensors [rows_i, columns] stacked along rows (fused QKV, fused gate and up). Each may
   * have another type; block-quantised ones stay quantised. NOT_FOUND, INVALID_ARGUMENT (columns differ), UNSUPPORTED. */
  cairn_status (*prepack)(const cairn_weights* weights, const cairn_str* names, uint64_t count, uint32_t layout,
                          cairn_matrix** out_owned);
  void (*matrix_release)(cairn_matrix* matrix); /* NULL is allowed */
  cairn_status (*matrix_shape)(const cairn_matrix* matrix, int64_t* out_rows, int64_t* out_columns);
} cairn_weights_service;

/* "cairn.ops": the host's kernels on the current device. Views are row-major, float32 on the CPU unless said; out may be
 * the input where the op says "in place". Results of a row never depend on the other rows.
 * [thread: device] [state: bound, running, draining] */
#define CAIRN_OPS_INTERFACE "cairn.ops"
#define CAIRN_OPS_REVISION 1
enum { CAIRN_ACTIVATION_SILU = 0, CAIRN_ACTIVATION_GELU_TANH = 1, CAIRN_ACTIVATION_GELU = 2 };
typedef struct cairn_ops_service {
  uint64_t struct_size;
  /* out[m, rows] = x[m, columns] * matrix^T (+ bias[rows] unless NULL). accumulate: out += . */
  cairn_status (*linear)(const cairn_matrix* matrix, const cairn_tensor_view* x, const cairn_tensor_view* bias,
                         uint32_t accumulate, const cairn_tensor_view* out);
  /* out[m, rows / 2] = act(x * gate^T) * (x * up^T) on a matrix prepacked as CAIRN_PREPACK_GATED. */
  cairn_status (*linear_gated)(const cairn_matrix* matrix, const cairn_tensor_view* x, uint32_t activation,
                               const cairn_tensor_view* out);
  /* out[n, columns] = rows of matrix at ids int32 [n], dequantised exactly. OUT_OF_RANGE for an id outside. */
  cairn_status (*embedding)(const cairn_matrix* matrix, const cairn_tensor_view* ids, const cairn_tensor_view* out);
  /* out = x / rms(x) * weight over the last dimension; in place allowed; weight NULL: none. x and out may be [tokens,
   * heads, head_dim] with a token stride larger than compact (the q/k norm of some models). */
  cairn_status (*rms_norm)(const cairn_tensor_view* x, const cairn_tensor_view* weight, double eps,
                           const cairn_tensor_view* out);
  cairn_status (*layer_norm)(const cairn_tensor_view* x, const cairn_tensor_view* weight, const cairn_tensor_view* bias,
                             double eps, const cairn_tensor_view* out);
  /* Elementwise, in place allowed. mul and add broadcast b over leading dimensions. */
  cairn_status (*add)(const cairn_tensor_view* a, const cairn_tensor_view* b, const cairn_tensor_view* out);
  cairn_status (*mul)(const cairn_tensor_view* a, const cairn_tensor_view* b, const cairn_tensor_view* out);
  cairn_status (*activation)(const cairn_tensor_view* x, uint32_t activation, const cairn_tensor_view* out);
  /* act(gate) * up. */
  cairn_status (*gated)(const cairn_tensor_view* gate, const cairn_tensor_view* up, uint32_t activation,
                        const cairn_tensor_view* out);
  /* Over the last dimension; in place allowed. */
  cairn_status (*softmax)(const cairn_tensor_view* x, const cairn_tensor_view* out);
  /* out[m, n] = a[m, k] * b[k, n], plain float32. */
  cairn_status (*matmul)(const cairn_tensor_view* a, const cairn_tensor_view* b, const cairn_tensor_view* out);
  /* x [batch, channels, length], weight [out, channels / groups, kernel]. */
  cairn_status (*conv1d)(const cairn_tensor_view* x, const cairn_tensor_view* weight, const cairn_tensor_view* bias,
                         int64_t stride, int64_t padding, int64_t dilation, int64_t groups, const cairn_tensor_view* out);
  cairn_status (*conv2d)(const cairn_tensor_view* x, const cairn_tensor_view* weight, const cairn_tensor_view* bias,
                         const int64_t stride[2], const int64_t padding[2], const int64_t dilation[2], int64_t groups,
                         const cairn_tensor_view* out);
} cairn_ops_service;

/* "cairn.threads": the host's pool, and a post to the model's control thread. */
#define CAIRN_THREADS_INTERFACE "cairn.threads"
#define CAIRN_THREADS_REVISION 1
typedef struct cairn_threads_service {
  uint64_t struct_size;
  int32_t (*count)(void); /* [thread: any] [state: loaded, open, bound, running, draining] */
  /* Runs fn(argument, i) for i in [0, n) on the pool, the caller included; returns when all are done. Not re-entrant.
   * [thread: device, control] [state: open, bound, running, draining] */
  cairn_status (*parallel_for)(int32_t n, void (*fn)(void* argument, int32_t index), void* argument);
  /* Runs fn(argument) on the model's control thread soon; dropped when the model is gone. [thread: any]
   * [state: open, bound, running, draining] */
  cairn_status (*post)(cairn_model* model, void (*fn)(void* argument), void* argument);
} cairn_threads_service;

/* "cairn.random": the counter-based generator samplers use. [thread: any] [state: bound, running, draining] */
#define CAIRN_RANDOM_INTERFACE "cairn.random"
#define CAIRN_RANDOM_REVISION 1
typedef struct cairn_random_service {
  uint64_t struct_size;
  /* n uniform floats in [0, 1) at (seed, offset .. offset + n). */
  cairn_status (*uniform)(uint64_t seed, uint64_t offset, float* out, uint64_t n);
  /* n standard normal floats at (seed, offset .. offset + n). */
  cairn_status (*normal)(uint64_t seed, uint64_t offset, float* out, uint64_t n);
} cairn_random_service;

/* "cairn.tokenizer". [thread: any] [state: loaded, open, bound, running, draining] */
#define CAIRN_TOKENIZER_INTERFACE "cairn.tokenizer"
#define CAIRN_TOKENIZER_REVISION 1
typedef struct cairn_tokenizer_service {
  uint64_t struct_size;
  /* The tokenizer of open weights; lives as long as they do. NOT_FOUND when they carry none. */
  cairn_status (*get)(const cairn_weights* weights, const cairn_tokenizer** out_borrowed);
  /* Ids of text into the arena. */
  cairn_status (*encode)(const cairn_tokenizer* tokenizer, cairn_str text, uint32_t add_special, cairn_arena* arena,
                         cairn_i32_span* out);
  /* Text of ids into the arena. */
  cairn_status (*decode)(const cairn_tokenizer* tokenizer, cairn_i32_span ids, uint32_t skip_special,
                         cairn_arena* arena, cairn_str* out);
  int32_t (*vocab_size)(const cairn_tokenizer* tokenizer);
  /* The id of a token's spelling, or -1. */
  int32_t (*token_id)(const cairn_tokenizer* tokenizer, cairn_str spelling);
  /* Ids that end generation. Valid as long as the tokenizer. */
  cairn_i32_span (*end_tokens)(const cairn_tokenizer* tokenizer);
} cairn_tokenizer_service;

/* "cairn.chat_template". [thread: any] [state: loaded, open, bound, running, draining] */
#define CAIRN_CHAT_TEMPLATE_INTERFACE "cairn.chat_template"
#define CAIRN_CHAT_TEMPLATE_REVISION 1
typedef struct cairn_chat_template_service {
  uint64_t struct_size;
  cairn_status (*get)(const cairn_weights* weights, const cairn_chat_template** out_borrowed);
  /* messages: a list of maps; tools: a list or none; the rendered prompt goes to the arena. */
  cairn_status (*render)(const cairn_chat_template* chat_template, const cairn_value* messages,
                         const cairn_value* tools, uint32_t add_generation_prompt, const cairn_map* kwargs,
                         cairn_arena* arena, cairn_str* out);
} cairn_chat_template_service;

/* "cairn.media": decoding. [thread: pool] [state: bound, running] */
#define CAIRN_MEDIA_INTERFACE "cairn.media"
#define CAIRN_MEDIA_REVISION 1
typedef struct cairn_media_service {
  uint64_t struct_size;
  /* load_image: float32 [3, height, width] in [0, 1]. */
  cairn_status (*load_image)(cairn_bytes file, cairn_tensor** out_owned);
  /* load_audio: float32 [samples], mono, at sample_rate (0: 16000). */
  cairn_status (*load_audio)(cairn_bytes file, int64_t sample_rate, cairn_tensor** out_owned);
  /* load_video: float32 [frames, 3, height, width]; out_fps. */
  cairn_status (*load_video)(cairn_bytes file, double fps, cairn_tensor** out_owned, double* out_fps);
} cairn_media_service;

/* "cairn.request": per-request state kept by the host (PerRequestState) and cancellation. State is created on first use and
 * dropped after cleanup_request. Keys are per node. [thread: device, main] [state: running, draining] */
#define CAIRN_REQUEST_INTERFACE "cairn.request"
#define CAIRN_REQUEST_REVISION 1
typedef struct cairn_request_service {
  uint64_t struct_size;
  /* add: the host retains tensors and copies values; an opaque value's destroy runs when it is replaced or dropped. */
  cairn_status (*state_add)(cairn_node* node, cairn_request request, cairn_str key, const cairn_value* value);
  /* get: NOT_FOUND when absent; borrowed until the next state call for this request. */
  cairn_status (*state_get)(cairn_node* node, cairn_request request, cairn_str key, cairn_value* out);
  cairn_status (*state_remove)(cairn_node* node, cairn_request request, cairn_str key);
  /* disag_shared_keys: marks a key to travel with the request; no effect yet. */
  cairn_status (*state_share)(cairn_node* node, cairn_request request, cairn_str key);
  /* 1 when the request was cancelled: stop early. [thread: any] */
  uint32_t (*is_cancelled)(cairn_request request);
} cairn_request_service;

/* "cairn.regions": captured piecewise regions. [thread: device] [state: running] */
#define CAIRN_REGIONS_INTERFACE "cairn.regions"
#define CAIRN_REGIONS_REVISION 1
typedef struct cairn_region_service {
  uint64_t struct_size;
  uint32_t (*can_run)(cairn_region_runner* runner, int64_t batch_size, int64_t tokens);
  /* run: copies static_inputs, declares, replays, commits; outputs alias static memory until the next run. */
  cairn_status (*run)(cairn_region_runner* runner, cairn_step_context* context, cairn_named_tensor_span static_inputs,
                      const cairn_request* request_ids, uint64_t request_count, cairn_i64_span seq_lens,
                      cairn_named_tensor_span* out);
} cairn_region_service;

/* "cairn.collectives": device collectives of a tensor- or sequence-parallel group. [thread: device] [state: bound, running] */
#define CAIRN_COLLECTIVES_INTERFACE "cairn.collectives"
#define CAIRN_COLLECTIVES_REVISION 1
typedef struct cairn_collective_service {
  uint64_t struct_size;
  cairn_status (*group)(cairn_model* model, uint32_t node, uint32_t sequence_parallel, cairn_comm** out_borrowed);
  cairn_status (*all_reduce)(cairn_comm* comm, const cairn_tensor_view* tensor, void* stream);
  cairn_status (*all_gather)(cairn_comm* comm, const cairn_tensor_view* in, const cairn_tensor_view* out, void* stream);
  cairn_status (*all_to_all)(cairn_comm* comm, const cairn_tensor_view* in, const cairn_i64_span* in_sizes,
                             const cairn_tensor_view* out, const cairn_i64_span* out_sizes, void* stream);
  cairn_status (*broadcast)(cairn_comm* comm, const cairn_tensor_view* tensor, int32_t root, void* stream);
} cairn_collective_service;

/* "cairn.metrics": defined while a model opens, frozen afterwards. */
#define CAIRN_METRICS_INTERFACE "cairn.metrics"
#define CAIRN_METRICS_REVISION 1
enum { CAIRN_METRIC_COUNTER = 0, CAIRN_METRIC_GAUGE = 1 };
typedef struct cairn_metrics_service {
  uint64_t struct_size;
  /* [thread: control] [state: loaded, open] */
  cairn_status (*define)(uint32_t kind, cairn_str name, cairn_str help, cairn_metric** out_borrowed);
  /* Adds to a counter (>= 0) or sets a gauge. [thread: any] [state: open, bound, running, draining] */
  void (*record)(cairn_metric* metric, double value);
} cairn_metrics_service;

/* "cairn.progress": how far a load is, and whether to stop. [thread: control] [state: loaded, open] */
#define CAIRN_PROGRESS_INTERFACE "cairn.progress"
#define CAIRN_PROGRESS_REVISION 1
typedef struct cairn_progress_service {
  uint64_t struct_size;
  /* fraction in [0, 1]. Returns CANCELLED when the load should stop. */
  cairn_status (*report)(double fraction, cairn_str what);
} cairn_progress_service;

/* "cairn.thread_check": asks where this thread is. [thread: any] [state: loaded, open, bound, running, draining] */
#define CAIRN_THREAD_CHECK_INTERFACE "cairn.thread_check"
#define CAIRN_THREAD_CHECK_REVISION 1
enum {
  CAIRN_THREAD_CONTROL = 1,
  CAIRN_THREAD_POOL = 2,
  CAIRN_THREAD_MAIN = 4,
  CAIRN_THREAD_DEVICE = 8,
  CAIRN_THREAD_PLAN = 16
};
typedef struct cairn_thread_check_service {
  uint64_t struct_size;
  uint32_t (*current)(void); /* CAIRN_THREAD_* bits that hold now; 0: a thread the host does not know */
} cairn_thread_check_service;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAIRN_ABI_H */
