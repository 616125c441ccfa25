// Einsum by plain loops over the labels, in any element type. Decides what is summed before anything is multiplied and
// how many steps are too many; knows no equation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headway/operator.h"
#include "ops/graph/products/einsum_equation.h"

namespace headway {

/// Labels that one operand alone has and the result has not are summed over first, in f64 or wrapping integers: of
/// "i,j->" n + m additions are left where there were n·m products. The other labels are nested loops.
class PlainEinsum {
 public:
  /// Loops of more steps run for minutes.
  static constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 36;

  /// Throws kUnsupported, in the words of `op`, for more than kMaxSteps.
  PlainEinsum(const char* op, EinsumEquation equation, std::size_t operands);

  /// Additions and products of one run, or the largest number there is.
  std::uint64_t steps() const { return steps_; }
  std::size_t workspace_bytes() const { return num_sums_ * kSumBytes; }
  void run(const RunContext& context, std::span<const ConstTensorView> inputs, const TensorView& out) const;

 private:
  struct Loop {
    std::int64_t size, stride;
  };
  /// What replaces an operand: sums over `own`, one for each place of `kept`, contiguous in the workspace.
  struct OwnSums {
    std::size_t operand;
    std::vector<Loop> kept, own;
    std::int64_t count;  ///< of sums
    std::size_t first;   ///< of them in the workspace
  };
  static constexpr std::size_t kSumBytes = 8;  // of f64 and u64

  template <class T, class Sum>
  static Sum sum_of(std::span<const Loop> loops, const T* at);
  template <class T>
  void run_as(const RunContext& context, std::span<const ConstTensorView> inputs, const TensorView& out) const;
  void take_own_labels(std::size_t operand);
  void count_steps(std::size_t operands);

  EinsumEquation equation_;  ///< without the labels that are summed first
  std::vector<OwnSums> sums_;
  std::size_t num_sums_ = 0;
  std::uint64_t steps_ = 0;
  bool sums_nothing_ = false;  ///< over an axis of no elements
};

}  // namespace headway
