// The onnx.Attention operator (ai.onnx 23 to 25): inputs and outputs in ONNX's order, see onnx_attention_spec_op.h.
// Decides what is copied: past and new keys once, into the present that is read afterwards; and f16, or types that
// differ, to f32 and the result back. bf16 alone is read where it lies.
#include <algorithm>
#include <limits>
#include <optional>

#include "ops/attention/check_args.h"
#include "ops/attention/spec.h"
#include "ops/base/narrow.h"
#include "ops/base/workspace_layout.h"
#include "ops/graph/attention/onnx_attention_spec.h"
#include "ops/graph/attention/rounded_attention.h"
#include "ops/graph/operators.h"
#include "ops/reference/reference_attention.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

using At = OnnxAttentionAt;

/// [B, S, H·D] as [B, H, S, D].
template <class View>
View with_heads(const View& view, std::int64_t heads) {
  return view.rank() == 3 ? view.split_axis(2, heads).permuted({0, 2, 1, 3}) : view;
}

class OnnxAttentionPlan : public NodePlan {
 public:
  OnnxAttentionPlan(const NodeContext& node, const OnnxAttention& a)
      : a_(a), rounded_{complete_spec(a.core), a.type, a.softmax_type} {
    const AttentionSpec& c = a_.core;
    const Dims key{c.batch, *c.num_kv_heads, c.key_len, c.head_dim};
    const Dims value{c.batch, *c.num_kv_heads, c.key_len, *c.value_head_dim};
    const DataType core = c.type;
    const bool per_op = a_.arithmetic == OnnxArithmetic::kPerOpRounding;
    const bool native = a_.arithmetic == OnnxArithmetic::kNative;
    // Whether a tensor of that type is read or written through a copy of the core's type.
    const auto converts = [&](DataType type) { return per_op || (native && type != core); };
    const DataType given = c.mask == MaskKind::kNone ? DataType::kF32 : node.inputs[At::kMask].type;
    const bool mask_fits = given == DataType::kF32 || (given == DataType::kBF16 && core == DataType::kBF16);
    mask_ = book(&book_, c.mask == MaskKind::kAdditive && !mask_fits, DataType::kF32,
                 c.mask == MaskKind::kNone ? Dims{} : node.inputs[At::kMask].dims);
    offsets_ = book(&book_, a_.gives_offsets, DataType::kI64, {c.batch});
    past_key_ = book(&book_, a_.has_past && a_.outputs <= At::kPresentKey, a_.type, key);
    past_value_ = book(&book_, a_.has_past && a_.outputs <= At::kPresentValue, a_.value_type, value);
    query_ = book(&book_, converts(a_.type), DataType::kF32, {c.batch, c.num_heads, c.query_len, c.head_dim});
    key_ = book(&book_, converts(a_.type), DataType::kF32, key);
    value_ = book(&book_, converts(a_.value_type), DataType::kF32, value);
    out_ = book(&book_, converts(a_.type), DataType::kF32, {c.batch, c.num_heads, c.query_len, *c.value_head_dim});
    // Scores of the core are f32 whatever its type.
    const bool narrow_scores = per_op || (native && a_.type != DataType::kF32);
    scores_ = book(&book_, narrow_scores && c.scores_output != ScoresOutput::kNone, DataType::kF32,
                   {c.batch, c.num_heads, c.query_len, c.key_len});
    if (a_.arithmetic == OnnxArithmetic::kNative) {
      AttentionOptions options{.implementation = node.attributes.text("implementation", "")};
      native_.emplace(a_.core, options);
    }
  }

  std::size_t workspace_bytes(int workers) const override {
    if (native_) return book_.bytes() + native_->workspace_bytes(workers);
    if (a_.arithmetic == OnnxArithmetic::kDouble) return book_.bytes();
    return book_.bytes() + static_cast<std::size_t>(workers) * scratch_floats() * sizeof(float);
  }

