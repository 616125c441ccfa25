// The defaults and the checks, in the order of the structs' fields.
#include "ops/multi_head_attention/mha_spec.h"

#include "ops/attention/spec.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

void at_least(const char* field, std::int64_t value, std::int64_t least) {
  require(value >= least, field, " is ", value, ", expected at least ", least);
}

void check_tensor(const char* what, const ConstTensorView& tensor, DataType type, const Dims& expected) {
  require(static_cast<bool>(tensor), what, " is missing, expected ", type_name(type), " ", expected);
  require(tensor.type == type, what, " is ", type_name(tensor.type), ", expected ", type_name(type));
  require(tensor.dims == expected, what, " has dims ", tensor.dims, ", expected ", expected);
}

void check_optional(const char* what, const ConstTensorView& tensor, DataType type, const Dims& expected) {
  if (tensor) check_tensor(what, tensor, type, expected);
}

bool same_view(const ConstTensorView& a, const ConstTensorView& b) {
  return a.data == b.data && a.dims == b.dims && a.strides == b.strides && a.type == b.type;
}

/// The core takes lengths up to its own key length; here they count the given keys only.
template <class Int>
void check_lengths(const ConstTensorView& lengths, std::int64_t key_len) {
  for (std::int64_t b = 0; b < lengths.dims[0]; ++b) {
    const std::int64_t n = lengths.as<Int>()[b * lengths.strides[0]];
    require(n >= 0 && n <= key_len, "key_lengths[", b, "] is ", n, ", expected 0 to key_len = ", key_len);
  }
}

}  // namespace

MultiHeadAttentionSpec complete_spec(const MultiHeadAttentionSpec& spec) {
  MultiHeadAttentionSpec s = spec;
  require(s.type == DataType::kF32 || s.type == DataType::kBF16, "type is ", type_name(s.type),
          ", expected f32 or bf16");
  at_least("batch", s.batch, 0);
  at_least("query_len", s.query_len, 0);
  s.key_len = spec.key_len.value_or(spec.query_len);
  at_least("key_len", *s.key_len, 0);
  at_least("embed_dim", s.embed_dim, 1);
  s.kdim = spec.kdim.value_or(spec.embed_dim);
  at_least("kdim", *s.kdim, 1);
  s.vdim = spec.vdim.value_or(spec.embed_dim);
  at_least("vdim", *s.vdim, 1);
  at_least("num_heads", s.num_heads, 1);
  s.num_kv_heads = spec.num_kv_heads.value_or(spec.num_heads);
  at_least("num_kv_heads", *s.num_kv_heads, 1);
  require(s.num_heads % *s.num_kv_heads == 0, "num_heads = ", s.num_heads,
          " is not a multiple of num_kv_heads = ", *s.num_kv_heads);
  if (!s.head_dim) {
    require(s.embed_dim % s.num_heads == 0, "embed_dim = ", s.embed_dim,
            " is not a multiple of num_heads = ", s.num_heads, "; give head_dim");
    s.head_dim = s.embed_dim / s.num_heads;
  }
  at_least("head_dim", *s.head_dim, 1);
  s.value_head_dim = spec.value_head_dim.value_or(*s.head_dim);
  at_least("value_head_dim", *s.value_head_dim, 1);
  if (s.self_attention) {
    require(*s.key_len == s.query_len, "key_len is ", *s.key_len, ", expected query_len = ", s.query_len,
            " in self attention");
    require(*s.kdim == s.embed_dim && *s.vdim == s.embed_dim, "kdim and vdim are ", *s.kdim, " and ", *s.vdim,
            ", expected embed_dim = ", s.embed_dim, " in self attention");
  }
  static_cast<AttentionRules&>(s) = complete_spec(core_spec(s, false));
  return s;
}

AttentionSpec core_spec(const MultiHeadAttentionSpec& completed, bool bias_kv) {
  AttentionSpec core{completed};
  core.type = completed.type;
  core.batch = completed.batch;
  core.num_heads = completed.num_heads;
  core.num_kv_heads = completed.num_kv_heads;
  core.query_len = completed.query_len;
  core.always_visible_keys = (bias_kv ? 1 : 0) + (completed.add_zero_attention ? 1 : 0);
  core.key_len = *completed.key_len + core.always_visible_keys;
  core.head_dim = *completed.head_dim;
  core.value_head_dim = completed.value_head_dim;
  return core;
}

void check_weights(const MultiHeadAttentionSpec& s, const MultiHeadAttentionWeights& w) {
  const std::int64_t q = s.num_heads * *s.head_dim;
  const std::int64_t k = *s.num_kv_heads * *s.head_dim;
  const std::int64_t v = *s.num_kv_heads * *s.value_head_dim;
  const std::int64_t context = s.num_heads * *s.value_head_dim;
  check_tensor("query weight", w.query, s.type, {q, s.embed_dim});
  check_tensor("key weight", w.key, s.type, {k, *s.kdim});
  check_tensor("value weight", w.value, s.type, {v, *s.vdim});
  check_tensor("output weight", w.output, s.type, {s.embed_dim, context});
  check_optional("query bias", w.query_bias, s.type, {q});
  check_optional("key bias", w.key_bias, s.type, {k});
  check_optional("value bias", w.value_bias, s.type, {v});
  check_optional("output bias", w.output_bias, s.type, {s.embed_dim});
  require(static_cast<bool>(w.bias_k) == static_cast<bool>(w.bias_v), "bias_k is ", w.bias_k ? "given" : "missing",
          " and bias_v is ", w.bias_v ? "given" : "missing", ", expected both or neither");
  check_optional("bias_k", w.bias_k, s.type, {k});
  check_optional("bias_v", w.bias_v, s.type, {v});
}

void check_args(const MultiHeadAttentionSpec& s, const MultiHeadAttentionArgs& args) {
  check_tensor("query", args.query, s.type, {s.batch, s.query_len, s.embed_dim});
  if (s.self_attention) {
    require(!args.key || same_view(args.key, args.query), "key is another tensor than query in self attention");
    require(!args.value || same_view(args.value, args.query), "value is another tensor than query in self attention");
  } else {
    check_tensor("key", args.key, s.type, {s.batch, *s.key_len, *s.kdim});
    check_tensor("value", args.value, s.type, {s.batch, *s.key_len, *s.vdim});
  }
  check_tensor("out", args.out, s.type, {s.batch, s.query_len, s.embed_dim});
  if (args.mask && args.mask.rank() > 0) {
    require(args.mask.dims.back() <= *s.key_len, "mask has ", args.mask.dims.back(),
            " keys, expected key_len = ", *s.key_len);
  }
  if (args.key_mask && args.key_mask.rank() > 0) {
    require(args.key_mask.dims.back() == *s.key_len, "key_mask has ", args.key_mask.dims.back(),
            " keys, expected key_len = ", *s.key_len);
  }
  if (args.key_lengths && args.key_lengths.rank() == 1) {
    if (args.key_lengths.type == DataType::kI32) check_lengths<std::int32_t>(args.key_lengths, *s.key_len);
    if (args.key_lengths.type == DataType::kI64) check_lengths<std::int64_t>(args.key_lengths, *s.key_len);
  }
}

}  // namespace headway
