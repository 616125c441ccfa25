/* The C API of a decoder layer: products with packed weights, and the layer over a cache in one call. Rules of
 * structs, statuses, tensors, workspaces and threads as in headway/headway.h; sizes, numerics and errors as in
 * headway/packed_matmul.h and headway/cached_multi_head_attention.h. */
#pragma once

#include "headway/headway.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Products with packed weights ---- */

enum {
  HEADWAY_ACTIVATION_NONE = 0,
  HEADWAY_ACTIVATION_RELU = 1,
  HEADWAY_ACTIVATION_SILU = 2,
  HEADWAY_ACTIVATION_GELU = 3,
  HEADWAY_ACTIVATION_GELU_TANH = 4
};

/* y = x * W^T + b; weights are f32 or bf16, packed at creation and not needed afterwards. */
typedef struct headway_packed_matmul_spec {
  size_t struct_size;
  int64_t columns; /* N */
  int64_t depth;   /* K */
  int32_t activation;
  int32_t reserved;
  const headway_tensor* weight; /* [N, K], any strides */
  const headway_tensor* bias;   /* [N]; NULL: none */
  const headway_tensor* gate;   /* [N, K]; not NULL: the activation is of the gate, the product is multiplied by it */
  const headway_tensor* gate_bias; /* [N]; NULL: none */
} headway_packed_matmul_spec;

typedef struct headway_packed_matmul_args {
  size_t struct_size;
  const headway_tensor* x;        /* [M, K] f32, any M */
  const headway_tensor* residual; /* [M, N] f32, added last; may be out; NULL: none */
  const headway_tensor* out;      /* [M, N] f32, written */
} headway_packed_matmul_args;

typedef struct headway_packed_matmul headway_packed_matmul;
HEADWAY_API void headway_packed_matmul_spec_init_sized(headway_packed_matmul_spec* spec, size_t struct_size);
HEADWAY_API void headway_packed_matmul_args_init_sized(headway_packed_matmul_args* args, size_t struct_size);
HEADWAY_API headway_status headway_packed_matmul_create(const headway_packed_matmul_spec* spec,
                                                        headway_packed_matmul** matmul);
HEADWAY_API void headway_packed_matmul_destroy(headway_packed_matmul* matmul);
HEADWAY_API headway_status headway_packed_matmul_workspace_bytes(const headway_packed_matmul* matmul, int workers,
                                                                 size_t* bytes);
HEADWAY_API headway_status headway_packed_matmul_run(const headway_packed_matmul* matmul,
                                                     const headway_packed_matmul_args* args, void* workspace,
                                                     const headway_threads* threads);
HEADWAY_API headway_status headway_packed_matmul_explain(const headway_packed_matmul* matmul, char* buffer,
                                                         size_t capacity, size_t* needed);

/* ---- One call a decoder layer ---- */

typedef struct headway_cached_layer_spec {
  size_t struct_size;
  const headway_cached_attention_spec* attention; /* type is HEADWAY_F32 */
  int64_t embed_dim;                              /* E */
  const headway_rotary* rotary;                   /* outlives the layer; NULL: not rotated */
  int32_t norm;                                   /* not 0: RMS norm of query and key before the rotation */
  int32_t norm_across_heads;
  float norm_epsilon;
  float norm_weight_offset;
  const headway_tensor* norm_query_weight; /* [D] f32, or [Hq * D] across heads; NULL: 1 */
  const headway_tensor* norm_key_weight;   /* [D] f32, or [Hkv * D] across heads; NULL: 1 */
  const headway_tensor* query;             /* [Hq * D, E] */
  const headway_tensor* key;               /* [Hkv * D, E] */
  const headway_tensor* value;             /* [Hkv * Dv, E] */
  const headway_tensor* output;            /* [E, Hq * Dv] */
  const headway_tensor *query_bias, *key_bias, *value_bias, *output_bias; /* each may be NULL */
} headway_cached_layer_spec;

typedef struct headway_cached_layer_args {
  size_t struct_size;
  const headway_tensor* x;                        /* [T, E] f32 */
  const headway_cached_attention_args* attention; /* query and out are NULL; its cache is written, then read */
  const headway_tensor* slot_mapping;             /* as headway_append_args */
  const headway_tensor* positions;                /* as headway_append_args */
  const headway_tensor* residual;                 /* [T, E] f32, added; may be out; NULL: none */
  const headway_tensor* out;                      /* [T, E] f32, written */
} headway_cached_layer_args;

typedef struct headway_cached_layer headway_cached_layer;
HEADWAY_API void headway_cached_layer_spec_init_sized(headway_cached_layer_spec* spec, size_t struct_size);
HEADWAY_API void headway_cached_layer_args_init_sized(headway_cached_layer_args* args, size_t struct_size);
HEADWAY_API headway_status headway_cached_layer_create(const headway_cached_layer_spec* spec,
                                                       headway_cached_layer** layer);
HEADWAY_API void headway_cached_layer_destroy(headway_cached_layer* layer);
HEADWAY_API headway_status headway_cached_layer_workspace_bytes(const headway_cached_layer* layer, int workers,
                                                                size_t* bytes);
HEADWAY_API headway_status headway_cached_layer_run(const headway_cached_layer* layer,
                                                    const headway_cached_layer_args* args, void* workspace,
                                                    const headway_threads* threads);
HEADWAY_API headway_status headway_cached_layer_explain(const headway_cached_layer* layer, char* buffer,
                                                        size_t capacity, size_t* needed);

/* ---- Defaults, with the size that this header gives each struct ---- */

static inline void headway_packed_matmul_spec_init(headway_packed_matmul_spec* spec) {
  headway_packed_matmul_spec_init_sized(spec, sizeof(*spec));
}
static inline void headway_packed_matmul_args_init(headway_packed_matmul_args* args) {
  headway_packed_matmul_args_init_sized(args, sizeof(*args));
}
static inline void headway_cached_layer_spec_init(headway_cached_layer_spec* spec) {
  headway_cached_layer_spec_init_sized(spec, sizeof(*spec));
}
static inline void headway_cached_layer_args_init(headway_cached_layer_args* args) {
  headway_cached_layer_args_init_sized(args, sizeof(*args));
}

#ifdef __cplusplus
} /* extern "C" */
#endif
