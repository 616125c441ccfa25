// The layer: projections, core, output projection, on one workspace. Decides what is copied and what is used in place;
// the layout, the products and the core decide the rest.
#include "headway/multi_head_attention.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "ops/attention/check_args.h"
#include "ops/attention/run_checked.h"
#include "ops/base/workspace_layout.h"
#include "ops/matmul/matmul.h"
#include "ops/multi_head_attention/layer_zones.h"
#include "ops/multi_head_attention/mha_spec.h"
#include "ops/multi_head_attention/projected_layout.h"
#include "ops/multi_head_attention/projections.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr std::int64_t kCopyRows = 64;  // rows per copying task

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
  const std::int64_t blocks = ceil_div(from.dims[1], kCopyRows);
  threads.parallel_for(from.dims[0] * blocks, [&](std::int64_t task, int worker) {
    ProfileScope scope(profiler, worker, zone);
    const std::int64_t b = task / blocks;
    const std::int64_t begin = task % blocks * kCopyRows;
    const std::int64_t end = std::min(begin + kCopyRows, from.dims[1]);
    copy_elements(from.selected(0, b).sliced(0, begin, end), to.selected(0, b).sliced(0, begin, end));
    const auto element_bytes = static_cast<std::int64_t>(size_bytes(from.type));
    if (profiler) scope.add({.bytes = 2 * element_bytes * (end - begin) * from.dims[2]});
  });
}

}  // namespace

struct MultiHeadAttention::Impl {
  Impl(const MultiHeadAttentionSpec& completed, const MultiHeadAttentionWeights& weights,
       const AttentionOptions& options, const Impl* same);

  void lay_out_workspace();
  std::size_t workspace_bytes(int workers) const;
  /// The phases run one after the other and share what follows the layout's arrays.
  std::byte* phase_workspace(std::byte* workspace) const { return workspace + workspace_layout.bytes(); }

  void append_keys(std::byte* rows) const;
  AttentionArgs core_args(const MultiHeadAttentionArgs& args, std::byte* workspace) const;
  void write_output(const MultiHeadAttentionArgs& args, std::byte* workspace, const Threads& threads,
                    Profiler* profiler) const;

  MultiHeadAttentionSpec spec;
  std::int64_t context_width;  // Hq·Dv
  Attention core;
  ProjectedLayout layout;
  Projections projections;
  PlannedMatmul output;
  Tensor bias_k, bias_v;  // [Hkv·D], [Hkv·Dv]; empty when nothing is appended
  bool bias_kv;
  std::int64_t parameters = 0;
  WorkspaceLayout workspace_layout;
  WorkspaceArray<std::byte> projected, context, dense_out, dense_inputs[kInputs];  // elements of spec.type
};

MultiHeadAttention::Impl::Impl(const MultiHeadAttentionSpec& completed, const MultiHeadAttentionWeights& w,
                               const AttentionOptions& options, const Impl* same)
    : spec(completed),
      context_width(spec.num_heads * *spec.value_head_dim),
      core(core_spec(spec, static_cast<bool>(w.bias_k)), options),
      layout(decide_layout(spec, core.spec().key_len)),
      projections(spec, w, layout, same != nullptr ? &same->projections : nullptr),
      // The context stays dense, unlike the projected rows: only a dense operand gets oneDNN's blocked kernel.
      output({.rows = spec.batch * spec.query_len,
              .columns = spec.embed_dim,
              .depth = context_width,
              .x_stride = context_width,
              .y_stride = spec.embed_dim,
              .type = spec.type},
             w.output, w.output_bias, same != nullptr ? &same->output : nullptr),
      bias_kv(static_cast<bool>(w.bias_k)) {
  if (bias_kv) {
    bias_k = Tensor(spec.type, w.bias_k.dims);
    bias_v = Tensor(spec.type, w.bias_v.dims);
    copy_elements(w.bias_k, bias_k.view());
    copy_elements(w.bias_v, bias_v.view());
  }
  for (const ConstTensorView* tensor : {&w.query, &w.key, &w.value, &w.output, &w.query_bias, &w.key_bias,
                                        &w.value_bias, &w.output_bias, &w.bias_k, &w.bias_v}) {
    if (*tensor) parameters += tensor->count();
  }
  lay_out_workspace();
}

