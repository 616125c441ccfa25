// The engine's one function. Knows attention, and tells its callers nothing of it.
#include <headway/attention.h>

#include <cstdint>

std::int64_t engine_flops(std::int64_t tokens) {
  headway::AttentionSpec spec;
  spec.query_len = spec.key_len = tokens;
  spec.head_dim = 8;
  return headway::nominal_attention_flops(headway::Attention(spec).spec());
}
