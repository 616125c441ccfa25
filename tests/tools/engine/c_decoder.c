/* Embedding, layers and logits over headway_cached_layer and headway_packed_matmul, on the calling thread. */
#include "tests/tools/engine/c_decoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxTensors = 64 };

/* Tensors described for one call: their shapes must live as long. */
typedef struct tensor_list {
  headway_tensor tensor[kMaxTensors];
  int64_t shape[kMaxTensors][4], strides[kMaxTensors][4];
  int count;
} tensor_list;

static headway_tensor* add_tensor(tensor_list* list, const void* data, uint8_t code, int32_t rank,
                                  const int64_t* shape) {
  if (data == NULL) return NULL;
  const int at = list->count++;
  headway_tensor* tensor = &list->tensor[at];
  memset(tensor, 0, sizeof(*tensor));
  memcpy(list->shape[at], shape, (size_t)rank * sizeof(int64_t));
  tensor->data = (void*)data;
  tensor->device.device_type = 1;
  tensor->ndim = rank;
  tensor->dtype.code = code;
  tensor->dtype.bits = 32;
  tensor->dtype.lanes = 1;
  tensor->shape = list->shape[at];
  return tensor;
}

static headway_tensor* floats1(tensor_list* list, const float* data, int64_t n) {
  return add_tensor(list, data, 2, 1, &n);
}

static headway_tensor* floats2(tensor_list* list, const float* data, int64_t rows, int64_t columns) {
  const int64_t shape[2] = {rows, columns};
  return add_tensor(list, data, 2, 2, shape);
}

static headway_tensor* integers(tensor_list* list, const int32_t* data, int64_t n) {
  return add_tensor(list, data, 0, 1, &n);
}

/* A weight as [out, in]; `row_width` is that of the stored matrix. */
static headway_tensor* weight(tensor_list* list, const decoder_model* model, const float* data, int64_t out, int64_t in,
                              int64_t row_width) {
  headway_tensor* tensor = floats2(list, data, out, in);
  if (tensor == NULL || !model->transposed) return tensor;
  int64_t* strides = list->strides[list->count - 1];
  strides[0] = 1;
  strides[1] = row_width;
  tensor->strides = strides;
  return tensor;
}

typedef struct layer {
  headway_cached_layer* attention;
  headway_packed_matmul *up, *down;
  float *key_cache, *value_cache;
} layer;

typedef struct decoder {
  const decoder_model* model;
  layer layer[kDecoderMaxLayers];
  headway_rotary* rotary[2];
  headway_packed_matmul* logits;
  float *stream, *normed, *change, *inner;
  int32_t* table;
  void* workspace;
  int64_t blocks, block;
} decoder;

#define CHECK(condition)      \
  do {                        \
    if (!(condition)) {       \
      failed_line = __LINE__; \
      goto done;              \
    }                         \
  } while (0)

static int make_attention(const decoder* d, const decoder_layer_weights* w, int64_t tokens, headway_cached_layer** to) {
  const decoder_model* m = d->model;
  const int64_t query = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
  const int64_t stored = query + 2 * kv; /* of GPT-2's rows, where the three stand side by side */
  tensor_list list = {.count = 0};
  headway_cached_attention_spec attention;
  headway_cached_attention_spec_init(&attention);
  attention.num_heads = m->heads;
  attention.num_kv_heads = m->kv_heads;
  attention.head_dim = m->head_dim;
  attention.scale = m->scale;
  attention.window_left = w->window_left;
  attention.max_tokens = tokens;
  attention.max_cache = d->blocks * d->block;
  headway_cached_layer_spec spec;
  headway_cached_layer_spec_init(&spec);
  spec.attention = &attention;
  spec.embed_dim = m->width;
  spec.rotary = w->rotary < 0 ? NULL : d->rotary[w->rotary];
  spec.norm = w->query_norm != NULL;
  spec.norm_epsilon = m->norm_epsilon;
  spec.norm_weight_offset = m->norm_weight_offset;
  spec.norm_query_weight = floats1(&list, w->query_norm, m->head_dim);
  spec.norm_key_weight = floats1(&list, w->key_norm, m->head_dim);
  spec.query = weight(&list, m, w->query, query, m->width, stored);
  spec.key = weight(&list, m, w->key, kv, m->width, stored);
  spec.value = weight(&list, m, w->value, kv, m->width, stored);
  spec.output = weight(&list, m, w->output, m->width, query, m->width);
  spec.query_bias = floats1(&list, w->query_bias, query);
  spec.key_bias = floats1(&list, w->key_bias, kv);
  spec.value_bias = floats1(&list, w->value_bias, kv);
  spec.output_bias = floats1(&list, w->output_bias, m->width);
  return headway_cached_layer_create(&spec, to) == HEADWAY_OK;
}

