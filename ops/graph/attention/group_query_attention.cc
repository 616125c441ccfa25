// com.microsoft.GroupQueryAttention: causal attention of grouped heads that extends a cache, as decoders are exported.
// Inputs in ONNX Runtime's order, ? optional; B batch, S new tokens, P positions of the past, T of the present:
//   query [B, S, Hq·D], or with key and value behind it [B, S, (Hq + 2·Hkv)·D]; key?, value? [B, S, Hkv·D];
//   past_key?, past_value? [B, Hkv, P, D]; seqlens_k [B] i32: positions of each sequence, its new ones included, less
//   1; total_sequence_length i32: the largest of them; cos_cache?, sin_cache? [positions, r / 2], constants;
//   position_ids? [B, S]; attention_bias? [B, 1, S, total]; head_sink? [Hq]
//   → output [B, S, Hq·D], present_key? and present_value? [B, Hkv, T, D], T = max(P, total_sequence_length)
// Decides how the node becomes append() and CachedAttention. Where total_sequence_length does not follow from shapes, T
// is P + S; where the caller binds past and present to one buffer of P positions, T is P and nothing is copied.
#include <algorithm>
#include <limits>
#include <optional>

#include "headway/cached_attention.h"
#include "ops/base/layout.h"
#include "ops/base/numeric.h"
#include "ops/base/parallel_copy.h"
#include "ops/base/workspace_layout.h"
#include "ops/graph/attention/group_query_rule.h"
#include "ops/graph/operators.h"
#include "ops/graph/table_op.h"

namespace headway {
namespace {

using namespace group_query;  // NOLINT: the names of one operator

/// Of a constant [positions, r / 2], as f32.
std::vector<float> floats_of(const ConstTensorView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.count()));
  visit_type(view.type, [&](auto kind) {
    using T = decltype(kind);
    if constexpr (kIsFloat<T>) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = convert<float>(widen(view.as<T>()[i]));
    }
  });
  return values;
}

std::optional<RotaryTable> rotary_of(const NodeContext& node) {
  if (!has_input(node, kCos)) return std::nullopt;
  for (const std::size_t i : {kCos, kSin}) {
    if (!node.constants[i])
      fail(ErrorCode::kUnsupported, kOp, ' ', i == kCos ? "cos_cache" : "sin_cache",
           " is computed, expected a constant");
  }
  const std::vector<float> cos = floats_of(node.constants[kCos]), sin = floats_of(node.constants[kSin]);
  const Dims& dims = node.constants[kCos].dims;
  return RotaryTable(view_of(cos.data(), dims), view_of(sin.data(), dims),
                     node.attributes.integer("rotary_interleaved", 0) != 0);
}

class GroupQueryAttentionPlan : public NodePlan {
 public:
  GroupQueryAttentionPlan(const NodeContext& node, const Sizes& s)
      : batch_(s.batch.factor),
        tokens_(s.tokens.factor),
        head_dim_(s.head_dim.factor),
        past_(s.past.factor),
        present_(s.present.factor),
        heads_(node.attributes.integer("num_heads")),
        kv_heads_(node.attributes.integer("kv_num_heads")),
        bias_width_(has_input(node, kBias) ? node.inputs[kBias].dims[3] : 0),
        has_past_(has_input(node, kPastKey)),
        smooth_(node.attributes.integer("smooth_softmax", 0) != 0),
        rotary_(rotary_of(node)),
        attention_(spec_of(node)) {
    const DataType type = node.inputs[kQuery].type;
    query_ = book(&layout_, rotary_.has_value(), type, {batch_ * tokens_, heads_, head_dim_});
    present_key_ = book(&layout_, node.num_outputs <= static_cast<int>(kPresentKey), type, present_dims());
    present_value_ = book(&layout_, node.num_outputs <= static_cast<int>(kPresentValue), type, present_dims());
    sinks_ = book(&layout_, smooth_ || has_input(node, kSink), DataType::kF32, {heads_});
    const bool biased = has_input(node, kBias);
    bias_ = book(&layout_, biased && (type != DataType::kF32 || tokens_ > 1), DataType::kF32,
                 {batch_ * tokens_, bias_width_});
    padding_ = book(&layout_, !biased && tokens_ > 1, DataType::kU8, {batch_ * tokens_, ceil_div(tokens_, 8)});
    starts_ = layout_.shared<std::int32_t>(batch_ + 1);
    lengths_ = layout_.shared<std::int32_t>(batch_);
    positions_ = layout_.shared<std::int32_t>(batch_ * tokens_);
  }

