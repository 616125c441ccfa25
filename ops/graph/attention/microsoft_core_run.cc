// The run: keys behind their past, masks as numbers, then the core. f32 without bias or past is read where it lies;
// everything else is copied once. Narrow types are computed in f32.
#include <algorithm>
#include <limits>

#include "ops/base/narrow.h"
#include "ops/graph/attention/microsoft_core.h"

namespace headway {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();

/// [B, N, R, W] to f32 with the heads' own part of `bias`, [N·W], added to every row; absent: nothing.
void place(const ConstTensorView& from, const ConstTensorView& bias, const TensorView& to, const Threads& threads) {
  const std::int64_t heads = to.dims[1];
  threads.parallel_for(to.dims[0] * heads, [&](std::int64_t task, int) {
    const std::int64_t h = task % heads;
    const ConstTensorView source = from.selected(0, task / heads).selected(0, h);
    const TensorView target = to.selected(0, task / heads).selected(0, h);
    if (source.type == target.type) {
      copy_elements(source, target);
    } else {
      convert_view(source, target);
    }
    if (!bias) return;
    const std::int64_t width = target.dims[1];
    const float* const add = bias.as<float>() + h * width;
    for (std::int64_t r = 0; r < target.dims[0]; ++r) {
      float* const row = target.as<float>() + r * target.strides[0];
      for (std::int64_t d = 0; d < width; ++d) row[d] += add[d];
    }
  });
}

/// Whether key j of batch entry b is masked for query i.
bool is_masked(const MicrosoftCore& a, const ConstTensorView& mask, std::int64_t b, std::int64_t i, std::int64_t j) {
  const std::int32_t* const m = mask.as<std::int32_t>();
  const AttentionSpec& c = a.core;
  switch (a.mask) {
    case MicrosoftMask::kNone:
      return false;
    case MicrosoftMask::kEnds:
      return j >= m[b];
    case MicrosoftMask::kEndsAndStarts:
      return j >= m[b] || j < m[c.batch + b];
    case MicrosoftMask::kKeys:
      return m[b * c.key_len + j] <= 0;
    case MicrosoftMask::kPairs:
      return m[(b * c.query_len + i) * c.key_len + j] <= 0;
    case MicrosoftMask::kSquare:
      return m[(b * mask.dims[2] + a.past + i) * mask.dims[3] + j] <= 0;
  }
  return false;
}

/// What is added to the scores of query i: all keys, [T].
void write_row(const MicrosoftCore& a, const ConstTensorView& mask, std::int64_t b, std::int64_t i, float* row) {
  const std::int64_t keys = a.core.key_len;
  for (std::int64_t j = 0; j < keys; ++j) row[j] = mask && is_masked(a, mask, b, i, j) ? a.filter : 0.0f;
  if (!a.sums_causal) return;
  for (std::int64_t j = a.past + i + 1; j < keys; ++j) row[j] = kLowest;
}

}  // namespace

MicrosoftCorePlan::MicrosoftCorePlan(const MicrosoftCore& core, const MicrosoftCoreWants& wants)
    : a_(core), key_bias_(wants.key_bias), attention_(core.core, {.implementation = wants.implementation}) {
  const AttentionSpec& c = attention_.spec();
  const bool narrow = a_.type != DataType::kF32;
  const bool converts = wants.heads_type != DataType::kF32;
  const std::int64_t width = c.num_heads * (2 * c.head_dim + *c.value_head_dim);
  bias_ = book(&book_, narrow && wants.query_bias, DataType::kF32, {width});
  attention_bias_ = book(&book_, narrow && a_.bias_dims.rank() != 0, DataType::kF32, a_.bias_dims);
  const std::int64_t bias_heads = a_.bias_dims.rank() != 0 ? a_.bias_dims[1] : 1;
  mask_ = book(&book_, a_.mask_is_sum, DataType::kF32, {c.batch, bias_heads, c.query_len, c.key_len});
  key_mask_ = book(&book_, c.key_mask != MaskKind::kNone, DataType::kF32, {c.batch, c.key_len});
  query_ = book(&book_, converts || wants.query_bias, DataType::kF32, {c.batch, c.num_heads, c.query_len, c.head_dim});
  // Keys are put together in the present where that is f32, else in a piece, unless they can be read as they were
  // given.
  const bool moves = converts || wants.key_bias || a_.has_past;
  key_ =
      book(&book_, wants.present_key ? narrow : moves, DataType::kF32, {c.batch, c.num_heads, c.key_len, c.head_dim});
  value_ = book(&book_, wants.present_value ? narrow : moves, DataType::kF32,
                {c.batch, c.num_heads, c.key_len, *c.value_head_dim});
  out_ = book(&book_, narrow, DataType::kF32, {c.batch, c.num_heads, c.query_len, *c.value_head_dim});
  scores_ = book(&book_, narrow && c.scores_output != ScoresOutput::kNone, DataType::kF32,
                 {c.batch, c.num_heads, c.query_len, c.key_len});
}

