// GEMM: y[M, N] = x[M, K]·Wᵀ + bias, f32 or bf16, with the weights W packed once, for projections; and small plain
// products for tiles. Knows nothing of heads. oneDNN is included in this folder only, and not by this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "headway/profiler.h"
#include "headway/tensor.h"
#include "headway/threads.h"

namespace headway {

/// Weights of one projection for a fixed number of rows, packed at construction into column chunks that are computed as
/// independent tasks: the split depends on (M, N, K) alone, so the bits do not depend on the number of threads.
/// headway/packed_matmul.h is the public one, for any number of rows.
struct PlannedMatmulSpec {
  std::int64_t rows = 0;            ///< M
  std::int64_t columns = 0;         ///< N
  std::int64_t depth = 0;           ///< K
  std::int64_t x_stride = 0;        ///< elements between rows of x; innermost stride is 1
  std::int64_t y_stride = 0;        ///< elements between rows of y
  std::string implementation = {};  ///< forces one by name ("highway", "onednn"); empty: the table chooses
  DataType type = DataType::kF32;   ///< of x, weight, bias and y: f32 or bf16. Sums are f32, y is rounded once
};

/// The part of y that one task writes.
struct MatmulTile {
  std::int64_t row, rows, column, columns;
};

class PlannedMatmul {
 public:
  /// `weight` is [N, K] as y = x·Wᵀ has it, any strides; `bias` is [N] or absent. Both are of spec.type and copied.
  /// `same` is a product with the same weight and bias, of other rows or strides: packed weights are shared with it
  /// where both take the same implementation. It need not live on.
  PlannedMatmul(const PlannedMatmulSpec& spec, const ConstTensorView& weight, const ConstTensorView& bias,
                const PlannedMatmul* same = nullptr);
  ~PlannedMatmul();
  PlannedMatmul(PlannedMatmul&&) noexcept;

  std::string explain() const;  ///< "highway AVX2, 16 tasks of 128 × 48", and why not a better one
  /// Scratch that all workers together need; 64-byte aligned.
  std::size_t workspace_bytes(int workers) const;
  /// Tasks of one product; each is run whole by one worker.
  std::int64_t tasks() const;
  /// Runs one task on the calling thread only; x and y are elements of spec.type. Thread-safe with distinct workers;
  /// allocates nothing.
  void run_task(std::int64_t task, int worker, const void* x, void* y, std::byte* workspace) const;
  /// Flops of one task, and the bytes of its x, weights and y.
  Work task_work(std::int64_t task) const;
  MatmulTile task_tile(std::int64_t task) const;
  std::int64_t task_flops(std::int64_t task) const { return task_work(task).flops_nominal; }
  /// All tasks, in parallel.
  void run(const void* x, void* y, std::byte* workspace, const Threads& threads, Profiler* profiler,
           const Zone& zone) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

/// c[M, N] (+)= a[M, K]·b[K, N] or a·bᵀ, on the calling thread only; c and all sums are f32. Strides are elements
/// between rows.
struct TileMatmulSpec {
  std::int64_t rows, columns, depth;
  std::int64_t a_stride, b_stride, c_stride;
  bool transpose_b = false;        ///< b is [N, K]
  bool accumulate = false;         ///< c += instead of c =
  DataType type = DataType::kF32;  ///< of a and b: f32 or bf16
  friend bool operator==(const TileMatmulSpec&, const TileMatmulSpec&) = default;
};

/// A bounded cache of oneDNN matmuls by spec; the least recently used goes first. Thread-safe; a cached spec costs a
/// look-up and no allocation.
class TileMatmulCache {
 public:
  explicit TileMatmulCache(std::size_t capacity);
  ~TileMatmulCache();
  /// `scratch` is 64-byte aligned and holds scratch_bytes.
  void run(const TileMatmulSpec& spec, const void* a, const void* b, float* c, std::byte* scratch,
           std::size_t scratch_bytes) const;
  /// Scratch that this spec needs; makes its matmul when it is not cached.
  std::size_t scratch_bytes(const TileMatmulSpec& spec) const;
  std::size_t size() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headway
