// See compare_values.h.
#include "tools/conformance/compare_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/base/numeric.h"
#include "runtime/base/check.h"
#include "tools/model/tensors.h"

namespace headway::tools {
namespace {

template <class T>
std::vector<double> convert(const ConstTensorView& view) {
  const Tensor contiguous = packed(view);
  const T* values = contiguous.data<T>();
  std::vector<double> out;
  for (std::int64_t i = 0; i < view.count(); ++i) out.push_back(static_cast<double>(widen(values[i])));
  return out;
}

double value_difference(double got, double expected) {
  if (std::isfinite(got) && std::isfinite(expected)) return std::abs(got - expected);
  const bool same = got == expected || (std::isnan(got) && std::isnan(expected));
  return same ? 0 : std::numeric_limits<double>::infinity();
}

}  // namespace

std::vector<double> values_of(const ConstTensorView& view) {
  switch (view.type) {
    case DataType::kF32:
      return convert<float>(view);
    case DataType::kF64:
      return convert<double>(view);
    case DataType::kF16:
      return convert<Float16>(view);
    case DataType::kBF16:
      return convert<BFloat16>(view);
    case DataType::kI8:
      return convert<std::int8_t>(view);
    case DataType::kU8:
      return convert<std::uint8_t>(view);
    case DataType::kI32:
      return convert<std::int32_t>(view);
    case DataType::kI64:
      return convert<std::int64_t>(view);
    case DataType::kBool:
      return convert<bool>(view);
  }
  fail(ErrorCode::kInternal, "a tensor is of an unknown type");
}

ValueComparison compare_values(const std::string& name, const ConstTensorView& got, const ConstTensorView& expected,
                               const ValueBound& bound) {
  const bool stands_for = got.type == DataType::kF32 && expected.type == DataType::kF64;
  require(got.type == expected.type || stands_for, name, " is ", headway::type_name(got.type), ", expected ",
          headway::type_name(expected.type));
  require(got.dims == expected.dims, name, " is ", got.dims, ", expected ", expected.dims);
  const std::vector<double> a = values_of(got);
  const std::vector<double> b = values_of(expected);
  ValueComparison comparison;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double error = value_difference(a[i], b[i]);
    comparison.worst = std::max(comparison.worst, error);
    if (std::isfinite(b[i])) comparison.largest_expected = std::max(comparison.largest_expected, std::abs(b[i]));
    // An infinite error stays one, whatever the bound of an element that is not finite would be.
    const double allowed = std::isfinite(b[i]) ? bound.absolute + bound.relative * std::abs(b[i]) : 1;
    if (error > 0) comparison.worst_over_bound = std::max(comparison.worst_over_bound, error / allowed);
  }
  return comparison;
}

}  // namespace headway::tools
