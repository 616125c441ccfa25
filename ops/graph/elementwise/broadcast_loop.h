// The one traversal behind all elementwise operators: a contiguous output, operands broadcast to it. Axes that can be
// walked as one are merged when a plan is made; a run is then pieces of rows in which every operand has step 1 or 0.
// Decides the split into tasks, by shape alone. Knows no element type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "headway/tensor.h"
#include "headway/threads.h"

namespace headway {

class BroadcastLoop {
 public:
  static constexpr int kMaxOperands = 3;

  /// Operands are contiguous and broadcast to `out`.
  BroadcastLoop(const Dims& out, std::initializer_list<Dims> operands);

  /// n elements in a row: where they start in the output and in each operand, in elements.
  struct Piece {
    std::int64_t out = 0;
    std::int64_t operand[kMaxOperands] = {};
    std::int64_t n = 0;
  };

  /// 1 or 0: how far operand i moves from one element of a piece to the next.
  std::int64_t step(int i) const { return step_[i]; }

  /// Calls fn(piece) for all pieces, which cover the output once.
  template <class Fn>
  void run(const Threads& threads, Fn&& fn) const {
    threads.parallel_for(tasks_, [&](std::int64_t task, int) { run_task(task, fn); });
  }

 private:
  template <class Fn>
  void run_task(std::int64_t task, Fn& fn) const {
    // Either several rows a task or several tasks a row.
    std::int64_t row = task / tasks_per_row_ * rows_per_task_;
    const std::int64_t last = std::min(rows_, row + rows_per_task_);
    const std::int64_t begin = task % tasks_per_row_ * piece_;
    for (; row < last; ++row) {
      Piece piece = start_of(row);
      piece.n = std::min(piece_, row_ - begin);
      piece.out += begin;
      for (int i = 0; i < operands_; ++i) piece.operand[i] += begin * step_[i];
      fn(static_cast<const Piece&>(piece));
    }
  }

  Piece start_of(std::int64_t row) const;

  int operands_ = 0;
  int outer_ = 0;                                     // axes around a row
  std::int64_t size_[kMaxRank] = {};                  // of the outer axes
  std::int64_t stride_[kMaxOperands][kMaxRank] = {};  // of the outer axes
  std::int64_t step_[kMaxOperands] = {};
  std::int64_t row_ = 1;  // elements of a row
  std::int64_t rows_ = 0;
  std::int64_t piece_ = 1;  // elements of a row that one task takes
  std::int64_t tasks_per_row_ = 1;
  std::int64_t rows_per_task_ = 1;
  std::int64_t tasks_ = 0;
};

}  // namespace headway
