// Rows of args.log_sum_exp: where they lie. What they hold is each engine's running maximum and sum, by one kernel.
// Knows no tiles.
#pragma once

#include <cstdint>

#include "headway/attention.h"

namespace headway {

/// Writes `count` values to the rows from `query` on of one head.
inline void write_log_sum_exp(const TensorView& to, std::int64_t batch, std::int64_t head, std::int64_t query,
                              std::int64_t count, const float* values) {
  const Dims& strides = to.strides;
  float* const row = to.as<float>() + batch * strides[0] + head * strides[1] + query * strides[2];
  for (std::int64_t i = 0; i < count; ++i) row[i * strides[2]] = values[i];
}

/// Writes `value` to all rows.
inline void fill_log_sum_exp(const TensorView& to, float value) {
  for (std::int64_t b = 0; b < to.dims[0]; ++b) {
    for (std::int64_t h = 0; h < to.dims[1]; ++h) {
      for (std::int64_t i = 0; i < to.dims[2]; ++i) write_log_sum_exp(to, b, h, i, 1, &value);
    }
  }
}

}  // namespace headway
