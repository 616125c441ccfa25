// The end of a row: from its softmax state to out and log_sum_exp, sinks and rows without keys included. Knows no keys.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cached_attention/call.h"
#include "ops/cached_attention/states.h"

namespace headway {

/// out = factor · context, or 0 where the row is empty.
struct RowEnd {
  float factor;
  float log_sum_exp;
  bool empty;
};
RowEnd row_end(const CachedCall& call, std::int64_t head, float maximum, float sum, bool live);

/// Row `token` of the call, not of a sequence.
std::byte* out_row(const CachedCall& call, std::int64_t token, std::int64_t head);
void write_log_sum_exp(const CachedCall& call, std::int64_t token, std::int64_t head, float value);
void write_empty_row(const CachedCall& call, std::byte* out);
/// Of a state of one row.
void write_row(const CachedCall& call, std::int64_t token, std::int64_t head, const SoftmaxState& state);

}  // namespace headway
