// A projection on the register tile of ops/simd: weights in column panels, tasks of row blocks × panels. Weights stay
// in the type they are given in.
#include <algorithm>
#include <type_traits>

#include "ops/base/workspace_layout.h"
#include "ops/matmul/packed_split.h"
#include "ops/matmul/projection.h"

namespace headway {
namespace {

template <class T>
class HighwayProjection final : public Projection {
 public:
  explicit HighwayProjection(const ProjectionSource& source)
      : spec_(source.spec), kernels_(packed_gemm_kernels()), split_(kernels_, spec_.rows, spec_.columns) {
    if constexpr (kHalf) {
      const std::int64_t columns = std::min(split_.column_block, spec_.columns);
      scratch_ = layout_.per_worker<float>(packed_gemm_scratch_floats(kernels_, split_.row_block, columns));
    }
    const auto* same = dynamic_cast<const HighwayProjection*>(source.same);
    packed_ = same != nullptr && same->can_share(*this) ? same->packed_ : pack(source);
  }

  std::string explain() const override {
    return std::string("highway ") + kernels_.target + (kHalf ? ", bf16 widened to f32, " : ", ") +
           std::to_string(tasks()) + " tasks of " + std::to_string(std::min(split_.row_block, spec_.rows)) + " × " +
           std::to_string(std::min(split_.column_block, spec_.columns));
  }
  std::size_t workspace_bytes(int workers) const override { return layout_.bytes(workers); }
  std::int64_t tasks() const override { return split_.tasks; }

  void run_task(std::int64_t task, int worker, const void* x, void* y, std::byte* workspace) const override {
    const MatmulTile block = task_tile(task);
    PackedGemmOf<T> gemm{.x = static_cast<const T*>(x) + block.row * spec_.x_stride,
                         .x_stride = spec_.x_stride,
                         .rows = block.rows,
                         .depth = spec_.depth,
                         .weight = weights() + block.column * spec_.depth,
                         .columns = block.columns,
                         .bias = bias() != nullptr ? bias() + block.column : nullptr,
                         .y = static_cast<T*>(y) + block.row * spec_.y_stride + block.column,
                         .y_stride = spec_.y_stride};
    if constexpr (kHalf) {
      gemm.scratch = scratch_.in(layout_.worker_region(workspace, worker));
      kernels_.multiply_bf16(gemm);
    } else {
      kernels_.multiply(gemm);
    }
  }

  Work task_work(std::int64_t task) const override {
    const MatmulTile block = task_tile(task);
    const std::int64_t flops = 2 * block.rows * block.columns * spec_.depth;
    const std::int64_t elements = (block.rows + block.columns) * spec_.depth + block.rows * block.columns;
    return {.flops_nominal = flops, .flops_executed = flops, .bytes = static_cast<std::int64_t>(sizeof(T)) * elements};
  }

  MatmulTile task_tile(std::int64_t task) const override { return split_.tile(task, spec_.rows, spec_.columns); }

 private:
  static constexpr bool kHalf = std::is_same_v<T, BFloat16>;

  /// Independent of rows and strides.
  struct Packed {
    AlignedBuffer weights;
    AlignedBuffer bias;  // empty: none
  };

  bool can_share(const HighwayProjection& other) const {
    return kernels_.multiply == other.kernels_.multiply && spec_.columns == other.spec_.columns &&
           spec_.depth == other.spec_.depth;
  }

  std::shared_ptr<const Packed> pack(const ProjectionSource& source) const {
    auto packed = std::make_shared<Packed>();
    const std::int64_t elements = packed_gemm_elements(kernels_, spec_.columns, spec_.depth);
    packed->weights = AlignedBuffer(static_cast<std::size_t>(elements) * sizeof(T));
    pack_gemm_weight(kernels_, source.weight, reinterpret_cast<T*>(packed->weights.data()));
    if (source.bias == nullptr) return packed;
    const std::int64_t padded = round_up(spec_.columns, kernels_.lanes);
    packed->bias = AlignedBuffer(static_cast<std::size_t>(padded) * sizeof(float));
    float* const bias = reinterpret_cast<float*>(packed->bias.data());
    std::fill_n(std::copy_n(source.bias, spec_.columns, bias), padded - spec_.columns, 0.0f);
    return packed;
  }

  const T* weights() const { return reinterpret_cast<const T*>(packed_->weights.data()); }
  const float* bias() const { return reinterpret_cast<const float*>(packed_->bias.data()); }

  PlannedMatmulSpec spec_;
  PackedGemmKernels kernels_;
  PackedSplit split_;
  std::shared_ptr<const Packed> packed_;
  WorkspaceLayout layout_;
  WorkspaceArray<float> scratch_;
};

}  // namespace

std::unique_ptr<const Projection> make_highway_projection(const ProjectionSource& source) {
  if (source.spec.type == DataType::kBF16) return std::make_unique<HighwayProjection<BFloat16>>(source);
  return std::make_unique<HighwayProjection<float>>(source);
}

}  // namespace headway
