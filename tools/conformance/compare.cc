// Element by element, NaN never passes unseen. See compare.h.
#include "tools/conformance/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/check.h"
#include "tools/model/tensors.h"

namespace headway::tools {
namespace {

constexpr double kNeverPasses = std::numeric_limits<double>::infinity();

double difference(double got, double expected) {
  if (got == expected) return 0;  // also for equal infinities
  const double error = std::abs(got - expected);
  return std::isnan(error) ? kNeverPasses : error;
}

double element(const ConstTensorView& contiguous, std::int64_t i) {
  return contiguous.type == DataType::kF64 ? contiguous.as<double>()[i]
                                           : static_cast<double>(contiguous.as<float>()[i]);
}

bool is_compared(DataType type) { return type == DataType::kF32 || type == DataType::kF64 || type == DataType::kBF16; }

}  // namespace

Comparison compare(const Comparands& comparands) {
  const ConstTensorView& expected_view = comparands.expected;
  require(is_compared(expected_view.type), "expected ", comparands.name, " is ", type_name(expected_view.type),
          ", expected f32, f64 or bf16");
  require(comparands.got.dims == expected_view.dims, "expected ", comparands.name, " has shape ", expected_view.dims,
          ", the result has ", comparands.got.dims);
  Comparison out;
  const std::int64_t count = expected_view.count();
  if (count == 0) return out;
  F32Pool pool;
  const auto widened = [&](const ConstTensorView& view) {
    return view.type == DataType::kBF16 ? pool.f32(view, comparands.name) : view;
  };
  const Tensor dense = packed(widened(expected_view));
  const ConstTensorView expected = dense.view();
  const ConstTensorView got = widened(comparands.got);
  const std::int64_t width = expected_view.dims.rank() > 0 ? expected_view.dims.back() : 1;
  for (std::int64_t row = 0; row * width < count; ++row) {
    const RowState state = comparands.rows[static_cast<std::size_t>(row)];
    bool nan_row = false;
    for (std::int64_t i = 0; i < width; ++i) {
      const double want = element(expected, row * width + i);
      const double have = element(got, row * width + i);
      if (!std::isnan(want)) {
        if (std::isfinite(want)) out.largest_expected = std::max(out.largest_expected, std::abs(want));
        out.worst = std::max(out.worst, difference(have, want));
        continue;
      }
      nan_row = true;
      if (state == RowState::kSeesKeys || !std::isfinite(have)) out.worst = kNeverPasses;
      if (state == RowState::kAllHeadsEmpty) {
        const double known = comparands.empty_value.empty() ? 0 : comparands.empty_value[static_cast<std::size_t>(i)];
        out.worst = std::max(out.worst, difference(have, known));
      }
    }
    out.empty_rows_nan += nan_row;
  }
  return out;
}

}  // namespace headway::tools
