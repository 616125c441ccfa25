// Dims and attributes of the masks to a spec; every check of them.
#include "ops/graph/attention/microsoft_core.h"

#include "ops/base/numeric.h"
#include "ops/graph/operators.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

/// A filter as low as a causal limit: where every key that the limit leaves is masked, the two weigh the same.
constexpr float kAsLowAsCausal = -1e37f;

/// Of one dim: B, 2 B or 3 B + 2 numbers.
MicrosoftMask ends_kind(const MicrosoftCore& a, const Dim& count, const Dim& batch, const char* what) {
  if (!count.is_number() || !batch.is_number()) {
    return count == batch * Dim(2) ? MicrosoftMask::kEndsAndStarts : MicrosoftMask::kEnds;
  }
  // Divided, not multiplied: a file may claim a batch that cannot be.
  const std::int64_t n = count.factor;
  const std::int64_t b = batch.factor;
  if (n == b || (n % 3 == 2 && n / 3 == b)) return MicrosoftMask::kEnds;
  require(n % 2 == 0 && n / 2 == b, a.op, ' ', what, " has ", n, " elements, expected B, 2 B or 3 B + 2 with B = ", b);
  return MicrosoftMask::kEndsAndStarts;
}

void check_square(const MicrosoftCore& a, const DimList& dims, const MicrosoftSizes& s, const char* what) {
  const auto reaches = [](const Dim& size, const Dim& least) {
    return !size.is_number() || !least.is_number() || size.factor >= least.factor;
  };
  require(may_equal(dims[0], s.batch) && may_equal(dims[1], Dim(1)) && may_equal(dims[2], dims[3]) &&
              reaches(dims[3], s.key_len),
          a.op, ' ', what, " has dims ", dims, ", expected [", s.batch, ", 1, M, M] with M at least ", s.key_len);
  if (!s.past.is_number() || !s.query_len.is_number()) return;
  const Dim rows = s.past.factor + s.query_len.factor;
  require(reaches(dims[2], rows), a.op, ' ', what, " has ", dims[2], " rows, expected at least ", rows);
}

MicrosoftMask mask_kind(const MicrosoftCore& a, const ValueInfo& mask, const MicrosoftSizes& s, const char* what) {
  const DataType type = mask.type.value_or(DataType::kI32);
  require(type == DataType::kI32, a.op, ' ', what, " is ", type_name(type), ", expected i32");
  if (!mask.dims) return MicrosoftMask::kPairs;
  const DimList& dims = *mask.dims;
  switch (dims.size()) {
    case 1:
      return ends_kind(a, dims[0], s.batch, what);
    case 2:
      if (dims[1].is(1) && !s.key_len.is(1) && (may_equal(dims[0], s.batch) || dims[0].is(1))) {
        return MicrosoftMask::kNone;
      }
      check_microsoft_dims(a.op, what, dims, {s.batch, s.key_len});
      return MicrosoftMask::kKeys;
    case 3:
      check_microsoft_dims(a.op, what, dims, {s.batch, s.query_len, s.key_len});
      return MicrosoftMask::kPairs;
    case 4:
      check_square(a, dims, s, what);
      return MicrosoftMask::kSquare;
    default:
      fail(ErrorCode::kInvalidArgument, a.op, ' ', what, " has rank ", dims.size(), ", expected 1 to 4");
  }
}

void read_attention_bias(const InferContext& node, std::size_t at, const MicrosoftSizes& s, MicrosoftCore* a) {
  if (!has_input(node, at)) return;
  check_microsoft_type(*a, node, at, "attention_bias");
  if (!node.inputs[at].dims) return;
  const DimList& dims = *node.inputs[at].dims;
  const DimList full{s.batch, s.num_heads, s.query_len, s.key_len};
  require(dims.size() == 4 && (dims[0].is(1) || may_equal(dims[0], full[0])) &&
              (dims[1].is(1) || may_equal(dims[1], full[1])) && may_equal(dims[2], full[2]) &&
              may_equal(dims[3], full[3]),
          a->op, " attention_bias has dims ", dims, ", expected ", full, " or 1 in place of the first two");
  a->bias_dims = all_numbers(dims) ? number_dims(dims) : Dims{1, 1, 1, 1};
}

}  // namespace

void check_microsoft_dims(const char* op, const char* what, const DimList& got, const DimList& expected) {
  require(may_equal(got, expected), op, ' ', what, " has dims ", got, ", expected ", expected);
}

void check_microsoft_type(const MicrosoftCore& core, const InferContext& node, std::size_t input, const char* what) {
  const DataType type = node.inputs[input].type.value_or(core.type);
  require(type == core.type, core.op, ' ', what, " is ", type_name(type), ", expected ", type_name(core.type));
}

void set_microsoft_sizes(const MicrosoftSizes& sizes, MicrosoftCore* core) {
  AttentionSpec& c = core->core;
  c.batch = number_or_one(sizes.batch);
  c.num_heads = sizes.num_heads;
  c.query_len = number_or_one(sizes.query_len);
  c.key_len = number_or_one(sizes.key_len);
  c.head_dim = number_or_one(sizes.head_dim);
  c.value_head_dim = number_or_one(sizes.value_head_dim);
  core->past = sizes.past.is_number() ? sizes.past.factor : 0;
}

void read_microsoft_masks(const InferContext& node, const MicrosoftInputs& at, const MicrosoftSizes& sizes, bool scores,
                          MicrosoftCore* a) {
  require(is_float(a->type) && a->type != DataType::kF64, a->op, " input 0 is ", type_name(a->type),
          ", expected f32, f16 or bf16");
  AttentionSpec& c = a->core;
  const float scale = node.attributes.real("scale", 0);
  if (scale != 0) c.scale = scale;
  c.empty_row = EmptyRow::kZero;
  if (scores) c.scores_output = ScoresOutput::kBiased;
  a->filter = node.attributes.real("mask_filter_value", -10000);
  if (has_input(node, at.mask)) a->mask = mask_kind(*a, node.inputs[at.mask], sizes, at.mask_name);
  read_attention_bias(node, at.attention_bias, sizes, a);

  const bool causal = node.attributes.integer("unidirectional", 0) != 0 && c.query_len > 1;
  const std::int64_t fresh = c.key_len - a->past;
  const bool known = sizes.query_len.is_number() && sizes.key_len.is_number() && sizes.past.is_number();
  if (causal && known && fresh != c.query_len) {
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