static int make_matmul(const decoder_model* m, const float* data, const float* bias, const float* gate, int64_t out,
                       int64_t in, int activation, headway_packed_matmul** to) {
  tensor_list list = {.count = 0};
  headway_packed_matmul_spec spec;
  headway_packed_matmul_spec_init(&spec);
  spec.columns = out;
  spec.depth = in;
  spec.activation = activation;
  spec.weight = weight(&list, m, data, out, in, out);
  spec.bias = floats1(&list, bias, out);
  spec.gate = weight(&list, m, gate, out, in, out);
  return headway_packed_matmul_create(&spec, to) == HEADWAY_OK;
}

static int multiply(const headway_packed_matmul* matmul, const float* x, int64_t depth, float* out, int64_t columns,
                    const float* residual, int64_t rows, void* workspace) {
  tensor_list list = {.count = 0};
  headway_packed_matmul_args args;
  headway_packed_matmul_args_init(&args);
  args.x = floats2(&list, x, rows, depth);
  args.residual = floats2(&list, residual, rows, columns);
  args.out = floats2(&list, out, rows, columns);
  return headway_packed_matmul_run(matmul, &args, workspace, NULL) == HEADWAY_OK;
}

/* LayerNorm where there is a bias, else RMSNorm. */
static void norm_rows(const decoder_model* m, const float* w, const float* bias, const float* x, float* y,
                      int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, x += m->width, y += m->width) {
    double mean = 0, squares = 0;
    for (int64_t c = 0; c < m->width && bias != NULL; ++c) mean += x[c] / (double)m->width;
    for (int64_t c = 0; c < m->width; ++c) squares += (x[c] - mean) * (x[c] - mean) / (double)m->width;
    const double factor = 1 / sqrt(squares + m->norm_epsilon);
    for (int64_t c = 0; c < m->width; ++c) {
      y[c] = (float)((x[c] - mean) * factor * (w[c] + m->norm_weight_offset)) + (bias == NULL ? 0 : bias[c]);
    }
  }
}

static int attend(const decoder* d, int64_t index, int64_t tokens, int64_t length) {
  const decoder_model* m = d->model;
  const decoder_layer_weights* w = &m->layer[index];
  const layer* l = &d->layer[index];
  const int32_t starts[2] = {0, (int32_t)tokens}, lengths[1] = {(int32_t)length};
  const int64_t cache_shape[4] = {d->blocks, m->kv_heads, d->block, m->head_dim}, table_shape[2] = {1, d->blocks};
  tensor_list list = {.count = 0};
  headway_kv_cache cache;
  headway_cached_attention_args attention;
  headway_cached_layer_args args;
  norm_rows(m, w->attention_norm, w->attention_norm_bias, d->stream, d->normed, tokens);
  headway_kv_cache_init(&cache);
  cache.key = add_tensor(&list, l->key_cache, 2, 4, cache_shape);
  cache.value = add_tensor(&list, l->value_cache, 2, 4, cache_shape);
  cache.block_table = add_tensor(&list, d->table, 0, 2, table_shape);
  headway_cached_attention_args_init(&attention);
  attention.query_starts = integers(&list, starts, 2);
  attention.lengths = integers(&list, lengths, 1);
  attention.cache = &cache;
  headway_cached_layer_args_init(&args);
  args.x = floats2(&list, d->normed, tokens, m->width);
  args.attention = &attention;
  args.out = floats2(&list, w->attention_end_norm == NULL ? d->stream : d->change, tokens, m->width);
  args.residual = w->attention_end_norm == NULL ? args.out : NULL;
  return headway_cached_layer_run(l->attention, &args, d->workspace, NULL) == HEADWAY_OK;
}

/* stream += norm(change), where a family has a norm there. */
static void add_change(const decoder* d, const float* end_norm, int64_t tokens) {
  if (end_norm == NULL) return;
  norm_rows(d->model, end_norm, NULL, d->change, d->change, tokens);
  for (int64_t i = 0; i < tokens * d->model->width; ++i) d->stream[i] += d->change[i];
}

