// Random weights and the plan around them. See random_layer.h.
#include "tools/measure/random_layer.h"

#include <cmath>

#include "ops/simd/bf16.h"
#include "tools/model/tensors.h"

namespace headway::tools {
namespace {

// Uniform with mean 0 and the given deviation; splitmix64, so that the numbers are the same everywhere.
Tensor random_tensor(const Dims& dims, double deviation, std::uint64_t seed) {
  Tensor out(DataType::kF32, dims);
  float* values = out.data<float>();
  const double half_width = deviation * std::sqrt(3.0);
  std::uint64_t state = seed;
  for (std::int64_t i = 0, n = out.count(); i < n; ++i) {
    state += 0x9E3779B97F4A7C15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    values[i] = static_cast<float>((static_cast<double>(z >> 11) * 0x1p-52 - 1) * half_width);
  }
  return out;
}

MultiHeadAttentionSpec spec_of(const LayerSizes& sizes, std::int64_t heads) {
  MultiHeadAttentionSpec spec;
  spec.type = sizes.type;
  spec.batch = sizes.batch;
  spec.query_len = sizes.seq;
  spec.key_len = sizes.seq;
  spec.embed_dim = sizes.embed_dim;
  spec.num_heads = heads;
  spec.self_attention = true;
  apply_semantics("torch_mha", sizes.causal, &spec);
  return spec;
}

}  // namespace

// Inputs of deviation 1 and weights of 1/√E give queries and keys of deviation 1, so scores of deviation 1 at any D.
RandomLayer::RandomLayer(const LayerSizes& sizes)
    : embed_dim(sizes.embed_dim),
      in_proj_weight(random_tensor({3 * embed_dim, embed_dim}, 1 / std::sqrt(static_cast<double>(embed_dim)), 1)),
      in_proj_bias(random_tensor({3 * embed_dim}, 0.1, 2)),
      out_weight(random_tensor({embed_dim, embed_dim}, 1 / std::sqrt(static_cast<double>(embed_dim)), 3)),
      out_bias(random_tensor({embed_dim}, 0.1, 4)),
      input(random_tensor({sizes.batch, sizes.seq, embed_dim}, 1, 5)) {
  if (sizes.type != DataType::kBF16) return;
  const Bf16Kernels kernels = bf16_kernels();
  Tensor* const whole[kTensors] = {&in_proj_weight, &in_proj_bias, &out_weight, &out_bias, &input};
  for (int i = 0; i < kTensors; ++i) {
    halves_[i] = Tensor(DataType::kBF16, whole[i]->dims());
    kernels.narrow(whole[i]->data<float>(), halves_[i].data<BFloat16>(), whole[i]->count());
    kernels.widen(halves_[i].data<BFloat16>(), whole[i]->data<float>(), whole[i]->count());
  }
}

ConstTensorView RandomLayer::given(int which) const {
  if (halves_[which].type() == DataType::kBF16) return halves_[which].view();
  const Tensor* const whole[kTensors] = {&in_proj_weight, &in_proj_bias, &out_weight, &out_bias, &input};
  return whole[which]->view();
}

MultiHeadAttentionWeights RandomLayer::views() const {
  MultiHeadAttentionWeights views;
  split_in_proj(given(kInProjWeight), given(kInProjBias), &views);
  views.output = given(kOutWeight);
  views.output_bias = given(kOutBias);
  return views;
}

double estimated_bytes(const LayerSizes& sizes, std::size_t plans) {
  const double width = static_cast<double>(sizes.embed_dim);
  const double rows = static_cast<double>(sizes.batch) * static_cast<double>(sizes.seq);
  const double weights = 4 * width * width, rows_bytes = 5 * rows * width;
  const double element_bytes = static_cast<double>(size_bytes(sizes.type));
  const double random = sizes.type == DataType::kBF16 ? 4 + element_bytes : element_bytes;
  return (random + element_bytes * static_cast<double>(plans)) * (weights + rows_bytes);
}

PlannedLayer::PlannedLayer(const LayerSizes& sizes, std::int64_t heads, const RandomLayer& random,
                           const Execution& execution)
    : layer_(spec_of(sizes, heads), random.views(), execution.attention),
      threads_(execution.threads),
      workspace_(layer_.workspace_bytes(threads_.workers())),
      output_(nan_tensor({sizes.batch, sizes.seq, sizes.embed_dim}, sizes.type)) {
  args_.query = random.input_view();
  args_.key = args_.query;
  args_.value = args_.query;
  args_.out = output_.view();
}

void PlannedLayer::run(Profiler* profiler) { layer_.run(args_, workspace_.data(), threads_, profiler); }

std::int64_t PlannedLayer::nominal_flops() const {
  return layer_.projection_flops() + nominal_attention_flops(layer_.core().spec());
}

}  // namespace headway::tools
