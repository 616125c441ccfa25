// Views: each method against the elements that it must show, and each refusal.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "headway/tensor.h"
#include "tests/runtime/error_of.h"

namespace headway {
namespace {

using testing::error_of;
using testing::expect_contains;

/// Elements of a view in row-major order, read by strides.
std::vector<float> elements(const ConstTensorView& view) {
  std::vector<float> result;
  const std::int64_t count = view.count();
  for (std::int64_t n = 0; n < count; ++n) {
    std::int64_t rest = n;
    std::int64_t offset = 0;
    for (int i = view.rank() - 1; i >= 0; --i) {
      offset += rest % view.dims[i] * view.strides[i];
      rest /= view.dims[i];
    }
    result.push_back(view.as<float>()[offset]);
  }
  return result;
}

class View : public ::testing::Test {
 protected:
  View() : data_(24), view_(view_of(data_.data(), {2, 3, 4})) { std::iota(data_.begin(), data_.end(), 0.0f); }
  std::vector<float> data_;
  TensorView view_;
};

TEST_F(View, DefaultIsAbsent) {
  EXPECT_FALSE(TensorView());
  EXPECT_TRUE(view_);
  EXPECT_TRUE(ConstTensorView(view_));
}

TEST_F(View, Permuted) {
  const TensorView p = view_.permuted({2, 0, 1});
  EXPECT_EQ(p.dims, (Dims{4, 2, 3}));
  EXPECT_EQ(p.strides, (Dims{1, 12, 4}));
  EXPECT_EQ(elements(p)[1], 4.0f);
  EXPECT_EQ(elements(p)[6], 1.0f);
  EXPECT_FALSE(p.is_contiguous());
  EXPECT_TRUE(p.permuted({1, 2, 0}).is_contiguous());
}

TEST_F(View, PermutedRefuses) {
  expect_contains(error_of([&] { view_.permuted({0, 1}); }), "permutation has 2 axes, expected rank 3");
  expect_contains(error_of([&] { view_.permuted({0, 1, 1}); }), "axis 1 twice");
  expect_contains(error_of([&] { view_.permuted({0, 1, 3}); }), "axis is 3");
  expect_contains(error_of([&] { view_.permuted({0, 1, -1}); }), "axis is -1");
}

TEST_F(View, Sliced) {
  const TensorView s = view_.sliced(1, 1, 3);
  EXPECT_EQ(s.dims, (Dims{2, 2, 4}));
  EXPECT_EQ(s.strides, (Dims{12, 4, 1}));
  EXPECT_EQ(elements(s), (std::vector<float>{4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(view_.sliced(0, 1, 2).data, reinterpret_cast<std::byte*>(&data_[12]));
}

TEST_F(View, EmptySlice) {
  const TensorView s = view_.sliced(1, 3, 3);
  EXPECT_EQ(s.count(), 0);
  EXPECT_TRUE(s.is_contiguous());
  EXPECT_TRUE(s.present);
}

TEST_F(View, SlicedRefuses) {
  const std::string error = error_of([&] { view_.sliced(1, 2, 4); });
  expect_contains(error, "[2, 4)");
  expect_contains(error, "axis 1 of 3");
  error_of([&] { view_.sliced(1, -1, 2); });
  error_of([&] { view_.sliced(1, 2, 1); });
  error_of([&] { view_.sliced(3, 0, 0); });
}

TEST_F(View, Selected) {
  EXPECT_EQ(elements(view_.selected(1, 2)), (std::vector<float>{8, 9, 10, 11, 20, 21, 22, 23}));
  EXPECT_EQ(view_.selected(0, 1).dims, (Dims{3, 4}));
  const TensorView scalar = view_.selected(2, 3).selected(1, 1).selected(0, 1);
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(elements(scalar), std::vector<float>{19});
  expect_contains(error_of([&] { view_.selected(0, 2); }), "index 2 does not fit axis 0 of 2");
  error_of([&] { view_.selected(0, -1); });
}

TEST_F(View, Reshaped) {
  EXPECT_EQ(view_.reshaped({6, 4}).strides, (Dims{4, 1}));
  EXPECT_EQ(elements(view_.reshaped({24})), elements(view_));
  const std::string counts = error_of([&] { view_.reshaped({5, 5}); });
  expect_contains(counts, "24");
  expect_contains(counts, "25");
  expect_contains(error_of([&] { view_.permuted({2, 1, 0}).reshaped({24}); }), "contiguous");
  EXPECT_FALSE(TensorView(nullptr, DataType::kF32, {0}).reshaped({0, 3}).count());
}

TEST_F(View, SplitAxisIsHeads) {
  const TensorView heads = view_.split_axis(2, 2).permuted({0, 2, 1, 3});  // [B, H, S, D]
  EXPECT_EQ(heads.dims, (Dims{2, 2, 3, 2}));
  EXPECT_EQ(elements(heads.selected(0, 0).selected(0, 1)), (std::vector<float>{2, 3, 6, 7, 10, 11}));
  expect_contains(error_of([&] { view_.split_axis(2, 3); }), "axis 2 of 4 elements does not split into 3");
  error_of([&] { view_.split_axis(2, 0); });
}

TEST_F(View, SplitOfStridedAxis) {
  const TensorView split = view_.permuted({2, 1, 0}).split_axis(0, 2);
  EXPECT_EQ(split.dims, (Dims{2, 2, 3, 2}));
  EXPECT_EQ(elements(split), elements(view_.permuted({2, 1, 0})));
}

TEST_F(View, Broadcast) {
  const TensorView row = view_of(data_.data(), {1, 4});
  const TensorView b = row.broadcast_to({2, 3, 4});
  EXPECT_EQ(b.strides, (Dims{0, 0, 1}));
  EXPECT_EQ(elements(b.selected(0, 1).selected(0, 2)), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(view_.broadcast_to({2, 3, 4}).strides, view_.strides);
  // An axis of one that stays one is not broadcast and keeps an ordinary stride.
  EXPECT_EQ(row.broadcast_to({1, 4}).strides, row.strides);
  EXPECT_EQ(view_of(data_.data(), {}).broadcast_to({2, 2}).strides, (Dims{0, 0}));
}

TEST_F(View, BroadcastRefuses) {
  const std::string error = error_of([&] { view_.broadcast_to({2, 5, 4}); });
  expect_contains(error, "axis 1 is 3, expected 1 or 5");
  expect_contains(error_of([&] { view_.broadcast_to({3, 4}); }), "rank from 3 to 2");
  error_of([&] { view_of(data_.data(), {1}).broadcast_to({-1}); });
}

TEST_F(View, UnitAxesDoNotMatterForContiguity) {
  EXPECT_TRUE(TensorView(view_.data, DataType::kF32, {1, 3, 1, 4}, {999, 4, 7, 1}).is_contiguous());
  EXPECT_FALSE(TensorView(view_.data, DataType::kF32, {3, 4}, {5, 1}).is_contiguous());
  EXPECT_FALSE(TensorView(view_.data, DataType::kF32, {3, 4}, {0, 1}).is_contiguous());
}

TEST_F(View, TypedAccessRefusesOtherTypes) {
  expect_contains(error_of([&] { view_.as<double>(); }), "tensor is f32, expected f64");
}

TEST_F(View, OfTypedMemoryWithStrides) {
  const float table[6] = {0, 1, 2, 3, 4, 5};
  const ConstTensorView columns = view_of(table, {3, 2}, {1, 3});
  EXPECT_EQ(elements(columns), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  static_assert(std::is_same_v<decltype(view_of(table, {3, 2}, {1, 3})), ConstTensorView>);
  std::int64_t integers[4] = {};
  const TensorView every_second = view_of(integers, {2}, {2});
  EXPECT_EQ(every_second.type, DataType::kI64);
  every_second.as<std::int64_t>()[every_second.strides[0]] = 9;
  EXPECT_EQ(integers[2], 9);
  expect_contains(error_of([&] { view_of(table, {3, 2}, {1}); }), "1 strides, expected 2");
}

}  // namespace
}  // namespace headway
