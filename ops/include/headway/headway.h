/* Headway for C, and for everything that calls C: attention, attention over a key/value cache, and the layer. C11 or
 * C++; no exception leaves these functions and no other symbol is needed. Knows no graph.
 *
 * Conventions. A function that can fail returns a headway_status; headway_last_error() then has the reason in one line
 * that names the argument and both numbers. Results are written by the last parameters, and not touched on failure.
 * A struct is filled with its defaults by its _init function before its fields are set: that also records
 * its size, by which a library of a later release knows which fields its caller has. Handles are made by _create, ended
 * by _destroy (of NULL: nothing happens), immutable, and used from several threads at once, each with a workspace of
 * its own. Tensors are described by headway_tensor, which is DLPack's DLTensor, and are read during the call only.
 *
 * What each function computes, its numerical bound and its cost: the class of the same name in headway/attention.h,
 * headway/cached_attention.h, headway/kv_cache.h and headway/multi_head_attention.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "headway/export.h"
#include "headway/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t headway_status;
enum {
  HEADWAY_OK = 0,
  HEADWAY_INVALID_ARGUMENT = 1, /* the caller passed something that cannot be right */
  HEADWAY_UNSUPPORTED = 2,      /* right, but not something this build or machine can do */
  HEADWAY_IO = 3,               /* a file could not be read or written */
  HEADWAY_INTERNAL = 4,         /* a fault of the library */
  HEADWAY_OUT_OF_MEMORY = 5     /* the message has the number of bytes */
};

/* Of the last function that failed on this thread; "" before the first. Valid until the next failure on it. */
HEADWAY_API const char* headway_last_error(void);
/* "1.0.0": of the library that is linked; HEADWAY_VERSION_MAJOR and so on are of this header. */
HEADWAY_API const char* headway_version(void);

/* ---- Tensors ---- */

/* DLPack's DLTensor under a name of its own, or DLTensor itself where dlpack.h was included before. On a CPU (device
 * type 1), lanes 1. Strides are in elements; NULL means contiguous. */
#ifdef DLPACK_DLPACK_H_
typedef DLTensor headway_tensor;
#else
typedef struct headway_device {
  int32_t device_type;
  int32_t device_id;
} headway_device;
typedef struct headway_data_type {
  uint8_t code; /* 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool */
  uint8_t bits;
  uint16_t lanes;
} headway_data_type;
typedef struct headway_tensor {
  void* data;
  headway_device device;
  int32_t ndim; /* at most 8 */
  headway_data_type dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} headway_tensor;
#endif

/* Element types of a spec. */
enum { HEADWAY_F32 = 0, HEADWAY_BF16 = 1, HEADWAY_F16 = 2, HEADWAY_I8 = 3 };

/* 64-byte aligned memory, as workspaces need it; NULL when there is none, and for 0 bytes. */
HEADWAY_API void* headway_allocate(size_t bytes);
HEADWAY_API void headway_free(void* memory);

/* ---- Threads ---- */

typedef struct headway_threads headway_threads;
/* Runs `task` (0 <= task < tasks) on `worker` (0 <= worker < workers). */
typedef void (*headway_task)(void* context, int64_t task, int worker);
/* A host's pool: calls run(context, task, worker) once per task, two at the same time never with the same worker, and
 * returns when all are done. */
typedef void (*headway_parallel_for)(void* host, int64_t tasks, headway_task run, void* context);

/* A pool of `workers`, the calling thread among them; 0: the CPUs that the process may use. Works in a forked child. */
HEADWAY_API headway_status headway_threads_create_pool(int workers, headway_threads** threads);
/* OpenMP's threads; 0: OpenMP's own default. Hangs in a child of a fork when the parent has used it. */
HEADWAY_API headway_status headway_threads_create_openmp(int workers, headway_threads** threads);
HEADWAY_API headway_status headway_threads_create_host(int workers, headway_parallel_for parallel_for, void* host,
                                                       headway_threads** threads);
HEADWAY_API void headway_threads_destroy(headway_threads* threads);
/* Wherever a function takes threads, NULL is the calling thread alone. */
HEADWAY_API int headway_threads_workers(const headway_threads* threads);

/* ---- What attention computes ---- */

/* "The default that the field's comment names"; for a float it is NaN. */
#define HEADWAY_DEFAULT INT64_MIN
/* A window without an end on that side. */
#define HEADWAY_OPEN INT64_C(-1)

