// Rows whose every key is hidden: what they hold. An engine decides on the masks which rows these are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headway/attention.h"

namespace headway {

/// Zero or NaN, by spec.empty_row: the output of an empty row and its probabilities.
float empty_row_value(const AttentionSpec& spec);

/// row[c · stride] = value for c in [0, columns), in f32 or bf16. `stride` counts elements.
void fill_row(DataType type, std::byte* row, std::int64_t columns, std::int64_t stride, float value);

}  // namespace headway
