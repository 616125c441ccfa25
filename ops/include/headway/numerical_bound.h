// How far `Attention` in f32 or bf16 may be from the exact result: constants, where they come from, and the bound they
// make. The tests hold every implementation against it. Knows no implementation.
#pragma once

#include <algorithm>
#include <cmath>

namespace headway::numerical_bound {

/// Distance of 1 to the next f32.
inline constexpr double kEpsilon = 1.0 / (1 << 23);

// |got − exact| ≤ ε · Σ_j p_j|v_j| · (c1 + c2 · M), with M = max_j Σ_d |scale·q_d·k_jd| (+ |bias_j| of the keys that
// carry weight). Where it comes from, with u = ε/2 the error of one rounding:
//
//   s_j      the product rounds once a term; a term's error is at most u times the partial sum, so D·u·M at worst.
//            Roundings are as often up as down and the partial sums of the lanes are short: a few u·M is what happens.
//            Scaling the query first adds u·M, softcap (slope ≤ 1) and bias another u·M each.
//   p_j      exp turns an absolute error of s into a relative one of p: c2·M·ε, once for p_j and once for the sum that
//            divides it; exp itself is good to 4.1e-7 = 3.4 ε; running maximum and rescaling add an ε a key block.
//   Σ p·v    rounds once a key, at most u times the partial sum: Skv·u at worst, a few ε for the lengths tested.
//   out      one division and one store: ε.
//
// The worst measured ratio to the bound is printed by the tests; 1 fails. The constants leave it about a factor of
// four, and are far below what any fault of logic causes: a wrong key in a row of n moves the output by about 1/n.
inline constexpr double kC1 = 24;
inline constexpr double kC2 = 4;

/// How far an element of out, before it is rounded to bf16, may be from the exact one. `weighted` is Σ_j p_j|v_j| of
/// its row and column, `magnitude` the M of its row.
inline double of_out(double weighted, double magnitude) { return kEpsilon * weighted * (kC1 + kC2 * magnitude); }

/// A weight may become 0 from e^−87 on, so that none is denormal: this much per key and unit of |v| on top of of_out().
inline constexpr double kUnderflow = 1.7e-38;

/// bf16 tensors: exact means exact on the bf16 inputs. Everything in between is f32, so the bound above holds up to the
/// store of `out`, which rounds once: half the distance between the two bf16 numbers around it, at most kBf16Rounding
/// of it. A path that hands its weights to a bf16 product rounds each once more: kBf16Rounding · Σ p|v| at most.
inline constexpr double kBf16Rounding = 1.0 / (1 << 8);

/// Half the distance between the bf16 numbers around x: what storing x may change.
inline double half_bf16_step(double x) {
  constexpr int kSmallestExponent = -126;  // denormals lie as far apart as the smallest normal numbers
  const int exponent = x == 0 || !std::isfinite(x) ? kSmallestExponent : std::max(std::ilogb(x), kSmallestExponent);
  return std::ldexp(kBf16Rounding, exponent);
}

}  // namespace headway::numerical_bound
