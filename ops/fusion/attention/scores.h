// From a Softmax upwards to the product of queries and keys: the scale, the softcap and what is added on the way.
//
//   MatMul(Q, Kt) -> [Mul, Div: scalars] -> [Tanh: softcap] -> [Add: masks] -> [Where: fills] -> [Reshape] -> Softmax
//
// in any order and number that means attention. Decides what counts as a scale and what as a mask; builds nothing.
#pragma once

#include <string>
#include <vector>

#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

/// The first edge that failed, of the attempt that came furthest.
class Failure {
 public:
  void note(int depth, std::string edge) {
    if (depth <= depth_) return;
    depth_ = depth;
    edge_ = std::move(edge);
  }
  const std::string& edge() const { return edge_; }

 private:
  int depth_ = -1;
  std::string edge_ = "no edge was followed";
};

/// Something that joins the scores.
struct ScoreTerm {
  ValueId value = kNoValue;  ///< added, times factor; or kNoValue: a fill
  double factor = 1;
  ValueId condition = kNoValue;  ///< of a fill: bool, or 0/1 numbers
  bool hides_when = true;        ///< of a fill: what the condition is where scores are replaced
  double fill = 0;               ///< of a fill
};

struct Scores {
  int product = -1;  ///< number of the MatMul or Einsum
  double scale = 1;
  double softcap = 0;
  std::vector<ScoreTerm> terms;      ///< innermost first
  std::vector<ValueId> multipliers;  ///< scalars known at run time only, that multiply the product
  std::vector<ValueId> divisors;     ///< the same, that divide it
  bool reshaped = false;             ///< [B·H, S, S] and [B, H, S, S] both occur
  std::vector<ValueId> apart;        ///< those [B, H, S, S] that a Reshape makes or reads
};

/// Walks up from the input of a Softmax. False when it is no attention, with the reason in `failure`.
bool read_scores(const Draft& draft, Facts* facts, ValueId input, Scores* scores, Failure* failure);

/// True when a Reshape only splits or joins the axes before the last two, and that can be shown.
bool keeps_last_two(Facts* facts, ValueId from, ValueId to);

}  // namespace headway::fusion
