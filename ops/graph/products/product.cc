// The two ways to multiply batches.
#include "ops/graph/products/product.h"

#include <algorithm>

#include "ops/matmul/matmul.h"
#include "ops/matmul/matmul_split.h"
#include "runtime/base/check.h"

namespace headway {
namespace {

constexpr Zone kZoneMatmul{"matmul", "matmul"};
constexpr std::int64_t kRowBlock = 128;
constexpr std::int64_t kColumnBlock = 1024;
// A product without elements may have a length of any number.
static_assert(ceil_div(0, 128) == 0 && ceil_div(128, 128) == 1 && ceil_div(129, 128) == 2);
static_assert(ceil_div(INT64_MAX, 128) == INT64_MAX / 128 + 1);

/// All rows of a are one matrix.
class PackedProduct final : public Product {
 public:
  PackedProduct(const ProductSpec& s, const ConstTensorView& b, const ConstTensorView& bias)
      : packed_({.rows = element_count(s.batch) * s.m, .columns = s.n, .depth = s.k, .x_stride = s.k, .y_stride = s.n},
                b.permuted({1, 0}), bias) {}
  std::size_t workspace_bytes(int workers) const override { return packed_.workspace_bytes(workers); }
  std::string explain() const override { return packed_.explain(); }
  bool packs_b() const override { return true; }
  void run(const ProductRun& args) const override {
    packed_.run(args.a, args.c, args.workspace, args.threads, args.profiler, kZoneMatmul);
  }

 private:
  PlannedMatmul packed_;
};

/// A single b for all of a: its batch is rows, as for packed weights.
ProductSpec with_batch_as_rows(ProductSpec s) {
  if (!can_pack(s)) return s;
  s.m *= element_count(s.batch);
  s.batch = s.a_batch = s.b_batch = Dims{};
  return s;
}

/// cᵀ = bᵀ·aᵀ where c is one column, which oneDNN writes element by element in its reference code; a row it does not.
ProductSpec with_column_as_row(const ProductSpec& s) {
  return {
      .batch = s.batch, .a_batch = s.b_batch, .b_batch = s.a_batch, .m = 1, .n = s.m, .k = s.k, .transpose_b = true};
}

/// Both operands known at run time only.
class TileProduct final : public Product {
 public:
  explicit TileProduct(const ProductSpec& spec) : TileProduct(with_batch_as_rows(spec), spec.n == 1) {}

  std::size_t workspace_bytes(int workers) const override { return scratch_bytes_ * static_cast<std::size_t>(workers); }
  std::string explain() const override {
    return "onednn, blocks of " + std::to_string(std::min(kRowBlock, s_.m)) + " × " +
           std::to_string(std::min(kColumnBlock, s_.n)) + ", " +
           std::to_string(batches_ * row_blocks_ * column_blocks_) + " tasks";
  }
  bool packs_b() const override { return false; }

  void run(const ProductRun& args) const override {
    const float* const left = swapped_ ? args.b : args.a;
    const float* const right = swapped_ ? args.a : args.b;
    const std::int64_t blocks = row_blocks_ * column_blocks_;
    args.threads.parallel_for(batches_ * blocks, [&](std::int64_t task, int worker) {
      ProfileScope scope(args.profiler, worker, kZoneMatmul);
      const std::int64_t batch = task / blocks;
      const std::int64_t row = task % blocks / column_blocks_;
      const std::int64_t column = task % column_blocks_;
      const TileMatmulSpec spec = block(row, column);
      cache_.run(spec, left + batch_offset(s_.batch, s_.a_batch, s_.m * s_.k, batch) + row * kRowBlock * s_.k,
                 right + batch_offset(s_.batch, s_.b_batch, s_.k * s_.n, batch) +
                     column * kColumnBlock * (s_.transpose_b ? s_.k : 1),
                 args.c + (batch * s_.m + row * kRowBlock) * s_.n + column * kColumnBlock,
                 args.workspace + scratch_bytes_ * static_cast<std::size_t>(worker), scratch_bytes_);
      const std::int64_t flops = 2 * spec.rows * spec.columns * spec.depth;
      scope.add({.flops_nominal = flops, .flops_executed = flops});
    });
  }

 private:
  TileProduct(const ProductSpec& spec, bool one_column)
      : s_(one_column ? with_column_as_row(spec) : spec),
        swapped_(one_column),
        batches_(element_count(s_.batch)),
        row_blocks_(ceil_div(s_.m, kRowBlock)),
        column_blocks_(ceil_div(s_.n, kColumnBlock)),
        cache_(4) {
    // All four block sizes are made here, so that a run only looks them up.
    for (const std::int64_t row : {std::int64_t{0}, std::max<std::int64_t>(row_blocks_ - 1, 0)}) {
      for (const std::int64_t column : {std::int64_t{0}, std::max<std::int64_t>(column_blocks_ - 1, 0)}) {
        scratch_bytes_ = std::max(scratch_bytes_, cache_.scratch_bytes(block(row, column)));
      }
    }
    scratch_bytes_ = (scratch_bytes_ + 63) / 64 * 64;
  }

  TileMatmulSpec block(std::int64_t row, std::int64_t column) const {
    TileMatmulSpec spec{};
    spec.rows = std::min(kRowBlock, s_.m - row * kRowBlock);
    spec.columns = std::min(kColumnBlock, s_.n - column * kColumnBlock);
    spec.depth = s_.k;
    spec.a_stride = s_.k;
    spec.b_stride = s_.transpose_b ? s_.k : s_.n;
    spec.c_stride = s_.n;
    spec.transpose_b = s_.transpose_b;
    return spec;
  }

  ProductSpec s_;
  bool swapped_;  ///< a and b
  std::int64_t batches_;
  std::int64_t row_blocks_;
  std::int64_t column_blocks_;
  std::size_t scratch_bytes_ = 0;
  TileMatmulCache cache_;
};

}  // namespace

bool can_pack(const ProductSpec& spec) {
  return element_count(spec.b_batch) == 1 && element_count(spec.a_batch) == element_count(spec.batch);
}

std::unique_ptr<const Product> make_product(const ProductSpec& spec, const ConstTensorView& known_b,
                                            const ConstTensorView& bias) {
  if (known_b && can_pack(spec)) return std::make_unique<PackedProduct>(spec, known_b, bias);
  require(!bias, "a product's bias has dims ", bias.dims, ", expected none without a known b");
  return std::make_unique<TileProduct>(spec);
}

std::int64_t batch_offset(const Dims& batch, const Dims& operand, std::int64_t matrix, std::int64_t index) {
  std::int64_t offset = 0;
  for (int i = batch.rank() - 1; i >= 0; --i) {
    if (operand[i] != 1) offset += index % batch[i] * matrix;
    index /= batch[i];
    matrix *= operand[i];
  }
  return offset;
}

}  // namespace headway