  std::size_t workspace_bytes(int workers) const override {
    return layout_.bytes() + attention_.workspace_bytes(workers);
  }
  std::string explain() const override { return attention_.explain(); }
  InputUse use(std::size_t input) const override {
    return input == kCos || input == kSin ? InputUse::kNothing : InputUse::kElements;
  }
  /// seqlens_k says what of a past is there, so that it may be a buffer with room for what comes.
  ExtendedInput extended_input(std::size_t output) const override {
    const bool present = has_past_ && (output == kPresentKey || output == kPresentValue);
    return {present ? static_cast<int>(output == kPresentKey ? kPastKey : kPastValue) : -1, true};
  }

  void run(const RunContext& context, Inputs inputs, Outputs outputs) const override {
    std::byte* const memory = context.workspace;
    const std::int64_t total = integer_at_run(kOp, inputs[kTotal], "total_sequence_length");
    const TensorView key = present(context, outputs, kPresentKey, present_key_);
    const TensorView value = present(context, outputs, kPresentValue, present_value_);
    const std::int64_t room = std::min(key.dims[2], value.dims[2]);
    require(total >= tokens_ && total <= room, kOp, " total_sequence_length is ", total, ", expected ", tokens_, " to ",
            room);
    require(bias_width_ == 0 || bias_width_ >= total, kOp, " attention_bias is for ", bias_width_,
            " keys, expected total_sequence_length = ", total);
    const bool padded = read_lengths(inputs[kLengths], total, room, memory);

    AppendArgs rows;
    rows.query_starts = view_of(std::as_const(*this).starts_.in(memory), {batch_ + 1});
    rows.lengths = view_of(lengths_.in(memory), {batch_});
    ConstTensorView query = part(inputs, kQuery, heads_);
    rows.key = part(inputs, kKey, kv_heads_);
    rows.value = part(inputs, kValue, kv_heads_);
    if (rotary_) {
      const TensorView turned = query_.in(memory);
      parallel_copy(query, turned, context.threads);
      query = rows.query = turned;
      rows.rotary = &*rotary_;
      if (const ConstTensorView given = optional_input(inputs, kPositions))
        rows.positions = positions(given, total == tokens_, memory);
    }
    KvCache cache;
    cache.key = key.sliced(2, 0, room);
    cache.value = value.sliced(2, 0, room);
    keep_past(context, optional_input(inputs, kPastKey), key);
    keep_past(context, optional_input(inputs, kPastValue), value);
    append(rows, cache, context.threads);

    CachedAttentionArgs args;
    args.query = query;
    args.query_starts = rows.query_starts;
    args.lengths = rows.lengths;
    args.cache = cache;
    if (sinks_.used) args.sinks = sinks(optional_input(inputs, kSink), memory);
    const ConstTensorView lengths = padded ? inputs[kLengths] : ConstTensorView();
    if (const ConstTensorView given = optional_input(inputs, kBias)) {
      args.mask = bias(context, given, lengths);
    } else if (padded) {
      args.mask = padding(context, lengths);
    }
    args.out = outputs[kOut].reshaped({batch_ * tokens_, heads_, head_dim_});
    attention_.run(args, memory + layout_.bytes(), context.threads, context.profiler);
  }

 private:
  CachedAttentionSpec spec_of(const NodeContext& node) const {
    CachedAttentionSpec spec;
    spec.type = spec.cache_type = node.inputs[kQuery].type;
    spec.num_heads = heads_;
    spec.num_kv_heads = kv_heads_;
    spec.head_dim = head_dim_;
    const float scale = node.attributes.real("scale", 0);
    if (scale != 0) spec.scale = scale;
    spec.softcap = node.attributes.real("softcap", 0);
    const std::int64_t window = node.attributes.integer("local_window_size", -1);
    if (window > 0) spec.window.left = window - 1;
    spec.max_batch = std::max<std::int64_t>(batch_, 1);
    spec.max_tokens = std::max<std::int64_t>(batch_ * tokens_, 1);
    spec.max_cache = present_;
    return spec;
  }
  Dims present_dims() const { return {batch_, kv_heads_, present_, head_dim_}; }