static int step(const decoder* d, const int32_t* tokens, int64_t count, int64_t first, float* logits) {
  const decoder_model* m = d->model;
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t c = 0; c < m->width; ++c) {
      d->stream[t * m->width + c] = m->embedding[tokens[t] * m->width + c] * m->embedding_scale +
                                    (m->positions == NULL ? 0 : m->positions[(first + t) * m->width + c]);
    }
  }
  for (int64_t i = 0; i < m->layers; ++i) {
    const decoder_layer_weights* w = &m->layer[i];
    const int ends = w->ffn_end_norm != NULL;
    if (!attend(d, i, count, first + count)) return 0;
    add_change(d, w->attention_end_norm, count);
    norm_rows(m, w->ffn_norm, w->ffn_norm_bias, d->stream, d->normed, count);
    if (!multiply(d->layer[i].up, d->normed, m->width, d->inner, m->ffn_width, NULL, count, d->workspace)) return 0;
    if (!multiply(d->layer[i].down, d->inner, m->ffn_width, ends ? d->change : d->stream, m->width,
                  ends ? NULL : d->stream, count, d->workspace)) {
      return 0;
    }
    add_change(d, w->ffn_end_norm, count);
  }
  norm_rows(m, m->end_norm, m->end_norm_bias, d->stream, d->normed, count);
  return multiply(d->logits, d->normed, m->width, logits, m->vocab, NULL, count, d->workspace);
}

static float* new_floats(int64_t count) { return (float*)malloc((size_t)count * sizeof(float)); }

int decode_tokens_in_c(const decoder_model* m, const int32_t* tokens, int64_t count, int64_t chunk, int64_t decodes,
                       int64_t block, float* logits) {
  int failed_line = 0;
  decoder d = {.model = m, .block = block, .blocks = (count + block - 1) / block};
  size_t bytes = 0, most = 64;
  for (int i = 0; i < 2; ++i) {
    if (m->rotary[i] != NULL) CHECK(headway_rotary_create(m->rotary[i], &d.rotary[i]) == HEADWAY_OK);
  }
  for (int64_t i = 0; i < m->layers; ++i) {
    const decoder_layer_weights* w = &m->layer[i];
    layer* l = &d.layer[i];
    CHECK(make_attention(&d, w, chunk, &l->attention));
    CHECK(make_matmul(m, w->up, w->up_bias, w->gate, m->ffn_width, m->width, m->activation, &l->up));
    CHECK(make_matmul(m, w->down, w->down_bias, NULL, m->width, m->ffn_width, HEADWAY_ACTIVATION_NONE, &l->down));
    CHECK(headway_cached_layer_workspace_bytes(l->attention, 1, &bytes) == HEADWAY_OK);
    if (bytes > most) most = bytes;
    CHECK(headway_packed_matmul_workspace_bytes(l->up, 1, &bytes) == HEADWAY_OK);
    if (bytes > most) most = bytes;
    CHECK(headway_packed_matmul_workspace_bytes(l->down, 1, &bytes) == HEADWAY_OK);
    if (bytes > most) most = bytes;
    CHECK(l->key_cache = new_floats(d.blocks * block * m->kv_heads * m->head_dim));
    CHECK(l->value_cache = new_floats(d.blocks * block * m->kv_heads * m->head_dim));
  }
  {
    /* The head is [vocab, width] in every family. */
    decoder_model plain = *m;
    plain.transposed = 0;
    CHECK(make_matmul(&plain, m->head, NULL, NULL, m->vocab, m->width, HEADWAY_ACTIVATION_NONE, &d.logits));
    CHECK(headway_packed_matmul_workspace_bytes(d.logits, 1, &bytes) == HEADWAY_OK);
    if (bytes > most) most = bytes;
  }
  CHECK(d.workspace = aligned_alloc(64, (most + 63) / 64 * 64));
  CHECK(d.stream = new_floats(chunk * m->width));
  CHECK(d.normed = new_floats(chunk * m->width));
  CHECK(d.change = new_floats(chunk * m->width));
  CHECK(d.inner = new_floats(chunk * m->ffn_width));
  CHECK(d.table = (int32_t*)malloc((size_t)d.blocks * sizeof(int32_t)));
  for (int64_t i = 0; i < d.blocks; ++i) d.table[i] = (int32_t)(d.blocks - 1 - i);
  for (int64_t first = 0; first < count;) {
    const int64_t prompt = count - decodes - first;
    const int64_t some = prompt <= 0 ? 1 : prompt < chunk ? prompt : chunk;
    CHECK(step(&d, tokens + first, some, first, logits + first * m->vocab));
    first += some;
  }
done:
  for (int64_t i = 0; i < m->layers; ++i) {
    headway_cached_layer_destroy(d.layer[i].attention);
    headway_packed_matmul_destroy(d.layer[i].up);
    headway_packed_matmul_destroy(d.layer[i].down);
    free(d.layer[i].key_cache);
    free(d.layer[i].value_cache);
  }
  headway_packed_matmul_destroy(d.logits);
  headway_rotary_destroy(d.rotary[0]);
  headway_rotary_destroy(d.rotary[1]);
  free(d.workspace);
  free(d.stream);
  free(d.normed);
  free(d.change);
  free(d.inner);
  free(d.table);
  return failed_line;
}
