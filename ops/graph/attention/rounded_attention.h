// Attention whose every step is rounded to a narrow type, as the function body that defines the ONNX operator writes
// it. Decides where the roundings lie; for results in f16 and bf16 that must agree with that body to the last bit or
// so.
#pragma once

#include <cstdint>

#include "headway/attention.h"

namespace headway {

struct RoundedSpec {
  AttentionSpec core;                      ///< complete, in f32; scale is used through rounded_scale()
  DataType type = DataType::kF32;          ///< of query, key and value: f32, f16 or bf16
  DataType softmax_type = DataType::kF32;  ///< of everything between the biased scores and the probabilities
};

/// √scale in the type: both query and key are multiplied by it before the product, and rounded.
float rounded_scale(const RoundedSpec& spec);

/// Floats that one worker needs.
std::int64_t rounded_scratch_floats(const RoundedSpec& spec);

/// Computes one query row of one head. All tensors of `args` are f32 and hold numbers of the type; query and
/// key are multiplied already. `out` and `scores` get numbers of the type.
void rounded_attention_row(const RoundedSpec& spec, const AttentionArgs& args, std::int64_t batch, std::int64_t head,
                           std::int64_t row, float* scratch);

}  // namespace headway
