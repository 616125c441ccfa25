// The MatMul operator with numpy's rules for any rank. A constant right operand is packed once; otherwise batches and
// row blocks are plain products on one thread each. Decides that choice and the blocks.
#include <algorithm>
#include <array>
#include <string>

#include "ops/matmul/matmul.h"
#include "ops/matmul/matmul_split.h"
#include "ops/operators.h"

namespace headway {
namespace {

constexpr Zone kZoneMatmul{"matmul", "matmul"};
constexpr std::int64_t kRowBlock = 128;
constexpr std::int64_t kColumnBlock = 1024;

/// Dims of one product after numpy's promotion: a vector is one row on the left and one column on the right.
struct Shapes {
  Dims a, b;   // [batch…, M, K], [batch…, K, N], equal rank
  Dims batch;  // broadcast
  Dims out;    // what the node gives: without the axes that promotion added
  std::int64_t m, n, k;
};

Dims with_rank(Dims dims, int rank) {
  Dims padded;
  for (int i = dims.rank(); i < rank; ++i) padded.push_back(1);
  for (const std::int64_t d : dims) padded.push_back(d);
  return padded;
}

Shapes shapes_of(const NodeContext& node) {
  check_inputs("MatMul", node, 2, 2);
  check_f32("MatMul", node, 0);
  check_f32("MatMul", node, 1);
  Dims a = node.inputs[0].dims;
  Dims b = node.inputs[1].dims;
  require(a.rank() >= 1 && b.rank() >= 1, "MatMul inputs have ranks ", a.rank(), " and ", b.rank(),
          ", expected 1 or more");
  const bool vector_a = a.rank() == 1;
  const bool vector_b = b.rank() == 1;
  if (vector_a) a = {1, a[0]};
  if (vector_b) b = {b[0], 1};
  const int rank = std::max(a.rank(), b.rank());
  Shapes s{with_rank(a, rank), with_rank(b, rank), {}, {}, 0, 0, 0};
  s.m = s.a[rank - 2];
  s.k = s.a[rank - 1];
  s.n = s.b[rank - 1];
  require(s.k == s.b[rank - 2], "MatMul inputs have dims ", node.inputs[0].dims, " and ", node.inputs[1].dims,
          ", expected depths ", s.k, " and ", s.b[rank - 2], " to be equal");
  for (int i = 0; i < rank - 2; ++i) {
    const std::int64_t x = s.a[i];
    const std::int64_t y = s.b[i];
    require(x == y || x == 1 || y == 1, "MatMul inputs have dims ", node.inputs[0].dims, " and ", node.inputs[1].dims,
            ", expected batches ", x, " and ", y, " to be equal or one of them 1");
    s.batch.push_back(x == 1 ? y : x);
  }
  s.out = s.batch;
  if (!vector_a) s.out.push_back(s.m);
  if (!vector_b) s.out.push_back(s.n);
  return s;
}

/// a·w with w constant: all rows of a are one matrix.
class ConstantPlan : public NodePlan {
 public:
  ConstantPlan(const Shapes& s, const ConstTensorView& b)
      : packed_({.rows = element_count(s.batch) * s.m, .columns = s.n, .depth = s.k, .x_stride = s.k, .y_stride = s.n},
                b.reshaped({s.k, s.n}).permuted({1, 0}), {}) {}
  std::size_t workspace_bytes(int workers) const override { return packed_.workspace_bytes(workers); }
  std::string explain() const override { return packed_.explain(); }
  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    packed_.run(inputs[0].as<float>(), outputs[0].as<float>(), context.workspace, context.threads, context.profiler,
                kZoneMatmul);
  }

 private:
  PackedMatmul packed_;
};

/// Both operands known at run time only.
class TilePlan : public NodePlan {
 public:
  explicit TilePlan(const Shapes& s)
      : s_(s), row_blocks_(ceil_div(s.m, kRowBlock)), column_blocks_(ceil_div(s.n, kColumnBlock)), cache_(4) {
    // All four block sizes are made here, so that a run only looks them up.
    for (const std::int64_t row : {std::int64_t{0}, std::max<std::int64_t>(row_blocks_ - 1, 0)}) {
      for (const std::int64_t column : {std::int64_t{0}, std::max<std::int64_t>(column_blocks_ - 1, 0)}) {
        scratch_bytes_ = std::max(scratch_bytes_, cache_.scratch_bytes(block(row, column)));
      }
    }
    scratch_bytes_ = (scratch_bytes_ + 63) / 64 * 64;
  }

