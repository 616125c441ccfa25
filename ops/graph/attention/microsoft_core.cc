// Dims and attributes of the masks to a spec; every check of them.
#include "ops/graph/attention/microsoft_core.h"

#include "ops/base/numeric.h"
#include "ops/graph/operators.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// A filter as low as a causal limit: where every key that the limit leaves is masked, the two weigh the same.
constexpr float kAsLowAsCausal = -1e37f;

bool is_given(const NodeContext& node, std::size_t i) { return i < node.inputs.size() && node.inputs[i].present; }

MicrosoftMask mask_kind(const MicrosoftCore& a, const TensorInfo& mask, const char* what) {
  require(mask.type == DataType::kI32, a.op, ' ', what, " is ", type_name(mask.type), ", expected i32");
  const AttentionSpec& c = a.core;
  const Dims& dims = mask.dims;
  const std::int64_t b = c.batch;
  switch (dims.rank()) {
    case 1: {
      // Divided, not multiplied: a file may claim a batch that cannot be.
      const std::int64_t n = dims[0];
      if (n == b || (n % 3 == 2 && n / 3 == b)) return MicrosoftMask::kEnds;
      require(n % 2 == 0 && n / 2 == b, a.op, ' ', what, " has ", n,
              " elements, expected B, 2 B or 3 B + 2 with B = ", b);
      return MicrosoftMask::kEndsAndStarts;
    }
    case 2:
      if (dims[1] == 1 && c.key_len != 1 && (dims[0] == b || dims[0] == 1)) return MicrosoftMask::kNone;
      check_microsoft_dims(a.op, what, dims, {b, c.key_len});
      return MicrosoftMask::kKeys;
    case 3:
      check_microsoft_dims(a.op, what, dims, {b, c.query_len, c.key_len});
      return MicrosoftMask::kPairs;
    case 4:
      require(dims[0] == b && dims[1] == 1 && dims[2] == dims[3] && dims[3] >= c.key_len, a.op, ' ', what, " has dims ",
              dims, ", expected [", b, ", 1, M, M] with M at least ", c.key_len);
      require(a.past + c.query_len <= dims[2], a.op, ' ', what, " has ", dims[2], " rows, expected at least ",
              a.past + c.query_len);
      return MicrosoftMask::kSquare;
    default:
      fail(ErrorCode::kInvalidArgument, a.op, ' ', what, " has rank ", dims.rank(), ", expected 1 to 4");
  }
}

void read_attention_bias(const NodeContext& node, std::size_t at, MicrosoftCore* a) {
  if (!is_given(node, at)) return;
  check_microsoft_type(*a, node, at, "attention_bias");
  const AttentionSpec& c = a->core;
  const Dims& dims = node.inputs[at].dims;
  require(dims.rank() == 4 && (dims[0] == 1 || dims[0] == c.batch) && (dims[1] == 1 || dims[1] == c.num_heads) &&
              dims[2] == c.query_len && dims[3] == c.key_len,
          a->op, " attention_bias has dims ", dims, ", expected ", Dims({c.batch, c.num_heads, c.query_len, c.key_len}),
          " or 1 in place of the first two");
  a->bias_dims = dims;
}

}  // namespace

void check_microsoft_dims(const char* op, const char* what, const Dims& got, const Dims& expected) {
  require(got == expected, op, ' ', what, " has dims ", got, ", expected ", expected);
}

void check_microsoft_type(const MicrosoftCore& core, const NodeContext& node, std::size_t input, const char* what) {
  const DataType type = node.inputs[input].type;
  require(type == core.type, core.op, ' ', what, " is ", type_name(type), ", expected ", type_name(core.type));
}

void read_microsoft_masks(const NodeContext& node, const MicrosoftInputs& at, bool scores, MicrosoftCore* a) {
  require(is_float(a->type) && a->type != DataType::kF64, a->op, " input 0 is ", type_name(a->type),
          ", expected f32, f16 or bf16");
  AttentionSpec& c = a->core;
  const float scale = node.attributes.real("scale", 0);
  if (scale != 0) c.scale = scale;
  c.empty_row = EmptyRow::kZero;
  if (scores) c.scores_output = ScoresOutput::kBiased;
  a->filter = node.attributes.real("mask_filter_value", -10000);
  if (is_given(node, at.mask)) a->mask = mask_kind(*a, node.inputs[at.mask], at.mask_name);
  read_attention_bias(node, at.attention_bias, a);

  const bool causal = node.attributes.integer("unidirectional", 0) != 0 && c.query_len > 1;
  const std::int64_t fresh = c.key_len - a->past;
  if (causal && fresh != c.query_len) {
    fail(ErrorCode::kUnsupported, a->op, " unidirectional with ", c.query_len, " queries and ", fresh,
         " new keys is not supported, expected as many");
  }
  const bool pairs = a->mask == MicrosoftMask::kPairs || a->mask == MicrosoftMask::kSquare;
  const bool masked = a->mask != MicrosoftMask::kNone;
  a->sums_causal = causal && (scores || (masked && a->filter <= kAsLowAsCausal));
  a->mask_is_sum = pairs || a->sums_causal;
  if (causal && !a->sums_causal) c.causal = a->past == 0 ? Causal::kTopLeft : Causal::kBottomRight;
  if (a->mask_is_sum || a->bias_dims.rank() != 0) c.mask = MaskKind::kAdditive;
  if (masked && !a->mask_is_sum) c.key_mask = MaskKind::kAdditive;
}

}  // namespace headway
