// The layer: projections, core, output projection, on one workspace. Decides what is copied and what is used in place;
// the layout, the products and the core decide the rest.
#include "headway/multi_head_attention.h"

#include <algorithm>
#include <string>

#include "ops/matmul/matmul.h"
#include "ops/multi_head_attention/layer_zones.h"
#include "ops/multi_head_attention/mha_spec.h"
#include "ops/multi_head_attention/projected_layout.h"
#include "ops/multi_head_attention/projections.h"

namespace headway {
namespace {

constexpr std::int64_t kCopyRows = 64;  // rows of one copying task

std::size_t float_bytes(std::int64_t floats) {
  return (static_cast<std::size_t>(floats) * sizeof(float) + 63) / 64 * 64;
}

/// True when every row of [B, S, W] is dense and the rows of one batch entry follow each other.
template <class View>
bool rows_are_dense(const View& view) {
  const std::int64_t width = view.dims[2];
  return (width <= 1 || view.strides[2] == 1) && (view.dims[1] <= 1 || view.strides[1] == width);
}

template <class View>
bool is_one_matrix(const View& view) {
  return rows_are_dense(view) && (view.dims[0] <= 1 || view.strides[0] == view.dims[1] * view.dims[2]);
}

/// Copies [B, S, W] between any strides, rows in parallel.
void copy_rows(const ConstTensorView& from, const TensorView& to, const Threads& threads, Profiler* profiler,
               const Zone& zone) {
  const std::int64_t blocks = (from.dims[1] + kCopyRows - 1) / kCopyRows;
  threads.parallel_for(from.dims[0] * blocks, [&](std::int64_t task, int worker) {
    ProfileScope scope(profiler, worker, zone);
    const std::int64_t b = task / blocks;
    const std::int64_t begin = task % blocks * kCopyRows;
    const std::int64_t end = std::min(begin + kCopyRows, from.dims[1]);
    copy(from.selected(0, b).sliced(0, begin, end), to.selected(0, b).sliced(0, begin, end));
    if (profiler) scope.add({.bytes = 8 * (end - begin) * from.dims[2]});
  });
}

TensorView matrix_view(float* data, const Dims& dims) { return view_of(data, dims); }

}  // namespace

struct MultiHeadAttention::Impl {
  Impl(const MultiHeadAttentionSpec& completed, const MultiHeadAttentionWeights& weights,
       const AttentionOptions& options);

  /// Parts of the workspace, in bytes from its start; see workspace().
  struct Workspace {
    std::size_t projected, context, out, inputs[kInputs], phase, end;
  };
  Workspace workspace(int workers) const;

  void append_keys(float* projected) const;
  AttentionArgs core_args(const MultiHeadAttentionArgs& args, float* projected, float* context) const;
  void write_output(const float* context, const MultiHeadAttentionArgs& args, std::byte* memory, const Workspace& at,
                    const Threads& threads, Profiler* profiler) const;