enum {
  HEADWAY_CAUSAL_NONE = 0,
  HEADWAY_CAUSAL_TOP_LEFT = 1,
  HEADWAY_CAUSAL_BOTTOM_RIGHT = 2,
  HEADWAY_CAUSAL_OFFSET = 3,
  HEADWAY_CAUSAL_LAST_KEY = 4
};
enum { HEADWAY_MASK_NONE = 0, HEADWAY_MASK_BOOL = 1, HEADWAY_MASK_ADDITIVE = 2 };
enum { HEADWAY_TRUE_ATTENDS = 0, HEADWAY_TRUE_HIDES = 1 };
enum { HEADWAY_EMPTY_ROW_ZERO = 0, HEADWAY_EMPTY_ROW_NAN = 1 };
enum {
  HEADWAY_SCORES_NONE = 0,
  HEADWAY_SCORES_SCALED = 1,
  HEADWAY_SCORES_SOFTCAPPED = 2,
  HEADWAY_SCORES_BIASED = 3,
  HEADWAY_SCORES_PROBABILITIES = 4,
  HEADWAY_SCORES_MEAN_PROBABILITIES = 5
};

/* Shared by the core and the layer; see AttentionRules. */
typedef struct headway_attention_rules {
  float scale; /* NaN: 1/sqrt(head_dim) */
  float softcap;
  int64_t window_left, window_right; /* HEADWAY_OPEN: no end */
  int32_t causal;                    /* HEADWAY_CAUSAL_... */
  int32_t mask, key_mask;            /* HEADWAY_MASK_... */
  int32_t mask_polarity;             /* HEADWAY_TRUE_... */
  int32_t key_lengths;               /* not 0: lengths per batch are given at run time */
  int32_t empty_row;                 /* HEADWAY_EMPTY_ROW_... */
  int32_t scores_output;             /* HEADWAY_SCORES_... */
  int32_t reserved;                  /* 0 */
} headway_attention_rules;

/* ---- Scaled dot-product attention ---- */

typedef struct headway_attention_spec {
  size_t struct_size;
  headway_attention_rules rules;
  int32_t type; /* HEADWAY_F32 or HEADWAY_BF16, of query, key, value and out */
  int32_t reserved;
  int64_t batch;
  int64_t num_heads;
  int64_t num_kv_heads; /* HEADWAY_DEFAULT: num_heads */
  int64_t query_len;
  int64_t key_len;
  int64_t head_dim;
  int64_t value_head_dim; /* HEADWAY_DEFAULT: head_dim */
  int64_t always_visible_keys;
  const char* implementation; /* NULL: the first that can; read at creation only */
} headway_attention_spec;

typedef struct headway_attention_args {
  size_t struct_size;
  const headway_tensor* query;       /* [B, Hq, Sq, D] */
  const headway_tensor* key;         /* [B, Hkv, Skv, D] */
  const headway_tensor* value;       /* [B, Hkv, Skv, Dv] */
  const headway_tensor* mask;        /* [.., Sq, Skv]; NULL here and below: absent */
  const headway_tensor* key_mask;    /* [B, Skv] */
  const headway_tensor* key_lengths; /* [B] i32 or i64 */
  const headway_tensor* offsets;     /* [B] i32 or i64 */
  const headway_tensor* out;         /* [B, Hq, Sq, Dv], written */
  const headway_tensor* scores;      /* [B, Hq, Sq, Skv] f32, written */
  const headway_tensor* log_sum_exp; /* [B, Hq, Sq] f32, written: ln of the softmax's denominator */
} headway_attention_args;

typedef struct headway_attention headway_attention;
HEADWAY_API void headway_attention_spec_init_sized(headway_attention_spec* spec, size_t struct_size);
HEADWAY_API void headway_attention_args_init_sized(headway_attention_args* args, size_t struct_size);
HEADWAY_API headway_status headway_attention_create(const headway_attention_spec* spec, headway_attention** attention);
HEADWAY_API void headway_attention_destroy(headway_attention* attention);
HEADWAY_API headway_status headway_attention_workspace_bytes(const headway_attention* attention, int workers,
                                                             size_t* bytes);
/* `workspace` is 64-byte aligned and holds the bytes for the workers of `threads`; NULL when they are 0. */
HEADWAY_API headway_status headway_attention_run(const headway_attention* attention, const headway_attention_args* args,
                                                 void* workspace, const headway_threads* threads);