std::string MicrosoftCorePlan::explain() const {
  std::string text = attention_.explain();
  if (a_.has_past) text += ", a past of " + std::to_string(a_.past) + " keys";
  return text;
}

void MicrosoftCorePlan::write_masks(const RunContext& context, const MicrosoftCoreArgs& args,
                                    AttentionArgs* core) const {
  ConstTensorView bias = args.attention_bias;
  if (attention_bias_.used) {
    convert_view(bias, attention_bias_.in(context.workspace));
    bias = attention_bias_.in(context.workspace);
  }
  if (key_mask_.used) {
    const TensorView mask = key_mask_.in(context.workspace);
    for (std::int64_t b = 0; b < mask.dims[0]; ++b) {
      write_row(a_, args.mask, b, 0, mask.as<float>() + b * mask.dims[1]);
    }
    core->key_mask = mask;
  }
  core->mask = bias;
  if (!mask_.used) return;
  const TensorView mask = mask_.in(context.workspace);
  const std::int64_t heads = mask.dims[1];
  const std::int64_t queries = mask.dims[2];
  const std::int64_t keys = mask.dims[3];
  context.threads.parallel_for(mask.dims[0] * heads * queries, [&](std::int64_t task, int) {
    const std::int64_t b = task / queries / heads;
    const std::int64_t i = task % queries;
    float* const row = mask.as<float>() + task * keys;
    write_row(a_, args.mask, b, i, row);
    if (!bias) return;
    const std::int64_t at = (bias.dims[0] == 1 ? task % (heads * queries) : task) * keys;
    for (std::int64_t j = 0; j < keys; ++j) row[j] += bias.as<float>()[at + j];
  });
  core->mask = mask;
}

void MicrosoftCorePlan::run(const RunContext& context, MicrosoftCoreArgs args) const {
  const AttentionSpec& c = attention_.spec();
  if (bias_.used) {
    convert_view(args.bias, bias_.in(context.workspace));
    args.bias = bias_.in(context.workspace);
  }
  const std::int64_t width = c.num_heads * c.head_dim;
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return args.bias ? args.bias.sliced(0, begin, end) : ConstTensorView();
  };
  const auto all_keys = [&](const ConstTensorView& fresh, const ConstTensorView& past, const ConstTensorView& bias,
                            const WorkspaceSlot& own, const TensorView& present) {
    const TensorView all = own.used ? own.in(context.workspace) : present;
    if (!all) return fresh;
    const bool in_place = past && past.data == all.data;
    if (past && !in_place) place(past, {}, all.sliced(2, 0, a_.past), context.threads);
    place(fresh, bias, all.sliced(2, a_.past, c.key_len), context.threads);
    if (own.used && present) convert_view(all, present);
    return ConstTensorView(all);
  };
  AttentionArgs core;
  core.query = args.query;
  if (query_.used) {
    const TensorView query = query_.in(context.workspace);
    place(args.query, part(0, width), query, context.threads);
    core.query = query;
  }
  // Keys that are cached for good have their bias already, so a bias as long as theirs may still not be for them.
  const bool key_bias = args.bias && key_bias_;
  core.key =
      all_keys(args.key, args.past_key, key_bias ? part(width, 2 * width) : ConstTensorView(), key_, args.present_key);
  core.value = all_keys(args.value, args.past_value, key_bias ? part(2 * width, args.bias.dims[0]) : ConstTensorView(),
                        value_, args.present_value);
  write_masks(context, args, &core);
  core.out = out_.used ? out_.in(context.workspace) : args.out;
  core.scores = scores_.used ? scores_.in(context.workspace) : args.scores;
  attention_.run(core, context.workspace + book_.bytes(), context.threads, context.profiler);
  if (out_.used) convert_view(core.out, args.out);
  if (scores_.used) convert_view(core.scores, args.scores);
}

}  // namespace headway
