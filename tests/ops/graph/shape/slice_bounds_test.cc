// Slice bounds by the words of ONNX, all combinations of one axis; and Dropout's inputs.
#include <limits>

#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

/// The elements taken, as ONNX's text has it: negative bounds get the length added, then "for positive stepping starts
/// are clamped to [0, n], ends to [0, n]; for negative stepping starts to [0, n − 1], ends to [−1, n − 1]".
std::vector<double> sliced(std::int64_t n, std::int64_t start, std::int64_t end, std::int64_t step) {
  if (start < 0) start += n;
  if (end < 0) end += n;
  std::vector<double> taken;
  if (n == 0) return taken;
  if (step > 0) {
    start = std::min(std::max<std::int64_t>(start, 0), n);
    end = std::min(std::max<std::int64_t>(end, 0), n);
    for (std::int64_t i = start; i < end; i += step) taken.push_back(static_cast<double>(i));
  } else {
    start = std::min(std::max<std::int64_t>(start, 0), n - 1);
    end = std::min(std::max<std::int64_t>(end, -1), n - 1);
    for (std::int64_t i = start; i > end; i += step) taken.push_back(static_cast<double>(i));
  }
  return taken;
}

TEST(Slice, EveryStartEndAndStepOfShortAxes) {
  for (std::int64_t n = 0; n <= 4; ++n) {
    for (std::int64_t start = -n - 3; start <= n + 3; ++start) {
      for (std::int64_t end = -n - 3; end <= n + 3; ++end) {
        for (const std::int64_t step : {-5, -2, -1, 1, 2, 5}) {
          const auto exact = sliced(n, start, end, step);
          const Tensor y = run_on(
              "Slice", list(counted({n}), axis_list({start}), axis_list({end}), axis_list({0}), axis_list({step})));
          ASSERT_EQ(as_doubles(y), exact) << "n " << n << ' ' << start << ':' << end << ':' << step;
        }
      }
    }
  }
}

TEST(Slice, BoundsAtTheEndsOfTheirType) {
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t start : {kLow, kHigh}) {
    for (const std::int64_t end : {kLow, kHigh}) {
      for (const std::int64_t step : {kLow, std::int64_t{-1}, std::int64_t{1}, kHigh}) {
        const std::int64_t near_start = start == kLow ? -9 : 9;
        const std::int64_t near_end = end == kLow ? -9 : 9;
        const std::int64_t near_step = step == kLow ? -9 : step == kHigh ? 9 : step;
        const Tensor y = run_on(
            "Slice", list(counted({4}), axis_list({start}), axis_list({end}), axis_list({0}), axis_list({step})));
        EXPECT_EQ(as_doubles(y), sliced(4, near_start, near_end, near_step)) << start << ':' << end << ':' << step;
      }
    }
  }
}

TEST(Dropout, TakesItsFlagAsABoolAndMarksEveryElement) {
  const auto flag = [](bool training) { return numbers(DataType::kBool, {}, {training ? 1.0 : 0.0}); };
  for (const double ratio : {0.0, 0.5, 1.0}) {
    const auto got = run_node("Dropout", list(counted({2, 3}), floats({}, {ratio}), flag(false)), {}, {.outputs = 2});
    expect_tensor(got[0], DataType::kF32, {2, 3}, {0, 1, 2, 3, 4, 5});
    expect_tensor(got[1], DataType::kBool, {2, 3}, {1, 1, 1, 1, 1, 1});
    expect_tensor(run_on("Dropout", list(counted({2}), floats({}, {ratio}), flag(false))), DataType::kF32, {2}, {0, 1});
  }
  expect_contains(refusal("Dropout", list(counted({2}), floats({}, {0.5}), flag(true)), {}, ErrorCode::kUnsupported),
                  "training_mode is true");
  expect_contains(refusal("Dropout", list(counted({2}), floats({}, {0.5}), integers({}, {0}))), "is i64");
}

}  // namespace
}  // namespace headway::testing
