// The layer over a cache: one product for query, key and value, whose columns are what append() and CachedAttention
// take as they lie; the context replaces the query where it is as wide. Decides the order of steps and the workspace.
#include "headway/cached_multi_head_attention.h"

#include <algorithm>
#include <vector>

#include "ops/attention/check_memory.h"
#include "ops/base/layout.h"
#include "ops/base/narrow.h"
#include "ops/base/workspace_layout.h"
#include "ops/cached_attention/append.h"
#include "ops/cached_attention/check_args.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/memory_overlap.h"

namespace headway {
namespace {

/// Columns of the projected rows.
struct Columns {
  explicit Columns(const CachedAttentionSpec& a)
      : query(a.num_heads * a.head_dim),
        key(*a.num_kv_heads * a.head_dim),
        value(*a.num_kv_heads * *a.value_head_dim),
        context(a.num_heads * *a.value_head_dim) {}

  std::int64_t projected() const { return query + key + value; }

  std::int64_t query, key, value;
  std::int64_t context;
};

void check_projection(const char* name, const ConstTensorView& weight, const ConstTensorView& bias, std::int64_t rows,
                      std::int64_t columns) {
  const Dims dims = {rows, columns};
  const bool half = weight.type == DataType::kBF16;
  require(half || weight.type == DataType::kF32, name, " weight is ", type_name(weight.type), ", expected f32 or bf16");
  require(weight.dims == dims, name, " weight has dims ", weight.dims, ", expected ", dims);
  require_memory(name, weight);
  if (!bias) return;
  require(bias.type == DataType::kF32 || bias.type == weight.type, name, " bias is ", type_name(bias.type),
          ", expected ", half ? "f32 or bf16" : "f32");
  require(bias.dims == Dims{rows}, name, " bias has dims ", bias.dims, ", expected ", Dims{rows});
}

void check_norm_weight(const char* name, const HeadNorm& norm, const ConstTensorView& weight, std::int64_t heads,
                       std::int64_t head_dim) {
  if (!norm.enabled || !weight) return;
  const Dims dims = {norm.across_heads ? heads * head_dim : head_dim};
  require(weight.type == DataType::kF32, name, " is ", type_name(weight.type), ", expected f32");
  require(weight.dims == dims, name, " has dims ", weight.dims, ", expected ", dims);
  require_memory(name, weight);
}

/// Three weights [_, E] of one type and their biases below each other; a bias that is absent is 0 beside others.
class Stacked {
 public:
  Stacked(const CachedMultiHeadAttentionWeights& w, std::int64_t width)
      : rows_(w.query.dims[0] + w.key.dims[0] + w.value.dims[0]),
        weight_(w.query.type, {rows_, width}),
        bias_(static_cast<std::size_t>(rows_)) {
    biased_ = w.query_bias || w.key_bias || w.value_bias;
    std::int64_t row = 0;
    for (const auto& [weight, bias] :
         {std::pair(w.query, w.query_bias), {w.key, w.key_bias}, {w.value, w.value_bias}}) {
      const std::int64_t rows = weight.dims[0];
      copy_elements(weight, weight_.view().sliced(0, row, row + rows));
      if (bias) convert_view(bias, view_of(bias_.data() + row, Dims{rows}));
      row += rows;
    }
  }
  PackedMatmulWeights weights() const {
    PackedMatmulWeights result;
    result.weight = weight_.view();
    if (biased_) result.bias = view_of(bias_.data(), {rows_});
    return result;
  }