void MultiHeadAttention::Impl::lay_out_workspace() {
  const std::int64_t query_rows = spec.batch * spec.query_len;
  const std::int64_t key_rows = spec.batch * *spec.key_len;
  const auto elements = [&](std::int64_t count) {
    return workspace_layout.shared<std::byte>(count * static_cast<std::int64_t>(size_bytes(spec.type)));
  };
  projected = elements(layout.elements);
  context = elements(query_rows * context_width);
  dense_out = elements(query_rows * spec.embed_dim);
  dense_inputs[kQueryInput] = elements(query_rows * spec.embed_dim);
  dense_inputs[kKeyInput] = elements(projections.reads(kKeyInput) ? key_rows * *spec.kdim : 0);
  dense_inputs[kValueInput] = elements(projections.reads(kValueInput) ? key_rows * *spec.vdim : 0);
}

std::size_t MultiHeadAttention::Impl::workspace_bytes(int workers) const {
  return workspace_layout.bytes() + std::max({projections.workspace_bytes(workers), core.workspace_bytes(workers),
                                              output.workspace_bytes(workers)});
}

/// Rows Skv … of every batch entry: bias_k and bias_v, then zeros.
void MultiHeadAttention::Impl::append_keys(std::byte* rows) const {
  const auto append = [&](const ProjectedOperand& operand, const Tensor& learned, std::int64_t width) {
    const std::size_t element_bytes = size_bytes(spec.type);
    const std::size_t row_bytes = element_bytes * static_cast<std::size_t>(width);
    for (std::int64_t b = 0; b < spec.batch; ++b) {
      for (std::int64_t row = *spec.key_len; row < layout.key_rows; ++row) {
        const std::int64_t at = operand.offset + b * operand.batch_stride + row * operand.row_stride;
        std::byte* const to = rows + element_bytes * static_cast<std::size_t>(at);
        if (bias_kv && row == *spec.key_len) {
          std::memcpy(to, learned.view().data, row_bytes);
        } else {
          std::memset(to, 0, row_bytes);
        }
      }
    }
  };
  append(layout.key, bias_k, *spec.num_kv_heads * *spec.head_dim);
  append(layout.value, bias_v, *spec.num_kv_heads * *spec.value_head_dim);
}

AttentionArgs MultiHeadAttention::Impl::core_args(const MultiHeadAttentionArgs& args, std::byte* workspace) const {
  const auto heads = [&](const ProjectedOperand& at, std::int64_t count, std::int64_t rows, std::int64_t width) {
    return TensorView(projected.in(workspace) + static_cast<std::int64_t>(size_bytes(spec.type)) * at.offset, spec.type,
                      {spec.batch, count, rows, width}, {at.batch_stride, at.head_stride, at.row_stride, 1});
  };
  AttentionArgs core_arguments;
  core_arguments.query = heads(layout.query, spec.num_heads, spec.query_len, *spec.head_dim);
  core_arguments.key = heads(layout.key, *spec.num_kv_heads, layout.key_rows, *spec.head_dim);
  core_arguments.value = heads(layout.value, *spec.num_kv_heads, layout.key_rows, *spec.value_head_dim);
  core_arguments.mask = args.mask;
  core_arguments.key_mask = args.key_mask;
  core_arguments.key_lengths = args.key_lengths;
  core_arguments.offsets = args.offsets;
  core_arguments.out =
      TensorView(context.in(workspace), spec.type, {spec.batch, spec.query_len, spec.num_heads, *spec.value_head_dim})
          .permuted({0, 2, 1, 3});
  core_arguments.scores = args.scores;
  return core_arguments;
}

