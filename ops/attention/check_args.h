// Checking the tensors of a run against its spec. Knows no implementation.
#pragma once

#include <cstddef>

#include "headway/attention.h"

namespace headway {

/// Throws kInvalidArgument naming the argument and both numbers when `args` do not fit `spec` (which is complete).
/// Reads lengths and offsets, nothing else; writes nothing; allocates nothing unless it throws.
void check_args(const AttentionSpec& spec, const AttentionArgs& args);
/// The part of it that scores and masks come from: all but value, out, scores and log_sum_exp.
void check_score_inputs(const AttentionSpec& spec, const AttentionArgs& args);
void check_log_sum_exp(const AttentionSpec& spec, const TensorView& log_sum_exp);
/// The part of it that is about the mask.
void check_mask(const AttentionSpec& spec, const ConstTensorView& mask);

/// Throws kInvalidArgument unless `workspace` is there and aligned, where `bytes` of it are needed at all.
void check_workspace(const std::byte* workspace, std::size_t bytes, int workers);

}  // namespace headway
