// Dims: printing, counting, overflow, strides.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "headway/tensor.h"
#include "tests/runtime/error_of.h"

namespace headway {
namespace {

using testing::error_of;
using testing::expect_contains;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::string printed(const Dims& dims) {
  std::ostringstream out;
  out << dims;
  return out.str();
}

TEST(Dims, Prints) {
  EXPECT_EQ(printed({2, 12, 49, 32}), "[2, 12, 49, 32]");
  EXPECT_EQ(printed({7}), "[7]");
  EXPECT_EQ(printed({}), "[]");
}

TEST(Dims, CountsElements) {
  EXPECT_EQ(element_count({2, 3, 4}), 24);
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({5, 0, 3}), 0);
  EXPECT_EQ(element_count({kMax}), kMax);
  EXPECT_EQ(element_count({kMax, 1}), kMax);
}

TEST(Dims, ZeroAxisWinsOverOverflow) {
  EXPECT_EQ(element_count({kMax, kMax, 0}), 0);
  EXPECT_EQ(element_count({0, kMax, kMax}), 0);
}

TEST(Dims, RefusesOverflow) {
  const std::string error = error_of([] { element_count({std::int64_t{1} << 32, std::int64_t{1} << 31}); });
  expect_contains(error, "[4294967296, 2147483648]");
  expect_contains(error, "63 bits");
  EXPECT_EQ(element_count({std::int64_t{1} << 31, std::int64_t{1} << 31}), std::int64_t{1} << 62);
}

TEST(Dims, RefusesNegativeEvenBesideZero) {
  expect_contains(error_of([] { element_count({0, -3}); }), "axis 1 of [0, -3] is -3");
  expect_contains(error_of([] { contiguous_strides({2, -1}); }), "axis 1 of [2, -1] is -1");
}

TEST(Dims, ContiguousStrides) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 1, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Dims{});
  expect_contains(error_of([] { contiguous_strides({2, kMax, 2}); }), "63 bits");
}

TEST(Dims, RankIsBounded) {
  Dims dims{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(dims.rank(), kMaxRank);
  EXPECT_EQ(dims.back(), 8);
  expect_contains(error_of([&] { dims.push_back(9); }), "rank would be 9");
  expect_contains(error_of([] { Dims{1, 2, 3, 4, 5, 6, 7, 8, 9}; }), "rank is 9");
}

TEST(Dims, BytesOverflowWhereElementsDoNot) {
  EXPECT_EQ(element_count({kMax}), kMax);
  expect_contains(error_of([] { tensor_bytes(DataType::kF32, {kMax}); }), "bytes of a tensor of f32");
  EXPECT_EQ(tensor_bytes(DataType::kF64, {3, 5}), 120u);
  expect_contains(error_of([] { Tensor(DataType::kF64, {std::int64_t{1} << 61}); }), "63 bits");
}

}  // namespace
}  // namespace headway
