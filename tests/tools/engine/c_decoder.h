/* A decoder in C11 over the C API, for the test beside it: what it is given, and its step. */
#pragma once

#include "headway/headway_layer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kDecoderMaxLayers = 4 };

/* Weights as they lie in a checkpoint; a NULL pointer is one that the family does not have. */
typedef struct decoder_layer_weights {
  const float *attention_norm, *attention_norm_bias, *attention_end_norm;
  const float *ffn_norm, *ffn_norm_bias, *ffn_end_norm;
  const float *query, *key, *value, *output;
  const float *query_bias, *key_bias, *value_bias, *output_bias;
  const float *query_norm, *key_norm;
  const float *up, *up_bias, *gate, *down, *down_bias;
  int64_t window_left; /* HEADWAY_OPEN: none */
  int rotary;          /* index into decoder_model.rotary, or -1 */
} decoder_layer_weights;

typedef struct decoder_model {
  int64_t layers, width, ffn_width, heads, kv_heads, head_dim, vocab;
  int transposed; /* weights are [in, out], as GPT-2 stores them, and query, key and value stand side by side */
  int activation; /* HEADWAY_ACTIVATION_... */
  float scale;    /* NaN: default */
  float norm_epsilon, norm_weight_offset, embedding_scale;
  const float *embedding, *positions, *end_norm, *end_norm_bias, *head;
  const headway_rotary_spec* rotary[2];
  decoder_layer_weights layer[kDecoderMaxLayers];
} decoder_model;

/* Runs the prompt in chunks of `chunk` tokens, the last `decodes` tokens one by one, over a paged cache of blocks of
 * `block` positions; logits [count, vocab]. Returns 0, or the line that failed. */
int decode_tokens_in_c(const decoder_model* model, const int32_t* tokens, int64_t count, int64_t chunk, int64_t decodes,
                       int64_t block, float* logits);

#ifdef __cplusplus
}
#endif
