// Numbers as a narrower type would hold them, and whole views between any two float types. Knows nothing of attention.
#pragma once

#include "headway/tensor.h"

namespace headway {

/// The value as `type` (f32, f16 or bf16) would hold it.
float rounded(DataType type, float value);

/// Element by element between views of the same dims and any two float types; rounds once. Allocates nothing.
void convert_view(const ConstTensorView& from, const TensorView& to);

}  // namespace headway
