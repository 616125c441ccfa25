// Makes the tensors of a described problem.
#include "tests/support/attention_case.h"

#include <limits>
#include <sstream>

#include "ops/attention/spec.h"

namespace headway::testing {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

/// A mask as a test may have changed it; `halves` holds it where it is to be bf16.
struct MaskParts {
  MaskKind kind;
  DataType type;
  const std::vector<float>& values;
  const std::vector<std::uint8_t>& bits;
  std::vector<BFloat16>& halves;
};

ConstTensorView mask_view(const MaskParts& mask, const Dims& dims) {
  const auto& [kind, type, values, bits, halves] = mask;
  if (kind == MaskKind::kNone) return {};
  if (kind == MaskKind::kAdditive && type == DataType::kBF16) {
    halves.resize(values.size());
    for (std::size_t n = 0; n < values.size(); ++n) halves[n] = to_bfloat16(values[n]);
    return view_of(static_cast<const BFloat16*>(halves.data()), dims);
  }
  if (kind == MaskKind::kAdditive) return view_of(values.data(), dims);
  return {reinterpret_cast<const std::byte*>(bits.data()), DataType::kBool, dims};
}

struct MaskContents {
  MaskKind kind;
  MaskPolarity polarity;
  double hidden;
};

void fill_mask(const MaskContents& contents, const Dims& dims, Random& random, std::vector<float>* values,
               std::vector<std::uint8_t>* bits) {
  if (contents.kind == MaskKind::kNone) return;
  const auto count = static_cast<std::size_t>(element_count(dims));
  values->resize(contents.kind == MaskKind::kAdditive ? count + 1 : 0);
  bits->resize(contents.kind == MaskKind::kBool ? count + 1 : 0);
  for (float& value : *values) value = random.chance(contents.hidden) ? kHidden : random.normal();
  for (std::uint8_t& bit : *bits) {
    bit = random.chance(contents.hidden) != (contents.polarity == MaskPolarity::kTrueAttends);
  }
}

ConstTensorView integer_view(bool i32, const std::vector<std::int64_t>& wide, const std::vector<std::int32_t>& narrow) {
  if (wide.empty()) return {};
  const Dims dims{static_cast<std::int64_t>(wide.size())};
  return i32 ? view_of(narrow.data(), dims) : view_of(wide.data(), dims);
}

}  // namespace

std::string describe(const CaseShape& shape) {
  const AttentionSpec& s = shape.spec;
  std::ostringstream text;
  text << type_name(s.type) << " B " << s.batch << " Hq " << s.num_heads << " Hkv "
       << s.num_kv_heads.value_or(s.num_heads) << " Sq " << s.query_len << " Skv " << s.key_len << " D " << s.head_dim
       << " Dv " << s.value_head_dim.value_or(s.head_dim) << " " << name(shape.layout);
  if (s.scale) text << " scale " << *s.scale;
  if (s.softcap > 0) text << " softcap " << s.softcap;
  text << " causal " << static_cast<int>(s.causal) << " window " << s.window.left << "," << s.window.right << " mask "
       << static_cast<int>(s.mask) << shape.mask_dims << " key_mask " << static_cast<int>(s.key_mask) << " ["
       << shape.key_mask_keys << "] polarity " << static_cast<int>(s.mask_polarity) << " tail " << s.always_visible_keys
       << " empty " << static_cast<int>(s.empty_row) << " scores " << static_cast<int>(s.scores_output) << " hidden "
       << shape.hidden;
  for (const std::int64_t n : shape.lengths) text << " length " << n;
  for (const std::int64_t n : shape.offsets) text << " offset " << n;
  text << " seed " << shape.seed;
  return text.str();
}

AttentionCase::AttentionCase(const CaseShape& shape) : shape_(shape), spec_(complete_spec(shape.spec)) {
  const AttentionSpec& s = spec_;
  Random random(shape.seed);
  query = Strided({s.batch, s.num_heads, s.query_len, s.head_dim}, shape.layout, s.type);
  key = Strided({s.batch, *s.num_kv_heads, s.key_len, s.head_dim}, shape.layout, s.type);
  value = Strided({s.batch, *s.num_kv_heads, s.key_len, *s.value_head_dim}, shape.layout, s.type);
  out = Strided({s.batch, s.num_heads, s.query_len, *s.value_head_dim}, shape.layout, s.type);
  log_sum_exp = Strided({s.batch, s.num_heads, s.query_len, 1}, shape.layout);
  query.fill_normal(random);
  key.fill_normal(random);
  value.fill_normal(random);
  if (s.scores_output == ScoresOutput::kMeanProbabilities) {
    scores = Strided({s.batch, s.query_len, s.key_len}, Layout::kBhsd);
  } else if (s.scores_output != ScoresOutput::kNone) {
    scores = Strided({s.batch, s.num_heads, s.query_len, s.key_len},
                     shape.layout == Layout::kBhsd ? Layout::kBhsd : Layout::kMisaligned);
  }
  make_masks(random);
  for (const std::int64_t n : shape.lengths) lengths_i32_.push_back(static_cast<std::int32_t>(n));
  for (const std::int64_t n : shape.offsets) offsets_i32_.push_back(static_cast<std::int32_t>(n));
}

void AttentionCase::make_masks(Random& random) {
  mask_dims_ = shape_.mask_dims.rank() > 0 ? shape_.mask_dims : Dims{spec_.query_len, spec_.key_len};
  key_mask_dims_ = {spec_.batch, shape_.key_mask_keys < 0 ? spec_.key_len : shape_.key_mask_keys};
  fill_mask({spec_.mask, spec_.mask_polarity, shape_.hidden}, mask_dims_, random, &mask_values, &mask_bits);
  fill_mask({spec_.key_mask, spec_.mask_polarity, shape_.hidden}, key_mask_dims_, random, &key_mask_values,
            &key_mask_bits);
}

AttentionArgs AttentionCase::args() {
  AttentionArgs result;
  result.query = query.view();
  result.key = key.view();
  result.value = value.view();
  result.out = out.view();
  result.scores = scores.view();
  if (shape_.seed % 2 == 1) {
    const TensorView rows = log_sum_exp.view();
    result.log_sum_exp = TensorView(rows.data, DataType::kF32, {rows.dims[0], rows.dims[1], rows.dims[2]},
                                    {rows.strides[0], rows.strides[1], rows.strides[2]});
  }
  result.mask = mask_view({spec_.mask, shape_.mask_type, mask_values, mask_bits, mask_halves_}, mask_dims_);
  result.key_mask =
      mask_view({spec_.key_mask, shape_.mask_type, key_mask_values, key_mask_bits, key_mask_halves_}, key_mask_dims_);
  result.key_lengths = integer_view(shape_.integers_are_i32, shape_.lengths, lengths_i32_);
  result.offsets = integer_view(shape_.integers_are_i32, shape_.offsets, offsets_i32_);
  return result;
}

void AttentionCase::poison_outputs() {
  out.poison();
  scores.poison();
  log_sum_exp.poison();
}

}  // namespace headway::testing