  /// Heads of query, key or value as [B·S, heads, D], from an input of their own or from the packed one.
  ConstTensorView part(Inputs inputs, std::size_t which, std::int64_t heads) const {
    const bool packed = !optional_input(inputs, kKey);
    const ConstTensorView& from = packed ? inputs[kQuery] : inputs[which];
    const std::int64_t all = packed ? heads_ + 2 * kv_heads_ : heads;
    const std::int64_t first = !packed || which == kQuery ? 0 : heads_ + (which == kKey ? 0 : kv_heads_);
    return from.reshaped({batch_ * tokens_, all, head_dim_}).sliced(1, first, first + heads);
  }

  /// A first call, whose total is its own tokens, has no past, and sequences that are shorter have padding behind them:
  /// true when there is one. In a later call every sequence has its new tokens at its end.
  bool read_lengths(const ConstTensorView& given, std::int64_t total, std::int64_t room, std::byte* memory) const {
    bool padded = false;
    for (std::int64_t b = 0; b < batch_; ++b) {
      const std::int64_t length = std::int64_t{given.as<std::int32_t>()[b]} + 1;
      const bool first = total == tokens_;
      const std::int64_t least = first ? 1 : tokens_, most = first ? tokens_ : std::min(past_ + tokens_, room);
      require(length >= least && length <= most, kOp, " seqlens_k[", b, "] is ", length - 1, ", expected ", least - 1,
              " to ", most - 1);
      padded = padded || (first && length < tokens_);
      lengths_.in(memory)[b] = static_cast<std::int32_t>(first ? tokens_ : length);
      starts_.in(memory)[b] = static_cast<std::int32_t>(b * tokens_);
    }
    starts_.in(memory)[batch_] = static_cast<std::int32_t>(batch_ * tokens_);
    return padded;
  }

  /// In a first call all sequences go on from the first element, as ONNX Runtime has it.
  ConstTensorView positions(const ConstTensorView& given, bool first, std::byte* memory) const {
    std::int32_t* const to = positions_.in(memory);
    for (std::int64_t t = 0; t < batch_ * tokens_; ++t) {
      const std::int64_t* const ids = given.as<std::int64_t>();
      const std::int64_t position = first ? ids[0] + t % tokens_ : ids[t];
      require(position >= 0 && position < rotary_->positions(), kOp, " position_ids holds ", position,
              ", expected 0 to ", rotary_->positions() - 1);
      to[t] = static_cast<std::int32_t>(position);
    }
    return view_of(std::as_const(to), {batch_ * tokens_});
  }

  TensorView present(const RunContext& context, Outputs outputs, std::size_t output, const WorkspaceSlot& slot) const {
    return output < outputs.size() && outputs[output] ? outputs[output] : slot.in(context.workspace);
  }

  /// The present with the past in it, unless it lies over the past; behind that it is 0 until it is written.
  void keep_past(const RunContext& context, const ConstTensorView& past, const TensorView& present) const {
    if (past && past.data != present.data) parallel_copy(past, present.sliced(2, 0, past_), context.threads);
    const std::int64_t element = static_cast<std::int64_t>(size_bytes(present.type));
    for (std::int64_t head = 0; head < batch_ * kv_heads_; ++head) {
      const std::int64_t at = head / kv_heads_ * present.strides[0] + head % kv_heads_ * present.strides[1];
      for (std::int64_t row = past_; row < present.dims[2]; ++row) {
        std::fill_n(present.data + (at + row * present.strides[2]) * element, head_dim_ * element, std::byte{0});
      }
    }
  }

  ConstTensorView sinks(const ConstTensorView& given, std::byte* memory) const {
    const TensorView to = sinks_.in(memory);
    std::fill_n(to.as<float>(), heads_, 0.0f);
    if (given) convert_floats(given, 0, heads_, to.as<float>());
    return to;
  }

