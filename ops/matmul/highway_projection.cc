// A projection on the register tile of ops/simd: weights in column panels, tasks of row blocks × panels. Weights stay
// in the type they are given in.
#include <algorithm>
#include <type_traits>

#include "ops/matmul/matmul_split.h"
#include "ops/matmul/projection.h"
#include "ops/simd/packed_gemm.h"

namespace headway {
namespace {

constexpr std::int64_t kRowBlock = 128;    // rows that pass by a panel while it stays in the second-level cache
constexpr std::int64_t kPanels = 4;        // of a task
constexpr std::int64_t kEnoughTasks = 16;  // occupies eight threads fully

template <class T>
class HighwayProjection final : public Projection {
 public:
  explicit HighwayProjection(const ProjectionSource& source)
      : spec_(source.spec),
        kernels_(packed_gemm_kernels()),
        weights_(static_cast<std::size_t>(packed_gemm_elements(kernels_, spec_.columns, spec_.depth)) * sizeof(T)) {
    row_block_ = std::clamp<std::int64_t>(spec_.rows, 1, kRowBlock);
    std::int64_t panels = kPanels;
    const auto tasks_of = [&] {
      return ceil_div(spec_.rows, row_block_) * ceil_div(spec_.columns, panels * kernels_.panel_columns);
    };
    while (panels > 1 && tasks_of() < kEnoughTasks) panels /= 2;
    column_block_ = panels * kernels_.panel_columns;
    chunks_ = ceil_div(spec_.columns, column_block_);
    pack_gemm_weight(kernels_, source.weight, weights());
    if constexpr (kHalf) {
      const std::int64_t floats =
          packed_gemm_scratch_floats(kernels_, row_block_, std::min(column_block_, spec_.columns));
      worker_bytes_ = static_cast<std::size_t>((floats * 4 + 63) / 64 * 64);
    }
    if (source.bias == nullptr) return;
    const std::int64_t padded = ceil_div(spec_.columns, kernels_.lanes) * kernels_.lanes;
    bias_ = AlignedBuffer(static_cast<std::size_t>(padded) * sizeof(float));
    std::fill_n(std::copy_n(source.bias, spec_.columns, bias()), padded - spec_.columns, 0.0f);
  }

  std::string explain() const override {
    return std::string("highway ") + kernels_.target + (kHalf ? ", bf16 widened to f32, " : ", ") +
           std::to_string(tasks()) + " tasks of " + std::to_string(row_block_) + " × " +
           std::to_string(std::min(column_block_, spec_.columns));
  }
  std::size_t workspace_bytes(int workers) const override { return worker_bytes_ * static_cast<std::size_t>(workers); }
  std::int64_t tasks() const override { return ceil_div(spec_.rows, row_block_) * chunks_; }

  void run_task(std::int64_t task, int worker, const void* x, void* y, std::byte* workspace) const override {
    // Row blocks come first: tasks that follow each other share their panels.
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
      gemm.scratch = reinterpret_cast<float*>(workspace + worker_bytes_ * static_cast<std::size_t>(worker));
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

  MatmulTile task_tile(std::int64_t task) const override {
    const std::int64_t row_blocks = ceil_div(spec_.rows, row_block_);
    const std::int64_t row = task % row_blocks * row_block_;
    const std::int64_t column = task / row_blocks * column_block_;
    return {row, std::min(row_block_, spec_.rows - row), column, std::min(column_block_, spec_.columns - column)};
  }

 private:
  static constexpr bool kHalf = std::is_same_v<T, BFloat16>;

  T* weights() const { return reinterpret_cast<T*>(weights_.data()); }
  float* bias() const { return reinterpret_cast<float*>(bias_.data()); }

  PackedMatmulSpec spec_;
  PackedGemmKernels kernels_;
  AlignedBuffer weights_;
  AlignedBuffer bias_;
  std::int64_t row_block_ = 1;
  std::int64_t column_block_ = 1;
  std::int64_t chunks_ = 0;
  std::size_t worker_bytes_ = 0;
};

}  // namespace

std::unique_ptr<const Projection> make_highway_projection(const ProjectionSource& source) {
  if (source.spec.type == DataType::kBF16) return std::make_unique<HighwayProjection<BFloat16>>(source);
  return std::make_unique<HighwayProjection<float>>(source);
}

}  // namespace headway