 private:
  std::int64_t rows_;
  Tensor weight_;
  std::vector<float> bias_;
  bool biased_ = false;
};

/// A weight of the norm in memory of our own, where there is one.
std::vector<float> copied(bool enabled, ConstTensorView* weight) {
  if (!enabled || !*weight) return {};
  std::vector<float> values(static_cast<std::size_t>(weight->count()));
  copy_elements(*weight, view_of(values.data(), weight->dims));
  *weight = view_of(std::as_const(values).data(), weight->dims);
  return values;
}

}  // namespace

struct CachedMultiHeadAttention::Impl {
  Impl(const CachedMultiHeadAttentionSpec& given, const CachedMultiHeadAttentionWeights& weights)
      : spec(given),
        attention(given.attention),
        columns(attention.spec()),
        query_norm(copied(spec.norm.enabled, &spec.norm.query_weight)),
        key_norm(copied(spec.norm.enabled, &spec.norm.key_weight)),
        projection({columns.projected(), spec.embed_dim}, Stacked(weights, spec.embed_dim).weights()),
        output({spec.embed_dim, columns.context}, {weights.output, weights.output_bias, {}, {}}) {
    spec.attention = attention.spec();
    const std::int64_t tokens = spec.attention.max_tokens;
    projected = layout.shared<float>(tokens * columns.projected());
    in_place = columns.context == columns.query;
    if (!in_place) context = layout.shared<float>(tokens * columns.context);
  }

  /// Columns [first, first + heads · width) of the projected rows as heads.
  TensorView heads_of(std::byte* memory, std::int64_t first, std::int64_t tokens, std::int64_t heads,
                      std::int64_t width) const {
    float* const at = projected.in(memory) + first;
    return TensorView(reinterpret_cast<std::byte*>(at), DataType::kF32, {tokens, heads, width},
                      {columns.projected(), width, 1});
  }

  /// The tensors of the steps of one call.
  struct Steps {
    PackedMatmulArgs projection;
    AppendArgs append;
    CachedAttentionArgs attention;
    PackedMatmulArgs output;
  };
  Steps steps(const CachedMultiHeadAttentionArgs& args, std::byte* memory) const;
  void check(const CachedMultiHeadAttentionArgs& args) const;