/* Implementation, target, tiles, and why no better one. Writes at most `capacity` bytes with a final NUL (buffer may be
 * NULL when it is 0); `needed` gets the bytes of all of it, and may be NULL. */
HEADWAY_API headway_status headway_attention_explain(const headway_attention* attention, char* buffer, size_t capacity,
                                                     size_t* needed);

/* ---- Multi-head attention: projections, heads, attention, output projection ---- */

typedef struct headway_multi_head_attention_spec {
  size_t struct_size;
  headway_attention_rules rules;
  int32_t type; /* HEADWAY_F32 or HEADWAY_BF16, of inputs, weights and out */
  int32_t add_zero_attention;
  int32_t self_attention; /* query, key and value are one tensor */
  int32_t reserved;
  int64_t batch;
  int64_t query_len;
  int64_t key_len; /* HEADWAY_DEFAULT: query_len */
  int64_t embed_dim;
  int64_t kdim; /* HEADWAY_DEFAULT: embed_dim; vdim too */
  int64_t vdim;
  int64_t num_heads;
  int64_t num_kv_heads;   /* HEADWAY_DEFAULT: num_heads */
  int64_t head_dim;       /* HEADWAY_DEFAULT: embed_dim / num_heads */
  int64_t value_head_dim; /* HEADWAY_DEFAULT: head_dim */
  const char* implementation;
} headway_multi_head_attention_spec;

/* y = x * W^T + b, packed at creation and not needed afterwards. */
typedef struct headway_multi_head_attention_weights {
  size_t struct_size;
  const headway_tensor* query;                                            /* [Hq*D, E] */
  const headway_tensor* key;                                              /* [Hkv*D, kdim] */
  const headway_tensor* value;                                            /* [Hkv*Dv, vdim] */
  const headway_tensor* output;                                           /* [E, Hq*Dv] */
  const headway_tensor *query_bias, *key_bias, *value_bias, *output_bias; /* each may be NULL */
  const headway_tensor *bias_k, *bias_v;                                  /* [Hkv*D], [Hkv*Dv]: both or neither */
} headway_multi_head_attention_weights;

typedef struct headway_multi_head_attention_args {
  size_t struct_size;
  const headway_tensor* query; /* [B, Sq, E] */
  const headway_tensor* key;   /* [B, Skv, kdim] */
  const headway_tensor* value; /* [B, Skv, vdim] */
  const headway_tensor* mask;
  const headway_tensor* key_mask;
  const headway_tensor* key_lengths;
  const headway_tensor* offsets;
  const headway_tensor* out;    /* [B, Sq, E], written */
  const headway_tensor* scores; /* f32, written */
} headway_multi_head_attention_args;

typedef struct headway_multi_head_attention headway_multi_head_attention;
HEADWAY_API void headway_multi_head_attention_spec_init_sized(headway_multi_head_attention_spec* spec,
                                                              size_t struct_size);
HEADWAY_API void headway_multi_head_attention_weights_init_sized(headway_multi_head_attention_weights* weights,
                                                                 size_t struct_size);
HEADWAY_API void headway_multi_head_attention_args_init_sized(headway_multi_head_attention_args* args,
                                                              size_t struct_size);
/* `same_weights`: a layer of the very same weights at other sizes, whose packed weights are shared; or NULL. */
HEADWAY_API headway_status headway_multi_head_attention_create(const headway_multi_head_attention_spec* spec,
                                                               const headway_multi_head_attention_weights* weights,
                                                               const headway_multi_head_attention* same_weights,
                                                               headway_multi_head_attention** layer);
HEADWAY_API void headway_multi_head_attention_destroy(headway_multi_head_attention* layer);
HEADWAY_API headway_status headway_multi_head_attention_workspace_bytes(const headway_multi_head_attention* layer,
                                                                        int workers, size_t* bytes);
HEADWAY_API headway_status headway_multi_head_attention_run(const headway_multi_head_attention* layer,
                                                            const headway_multi_head_attention_args* args,
                                                            void* workspace, const headway_threads* threads);
HEADWAY_API headway_status headway_multi_head_attention_explain(const headway_multi_head_attention* layer, char* buffer,
                                                                size_t capacity, size_t* needed);

/* ---- Attention over a key/value cache ---- */

