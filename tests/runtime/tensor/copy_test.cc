// Copies against a loop over indices: every element size, every kind of stride on either side.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "headway/tensor.h"
#include "tests/runtime/error_of.h"

namespace headway {
namespace {

using testing::error_of;
using testing::expect_contains;

std::int64_t offset_of(const Dims& dims, const Dims& strides, std::int64_t n) {
  std::int64_t offset = 0;
  for (int i = dims.rank() - 1; i >= 0; --i) {
    offset += n % dims[i] * strides[i];
    n /= dims[i];
  }
  return offset;
}

/// Copies and checks both that every element arrived and that nothing between them was touched.
void check_copy(const ConstTensorView& from, const TensorView& to, std::vector<std::byte>* memory) {
  const std::size_t bytes = size_bytes(to.type);
  std::vector<std::byte> expected = *memory;
  const std::byte* base = memory->data();
  for (std::int64_t n = 0; n < to.count(); ++n) {
    std::memcpy(expected.data() + (to.data - base) + offset_of(to.dims, to.strides, n) * std::int64_t(bytes),
                from.data + offset_of(from.dims, from.strides, n) * std::int64_t(bytes), bytes);
  }
  copy_elements(from, to);
  EXPECT_EQ(*memory, expected);
}

class Copy : public ::testing::TestWithParam<DataType> {
 protected:
  Copy() : from_(16384), to_(16384, std::byte{0xEE}) {
    for (std::size_t i = 0; i < from_.size(); ++i) from_[i] = static_cast<std::byte>((i * 131 + i / 251) & 0xFF);
  }
  ConstTensorView from(const Dims& dims) const { return {from_.data(), GetParam(), dims}; }
  TensorView to(const Dims& dims) { return {to_.data(), GetParam(), dims}; }
  std::vector<std::byte> from_;
  std::vector<std::byte> to_;
};

TEST_P(Copy, Contiguous) { check_copy(from({5, 7, 9}), to({5, 7, 9}), &to_); }
TEST_P(Copy, Scalar) { check_copy(from({}), to({}), &to_); }
TEST_P(Copy, UnitAxes) { check_copy(from({1, 7, 1}), to({1, 7, 1}), &to_); }
TEST_P(Copy, Transposed) { check_copy(from({7, 9}).permuted({1, 0}), to({9, 7}), &to_); }
TEST_P(Copy, IntoTransposed) { check_copy(from({9, 7}), to({7, 9}).permuted({1, 0}), &to_); }
TEST_P(Copy, BothPermuted) { check_copy(from({3, 5, 7}).permuted({2, 0, 1}), to({3, 5, 7}).permuted({2, 0, 1}), &to_); }
TEST_P(Copy, HeadsToRows) {
  check_copy(from({2, 6, 12}).split_axis(2, 3).permuted({0, 2, 1, 3}), to({2, 3, 6, 4}), &to_);
}
TEST_P(Copy, Slices) { check_copy(from({6, 10}).sliced(1, 2, 7), to({8, 9}).sliced(0, 1, 7).sliced(1, 3, 8), &to_); }
TEST_P(Copy, EveryOtherElement) {
  const ConstTensorView strided(from_.data(), GetParam(), {4, 5}, {10, 2});
  check_copy(strided, to({4, 5}), &to_);
}
TEST_P(Copy, Broadcast) { check_copy(from({1, 9}).broadcast_to({3, 4, 9}), to({3, 4, 9}), &to_); }
TEST_P(Copy, EightAxes) {
  check_copy(from({2, 2, 2, 2, 2, 2, 2, 2}).permuted({7, 2, 5, 0, 1, 6, 3, 4}), to({2, 2, 2, 2, 2, 2, 2, 2}), &to_);
}
TEST_P(Copy, Empty) {
  const std::vector<std::byte> before = to_;
  copy_elements(ConstTensorView(nullptr, GetParam(), {3, 0}), TensorView(nullptr, GetParam(), {3, 0}));
  copy_elements(from({3, 0}), to({3, 0}));
  EXPECT_EQ(to_, before);
}

INSTANTIATE_TEST_SUITE_P(Types, Copy,
                         ::testing::Values(DataType::kF32, DataType::kF64, DataType::kBF16, DataType::kBool),
                         [](const auto& test) { return std::string(type_name(test.param)); });

TEST(CopyRefuses, OtherDimsAndTypes) {
  float a[6] = {};
  double b[6] = {};
  const std::string dims = error_of([&] { copy_elements(view_of(a, {2, 3}), view_of(a, {3, 2})); });
  expect_contains(dims, "[2, 3]");
  expect_contains(dims, "[3, 2]");
  const std::string types = error_of([&] { copy_elements(view_of(a, {6}), view_of(b, {6})); });
  expect_contains(types, "f32");
  expect_contains(types, "f64");
  expect_contains(error_of([&] { copy_elements(ConstTensorView(), view_of(a, {6})); }), "source is absent");
  expect_contains(error_of([&] { copy_elements(view_of(a, {6}), TensorView()); }), "destination is absent");
}

}  // namespace
}  // namespace headway