  MultiHeadAttentionSpec spec;
  std::int64_t context_width;  // Hq·Dv
  ProjectedLayout layout;
  Projections projections;
  Attention core;
  PackedMatmul output;
  Tensor bias_k, bias_v;  // [Hkv·D], [Hkv·Dv]; empty when nothing is appended
  bool bias_kv;
  std::int64_t parameters = 0;
};

MultiHeadAttention::Impl::Impl(const MultiHeadAttentionSpec& completed, const MultiHeadAttentionWeights& w,
                               const AttentionOptions& options)
    : spec(completed),
      context_width(spec.num_heads * spec.value_head_dim),
      layout(decide_layout(spec)),
      projections(spec, w, layout),
      core(spec.attention, options),
      // The context stays dense, unlike the projected rows: only a dense operand gets oneDNN's blocked kernel.
      output({.rows = spec.batch * spec.query_len,
              .columns = spec.embed_dim,
              .depth = context_width,
              .x_stride = context_width,
              .y_stride = spec.embed_dim},
             w.output, w.output_bias),
      bias_kv(static_cast<bool>(w.bias_k)) {
  if (bias_kv) {
    bias_k = Tensor(DataType::kF32, w.bias_k.dims);
    bias_v = Tensor(DataType::kF32, w.bias_v.dims);
    copy(w.bias_k, bias_k.view());
    copy(w.bias_v, bias_v.view());
  }
  for (const ConstTensorView* part : {&w.query, &w.key, &w.value, &w.output, &w.query_bias, &w.key_bias, &w.value_bias,
                                      &w.output_bias, &w.bias_k, &w.bias_v}) {
    if (*part) parameters += part->count();
  }
}

MultiHeadAttention::Impl::Workspace MultiHeadAttention::Impl::workspace(int workers) const {
  const std::int64_t query_rows = spec.batch * spec.query_len;
  const std::int64_t key_rows = spec.batch * spec.key_len;
  Workspace at{};
  std::size_t end = 0;
  const auto take = [&end](std::size_t bytes) {
    const std::size_t begin = end;
    end += bytes;
    return begin;
  };
  at.projected = take(float_bytes(layout.floats));
  at.context = take(float_bytes(query_rows * context_width));
  at.out = take(float_bytes(query_rows * spec.embed_dim));
  at.inputs[kQueryInput] = take(float_bytes(query_rows * spec.embed_dim));
  at.inputs[kKeyInput] = take(projections.reads(kKeyInput) ? float_bytes(key_rows * spec.kdim) : 0);
  at.inputs[kValueInput] = take(projections.reads(kValueInput) ? float_bytes(key_rows * spec.vdim) : 0);
  // The phases run one after the other and share what follows.
  at.phase = take(
      std::max({projections.workspace_bytes(workers), core.workspace_bytes(workers), output.workspace_bytes(workers)}));
  at.end = end;
  return at;
}

/// Rows Skv … of every batch entry: bias_k and bias_v, then zeros.
void MultiHeadAttention::Impl::append_keys(float* projected) const {
  const std::int64_t k_width = spec.num_kv_heads * spec.head_dim;
  const std::int64_t v_width = spec.num_kv_heads * spec.value_head_dim;
  for (std::int64_t b = 0; b < spec.batch; ++b) {
    for (std::int64_t row = spec.key_len; row < spec.attention.key_len; ++row) {
      float* k = projected + layout.key.offset + b * layout.key.batch_stride + row * layout.key.row_stride;
      float* v = projected + layout.value.offset + b * layout.value.batch_stride + row * layout.value.row_stride;
      const bool learned = bias_kv && row == spec.key_len;
      for (std::int64_t d = 0; d < k_width; ++d) k[d] = learned ? bias_k.data<float>()[d] : 0.0f;
      for (std::int64_t d = 0; d < v_width; ++d) v[d] = learned ? bias_v.data<float>()[d] : 0.0f;
    }
  }
}

AttentionArgs MultiHeadAttention::Impl::core_args(const MultiHeadAttentionArgs& args, float* projected,
                                                  float* context) const {
  const auto heads = [&](const ProjectedOperand& at, std::int64_t count, std::int64_t rows, std::int64_t width) {
    return TensorView(reinterpret_cast<std::byte*>(projected + at.offset), DataType::kF32,
                      {spec.batch, count, rows, width}, {at.batch_stride, at.head_stride, at.row_stride, 1});
  };
  AttentionArgs core_arguments;
  core_arguments.query = heads(layout.query, spec.num_heads, spec.query_len, spec.head_dim);
  core_arguments.key = heads(layout.key, spec.num_kv_heads, spec.attention.key_len, spec.head_dim);
  core_arguments.value = heads(layout.value, spec.num_kv_heads, spec.attention.key_len, spec.value_head_dim);
  core_arguments.mask = args.mask;
  core_arguments.key_mask = args.key_mask;
  core_arguments.key_lengths = args.key_lengths;
  core_arguments.offsets = args.offsets;
  core_arguments.out =
      matrix_view(context, {spec.batch, spec.query_len, spec.num_heads, spec.value_head_dim}).permuted({0, 2, 1, 3});
  core_arguments.scores = args.scores;
  return core_arguments;
}

void MultiHeadAttention::Impl::write_output(const float* context, const MultiHeadAttentionArgs& args, std::byte* memory,
                                            const Workspace& at, const Threads& threads, Profiler* profiler) const {
  const bool in_place = is_one_matrix(args.out);
  float* out = in_place ? args.out.as<float>() : reinterpret_cast<float*>(memory + at.out);
  output.run(context, out, memory + at.phase, threads, profiler, kZoneOutput);
  if (!in_place) copy_rows(matrix_view(out, args.out.dims), args.out, threads, profiler, kZoneOutput);
}

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionSpec& spec, const MultiHeadAttentionWeights& weights,
                                       const AttentionOptions& options) {
  const MultiHeadAttentionSpec completed = complete_spec(spec, static_cast<bool>(weights.bias_k));
  check_weights(completed, weights);
  impl_ = std::make_unique<const Impl>(completed, weights, options);
}