typedef struct headway_cached_attention_spec {
  size_t struct_size;
  int32_t type;         /* of query and out: HEADWAY_F32, HEADWAY_BF16 or HEADWAY_F16 */
  int32_t cache_type;   /* of the cache: the same */
  int64_t num_heads;    /* Hq */
  int64_t num_kv_heads; /* HEADWAY_DEFAULT: num_heads */
  int64_t head_dim;
  int64_t value_head_dim; /* HEADWAY_DEFAULT: head_dim */
  float scale;            /* NaN: 1/sqrt(head_dim) */
  float softcap;
  int64_t window_left, window_right; /* HEADWAY_OPEN: no end */
  int32_t causal;                    /* 1 by default */
  int32_t batch_invariant;
  int64_t max_batch, max_tokens, max_cache; /* book the workspace, decide nothing else */
} headway_cached_attention_spec;

/* Views of one layer's cache, whose memory the caller owns; see KvCache. */
typedef struct headway_kv_cache {
  size_t struct_size;
  const headway_tensor* key;         /* [slots, Hkv, M, D], or paged [blocks, Hkv, block, D] */
  const headway_tensor* value;       /* [slots, Hkv, M, Dv], or [blocks, Hkv, block, Dv] */
  const headway_tensor* key_scale;   /* of an i8 cache, which is not supported yet: NULL */
  const headway_tensor* value_scale; /* the same */
  const headway_tensor* slots;       /* [B] i32; NULL: sequence b has slot b */
  const headway_tensor* block_table; /* [B, n] i32; not NULL: paged */
  int32_t ring;                      /* not 0: position p lies at p mod M */
  int32_t reserved;
} headway_kv_cache;

typedef struct headway_cached_attention_args {
  size_t struct_size;
  const headway_tensor* query;        /* [T, Hq, D] */
  const headway_tensor* query_starts; /* [B + 1] i32; NULL: a token per sequence */
  const headway_tensor* lengths;      /* [B] i32, this call's tokens included */
  const headway_kv_cache* cache;
  const headway_tensor* sinks;         /* [Hq] f32 */
  const headway_tensor* alibi_slopes;  /* [Hq] f32 */
  const headway_tensor* relative_bias; /* [n, Hq] f32 */
  int64_t relative_bias_future;
  const headway_tensor* mask;        /* [T, W] bool or f32, or [T, W / 8] u8 */
  const headway_tensor* mask_starts; /* [B] i32; NULL: 0 */
  const headway_tensor* out;         /* [T, Hq, Dv], written; may be the query */
  const headway_tensor* log_sum_exp; /* [T, Hq] f32, written; NULL: not wanted */
} headway_cached_attention_args;

typedef struct headway_cached_attention headway_cached_attention;
HEADWAY_API void headway_cached_attention_spec_init_sized(headway_cached_attention_spec* spec, size_t struct_size);
HEADWAY_API void headway_kv_cache_init_sized(headway_kv_cache* cache, size_t struct_size);
HEADWAY_API void headway_cached_attention_args_init_sized(headway_cached_attention_args* args, size_t struct_size);
HEADWAY_API headway_status headway_cached_attention_create(const headway_cached_attention_spec* spec,
                                                           headway_cached_attention** attention);
HEADWAY_API void headway_cached_attention_destroy(headway_cached_attention* attention);
HEADWAY_API headway_status headway_cached_attention_workspace_bytes(const headway_cached_attention* attention,
                                                                    int workers, size_t* bytes);
HEADWAY_API headway_status headway_cached_attention_run(const headway_cached_attention* attention,
                                                        const headway_cached_attention_args* args, void* workspace,
                                                        const headway_threads* threads);
HEADWAY_API headway_status headway_cached_attention_explain(const headway_cached_attention* attention, char* buffer,
                                                            size_t capacity, size_t* needed);
/* Makes one of the results of the same rows over two disjoint sets of keys; see merge(). */
HEADWAY_API headway_status headway_merge(const headway_tensor* out_a, const headway_tensor* log_sum_exp_a,
                                         const headway_tensor* out_b, const headway_tensor* log_sum_exp_b,
                                         const headway_tensor* out, const headway_tensor* log_sum_exp,
                                         const headway_threads* threads);

/* ---- Appending to a cache ---- */

enum {
  HEADWAY_ROTARY_SCALING_NONE = 0,
  HEADWAY_ROTARY_SCALING_LINEAR = 1,
  HEADWAY_ROTARY_SCALING_NTK = 2,
  HEADWAY_ROTARY_SCALING_YARN = 3,
  HEADWAY_ROTARY_SCALING_LLAMA3 = 4
};

