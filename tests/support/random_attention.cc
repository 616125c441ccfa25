// See random_attention.h.
#include "tests/support/random_attention.h"

#include <algorithm>
#include <iterator>

#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

const std::vector<std::int64_t> kHeads = {1, 2, 3, 7, 8, 12, 32};

Dims random_mask_dims(const AttentionSpec& spec, Random& random) {
  const std::int64_t before_tail = spec.key_len - spec.always_visible_keys;
  std::int64_t keys = random.pick({spec.key_len, spec.key_len, before_tail, std::int64_t{1}});
  if (spec.key_len > 3 && random.chance(0.15)) keys = random.between(2, spec.key_len - 1);
  const auto or_one = [&](std::int64_t n) { return random.chance(0.35) ? 1 : n; };
  switch (random.between(1, 4)) {
    case 1:
      return {keys};
    case 2:
      return {or_one(spec.query_len), keys};
    case 3:
      return {or_one(spec.num_heads), or_one(spec.query_len), keys};
    default:
      return {or_one(spec.batch), or_one(spec.num_heads), or_one(spec.query_len), keys};
  }
}

void choose_sizes(AttentionSpec& spec, std::int64_t max_cost, Random& random) {
  spec.batch = random.pick({1, 1, 2, 3});
  spec.num_heads = random.pick(kHeads);
  if (random.chance(0.4) && spec.num_heads % 2 == 0) spec.num_kv_heads = spec.num_heads / 2;
  if (random.chance(0.15)) spec.num_kv_heads = 1;
  spec.query_len = random.pick(kSweptLengths);
  spec.key_len = random.pick(kSweptLengths);
  if (random.chance(0.3)) spec.key_len = spec.query_len;
  spec.head_dim = random.pick(kSweptWidths);
  if (random.chance(0.3)) spec.value_head_dim = random.pick(kSweptWidths);
  // The reference takes a few ns a product.
  const auto cost = [&] {
    return spec.batch * spec.num_heads * spec.query_len * spec.key_len *
           (spec.head_dim + spec.value_head_dim.value_or(0));
  };
  const std::int64_t elements = spec.batch * spec.num_heads * (spec.query_len + spec.key_len) * spec.head_dim;
  if (max_cost < kSweptCost && std::max(cost(), elements) > max_cost) {  // rather than to one head always
    spec.query_len %= 20;
    spec.key_len %= 67;
    spec.num_heads = std::min<std::int64_t>(spec.num_heads, 12);
    spec.num_kv_heads.reset();
    if (random.chance(0.5)) spec.num_kv_heads = 1;
  }
  while (cost() > max_cost && spec.batch > 1) --spec.batch;
  while (cost() > max_cost && spec.num_heads > 1) {
    spec.num_heads = spec.num_heads > 3 ? 3 : 1;
    spec.num_kv_heads.reset();
  }
  if (cost() > max_cost * 8 / 3) spec.query_len = 17;
}

void choose_masks(CaseShape& shape, Random& random) {
  AttentionSpec& spec = shape.spec;
  if (random.chance(0.15)) spec.always_visible_keys = std::min<std::int64_t>(random.between(1, 2), spec.key_len);
  spec.causal = random.pick(
      {Causal::kNone, Causal::kNone, Causal::kTopLeft, Causal::kBottomRight, Causal::kOffset, Causal::kLastKey});
  if (random.chance(0.25)) spec.window = {random.pick({-1, 0, 3, 16, 40}), random.pick({-1, 0, 3, 16})};
  const bool own_window = spec.causal == Causal::kNone && (spec.window.left >= 0 || spec.window.right >= 0);
  if (spec.causal == Causal::kOffset || (own_window && random.chance(0.5))) {
    for (std::int64_t b = 0; b < spec.batch; ++b) shape.offsets.push_back(random.between(-20, spec.key_len + 2));
  }
  spec.key_lengths = random.chance(0.25);
  for (std::int64_t b = 0; spec.key_lengths && b < spec.batch; ++b)
    shape.lengths.push_back(random.between(0, spec.key_len));
  shape.integers_are_i32 = random.chance(0.5);
  spec.mask = random.pick({MaskKind::kNone, MaskKind::kBool, MaskKind::kAdditive});
  spec.key_mask = random.pick({MaskKind::kNone, MaskKind::kNone, MaskKind::kBool, MaskKind::kAdditive});
  spec.mask_polarity = random.pick({MaskPolarity::kTrueAttends, MaskPolarity::kTrueHides});
  if (random.chance(0.1)) spec.empty_row = EmptyRow::kNan;
  shape.hidden = random.pick({0.1, 0.3, 0.7, 0.98});
  if (spec.mask != MaskKind::kNone) shape.mask_dims = random_mask_dims(spec, random);
  if (random.chance(0.5)) shape.key_mask_keys = spec.key_len - spec.always_visible_keys;
}

}  // namespace

CaseShape random_shape(std::uint64_t seed, std::int64_t max_cost) {
  Random random(seed);
  CaseShape shape;
  choose_sizes(shape.spec, max_cost, random);
  choose_masks(shape, random);
  if (random.chance(0.15)) shape.spec.softcap = random.pick({0.5f, 5.0f, 50.0f});
  if (random.chance(0.2)) shape.spec.scale = random.pick({1.0f, 0.05f, -0.3f, 0.0f});
  if (random.chance(0.35)) shape.spec.scores_output = static_cast<ScoresOutput>(random.between(1, 5));
  shape.layout = kAllLayouts[random.below(std::size(kAllLayouts))];
  shape.seed = seed;
  if (seed % 3 == 0) shape.spec.type = DataType::kBF16;
  if (shape.spec.type == DataType::kBF16 && random.chance(0.5)) shape.mask_type = DataType::kBF16;
  if (shape.spec.type == DataType::kBF16 && random.chance(0.6)) {
    shape.spec.head_dim = (shape.spec.head_dim + 31) / 32 * 32;  // what all paths take
    if (auto& width = shape.spec.value_head_dim) width = (*width + 31) / 32 * 32;
  }
  return shape;
}

}  // namespace headway::testing
