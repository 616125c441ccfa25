// Operators that move elements or give others dims. Every one is fed counted elements, so that a misplaced one shows.
#include <limits>

#include "tests/ops/graph/run_node.h"

namespace headway::testing {
namespace {

using Ints = std::vector<std::int64_t>;

/// Through a copy too: as the only node of a graph an operator may become a view.
void expect_dims(const char* op, std::vector<Tensor> inputs, const Attributes& attributes, const Dims& dims) {
  const Tensor y = run_on(op, std::move(inputs), attributes);
  std::vector<double> counting;
  for (std::int64_t i = 0; i < element_count(dims); ++i) counting.push_back(static_cast<double>(i));
  expect_tensor(y, DataType::kF32, dims, counting);
}

TEST(ViewOps, GiveTheSameElementsOtherDims) {
  expect_dims("Reshape", list(counted({2, 3, 4}), axis_list({0, -1})), {}, {2, 12});
  expect_dims("Reshape", list(counted({2, 3}), axis_list({6})), {}, {6});
  expect_dims("Reshape", list(counted({1, 1}), integers({0}, {})), {}, {});
  expect_dims("Reshape", list(counted({0, 3}), axis_list({3, 0})), {{"allowzero", std::int64_t{1}}}, {3, 0});
  expect_dims("Flatten", list(counted({2, 3, 4})), {}, {2, 12});
  expect_dims("Flatten", list(counted({2, 3, 4})), {{"axis", std::int64_t{0}}}, {1, 24});
  expect_dims("Flatten", list(counted({2, 3, 4})), {{"axis", std::int64_t{-1}}}, {6, 4});
  expect_dims("Flatten", list(counted({2, 3, 4})), {{"axis", std::int64_t{3}}}, {24, 1});
  expect_dims("Flatten", list(counted({})), {{"axis", std::int64_t{0}}}, {1, 1});
  expect_dims("Squeeze", list(counted({1, 3, 1})), {}, {3});
  expect_dims("Squeeze", list(counted({1, 3, 1}), axis_list({-1})), {}, {1, 3});
  expect_dims("Squeeze", list(counted({1, 3, 1})), {{"axes", Ints{0}}}, {3, 1});
  expect_dims("Unsqueeze", list(counted({3}), axis_list({0, -1})), {}, {1, 3, 1});
  expect_dims("Unsqueeze", list(counted({3})), {{"axes", Ints{1}}}, {3, 1});
  expect_dims("Unsqueeze", list(counted({}), integers({}, {0})), {}, {1});
  expect_dims("Identity", list(counted({2, 2})), {}, {2, 2});
  expect_dims("Dropout", list(counted({2, 2})), {}, {2, 2});
  const auto dropout = run_node("Dropout", list(counted({3})), {}, {.outputs = 2});
  expect_tensor(dropout[1], DataType::kBool, {3}, {1, 1, 1});
}

TEST(ViewOps, NameWhatIsWrong) {
  expect_contains(refusal("Reshape", list(counted({2, 3}), axis_list({4}))), "6 elements");
  expect_contains(refusal("Reshape", list(counted({2, 3}), axis_list({-1, -1}))), "one at most");
  expect_contains(refusal("Reshape", list(counted({2, 3}), axis_list({-2, 3}))), "is -2");
  expect_contains(refusal("Reshape", list(counted({2, 3}), axis_list({1LL << 62, 4, 0}))), "63 bits");
  expect_contains(refusal("Reshape", list(counted({0, 3}), axis_list({0, -1}))), "cannot infer dims[1]");
  expect_contains(refusal("Reshape", list(counted({2, 3}), floats({1}, {6}))), "f32");
  expect_contains(refusal("Squeeze", list(counted({2, 1}), axis_list({0}))), "is 2, expected 1");
  expect_contains(refusal("Squeeze", list(counted({2, 1}), axis_list({2}))), "axis is 2, expected -2 to 1");
  expect_contains(refusal("Unsqueeze", list(counted({2}), axis_list({0, -3}))), "twice");
  expect_contains(refusal("Flatten", list(counted({2})), {{"axis", std::int64_t{2}}}), "axis is 2, expected -1 to 1");
  expect_contains(refusal("Unsqueeze", list(counted({1, 1, 1, 1, 1}), axis_list({0, 1, 2, 3}))), "rank 9");
  expect_contains(error_of(
                      [] {
                        run_node("Reshape", list(counted({4}), axis_list({2, 2})), {}, {.first_constant = 2});
                      },
                      ErrorCode::kUnsupported),
                  "computed from data at run time");
}

TEST(Expand, RepeatsInBothDirections) {
  expect_tensor(run_on("Expand", list(counted({2, 1}), axis_list({3}))), DataType::kF32, {2, 3}, {0, 0, 0, 1, 1, 1});
  expect_tensor(run_on("Expand", list(counted({3}), axis_list({2, 1}))), DataType::kF32, {2, 3}, {0, 1, 2, 0, 1, 2});
  expect_tensor(run_on("Expand", list(counted({1, 2}), axis_list({0, 2}))), DataType::kF32, {0, 2}, {});
  expect_tensor(run_on("Expand", list(counted({2}), axis_list({1, 1}))), DataType::kF32, {1, 2}, {0, 1});
  expect_contains(refusal("Expand", list(counted({2}), axis_list({3}))), "2 and 3");
  expect_contains(refusal("Expand", list(counted({1}), axis_list({-1}))), "is -1");
  expect_tensor(run_on("Tile", list(counted({2, 2}), axis_list({1, 2}))), DataType::kF32, {2, 4},
                {0, 1, 0, 1, 2, 3, 2, 3});
  expect_tensor(run_on("Tile", list(counted({2, 1}), axis_list({2, 2}))), DataType::kF32, {4, 2},
                {0, 0, 1, 1, 0, 0, 1, 1});
  expect_tensor(run_on("Tile", list(counted({2}), axis_list({0}))), DataType::kF32, {0}, {});
  expect_contains(refusal("Tile", list(counted({2}), axis_list({1, 1}))), "2 repeats, expected rank 1");
  expect_contains(refusal("Tile", list(counted({2}), axis_list({-1}))), "-1, expected 0 or more");
  expect_contains(refusal("Tile", list(counted({2}), axis_list({INT64_MAX}))), "63 bits");
}

TEST(Concat, AlongAnyAxisAndType) {
  expect_tensor(run_on("Concat", list(counted({2, 1}), counted({2, 2})), {{"axis", std::int64_t{1}}}), DataType::kF32,
                {2, 3}, {0, 0, 1, 1, 2, 3});
  expect_tensor(run_on("Concat", list(axis_list({7}), axis_list({}), axis_list({8, 9})), {{"axis", std::int64_t{-1}}}),
                DataType::kI64, {3}, {7, 8, 9});
  expect_tensor(run_on("Concat", list(counted({2})), {{"axis", std::int64_t{0}}}), DataType::kF32, {2}, {0, 1});
  expect_contains(refusal("Concat", list(counted({2, 1}), counted({3, 1})), {{"axis", std::int64_t{1}}}),
                  "input 1 has dims [3, 1]");
  expect_contains(refusal("Concat", list(counted({2}), axis_list({1})), {{"axis", std::int64_t{0}}}), "f32 and i64");
  expect_contains(refusal("Concat", list(counted({2}), counted({2, 1})), {{"axis", std::int64_t{0}}}), "expected [2]");
  expect_contains(refusal("Concat", list(counted({2}))), "'axis' is missing");
}

TEST(Split, ByLengthsOrEvenly) {
  const auto given =
      run_node("Split", list(counted({2, 5}), axis_list({2, 0, 3})), {{"axis", std::int64_t{-1}}}, {.outputs = 3});
  expect_tensor(given[0], DataType::kF32, {2, 2}, {0, 1, 5, 6});
  expect_tensor(given[1], DataType::kF32, {2, 0}, {});
  expect_tensor(given[2], DataType::kF32, {2, 3}, {2, 3, 4, 7, 8, 9});
  const auto even = run_node("Split", list(counted({4})), {}, {.outputs = 2});
  expect_tensor(even[1], DataType::kF32, {2}, {2, 3});
  const auto uneven = run_node("Split", list(counted({5})), {{"num_outputs", std::int64_t{3}}}, {.outputs = 3});
  expect_tensor(uneven[2], DataType::kF32, {1}, {4});
  const auto by_attribute = run_node("Split", list(counted({3})), {{"split", Ints{1, 2}}}, {.outputs = 2});
  expect_tensor(by_attribute[1], DataType::kF32, {2}, {1, 2});
  expect_contains(error_of([] { run_node("Split", list(counted({5})), {}, {.outputs = 2}); }),
                  "does not split into 2 equal parts");
  expect_contains(error_of([] {
                    run_node("Split", list(counted({5}), axis_list({2, 2})), {}, {.outputs = 2});
                  }),
                  "leave 1 of 5");
  expect_contains(error_of([] {
                    run_node("Split", list(counted({5}), axis_list({6, -1})), {}, {.outputs = 2});
                  }),
                  "6 long");
  expect_contains(error_of([] { run_node("Split", list(counted({5}), axis_list({5})), {}, {.outputs = 2}); }),
                  "1 lengths, expected 2");
}

Tensor slice(const Dims& dims, Ints starts, Ints ends, Ints axes = {}, Ints steps = {}) {
  std::vector<Tensor> inputs = list(counted(dims), axis_list(starts), axis_list(ends));
  if (!axes.empty()) inputs.push_back(axis_list(axes));
  if (!steps.empty()) inputs.push_back(axis_list(steps));
  return run_on("Slice", std::move(inputs));
}

TEST(Slice, ClampsAndStepsLikeNumpy) {
  expect_tensor(slice({5}, {1}, {4}), DataType::kF32, {3}, {1, 2, 3});
  expect_tensor(slice({5}, {-2}, {INT64_MAX}), DataType::kF32, {2}, {3, 4});
  expect_tensor(slice({5}, {0}, {-1}), DataType::kF32, {4}, {0, 1, 2, 3});
  expect_tensor(slice({5}, {9}, {12}), DataType::kF32, {0}, {});
  expect_tensor(slice({5}, {3}, {2}), DataType::kF32, {0}, {});
  expect_tensor(slice({5}, {0}, {5}, {0}, {2}), DataType::kF32, {3}, {0, 2, 4});
  expect_tensor(slice({5}, {-1}, {INT64_MIN}, {0}, {-1}), DataType::kF32, {5}, {4, 3, 2, 1, 0});
  expect_tensor(slice({5}, {3}, {0}, {0}, {-2}), DataType::kF32, {2}, {3, 1});
  expect_tensor(slice({5}, {4}, {INT64_MIN}, {0}, {INT64_MIN}), DataType::kF32, {1}, {4});
  expect_tensor(slice({5}, {0}, {INT64_MAX}, {0}, {INT64_MAX}), DataType::kF32, {1}, {0});
  expect_tensor(slice({3, 4}, {1}, {3}, {-1}), DataType::kF32, {3, 2}, {1, 2, 5, 6, 9, 10});
  expect_tensor(slice({2, 3}, {1, 2}, {2, 0}, {0, 1}, {1, -1}), DataType::kF32, {1, 2}, {5, 4});
  expect_contains(error_of([] { slice({5}, {0}, {5}, {0}, {0}); }), "steps[0] is 0");
  expect_contains(error_of([] { slice({5}, {0, 1}, {5}); }), "2 starts and 1 ends");
  expect_contains(error_of([] { slice({5}, {0}, {5}, {1}); }), "axis is 1, expected -1 to 0");
  expect_contains(error_of([] { slice({5, 5}, {0, 0}, {5, 5}, {0, -2}); }), "twice");
  expect_contains(error_of([] { slice({5}, {0}, {5}, {0, 0}); }), "2 axes, expected 1");
}

TEST(Gather, RowsElementsAndTuples) {
  const auto gathered = [](const char* op, Tensor data, Tensor indices, const Attributes& attributes = {}) {
    return run_on(op, list(std::move(data), std::move(indices)), attributes);
  };
  expect_tensor(gathered("Gather", counted({3, 2}), integers({2, 2}, {2, 0, -1, 1})), DataType::kF32, {2, 2, 2},
                {4, 5, 0, 1, 4, 5, 2, 3});
  expect_tensor(gathered("Gather", counted({2, 3}), integers({}, {-1}), {{"axis", std::int64_t{1}}}), DataType::kF32,
                {2}, {2, 5});
  expect_tensor(gathered("Gather", axis_list({7, 8}), tensor_of<std::int32_t>({1}, {1})), DataType::kI64, {1}, {8});
  expect_tensor(gathered("Gather", counted({2, 0}), axis_list({1})), DataType::kF32, {1, 0}, {});
  expect_tensor(gathered("Gather", counted({2}), axis_list({})), DataType::kF32, {0}, {});
  expect_contains(refusal("Gather", list(counted({2}), axis_list({2}))), "index is 2, expected -2 to 1");
  expect_contains(refusal("Gather", list(counted({2}), axis_list({INT64_MIN}))), "expected -2 to 1");
  expect_contains(refusal("Gather", list(counted({2}), floats({1}, {0}))), "is f32");
  expect_tensor(gathered("GatherElements", counted({2, 2}), integers({2, 1}, {1, 0}), {{"axis", std::int64_t{1}}}),
                DataType::kF32, {2, 1}, {1, 2});
  expect_contains(refusal("GatherElements", list(counted({2, 2}), axis_list({1}))), "rank 1, expected 2");

  expect_tensor(gathered("GatherND", counted({2, 3}), integers({2, 2}, {1, 2, 0, -3})), DataType::kF32, {2}, {5, 0});
  expect_tensor(gathered("GatherND", counted({2, 2, 2}), integers({2, 1}, {1, 0})), DataType::kF32, {2, 2, 2},
                {4, 5, 6, 7, 0, 1, 2, 3});
  expect_tensor(gathered("GatherND", counted({2, 3}), integers({2, 1}, {2, 0}), {{"batch_dims", std::int64_t{1}}}),
                DataType::kF32, {2}, {2, 3});
  expect_contains(refusal("GatherND", list(counted({2, 3}), integers({1, 2}, {0, 3}))), "index is 3");
  expect_contains(refusal("GatherND", list(counted({2}), integers({1, 2}, {0, 0}))), "2 numbers, expected 1 to 1");
  expect_contains(
      refusal("GatherND", list(counted({2, 3}), integers({3, 1}, {0, 0, 0})), {{"batch_dims", std::int64_t{1}}}),
      "2 and 3");
  expect_contains(refusal("GatherND", list(counted({2}), axis_list({0})), {{"batch_dims", std::int64_t{1}}}),
                  "batch_dims is 1");
}

TEST(ShapeValues, ShapeSizeConstantRange) {
  expect_tensor(run_on("Shape", list(counted({2, 3, 4}))), DataType::kI64, {3}, {2, 3, 4});
  expect_tensor(run_on("Shape", list(counted({2, 3, 4})), {{"start", std::int64_t{-2}}}), DataType::kI64, {2}, {3, 4});
  expect_tensor(run_on("Shape", list(counted({2, 3, 4})), {{"start", std::int64_t{1}}, {"end", std::int64_t{-1}}}),
                DataType::kI64, {1}, {3});
  expect_tensor(run_on("Shape", list(counted({2, 3})), {{"start", std::int64_t{2}}, {"end", std::int64_t{-9}}}),
                DataType::kI64, {0}, {});
  expect_tensor(run_on("Size", list(counted({2, 3}))), DataType::kI64, {}, {6});
  expect_tensor(run_on("Size", list(counted({}))), DataType::kI64, {}, {1});
  const auto constants = [](const char* op, std::vector<Tensor> inputs) {
    return std::move(run_node(op, std::move(inputs), {}, {.first_constant = 0})[0]);
  };
  expect_tensor(constants("ConstantOfShape", list(axis_list({2, 2}), axis_list({7}))), DataType::kI64, {2, 2},
                {7, 7, 7, 7});
  expect_tensor(constants("ConstantOfShape", list(axis_list({}))), DataType::kF32, {}, {0});
  expect_tensor(constants("ConstantOfShape", list(axis_list({0}), numbers(DataType::kBool, {1}, {1}))), DataType::kBool,
                {0}, {});
  const auto range = [&](DataType type, double a, double b, double c) {
    return constants("Range", list(numbers(type, {}, {a}), numbers(type, {}, {b}), numbers(type, {}, {c})));
  };
  expect_tensor(range(DataType::kI64, 2, 9, 3), DataType::kI64, {3}, {2, 5, 8});
  expect_tensor(range(DataType::kI32, 3, -2, -2), DataType::kI32, {3}, {3, 1, -1});
  expect_tensor(range(DataType::kF32, 0, 1, 0.25), DataType::kF32, {4}, {0, 0.25, 0.5, 0.75});
  expect_tensor(range(DataType::kF64, 1, 0, 1), DataType::kF64, {0}, {});
  expect_contains(error_of([&] { range(DataType::kI64, 0, 1, 0); }), "delta is 0");
  expect_contains(error_of([&] { range(DataType::kF32, 0, INFINITY, 1); }), "inf elements");
  expect_contains(error_of([&] {
                    constants("Range", list(integers({}, {INT64_MIN}), integers({}, {INT64_MAX}), integers({}, {1})));
                  }),
                  "more elements than fit");
  expect_contains(error_of([&] { constants("ConstantOfShape", list(axis_list({-1}))); }), "is -1");
  expect_contains(error_of(
                      [] {
                        run_node("Range", list(integers({}, {0}), integers({}, {1}), integers({}, {1})), {},
                                 {.first_constant = 3});
                      },
                      ErrorCode::kUnsupported),
                  "start");
}

TEST(Pad, ModesAndNegativePads) {
  const auto padded = [](Ints pads, const char* mode, const Dims& dims = {2, 3}) {
    return run_on("Pad", list(counted(dims), axis_list(pads)), {{"mode", std::string(mode)}});
  };
  expect_tensor(run_on("Pad", list(counted({2, 2}), axis_list({0, 1, 1, 0}), floats({}, {9}))), DataType::kF32, {3, 3},
                {9, 0, 1, 9, 2, 3, 9, 9, 9});
  expect_tensor(padded({0, -1, 0, 1}, "constant"), DataType::kF32, {2, 3}, {1, 2, 0, 4, 5, 0});
  expect_tensor(padded({-2, 0, 0, 0}, "constant"), DataType::kF32, {0, 3}, {});
  expect_tensor(padded({2, -3, 0, 0}, "constant"), DataType::kF32, {4, 0}, {});
  expect_tensor(padded({0, 2, 0, 1}, "reflect"), DataType::kF32, {2, 6}, {2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4});
  expect_tensor(padded({0, 2, 0, 1}, "edge"), DataType::kF32, {2, 6}, {0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 5});
  expect_tensor(padded({0, 2, 0, 1}, "wrap"), DataType::kF32, {2, 6}, {1, 2, 0, 1, 2, 0, 4, 5, 3, 4, 5, 3});
  expect_tensor(padded({3, 2}, "reflect", {1}), DataType::kF32, {6}, {0, 0, 0, 0, 0, 0});
  const auto on_axis =
      run_node("Pad", list(axis_list({5, 6}), axis_list({1, 0}), axis_list({-1})), {}, {.absent = {2}});
  expect_tensor(on_axis[0], DataType::kI64, {3}, {0, 5, 6});
  expect_contains(error_of([&] { padded({1, 1}, "constant"); }), "2 pads, expected 4");
  expect_contains(error_of([&] { padded({0, -2, 0, -2}, "constant"); }), "no size");
  expect_contains(error_of([&] { padded({0, 1, 0, 1}, "mirror"); }), "'mirror'");
}

TEST(Trilu, KeepsATriangle) {
  const auto triangle = [](const Dims& dims, std::int64_t upper, std::int64_t k) {
    return run_on("Trilu", list(counted(dims), integers({}, {k})), {{"upper", upper}});
  };
  expect_tensor(triangle({2, 3}, 1, 0), DataType::kF32, {2, 3}, {0, 1, 2, 0, 4, 5});
  expect_tensor(triangle({2, 3}, 0, 0), DataType::kF32, {2, 3}, {0, 0, 0, 3, 4, 0});
  expect_tensor(triangle({2, 3}, 1, 1), DataType::kF32, {2, 3}, {0, 1, 2, 0, 0, 5});
  expect_tensor(triangle({2, 3}, 0, -1), DataType::kF32, {2, 3}, {0, 0, 0, 3, 0, 0});
  expect_tensor(triangle({2, 2, 2}, 0, 0), DataType::kF32, {2, 2, 2}, {0, 0, 2, 3, 4, 0, 6, 7});
  expect_tensor(triangle({2, 2}, 1, INT64_MIN), DataType::kF32, {2, 2}, {0, 1, 2, 3});
  expect_tensor(triangle({2, 2}, 1, INT64_MAX), DataType::kF32, {2, 2}, {0, 0, 0, 0});
  expect_contains(refusal("Trilu", list(counted({2}))), "rank 1, expected 2 or more");
}

}  // namespace
}  // namespace headway::testing
