// The operators of this library as graph operators.
#pragma once

#include "headway/operator.h"

namespace headway {

/// Adds every operator of ops/ to a registry: MultiHeadAttention, Attention, MatMul, Softmax, Add, Mul, Reshape,
/// Transpose.
void register_ops(Registry* registry);

}  // namespace headway
