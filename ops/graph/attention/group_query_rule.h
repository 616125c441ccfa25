// What a node of com.microsoft.GroupQueryAttention may be: its inputs, sizes and what is refused. Knows no run.
#pragma once

#include <optional>

#include "headway/operator.h"

namespace headway::group_query {

inline constexpr const char* kOp = "com.microsoft.GroupQueryAttention";

enum At : std::size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCos,
  kSin,
  kPositions,
  kBias,
  kSink,
  kInputs
};
enum Out : std::size_t { kOut, kPresentKey, kPresentValue, kOutputs };

/// B batch, S new tokens, D of a head, P of the past, T of the present.
struct Sizes {
  Dim batch = 1, tokens = 1, head_dim = 1, past = 0, present = 1;
};

/// Checks all that is known. nullopt where a rank is not. `present`: T, where it is settled already. Throws naming the
/// input and both numbers.
std::optional<Sizes> sizes_of(const InferContext& node, const std::optional<Dim>& present = std::nullopt);

}  // namespace headway::group_query
