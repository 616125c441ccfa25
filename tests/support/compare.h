// Holds what an implementation computed against the double reference, within the bound of numerical_bound.h. Fails on
// NaN where none belongs. Knows no implementation.
#pragma once

#include <string>
#include <vector>

#include "headway/attention.h"

namespace headway::testing {

/// Result of a comparison: `worst` is the largest ratio of a difference to its bound, less what storing a bf16 number
/// may change; the failure is the first seen.
struct Comparison {
  double worst = 0;
  std::string failure;  ///< empty: every element is within its bound
  bool ok() const { return failure.empty(); }
};

/// The exact result of one problem with the bound of every element. Made once, compared with many.
class Expected {
 public:
  /// Reads all values, hidden or not; the outputs of `args` are not touched.
  Expected(const AttentionSpec& spec, const AttentionArgs& args);

  /// The outputs of `args` as an implementation left them, for the spec and inputs given above. `bf16_weights`:
  /// it is one that rounds its weights to bf16.
  Comparison compare(const AttentionArgs& args, bool bf16_weights = false) const;

  /// Exact output [B, Hq, Sq, Dv] in row-major order.
  const std::vector<double>& out() const { return out_; }

 private:
  void compare_out(const AttentionArgs& args, bool bf16_weights, Comparison* result) const;
  void compare_scores(const AttentionArgs& args, Comparison* result) const;
  void compare_log_sum_exp(const AttentionArgs& args, bool bf16_weights, Comparison* result) const;
  double score_bound(double exact, double magnitude) const;

  AttentionSpec spec_;
  Dims out_dims_;
  Dims score_dims_;                    // rank 4; one head for mean probabilities; empty without scores
  std::vector<double> out_;            // [B, Hq, Sq, Dv]
  std::vector<double> weighted_;       // Σ p|v|, same dims
  std::vector<double> scores_;         // score_dims_
  std::vector<double> log_sum_exp_;    // [B, Hq, Sq]
  std::vector<double> magnitude_;      // M of a row: [B, Hq, Sq]
  std::vector<double> raw_magnitude_;  // the same over all keys, for scores of modes 0 and 1
};

/// Mean over all rows of entropy(p) / log(number of visible keys), rows that see fewer than two keys left out; NaN
/// when there are none. 0: every row is one-hot; 1: every row is uniform. Tests on such data prove little.
double row_entropy(const AttentionSpec& spec, const AttentionArgs& args);

}  // namespace headway::testing