  std::string explain() const override {
    std::string text;
    if (native_) {
      if (query_.used || value_.used) text = std::string(type_name(a_.type)) + " widened to f32, ";
      text += native_->explain();
    } else if (a_.arithmetic == OnnxArithmetic::kDouble) {
      text = "reference: double precision";
    } else {
      text = std::string("rounded: ") + type_name(a_.type) + " with a softmax in " + type_name(a_.softmax_type);
    }
    if (a_.has_past) text += ", a past of " + std::to_string(a_.past) + " keys";
    return text;
  }

  ExtendedInput extended_input(std::size_t output) const override {
    const bool present = a_.has_past && (output == At::kPresentKey || output == At::kPresentValue);
    return {present ? static_cast<int>(output == At::kPresentKey ? At::kPastKey : At::kPastValue) : -1};
  }

  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    AttentionArgs args;
    args.query = with_heads(inputs[At::kQuery], a_.core.num_heads);
    args.key = present(context, inputs, At::kKey, At::kPastKey, past_key_, output(outputs, At::kPresentKey));
    args.value = present(context, inputs, At::kValue, At::kPastValue, past_value_, output(outputs, At::kPresentValue));
    args.out = with_heads(outputs[At::kOut], a_.core.num_heads);
    args.scores = output(outputs, At::kScores);
    args.mask = mask(context, optional_input(inputs, At::kMask));
    args.key_lengths = optional_input(inputs, At::kLengths);
    check_lengths(args.key_lengths);  // before anything is computed from them
    if (a_.gives_offsets) args.offsets = offsets(context, args.key_lengths);
    switch (a_.arithmetic) {
      case OnnxArithmetic::kNative:
        return run_native(context, args);
      case OnnxArithmetic::kDouble:
        return run_double(context, args);
      case OnnxArithmetic::kPerOpRounding:
        return run_rounded(context, args);
    }
  }

 private:
  std::size_t scratch_floats() const {
    return static_cast<std::size_t>(rounded_scratch_floats(rounded_) + 15) / 16 * 16;
  }
  static TensorView output(std::span<const TensorView> outputs, std::size_t i) {
    return i < outputs.size() ? outputs[i] : TensorView();
  }

  /// All keys (or values) as [B, Hkv, Skv, D]: in the present where there is one, else as they were given.
  ConstTensorView present(const RunContext& context, std::span<const ConstTensorView> inputs, std::size_t fresh_at,
                          std::size_t past_at, const WorkspaceSlot& own, const TensorView& wanted) const {
    const ConstTensorView fresh = with_heads(inputs[fresh_at], *a_.core.num_kv_heads);
    const TensorView all = own.used ? own.in(context.workspace) : wanted;
    if (!all) return fresh;
    const bool in_place = a_.has_past && inputs[past_at].data == all.data;
    if (a_.has_past && !in_place) copy_elements(inputs[past_at], all.sliced(2, 0, a_.past));
    copy_elements(fresh, all.sliced(2, a_.past, a_.core.key_len));
    return a_.has_past ? ConstTensorView(all) : fresh;
  }

  ConstTensorView mask(const RunContext& context, const ConstTensorView& given) const {
    if (!mask_.used) return given;
    const TensorView wide = mask_.in(context.workspace);
    convert_view(given, wide);
    return wide;
  }

  ConstTensorView offsets(const RunContext& context, const ConstTensorView& lengths) const {
    const TensorView view = offsets_.in(context.workspace);
    std::int64_t* to = view.as<std::int64_t>();
    for (std::int64_t b = 0; b < a_.core.batch; ++b) {
      to[b] = a_.has_past ? a_.past : length(lengths, b) - a_.core.query_len;
    }
    return view;
  }
  static std::int64_t length(const ConstTensorView& lengths, std::int64_t b) {
    return lengths.type == DataType::kI32 ? lengths.as<std::int32_t>()[b] : lengths.as<std::int64_t>()[b];
  }
  void check_lengths(const ConstTensorView& lengths) const {
    for (std::int64_t b = 0; lengths && b < a_.core.batch; ++b) {
      require(length(lengths, b) >= 0 && length(lengths, b) <= a_.core.key_len, "nonpad_kv_seqlen[", b, "] is ",
              length(lengths, b), ", expected 0 to ", a_.core.key_len);
    }
  }

  template <class Row>
  void each_row(const Threads& threads, Row row) const {
    const std::int64_t heads = a_.core.num_heads;
    const std::int64_t rows = a_.core.query_len;
    threads.parallel_for(a_.core.batch * heads * rows, [&](std::int64_t task, int worker) {
      row(task / (heads * rows), task / rows % heads, task % rows, worker);
    });
  }

  void run_double(const RunContext& context, const AttentionArgs& args) const {
    check_mask(rounded_.core, args.mask);
    each_row(context.threads, [&](std::int64_t b, std::int64_t h, std::int64_t i, int) {
      reference_attention_rows(rounded_.core, args, {b, h, i, i + 1});
    });
  }

  /// Between any two float types, heads side by side.
  static void convert_heads(const ConstTensorView& from, const TensorView& to, const Threads& threads) {
    const std::int64_t heads = to.dims[1];
    threads.parallel_for(to.dims[0] * heads, [&](std::int64_t task, int) {
      const std::int64_t b = task / heads, h = task % heads;
      convert_view(from.selected(0, b).selected(0, h), to.selected(0, b).selected(0, h));
    });
  }

  void run_native(const RunContext& context, AttentionArgs args) const {
    const TensorView out = args.out;
    const TensorView scores = args.scores;
    const auto widen = [&](const WorkspaceSlot& slot, ConstTensorView* view) {
      if (!slot.used) return;
      convert_heads(*view, slot.in(context.workspace), context.threads);
      *view = slot.in(context.workspace);
    };
    widen(query_, &args.query);
    widen(key_, &args.key);
    widen(value_, &args.value);
    if (out_.used) args.out = out_.in(context.workspace);
    if (scores_.used) args.scores = scores_.in(context.workspace);
    native_->run(args, context.workspace + book_.bytes(), context.threads, context.profiler);
    if (out_.used) convert_heads(args.out, out, context.threads);
    if (scores_.used) convert_heads(args.scores, scores, context.threads);
  }

  /// `from` times the scale in f32, each product rounded.
  void scaled(const ConstTensorView& from, const TensorView& to, const Threads& threads) const {
    const float scale = rounded_scale(rounded_);
    threads.parallel_for(to.dims[0], [&](std::int64_t b, int) {
      const TensorView one = to.selected(0, b);
      convert_view(from.selected(0, b), one);
      float* x = one.as<float>();
      for (std::int64_t i = 0; i < one.count(); ++i) x[i] = rounded(a_.type, x[i] * scale);
    });
  }

  void run_rounded(const RunContext& context, AttentionArgs args) const {
    const TensorView out = args.out;
    const TensorView scores = args.scores;
    const auto own = [&](const WorkspaceSlot& piece) { return piece.in(context.workspace); };
    scaled(args.query, own(query_), context.threads);
    scaled(args.key, own(key_), context.threads);
    convert_view(args.value, own(value_));
    args.query = own(query_);
    args.key = own(key_);
    args.value = own(value_);
    args.out = own(out_);
    if (scores_.used) args.scores = own(scores_);
    check_args(rounded_.core, args);
    float* const scratch = reinterpret_cast<float*>(context.workspace + book_.bytes());
    each_row(context.threads, [&](std::int64_t b, std::int64_t h, std::int64_t i, int worker) {
      rounded_attention_row(rounded_, args, b, h, i, scratch + static_cast<std::size_t>(worker) * scratch_floats());
    });
    convert_view(args.out, out);
    if (scores_.used) convert_view(args.scores, scores);
  }

  OnnxAttention a_;
  RoundedSpec rounded_;
  WorkspaceLayout book_;
  WorkspaceSlot mask_, offsets_, past_key_, past_value_, query_, key_, value_, out_, scores_;
  std::optional<Attention> native_;
};

class OnnxAttentionOp : public Operator {
 public:
  std::string_view name() const override { return "onnx.Attention"; }
  std::vector<ValueInfo> infer(const InferContext& node) const override { return infer_onnx_attention(node); }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    return std::make_unique<OnnxAttentionPlan>(node, read_onnx_attention(node));
  }
};

}  // namespace

std::unique_ptr<Operator> make_onnx_attention_op() { return std::make_unique<OnnxAttentionOp>(); }

}  // namespace headway
