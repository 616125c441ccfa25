// The public product: weights packed once, cut into tasks by the rows of each call, and an epilogue on tiles that are
// still in the cache. Knows no oneDNN.
#include "headway/packed_matmul.h"

#include <algorithm>
#include <sstream>

#include "ops/base/layout.h"
#include "ops/base/narrow.h"
#include "ops/base/workspace_layout.h"
#include "ops/matmul/packed_split.h"
#include "ops/simd/elementwise.h"
#include "ops/simd/packed_gemm.h"
#include "runtime/base/bad_alloc.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_overlap.h"

namespace headway {
namespace {

constinit const Zone kZoneMatmul{"packed matmul", "matmul"};

/// One weight [N, K] in panels of its own type, and its bias as f32.
class PackedWeight {
 public:
  PackedWeight() = default;
  PackedWeight(const PackedGemmKernels& kernels, const ConstTensorView& weight, const ConstTensorView& bias) {
    const std::int64_t columns = weight.dims[0], depth = weight.dims[1];
    const std::int64_t elements = packed_gemm_elements(kernels, columns, depth);
    weights_ = AlignedBuffer(static_cast<std::size_t>(elements) * size_bytes(weight.type));
    if (weight.type == DataType::kBF16) {
      pack_gemm_weight(kernels, weight, reinterpret_cast<BFloat16*>(weights_.data()));
    } else {
      pack_gemm_weight(kernels, weight, reinterpret_cast<float*>(weights_.data()));
    }
    if (!bias) return;
    const std::int64_t padded = round_up(columns, kernels.lanes);
    bias_ = AlignedBuffer(static_cast<std::size_t>(padded) * sizeof(float));
    auto* const to = reinterpret_cast<float*>(bias_.data());
    std::fill_n(to + columns, padded - columns, 0.0f);
    convert_view(bias, view_of(to, Dims{columns}));
    biased_ = true;
  }

  /// The panels from element `first` on.
  template <class W>
  const W* weight(std::int64_t first) const {
    return reinterpret_cast<const W*>(weights_.data()) + first;
  }
  const float* bias() const { return biased_ ? reinterpret_cast<const float*>(bias_.data()) : nullptr; }

 private:
  AlignedBuffer weights_, bias_;
  bool biased_ = false;
};

void check_weight(const char* name, const PackedMatmulSpec& spec, const ConstTensorView& weight,
                  const ConstTensorView& bias) {
  const Dims dims = {spec.columns, spec.depth};
  const bool half = weight.type == DataType::kBF16;
  require(half || weight.type == DataType::kF32, name, " is ", type_name(weight.type), ", expected f32 or bf16");
  require(weight.dims == dims, name, " has dims ", weight.dims, ", expected ", dims);
  require(weight.data != nullptr || weight.count() == 0, name, " is null, expected ", dims, " elements");
  if (!bias) return;
  require(bias.type == DataType::kF32 || bias.type == weight.type, name, "'s bias is ", type_name(bias.type),
          ", expected ", half ? "f32 or bf16" : "f32");
  require(bias.dims == Dims{spec.columns}, name, "'s bias has dims ", bias.dims, ", expected ", Dims{spec.columns});
}

void check_tensor(const char* name, const ConstTensorView& view, std::int64_t rows, std::int64_t columns) {
  const Dims dims = {rows, columns};
  require(view.type == DataType::kF32, name, " is ", type_name(view.type), ", expected f32");
  require(view.dims == dims, name, " has dims ", view.dims, ", expected ", dims);
  require(columns < 2 || view.strides[1] == 1, name, " has an innermost stride of ", view.strides[1], ", expected 1");
  require(view.data != nullptr || view.count() == 0, name, " is null, expected ", dims, " elements");
}

/// Whether both are the same elements in the same order.
bool same_view(const ConstTensorView& a, const ConstTensorView& b) {
  return a.data == b.data && a.dims == b.dims && a.strides == b.strides;
}

UnaryKernel activation_kernel(Activation activation) {
  const ElementwiseKernels kernels = elementwise_kernels();
  switch (activation) {
    case Activation::kNone:
      return nullptr;
    case Activation::kRelu:
      return kernels.relu;
    case Activation::kSilu:
      return kernels.silu;
    case Activation::kGelu:
      return kernels.gelu;
    case Activation::kGeluTanh:
      return kernels.gelu_tanh;
  }
  fail(ErrorCode::kInvalidArgument, "activation is ", static_cast<int>(activation), ", expected one of the enum");
}

}  // namespace

const char* activation_name(Activation activation) {
  constexpr const char* kNames[] = {"none", "relu", "silu", "gelu", "gelu_tanh"};
  return kNames[static_cast<int>(activation)];
}

struct PackedMatmul::Impl {
  Impl(const PackedMatmulSpec& given, const PackedMatmulWeights& weights)
      : spec(given),
        activate(activation_kernel(given.activation)),
        gated(weights.gate),
        half(weights.weight.type == DataType::kBF16),
        weight(kernels, weights.weight, weights.bias) {
    if (gated) gate = PackedWeight(kernels, weights.gate, weights.gate_bias);
    const std::int64_t rows = kernels.row_block, columns = std::min(PackedSplit::kColumns, spec.columns);
    if (gated) gate_tile = layout.per_worker<float>(rows * columns);
    product_tile = layout.per_worker<float>(rows * columns);
    if (half) scratch = layout.per_worker<float>(packed_gemm_scratch_floats(kernels, rows, columns));
  }