MultiHeadAttention::~MultiHeadAttention() = default;
MultiHeadAttention::MultiHeadAttention(MultiHeadAttention&&) noexcept = default;

const MultiHeadAttentionSpec& MultiHeadAttention::spec() const { return impl_->spec; }
const Attention& MultiHeadAttention::core() const { return impl_->core; }
std::int64_t MultiHeadAttention::parameters() const { return impl_->parameters; }
std::size_t MultiHeadAttention::workspace_bytes(int workers) const { return impl_->workspace(workers).end; }

std::int64_t MultiHeadAttention::projection_flops() const {
  const MultiHeadAttentionSpec& s = impl_->spec;
  const std::int64_t query_and_output = s.query_len * s.num_heads * (s.head_dim + s.value_head_dim) * s.embed_dim;
  const std::int64_t key_and_value = s.key_len * s.num_kv_heads * (s.head_dim * s.kdim + s.value_head_dim * s.vdim);
  return 2 * s.batch * (query_and_output + key_and_value);
}

std::string MultiHeadAttention::explain() const {
  return impl_->projections.explain() + "\n" + impl_->core.explain() + "\noutput: " + impl_->output.explain();
}

void MultiHeadAttention::run(const MultiHeadAttentionArgs& args, std::byte* workspace, const Threads& threads,
                             Profiler* profiler) const {
  const Impl& m = *impl_;
  check_args(m.spec, args);
  const Impl::Workspace at = m.workspace(threads.workers());
  require(workspace != nullptr || at.end == 0, "workspace is null, expected ", at.end, " bytes");
  const ConstTensorView* given[kInputs] = {&args.query, &args.key, &args.value};
  InputRows rows[kInputs];
  for (const Input input : {kQueryInput, kKeyInput, kValueInput}) {
    if (!m.projections.reads(input)) continue;
    const ConstTensorView& x = *given[input];
    if (m.projections.batches_apart() ? rows_are_dense(x) : is_one_matrix(x)) {
      rows[input] = {x.as<float>(), x.strides[0]};
      continue;
    }
    auto* packed = reinterpret_cast<float*>(workspace + at.inputs[input]);
    copy_rows(x, matrix_view(packed, x.dims), threads, profiler, kZoneLayerPack);
    rows[input] = {packed, x.dims[1] * x.dims[2]};
  }
  auto* projected = reinterpret_cast<float*>(workspace + at.projected);
  auto* context = reinterpret_cast<float*>(workspace + at.context);
  m.append_keys(projected);
  m.projections.run(rows, projected, workspace + at.phase, threads, profiler);
  m.core.run(m.core_args(args, projected, context), workspace + at.phase, threads, profiler);
  m.write_output(context, args, workspace, at, threads, profiler);
}

}  // namespace headway
