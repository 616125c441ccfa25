// The two products of attention, whether MatMul or Einsum wrote them, as operands with axes.
#pragma once

#include <optional>

#include "ops/fusion/attention/operand.h"

namespace headway::fusion {

/// Queries and keys of a product whose result is [B, H, Sq, Skv] (or [B, Sq, Skv]); nullopt when it is another product.
struct ScoreProduct {
  Operand query, key;
};
std::optional<ScoreProduct> score_product(const Node& node, Facts* facts);

/// Values of a product with [B, H, Sq, Skv] on the left, and where [B, H, Sq, Dv] lies in its result.
struct ContextProduct {
  Operand value;
  std::vector<std::int64_t> out_axes;
};
std::optional<ContextProduct> context_product(const Node& node, Facts* facts);

}  // namespace headway::fusion