  Work work(const MatmulTile& tile) const;
  void multiply_by(const PackedWeight& w, const PackedMatmulArgs& args, const MatmulTile& tile, std::byte* region,
                   float* y, std::int64_t y_stride) const;
  void run_tile(const PackedMatmulArgs& args, const MatmulTile& tile, std::byte* region) const;

  PackedMatmulSpec spec;
  PackedGemmKernels kernels = packed_gemm_kernels();
  BinaryKernel add = elementwise_kernels().add, multiply = elementwise_kernels().mul;
  UnaryKernel activate;
  bool gated, half;  // half: bf16 weights
  PackedWeight weight, gate;
  WorkspaceLayout layout;
  WorkspaceArray<float> gate_tile, product_tile;  // the latter where a residual is added
  WorkspaceArray<float> scratch;                  // of bf16 weights
};

PackedMatmul::PackedMatmul(const PackedMatmulSpec& spec, const PackedMatmulWeights& weights) {
  require(spec.columns >= 0 && spec.depth >= 0, "matmul sizes are ", spec.columns, " x ", spec.depth,
          ", expected none below 0");
  check_weight("weight", spec, weights.weight, weights.bias);
  require(weights.gate || !weights.gate_bias, "gate_bias has dims ", weights.gate_bias.dims,
          ", expected none without gate");
  if (weights.gate) {
    check_weight("gate", spec, weights.gate, weights.gate_bias);
    require(weights.gate.type == weights.weight.type, "gate is ", type_name(weights.gate.type), ", expected ",
            type_name(weights.weight.type), " as weight");
  }
  impl_ = translate_bad_alloc([&] { return std::make_unique<const Impl>(spec, weights); });
}

PackedMatmul::~PackedMatmul() = default;
PackedMatmul::PackedMatmul(PackedMatmul&&) noexcept = default;
PackedMatmul& PackedMatmul::operator=(PackedMatmul&&) noexcept = default;

const PackedMatmulSpec& PackedMatmul::spec() const { return impl_->spec; }

std::string PackedMatmul::explain() const {
  const PackedMatmulSpec& spec = impl_->spec;
  std::ostringstream text;
  text << "packed matmul " << impl_->kernels.target << ", " << (impl_->gated ? "2 × " : "") << spec.columns << " × "
       << spec.depth << " in panels of " << impl_->kernels.panel_columns << " columns"
       << (impl_->half ? ", bf16 widened to f32" : "") << ", tasks of up to " << impl_->kernels.row_block << " × "
       << PackedSplit::kColumns << ", epilogue " << activation_name(spec.activation)
       << (impl_->gated ? " of the gate" : "");
  return text.str();
}

std::size_t PackedMatmul::workspace_bytes(int workers) const { return impl_->layout.bytes(workers); }

Work PackedMatmul::Impl::work(const MatmulTile& tile) const {
  const std::int64_t products = gated ? 2 : 1;
  const std::int64_t flops = 2 * products * tile.rows * tile.columns * spec.depth;
  const std::int64_t weights = products * tile.columns * spec.depth;
  const std::int64_t rows = tile.rows * (spec.depth + tile.columns);
  return {.flops_nominal = flops, .flops_executed = flops, .bytes = (half ? 2 : 4) * weights + 4 * rows};
}

void PackedMatmul::Impl::multiply_by(const PackedWeight& w, const PackedMatmulArgs& args, const MatmulTile& tile,
                                     std::byte* region, float* y, std::int64_t y_stride) const {
  const auto product = [&]<class W>(const W* panels) {
    return PackedGemmOf<W, float>{.x = reinterpret_cast<const float*>(args.x.data) + tile.row * args.x.strides[0],
                                  .x_stride = args.x.strides[0],
                                  .rows = tile.rows,
                                  .depth = spec.depth,
                                  .weight = panels,
                                  .columns = tile.columns,
                                  .bias = w.bias() != nullptr ? w.bias() + tile.column : nullptr,
                                  .y = y,
                                  .y_stride = y_stride};
  };
  const std::int64_t first = tile.column * spec.depth;
  if (!half) return kernels.multiply(product(w.weight<float>(first)));
  PackedGemmBf16Weights gemm = product(w.weight<BFloat16>(first));
  gemm.scratch = scratch.in(region);
  kernels.multiply_bf16_weights(gemm);
}

void PackedMatmul::Impl::run_tile(const PackedMatmulArgs& args, const MatmulTile& tile, std::byte* region) const {
  const std::int64_t rows = tile.rows, columns = tile.columns;
  const auto at = [&](const auto& view, std::int64_t r) {
    return view.data + ((tile.row + r) * view.strides[0] + tile.column) * static_cast<std::int64_t>(sizeof(float));
  };
  // The residual may be out, which the sums of a deep product pass through.
  float* const gates = gate_tile.in(region);
  float* const product = args.residual ? product_tile.in(region) : reinterpret_cast<float*>(at(args.out, 0));
  const std::int64_t stride = args.residual ? columns : args.out.strides[0];
  multiply_by(weight, args, tile, region, product, stride);
  if (gated) multiply_by(gate, args, tile, region, gates, columns);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const y = product + r * stride;
    float* const activated = gated ? gates + r * columns : y;
    if (activate != nullptr) activate(activated, activated, columns);
    if (gated) multiply({y, 1, activated, 1, y, columns});
    if (args.residual) add({y, 1, at(args.residual, r), 1, at(args.out, r), columns});
  }
}