void MultiHeadAttention::Impl::write_output(const MultiHeadAttentionArgs& args, std::byte* workspace,
                                            const Threads& threads, Profiler* profiler) const {
  const bool in_place = is_one_matrix(args.out);
  std::byte* const out = in_place ? args.out.data : dense_out.in(workspace);
  output.run(context.in(workspace), out, phase_workspace(workspace), threads, profiler, kZoneOutput);
  if (!in_place) copy_rows(TensorView(out, spec.type, args.out.dims), args.out, threads, profiler, kZoneOutput);
}

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionSpec& spec, const MultiHeadAttentionWeights& weights,
                                       const AttentionOptions& options, const MultiHeadAttention* same_weights) try {
  const MultiHeadAttentionSpec completed = complete_spec(spec);
  check_weights(completed, weights);
  impl_ = std::make_unique<const Impl>(completed, weights, options,
                                       same_weights != nullptr ? same_weights->impl_.get() : nullptr);
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

MultiHeadAttention::~MultiHeadAttention() = default;
MultiHeadAttention::MultiHeadAttention(MultiHeadAttention&&) noexcept = default;
MultiHeadAttention& MultiHeadAttention::operator=(MultiHeadAttention&&) noexcept = default;

const MultiHeadAttentionSpec& MultiHeadAttention::spec() const { return impl_->spec; }
const Attention& MultiHeadAttention::core() const { return impl_->core; }
std::int64_t MultiHeadAttention::parameters() const { return impl_->parameters; }
std::size_t MultiHeadAttention::workspace_bytes(int workers) const { return impl_->workspace_bytes(workers); }

std::int64_t MultiHeadAttention::projection_flops() const {
  const MultiHeadAttentionSpec& s = impl_->spec;
  const std::int64_t query_and_output = s.query_len * s.num_heads * (*s.head_dim + *s.value_head_dim) * s.embed_dim;
  const std::int64_t key_and_value =
      *s.key_len * *s.num_kv_heads * (*s.head_dim * *s.kdim + *s.value_head_dim * *s.vdim);
  return 2 * s.batch * (query_and_output + key_and_value);
}

std::string MultiHeadAttention::explain() const {
  return impl_->projections.explain() + "\n" + impl_->core.explain() + "\noutput: " + impl_->output.explain();
}

void MultiHeadAttention::run(const MultiHeadAttentionArgs& args, std::byte* workspace, const Threads& threads,
                             Profiler* profiler) const try {
  const Impl& m = *impl_;
  check_args(m.spec, args);
  check_workspace(workspace, m.workspace_bytes(threads.workers()), threads.workers());
  const AttentionArgs core_arguments = m.core_args(args, workspace);
  check_args(m.core.spec(), core_arguments);
  const ConstTensorView* given[kInputs] = {&args.query, &args.key, &args.value};
  InputRows rows[kInputs];
  for (const Input input : {kQueryInput, kKeyInput, kValueInput}) {
    if (!m.projections.reads(input)) continue;
    const ConstTensorView& x = *given[input];
    if (m.projections.batches_apart() ? rows_are_dense(x) : is_one_matrix(x)) {
      rows[input] = {x.data, x.strides[0]};
      continue;
    }
    std::byte* const dense = m.dense_inputs[input].in(workspace);
    copy_rows(x, TensorView(dense, x.type, x.dims), threads, profiler, kZoneLayerPack);
    rows[input] = {dense, x.dims[1] * x.dims[2]};
  }
  std::byte* const phase = m.phase_workspace(workspace);
  m.append_keys(m.projected.in(workspace));
  m.projections.run(rows, m.projected.in(workspace), phase, threads, profiler);
  AttentionInternals::run_checked(m.core, core_arguments, phase, threads, profiler);
  m.write_output(args, workspace, threads, profiler);
} catch (const std::bad_alloc&) {
  throw_out_of_memory();
}

}  // namespace headway
