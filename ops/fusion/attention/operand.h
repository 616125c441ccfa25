// From an operand of attention upwards to the tensor that holds its elements: transposes become axes, scalars a scale,
// joined batches and heads come apart again, repeated key heads are read once. Decides what is only a matter of
// strides.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/fusion/analysis/draft.h"
#include "ops/fusion/analysis/facts.h"

namespace headway::fusion {

/// Axis i of [B, H, S, D] (of [B, S, D] for rank 3) is axis axes[i] of the value.
struct Operand {
  ValueId value = kNoValue;
  std::vector<std::int64_t> axes;
  double scale = 1;
  bool takes_scale = true;  ///< false for a value: a scalar stays in front of it
  bool comes_apart = true;  ///< false: [B·H, S, D] stays as it is
  int rank() const { return static_cast<int>(axes.size()); }
  bool in_order() const;
};

/// Peels what is a matter of strides or a scalar off the operand.
Operand peel(const Draft& draft, Facts* facts, Operand operand);

/// The operand whose heads are each read by `repeats` heads of this one, peeled; nullopt when it is no repetition.
std::optional<Operand> without_repeats(const Draft& draft, Facts* facts, const Operand& operand, std::int64_t* repeats);

/// A dim of the operand by its axis in [B, H, S, D] or [B, S, D]; nullopt when it is not known at all.
std::optional<Dim> operand_dim(Facts* facts, const Operand& operand, int axis);

}  // namespace headway::fusion
