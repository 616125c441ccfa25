// Comparisons, logic, Where, Clip and Cast, in every type and at the edges of what a type holds.
#include <limits>

#include "tests/ops/graph/elementwise/float_values.h"
#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

const DataType kAll[] = {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16, DataType::kI8,
                         DataType::kU8,  DataType::kI32, DataType::kI64, DataType::kBool};

Tensor bools(const Dims& dims, const std::vector<double>& values) { return numbers(DataType::kBool, dims, values); }

TEST(Compare, InEveryType) {
  for (const DataType type : kAll) {
    SCOPED_TRACE(type_name(type));
    const auto compared = [&](const char* op) {
      return run_on(op, list(numbers(type, {3}, {0, 1, 1}), numbers(type, {3}, {1, 1, 0})));
    };
    expect_tensor(compared("Equal"), DataType::kBool, {3}, {0, 1, 0});
    expect_tensor(compared("Less"), DataType::kBool, {3}, {1, 0, 0});
    expect_tensor(compared("LessOrEqual"), DataType::kBool, {3}, {1, 1, 0});
    expect_tensor(compared("Greater"), DataType::kBool, {3}, {0, 0, 1});
    expect_tensor(compared("GreaterOrEqual"), DataType::kBool, {3}, {0, 1, 1});
  }
}

TEST(Compare, NanIsUnequalToAll) {
  for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    expect_tensor(run_on(op, list(floats({2, 1}, {kNan, 1}), floats({1}, {kNan}))), DataType::kBool, {2, 1}, {0, 0});
  }
  expect_contains(refusal("Equal", list(floats({1}, {1}), axis_list({1}))), "expected equal types");
}

TEST(Logic, TablesAndRefusals) {
  const auto both = [](const char* op) { return run_on(op, list(bools({2, 1}, {0, 1}), bools({2}, {0, 1}))); };
  expect_tensor(both("And"), DataType::kBool, {2, 2}, {0, 0, 0, 1});
  expect_tensor(both("Or"), DataType::kBool, {2, 2}, {0, 1, 1, 1});
  expect_tensor(both("Xor"), DataType::kBool, {2, 2}, {0, 1, 1, 0});
  expect_tensor(run_on("Not", list(bools({3}, {0, 1, 0}))), DataType::kBool, {3}, {1, 0, 1});
  expect_tensor(run_on("Not", list(bools({0}, {}))), DataType::kBool, {0}, {});
  expect_contains(refusal("And", list(axis_list({1}), axis_list({1}))), "is i64, expected bool");
  expect_contains(refusal("Not", list(floats({1}, {1}))), "is f32, expected bool");
}

TEST(Logic, IsNanAndIsInf) {
  for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16}) {
    const auto x = [&] { return numbers(type, {4}, {kNan, kInf, -kInf, 1}); };
    expect_tensor(run_on("IsNaN", list(x())), DataType::kBool, {4}, {1, 0, 0, 0});
    expect_tensor(run_on("IsInf", list(x())), DataType::kBool, {4}, {0, 1, 1, 0});
    expect_tensor(run_on("IsInf", list(x()), {{"detect_negative", std::int64_t{0}}}), DataType::kBool, {4},
                  {0, 1, 0, 0});
    expect_tensor(run_on("IsInf", list(x()), {{"detect_positive", std::int64_t{0}}}), DataType::kBool, {4},
                  {0, 0, 1, 0});
  }
  expect_contains(refusal("IsNaN", list(axis_list({1}))), "i64");
}

TEST(Where, BroadcastsAllThreeInEveryType) {
  for (const DataType type : kAll) {
    const Tensor y =
        run_on("Where", list(bools({2, 1}, {1, 0}), numbers(type, {3}, {1, 0, 1}), numbers(type, {}, {0})));
    expect_tensor(y, type, {2, 3}, {1, 0, 1, 0, 0, 0});
  }
  // The values are copied, not computed: a NaN that is not picked leaves no trace.
  expect_tensor(
      run_on("Where", list(bools({3}, {1, 0, 1}), floats({3}, {1, kNan, -0.0}), floats({3}, {kNan, 2, kNan}))),
      DataType::kF32, {3}, {1, 2, -0.0});
  expect_contains(refusal("Where", list(floats({1}, {1}), floats({1}, {1}), floats({1}, {1}))), "expected bool");
  expect_contains(refusal("Where", list(bools({1}, {1}), floats({1}, {1}), axis_list({1}))), "f32 and i64");
  expect_contains(refusal("Where", list(bools({3}, {1, 1, 1}), floats({2}, {1, 1}), floats({}, {1}))), "3 and 2");
}

TEST(Clip, BoundsMayBeAbsent) {
  const auto x = [] { return floats({5}, {-3, 0, 3, kNan, kInf}); };
  expect_tensor(run_on("Clip", list(x(), floats({}, {-1}), floats({}, {2}))), DataType::kF32, {5}, {-1, 0, 2, kNan, 2});
  expect_tensor(run_on("Clip", list(x(), floats({}, {-1}))), DataType::kF32, {5}, {-1, 0, 3, kNan, kInf});
  expect_tensor(run_node("Clip", list(x(), floats({}, {2})), {}, {.absent = {1}})[0], DataType::kF32, {5},
                {-3, 0, 2, kNan, 2});
  expect_tensor(run_on("Clip", list(x())), DataType::kF32, {5}, {-3, 0, 3, kNan, kInf});
  expect_tensor(run_on("Clip", list(floats({1}, {0}), floats({}, {5}), floats({}, {2}))), DataType::kF32, {1}, {2});
  expect_tensor(run_on("Clip", list(axis_list({-9, 9}), integers({}, {-2}), integers({1}, {4}))), DataType::kI64, {2},
                {-2, 4});
  expect_contains(refusal("Clip", list(floats({1}, {1}), floats({2}, {1, 2}))), "expected one element");
  expect_contains(refusal("Clip", list(floats({1}, {1}), integers({}, {1}))), "expected equal types");
}