  CachedMultiHeadAttentionSpec spec;
  CachedAttention attention;
  Columns columns;
  std::vector<float> query_norm, key_norm;
  PackedMatmul projection, output;
  bool in_place;
  WorkspaceLayout layout;
  WorkspaceArray<float> projected, context;
};

CachedMultiHeadAttention::CachedMultiHeadAttention(const CachedMultiHeadAttentionSpec& spec,
                                                   const CachedMultiHeadAttentionWeights& weights) {
  require(spec.embed_dim > 0, "embed_dim is ", spec.embed_dim, ", expected at least 1");
  if (spec.attention.type != DataType::kF32) {
    fail(ErrorCode::kUnsupported, "attention.type is ", type_name(spec.attention.type), ", expected f32");
  }
  const CachedAttentionSpec attention = CachedAttention(spec.attention).spec();
  const Columns columns(attention);
  check_projection("query", weights.query, weights.query_bias, columns.query, spec.embed_dim);
  check_projection("key", weights.key, weights.key_bias, columns.key, spec.embed_dim);
  check_projection("value", weights.value, weights.value_bias, columns.value, spec.embed_dim);
  for (const auto& [name, weight] : {std::pair("key", weights.key), {"value", weights.value}}) {
    require(weight.type == weights.query.type, name, " weight is ", type_name(weight.type), ", expected ",
            type_name(weights.query.type), " as query's");
  }
  check_projection("output", weights.output, weights.output_bias, spec.embed_dim, columns.context);
  check_norm_weight("norm.query_weight", spec.norm, spec.norm.query_weight, attention.num_heads, attention.head_dim);
  check_norm_weight("norm.key_weight", spec.norm, spec.norm.key_weight, *attention.num_kv_heads, attention.head_dim);
  require(spec.rotary == nullptr || spec.rotary->rotary_dim() <= attention.head_dim, "rotary turns ",
          spec.rotary == nullptr ? 0 : spec.rotary->rotary_dim(),
          " dimensions, expected at most head_dim = ", attention.head_dim);
  impl_ = translate_bad_alloc([&] { return std::make_unique<const Impl>(spec, weights); });
}

CachedMultiHeadAttention::~CachedMultiHeadAttention() = default;
CachedMultiHeadAttention::CachedMultiHeadAttention(CachedMultiHeadAttention&&) noexcept = default;
CachedMultiHeadAttention& CachedMultiHeadAttention::operator=(CachedMultiHeadAttention&&) noexcept = default;

const CachedMultiHeadAttentionSpec& CachedMultiHeadAttention::spec() const { return impl_->spec; }

std::string CachedMultiHeadAttention::explain() const {
  return "query, key, value: " + impl_->projection.explain() + "\nattention: " + impl_->attention.explain() +
         "\noutput: " + impl_->output.explain();
}

std::size_t CachedMultiHeadAttention::workspace_bytes(int workers) const {
  return impl_->layout.bytes() +
         std::max({impl_->projection.workspace_bytes(workers), impl_->attention.workspace_bytes(workers),
                   impl_->output.workspace_bytes(workers)});
}

CachedMultiHeadAttention::Impl::Steps CachedMultiHeadAttention::Impl::steps(const CachedMultiHeadAttentionArgs& args,
                                                                            std::byte* memory) const {
  const CachedAttentionSpec& a = spec.attention;
  const std::int64_t tokens = args.x.dims[0], width = columns.projected();
  Steps s;
  s.projection.x = args.x;
  s.projection.out = view_of(projected.in(memory), {tokens, width});

  s.append.key = heads_of(memory, columns.query, tokens, *a.num_kv_heads, a.head_dim);
  s.append.value = heads_of(memory, columns.query + columns.key, tokens, *a.num_kv_heads, *a.value_head_dim);
  s.append.query = heads_of(memory, 0, tokens, a.num_heads, a.head_dim);
  s.append.query_starts = args.attention.query_starts;
  s.append.lengths = args.attention.lengths;
  s.append.slot_mapping = args.slot_mapping;
  s.append.positions = args.positions;
  s.append.rotary = spec.rotary;
  s.append.norm = spec.norm;

  s.attention = args.attention;
  s.attention.cache = args.cache;
  s.attention.query = s.append.query;
  s.attention.out = in_place ? s.append.query : view_of(context.in(memory), {tokens, a.num_heads, *a.value_head_dim});

  const std::int64_t row = in_place ? width : columns.context;
  s.output.x = ConstTensorView(s.attention.out.data, DataType::kF32, {tokens, columns.context}, {row, 1});
  s.output.residual = args.residual;
  s.output.out = args.out;
  return s;
}

/// Everything that the steps would find, before the first of them.
void CachedMultiHeadAttention::Impl::check(const CachedMultiHeadAttentionArgs& args) const {
  require(args.x.rank() == 2, "x has rank ", args.x.rank(), ", expected 2");
  require(!args.attention.query && !args.attention.out, "attention.query and attention.out are of the layer's own");
  require(!args.attention.cache.key, "attention.cache is given, expected cache alone");
}

void CachedMultiHeadAttention::run(const CachedMultiHeadAttentionArgs& args, std::byte* workspace,
                                   const Threads& threads, Profiler* profiler) const {
  impl_->check(args);
  const std::size_t bytes = workspace_bytes(threads.workers());
  require(workspace != nullptr || bytes == 0, "workspace is null, expected ", bytes, " bytes");
  const std::int64_t tokens = args.x.dims[0], most = impl_->spec.attention.max_tokens;
  require(tokens <= most, "x has ", tokens, " tokens, expected at most max_tokens = ", most);
  const Impl::Steps steps = impl_->steps(args, workspace);
  impl_->projection.check(steps.projection);
  impl_->output.check(steps.output);
  check_append(steps.append, args.cache);
  check_cached_args(impl_->attention.spec(), steps.attention);
  const auto apart = [&](const char* name, const ConstTensorView& view) {
    check_apart("cache.key", args.cache.key, name, view);
    check_apart("cache.value", args.cache.value, name, view);
  };
  apart("x", args.x);
  apart("out", args.out);
  if (args.residual) apart("residual", args.residual);

  std::byte* const scratch = workspace + impl_->layout.bytes();
  impl_->projection.run(steps.projection, scratch, threads, profiler);
  append(steps.append, args.cache, threads);
  impl_->attention.run(steps.attention, scratch, threads, profiler);
  impl_->output.run(steps.output, scratch, threads, profiler);
}

}  // namespace headway