void PackedMatmul::check(const PackedMatmulArgs& args) const {
  const PackedMatmulSpec& spec = impl_->spec;
  require(args.x.rank() == 2, "x has dims ", args.x.dims, ", expected [M, ", spec.depth, "]");
  const std::int64_t rows = args.x.dims[0];
  check_tensor("x", args.x, rows, spec.depth);
  check_tensor("out", args.out, rows, spec.columns);
  check_no_self_overlap("out", args.out);
  check_apart("out", args.out, "x", args.x);
  if (!args.residual) return;
  check_tensor("residual", args.residual, rows, spec.columns);
  if (!same_view(args.residual, args.out)) check_apart("out", args.out, "residual", args.residual);
}

void PackedMatmul::run(const PackedMatmulArgs& args, std::byte* workspace, const Threads& threads,
                       Profiler* profiler) const {
  check(args);
  const std::size_t bytes = workspace_bytes(threads.workers());
  require(workspace != nullptr || bytes == 0, "workspace is null, expected ", bytes, " bytes");
  const std::int64_t rows = args.x.dims[0];
  if (rows == 0 || impl_->spec.columns == 0) return;
  const PackedSplit split(impl_->kernels, rows, impl_->spec.columns);
  threads.parallel_for(split.tasks, [&](std::int64_t task, int worker) {
    ProfileScope scope(profiler, worker, kZoneMatmul);
    const MatmulTile tile = split.tile(task, rows, impl_->spec.columns);
    impl_->run_tile(args, tile, impl_->layout.worker_region(workspace, worker));
    if (profiler) scope.add(impl_->work(tile));
  });
}

}  // namespace headway
