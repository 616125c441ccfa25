// The value of an empty row, written in the type of the output.
#include "ops/attention/epilogue/empty_row.h"

#include <limits>

#include "ops/base/numeric.h"

namespace headway {

float empty_row_value(const AttentionSpec& spec) {
  return spec.empty_row == EmptyRow::kZero ? 0.0f : std::numeric_limits<float>::quiet_NaN();
}

void fill_row(DataType type, std::byte* row, std::int64_t columns, std::int64_t stride, float value) {
  for (std::int64_t c = 0; c < columns; ++c) {
    if (type == DataType::kBF16) {
      reinterpret_cast<BFloat16*>(row)[c * stride] = to_bfloat16(value);
    } else {
      reinterpret_cast<float*>(row)[c * stride] = value;
    }
  }
}

}  // namespace headway
