// Merging of axes and the split into tasks.
#include "ops/graph/elementwise/broadcast_loop.h"

#include "runtime/base/check.h"

namespace headway {
namespace {

// A task: long enough to be worth handing to another thread.
constexpr std::int64_t kTaskElements = 16384;

}  // namespace

BroadcastLoop::BroadcastLoop(const Dims& out, std::initializer_list<Dims> operands) {
  ConstTensorView views[kMaxOperands];
  for (const Dims& dims : operands) {
    views[operands_++] = ConstTensorView(nullptr, DataType::kF32, dims).broadcast_to(out);
  }
  const std::int64_t count = element_count(out);
  if (count == 0) return;
  // From the innermost axis outwards; `axis` ends as the number of merged axes, innermost first.
  std::int64_t size[kMaxRank + 1] = {1};
  std::int64_t stride[kMaxOperands][kMaxRank + 1] = {};
  int axes = 0;
  for (int a = out.rank() - 1; a >= 0; --a) {
    if (out[a] == 1) continue;
    bool merges = axes > 0;
    for (int i = 0; i < operands_ && merges; ++i) {
      merges = views[i].strides[a] == stride[i][axes - 1] * size[axes - 1];
    }
    if (merges) {
      size[axes - 1] *= out[a];
      continue;
    }
    size[axes] = out[a];
    for (int i = 0; i < operands_; ++i) stride[i][axes] = views[i].strides[a];
    ++axes;
  }
  row_ = size[0];
  for (int i = 0; i < operands_; ++i) step_[i] = stride[i][0];
  outer_ = std::max(axes - 1, 0);
  for (int k = 0; k < outer_; ++k) {
    size_[k] = size[k + 1];
    for (int i = 0; i < operands_; ++i) stride_[i][k] = stride[i][k + 1];
  }
  rows_ = count / row_;
  piece_ = std::min(row_, kTaskElements);
  tasks_per_row_ = (row_ + piece_ - 1) / piece_;
  rows_per_task_ = std::max<std::int64_t>(1, kTaskElements / row_);
  tasks_ = (rows_ + rows_per_task_ - 1) / rows_per_task_ * tasks_per_row_;
}

BroadcastLoop::Piece BroadcastLoop::start_of(std::int64_t row) const {
  Piece piece;
  piece.out = row * row_;
  for (int k = 0; k < outer_; ++k) {
    const std::int64_t index = row % size_[k];
    row /= size_[k];
    for (int i = 0; i < operands_; ++i) piece.operand[i] += index * stride_[i][k];
  }
  return piece;
}

}  // namespace headway