/* See RotarySpec and RotaryScaling. */
typedef struct headway_rotary_spec {
  size_t struct_size;
  int64_t rotary_dim;
  int64_t positions;
  double base;
  int32_t interleaved;
  int32_t scaling; /* HEADWAY_ROTARY_SCALING_... */
  double factor;
  double original_max_position;
  double beta_fast, beta_slow;
  double attention_factor; /* NaN: 0.1 * ln(factor) + 1 */
  double low_freq_factor, high_freq_factor;
} headway_rotary_spec;

typedef struct headway_rotary headway_rotary;
HEADWAY_API void headway_rotary_spec_init_sized(headway_rotary_spec* spec, size_t struct_size);
HEADWAY_API headway_status headway_rotary_create(const headway_rotary_spec* spec, headway_rotary** rotary);
/* Of the caller's own cosines and sines, [positions, rotary_dim / 2] f32 each, which are copied. */
HEADWAY_API headway_status headway_rotary_create_from_tables(const headway_tensor* cosines, const headway_tensor* sines,
                                                             int interleaved, headway_rotary** rotary);
HEADWAY_API void headway_rotary_destroy(headway_rotary* rotary);

/* See AppendArgs and HeadNorm. */
typedef struct headway_append_args {
  size_t struct_size;
  const headway_tensor* key;          /* [T, Hkv, D]; NULL with value: the query alone */
  const headway_tensor* value;        /* [T, Hkv, Dv] */
  const headway_tensor* query_starts; /* [B + 1] i32; NULL: a token per sequence */
  const headway_tensor* lengths;      /* [B] i32, this call's tokens included; NULL with slot_mapping */
  const headway_tensor* slot_mapping; /* [T] i32 or i64 */
  const headway_tensor* positions;    /* [T] i32; NULL: those in the cache */
  const headway_tensor* query;        /* [T, Hq, D], normalised and rotated in place; NULL: left alone */
  const headway_rotary* rotary;       /* NULL: not rotated */
  int32_t norm;                       /* not 0: RMS norm before the rotation */
  int32_t norm_across_heads;
  float norm_epsilon;
  float norm_weight_offset;
  const headway_tensor* norm_query_weight; /* [D] f32, or [Hq * D] across heads; NULL: 1 */
  const headway_tensor* norm_key_weight;   /* [D] f32, or [Hkv * D] across heads; NULL: 1 */
} headway_append_args;

HEADWAY_API void headway_append_args_init_sized(headway_append_args* args, size_t struct_size);
HEADWAY_API headway_status headway_append(const headway_append_args* args, const headway_kv_cache* cache,
                                          const headway_threads* threads);

/* ---- Defaults, with the size that this header gives each struct ---- */

static inline void headway_attention_spec_init(headway_attention_spec* spec) {
  headway_attention_spec_init_sized(spec, sizeof(*spec));
}
static inline void headway_attention_args_init(headway_attention_args* args) {
  headway_attention_args_init_sized(args, sizeof(*args));
}
static inline void headway_multi_head_attention_spec_init(headway_multi_head_attention_spec* spec) {
  headway_multi_head_attention_spec_init_sized(spec, sizeof(*spec));
}
static inline void headway_multi_head_attention_weights_init(headway_multi_head_attention_weights* weights) {
  headway_multi_head_attention_weights_init_sized(weights, sizeof(*weights));
}
static inline void headway_multi_head_attention_args_init(headway_multi_head_attention_args* args) {
  headway_multi_head_attention_args_init_sized(args, sizeof(*args));
}
static inline void headway_cached_attention_spec_init(headway_cached_attention_spec* spec) {
  headway_cached_attention_spec_init_sized(spec, sizeof(*spec));
}
static inline void headway_kv_cache_init(headway_kv_cache* cache) {
  headway_kv_cache_init_sized(cache, sizeof(*cache));
}
static inline void headway_cached_attention_args_init(headway_cached_attention_args* args) {
  headway_cached_attention_args_init_sized(args, sizeof(*args));
}
static inline void headway_rotary_spec_init(headway_rotary_spec* spec) {
  headway_rotary_spec_init_sized(spec, sizeof(*spec));
}
static inline void headway_append_args_init(headway_append_args* args) {
  headway_append_args_init_sized(args, sizeof(*args));
}

#ifdef __cplusplus
} /* extern "C" */
#endif
