/* What the tests and the scripted plugin agree on. The plugin is a language model over byte-sized tokens whose next
 * token is a fixed function of all tokens before it, computed from what the KV cache holds; some prompt tokens are
 * orders. */
#ifndef CAIRN_TESTS_SCRIPTED_H_
#define CAIRN_TESTS_SCRIPTED_H_

#include <stdint.h>

enum {
  SCRIPTED_VOCAB = 256,
  SCRIPTED_END = 200,         /* the model's end token */
  SCRIPTED_FIRST_ORDER = 240, /* never generated */
  SCRIPTED_REFUSE_PROMPT = 248,
  SCRIPTED_FAIL_PREPARE = 249,
  SCRIPTED_FAIL_FORWARD = 250,
  SCRIPTED_FAIL_STOP = 251,
  SCRIPTED_SKIP = 252,  /* the row skips while control.skipping is set */
  SCRIPTED_BLOCK = 253, /* forward does not end while control.blocking is set, unless a resource call tells it to */
  SCRIPTED_FAIL_TRANSITION = 254
};

/* Set by the test, whose address comes in model_kwargs as "control". Accessed with __atomic builtins only. */
typedef struct scripted_control {
  int skipping;
  int skipped; /* rows that skipped */
  int blocking;
  int blocked; /* forwards that blocked */
  int added, cleaned, closed;
  int largest_batch;
} scripted_control;

/* The sum that the logits are made of: every token counts by its position. */
static inline uint32_t scripted_sum(uint32_t sum, int64_t position, int32_t token) {
  return (sum + (uint32_t)(token + 1) * (uint32_t)(2 * position + 3)) & 0xFFFFU;
}

static inline float scripted_logit(uint32_t sum, int32_t token) {
  if (token >= SCRIPTED_FIRST_ORDER) return -1000.0F;
  uint32_t h = sum * 2654435761U + (uint32_t)token * 40503U;
  h ^= h >> 15;
  h *= 2246822519U;
  h ^= h >> 13;
  return (float)(h & 0xFFFFU) / 8192.0F;
}

#endif
