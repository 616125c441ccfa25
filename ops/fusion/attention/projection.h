// x·W + b with W and b constant, in the forms that exporters write it.
//
//   x ── MatMul(W) ── [Add b] ──[Mul c]── y
//   x ── [Reshape −1, E] ── Gemm(W, b) or MatMul(W) ── [Reshape B, S, N] ── y
//   either of them ── Split ── one of its parts
//
// Decides what is one; its weights are columns [begin, begin + columns) of a constant.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

struct Projection {
  ValueId input = kNoValue;   ///< [B, S, E]
  ValueId weight = kNoValue;  ///< [E, N], or [N, E] when transposed
  ValueId bias = kNoValue;    ///< [N], or absent
  bool transposed = false;
  std::int64_t begin = 0;    ///< first column that is used
  std::int64_t columns = 0;  ///< how many are
  double scale = 1;          ///< of the result
};

/// The projection that makes `value`, [B, S, N]; nullopt when it is none.
std::optional<Projection> read_projection(const Draft& draft, Facts* facts, ValueId value);

/// The projection that alone reads `heads` [B, S, H, D], joined to [B, S, E] or [B·S, E], and its result [B, S, N].
struct OutputProjection {
  Projection projection;
  ValueId result = kNoValue;
};
std::optional<OutputProjection> projection_below(const Draft& draft, Facts* facts, ValueId heads);

/// Weight as [E, columns] and bias as [columns], new constants only where a part or a transpose is asked for.
ValueId weight_constant(const Projection& projection, Draft* draft);
ValueId bias_constant(const Projection& projection, Draft* draft);

}  // namespace headway::fusion