  /// As f32; behind the end of a sequence −inf, where `lengths` is given.
  ConstTensorView bias(const RunContext& context, const ConstTensorView& given, const ConstTensorView& lengths) const {
    const Dims dims = {batch_ * tokens_, bias_width_};
    if (given.type == DataType::kF32 && !lengths) return given.reshaped(dims);
    const TensorView to = bias_.in(context.workspace);
    context.threads.parallel_for(dims[0], [&](std::int64_t row, int) {
      float* const values = to.as<float>() + row * bias_width_;
      convert_floats(given, row * bias_width_, bias_width_, values);
      if (!lengths) return;
      const std::int64_t length = std::int64_t{lengths.as<std::int32_t>()[row / tokens_]} + 1;
      std::fill(values + length, values + bias_width_, -std::numeric_limits<float>::infinity());
    });
    return to;
  }

  /// By bits: what lies behind the end of a sequence is hidden from its padding too.
  ConstTensorView padding(const RunContext& context, const ConstTensorView& lengths) const {
    const TensorView to = padding_.in(context.workspace);
    const std::int64_t bytes = to.dims[1];
    context.threads.parallel_for(to.dims[0], [&](std::int64_t row, int) {
      const std::int64_t length = std::int64_t{lengths.as<std::int32_t>()[row / tokens_]} + 1;
      for (std::int64_t i = 0; i < bytes; ++i) {
        const std::int64_t seen = std::clamp<std::int64_t>(length - 8 * i, 0, 8);
        to.as<std::uint8_t>()[row * bytes + i] = static_cast<std::uint8_t>((1 << seen) - 1);
      }
    });
    return to;
  }

  /// Elements [first, first + count) of a contiguous tensor as f32.
  static void convert_floats(const ConstTensorView& from, std::int64_t first, std::int64_t count, float* to) {
    visit_type(from.type, [&](auto kind) {
      using T = decltype(kind);
      if constexpr (kIsFloat<T>) {
        const T* const data = from.as<T>() + first;
        for (std::int64_t i = 0; i < count; ++i) to[i] = convert<float>(widen(data[i]));
      }
    });
  }

  std::int64_t batch_, tokens_, head_dim_, past_, present_, heads_, kv_heads_, bias_width_;
  bool has_past_, smooth_;
  std::optional<RotaryTable> rotary_;
  CachedAttention attention_;
  WorkspaceLayout layout_;
  WorkspaceSlot query_, present_key_, present_value_, sinks_, bias_, padding_;
  WorkspaceArray<std::int32_t> starts_, lengths_, positions_;
};

class GroupQueryAttentionOp : public Operator {
 public:
  std::string_view name() const override { return kOp; }
  std::vector<ValueInfo> infer(const InferContext& node) const override {
    const std::optional<Sizes> sizes = sizes_of(node);
    std::vector<ValueInfo> outputs(kOutputs, ValueInfo{node.inputs[kQuery].type, {}, {}});
    if (sizes) {
      const std::int64_t heads = node.attributes.integer("num_heads"), kv = node.attributes.integer("kv_num_heads");
      outputs[kOut].dims = DimList{sizes->batch, sizes->tokens, sizes->head_dim * Dim(heads)};
      outputs[kPresentKey].dims = outputs[kPresentValue].dims =
          DimList{sizes->batch, kv, sizes->present, sizes->head_dim};
    }
    outputs.resize(static_cast<std::size_t>(node.num_outputs));
    return outputs;
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo> outputs) const override {
    // The rule knew what the total follows from, a plan sees numbers alone.
    std::optional<Dim> present;
    for (const std::size_t i : {kPresentKey, kPresentValue}) {
      if (i < outputs.size() && outputs[i].present) present = Dim(outputs[i].dims[2]);
    }
    const PlannedInputs planned(node);
    return std::make_unique<GroupQueryAttentionPlan>(node, sizes_of(planned.context(), present).value());
  }
};

}  // namespace

std::unique_ptr<Operator> make_group_query_attention_op() { return std::make_unique<GroupQueryAttentionOp>(); }

}  // namespace headway