  std::size_t workspace_bytes(int workers) const override { return scratch_bytes_ * static_cast<std::size_t>(workers); }
  std::string explain() const override {
    return "onednn, blocks of " + std::to_string(std::min(kRowBlock, s_.m)) + " × " +
           std::to_string(std::min(kColumnBlock, s_.n)) + ", " +
           std::to_string(element_count(s_.batch) * row_blocks_ * column_blocks_) + " tasks";
  }

  void run(const RunContext& context, std::span<const ConstTensorView> inputs,
           std::span<const TensorView> outputs) const override {
    const std::int64_t blocks = row_blocks_ * column_blocks_;
    const float* a = inputs[0].as<float>();
    const float* b = inputs[1].as<float>();
    float* c = outputs[0].as<float>();
    context.threads.parallel_for(element_count(s_.batch) * blocks, [&](std::int64_t task, int worker) {
      ProfileScope scope(context.profiler, worker, kZoneMatmul);
      const std::int64_t batch = task / blocks;
      const std::int64_t row = task % blocks / column_blocks_;
      const std::int64_t column = task % column_blocks_;
      const TileMatmulSpec spec = block(row, column);
      cache_.run(spec, a + batch_offset(s_.a, batch) + row * kRowBlock * s_.k,
                 b + batch_offset(s_.b, batch) + column * kColumnBlock,
                 c + (batch * s_.m + row * kRowBlock) * s_.n + column * kColumnBlock,
                 context.workspace + scratch_bytes_ * static_cast<std::size_t>(worker), scratch_bytes_);
      const std::int64_t flops = 2 * spec.rows * spec.columns * spec.depth;
      scope.add({.flops_nominal = flops, .flops_executed = flops});
    });
  }

 private:
  TileMatmulSpec block(std::int64_t row, std::int64_t column) const {
    TileMatmulSpec spec{};
    spec.rows = std::min(kRowBlock, s_.m - row * kRowBlock);
    spec.columns = std::min(kColumnBlock, s_.n - column * kColumnBlock);
    spec.depth = s_.k;
    spec.a_stride = s_.k;
    spec.b_stride = s_.n;
    spec.c_stride = s_.n;
    return spec;
  }

  /// Floats to the matrix of one batch entry of a contiguous operand; broadcast axes stay where they are.
  std::int64_t batch_offset(const Dims& dims, std::int64_t batch) const {
    std::int64_t offset = 0;
    std::int64_t stride = dims[dims.rank() - 1] * dims[dims.rank() - 2];
    for (int i = s_.batch.rank() - 1; i >= 0; --i) {
      if (dims[i] != 1) offset += batch % s_.batch[i] * stride;
      batch /= s_.batch[i];
      stride *= dims[i];
    }
    return offset;
  }

  Shapes s_;
  std::int64_t row_blocks_;
  std::int64_t column_blocks_;
  std::size_t scratch_bytes_ = 0;
  TileMatmulCache cache_;
};

class MatmulOp : public Operator {
 public:
  std::string_view name() const override { return "MatMul"; }
  std::vector<TensorInfo> infer(const NodeContext& node) const override {
    return {{DataType::kF32, shapes_of(node).out}};
  }
  std::unique_ptr<NodePlan> plan(const NodeContext& node, std::span<const TensorInfo>) const override {
    const Shapes s = shapes_of(node);
    const bool constant = node.constants.size() > 1 && node.constants[1];
    if (constant && element_count(s.b) == s.k * s.n && element_count(s.a) == element_count(s.batch) * s.m * s.k) {
      return std::make_unique<ConstantPlan>(s, node.constants[1]);
    }
    return std::make_unique<TilePlan>(s);
  }
};

}  // namespace

std::unique_ptr<Operator> make_matmul_op() { return std::make_unique<MatmulOp>(); }

}  // namespace headway