std::int64_t number_of(DataType type) {
  switch (type) {
    case DataType::kF32:
      return 1;
    case DataType::kU8:
      return 2;
    case DataType::kI8:
      return 3;
    case DataType::kI32:
      return 6;
    case DataType::kI64:
      return 7;
    case DataType::kBool:
      return 9;
    case DataType::kF16:
      return 10;
    case DataType::kF64:
      return 11;
    case DataType::kBF16:
      return 16;
  }
  return 0;
}

TEST(Cast, BetweenAllTypes) {
  for (const DataType from : kAll) {
    for (const DataType to : kAll) {
      SCOPED_TRACE(std::string(type_name(from)) + " to " + type_name(to));
      const bool two_values = from == DataType::kBool || to == DataType::kBool;
      const std::vector<double> values = two_values ? std::vector<double>{0, 1, 1} : std::vector<double>{0, 1, 100};
      expect_tensor(run_on("Cast", list(numbers(from, {3}, values)), {{"to", number_of(to)}}), to, {3}, values);
      expect_tensor(run_on("CastLike", list(numbers(from, {3}, values), numbers(to, {0}, {}))), to, {3}, values);
    }
  }
}

TEST(Cast, WhatDoesNotFitIsDefined) {
  const auto cast = [](Tensor x, DataType to) { return run_on("Cast", list(std::move(x)), {{"to", number_of(to)}}); };
  const auto odd = [] { return floats({7}, {kNan, kInf, -kInf, 1e30, -1e30, -1.9, 2.9}); };
  EXPECT_EQ(values_of<std::int64_t>(cast(odd(), DataType::kI64)),
            (std::vector<std::int64_t>{0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, -1, 2}));
  EXPECT_EQ(values_of<std::int32_t>(cast(odd(), DataType::kI32)),
            (std::vector<std::int32_t>{0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, -1, 2}));
  EXPECT_EQ(values_of<std::uint8_t>(cast(odd(), DataType::kU8)), (std::vector<std::uint8_t>{0, 255, 0, 255, 0, 0, 2}));
  expect_tensor(cast(odd(), DataType::kBool), DataType::kBool, {7}, {1, 1, 1, 1, 1, 1, 1});
  expect_tensor(cast(floats({2}, {0.0, -0.0}), DataType::kBool), DataType::kBool, {2}, {0, 0});
  EXPECT_EQ(values_of<std::int32_t>(cast(axis_list({(std::int64_t{1} << 32) + 5, -1}), DataType::kI32)),
            (std::vector<std::int32_t>{5, -1}));
  expect_tensor(cast(numbers(DataType::kF64, {3}, {1e300, -1e300, 1e-300}), DataType::kF32), DataType::kF32, {3},
                {kInf, -kInf, 0});
  expect_tensor(cast(floats({4}, {65504, 65519, 65520, -70000}), DataType::kF16), DataType::kF16, {4},
                {65504, 65504, kInf, -kInf});
  expect_contains(refusal("Cast", list(floats({1}, {1})), {{"to", std::int64_t{8}}}, ErrorCode::kUnsupported),
                  "element type 8");
  expect_contains(refusal("Cast", list(floats({1}, {1}))), "'to' is missing");
}

TEST(Numbers, HalvesRoundToNearestEven) {
  // Every f16 and bf16 survives a way through f32.
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const Float16 half{static_cast<std::uint16_t>(bits)};
    const BFloat16 brain{static_cast<std::uint16_t>(bits)};
    // A NaN has many spellings, and one is as good as another.
    const std::uint16_t half_again = to_float16(widen(half)).bits;
    EXPECT_TRUE(half_again == half.bits || (std::isnan(widen(half)) && std::isnan(widen(Float16{half_again})))) << bits;
    const std::uint16_t brain_again = to_bfloat16(widen(brain)).bits;
    EXPECT_TRUE(brain_again == brain.bits || (std::isnan(widen(brain)) && std::isnan(widen(BFloat16{brain_again}))))
        << bits;
  }
  // Halfway between two neighbours: to the one whose last bit is 0; a little more: up. Denormals too.
  for (const std::uint16_t bits : {0x0001, 0x0002, 0x03FF, 0x0400, 0x3C00, 0x3C01, 0x7BFE}) {
    const double low = widen(Float16{bits}), high = widen(Float16{static_cast<std::uint16_t>(bits + 1)});
    const std::uint16_t even = bits % 2 == 0 ? bits : static_cast<std::uint16_t>(bits + 1);
    EXPECT_EQ(to_float16(static_cast<float>((low + high) / 2)).bits, even);
    EXPECT_EQ(convert<Float16>((low + high) / 2 * (1 + 1e-12)).bits, bits + 1);  // an f64 is rounded once, not twice
    EXPECT_EQ(convert<Float16>((low + high) / 2 * (1 - 1e-12)).bits, bits);
  }
  EXPECT_EQ(convert<BFloat16>(1.00390625 + 1e-9).bits, 0x3F81);
  EXPECT_EQ(convert<BFloat16>(1.00390625).bits, 0x3F80);
}

}  // namespace
}  // namespace headway::testing
