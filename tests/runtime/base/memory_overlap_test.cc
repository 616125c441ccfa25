// Overlap of strided views against their elements, one by one.
#include "runtime/base/memory_overlap.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

std::set<const std::byte*> elements(const ConstTensorView& view) {
  std::set<const std::byte*> found;
  for (std::int64_t i = 0; i < view.count(); ++i) {
    std::int64_t at = 0, rest = i;
    for (int axis = view.rank() - 1; axis >= 0; --axis) {
      at += rest % view.dims[axis] * view.strides[axis];
      rest /= view.dims[axis];
    }
    found.insert(view.data + at * static_cast<std::int64_t>(size_bytes(view.type)));
  }
  return found;
}

bool share_an_element(const ConstTensorView& a, const ConstTensorView& b) {
  const std::set<const std::byte*> of_b = elements(b);
  for (const std::byte* element : elements(a)) {
    if (of_b.contains(element)) return true;
  }
  return false;
}

float buffer[4096];

ConstTensorView view_at(std::int64_t offset, const Dims& dims, const Dims& strides) {
  return view_of(static_cast<const float*>(buffer) + offset, dims, strides);
}

TEST(MemoryOverlap, ColumnsOfTheirOwnAreApart) {
  // [T, Q | K | V | O] with heads of 4: Q as [B, H, S, D].
  const ConstTensorView query = view_at(0, {2, 3, 5, 4}, {5 * 48, 4, 48, 1});
  const ConstTensorView out = view_at(36, {2, 3, 5, 4}, {5 * 48, 4, 48, 1});
  EXPECT_FALSE(may_overlap(out, query));
  EXPECT_FALSE(may_overlap(query, out));
  EXPECT_TRUE(may_overlap(view_at(8, {2, 3, 5, 4}, {5 * 48, 4, 48, 1}), query)) << "the third head";
  EXPECT_TRUE(may_overlap(view_at(40, {2, 3, 5, 4}, {5 * 48, 4, 48, 1}), query)) << "around the end of the row";
  EXPECT_FALSE(may_overlap(view_at(36, {30}, {48}), query)) << "a column";
  EXPECT_FALSE(may_overlap(view_at(0, {0, 4}, {4, 1}), query)) << "no elements";
  EXPECT_FALSE(may_overlap(ConstTensorView(), query));
}

TEST(MemoryOverlap, NeverMissesASharedElement) {
  int apart_within = 0;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    Random random(seed);
    const auto any = [&] {
      const auto rank = static_cast<int>(random.between(1, 4));
      Dims dims, strides;
      const std::int64_t row = random.pick<std::int64_t>({12, 24, 48, 7});
      std::int64_t below = 0;
      for (int i = 0; i < rank; ++i) {
        dims.push_back(random.between(1, 5));
        strides.push_back(random.pick<std::int64_t>({0, 1, 2, 4, row, -row, 2 * row, random.between(-30, 30)}));
        below += std::min<std::int64_t>(0, (dims[i] - 1) * strides[i]);
      }
      return view_at(random.between(0, 60) - below, dims, strides);
    };
    const ConstTensorView a = any(), b = any();
    const bool shared = share_an_element(a, b), may = may_overlap(a, b);
    ASSERT_TRUE(may || !shared) << "seed " << seed << ": " << a.dims << a.strides << b.dims << b.strides;
    EXPECT_EQ(may, may_overlap(b, a)) << "seed " << seed;
    const auto first = [](const ConstTensorView& view) { return *elements(view).begin(); };
    if (!may && first(a) < *elements(b).rbegin() && first(b) < *elements(a).rbegin()) ++apart_within;
  }
  EXPECT_GT(apart_within, 100) << "woven views that are told apart";
}

TEST(MemoryOverlap, APartBeginsAsTheWholeDoes) {
  // Three of five positions in a buffer of eight: [B, H, M, D].
  const Dims strides = {64, 32, 4, 1};
  const ConstTensorView whole = view_at(0, {2, 2, 5, 4}, strides), part = view_at(0, {2, 2, 3, 4}, strides);
  EXPECT_TRUE(begins_with(whole, part));
  EXPECT_TRUE(begins_with(whole, whole));
  EXPECT_FALSE(begins_with(part, whole));
  EXPECT_FALSE(begins_with(whole, view_at(4, {2, 2, 3, 4}, strides)));
  EXPECT_FALSE(begins_with(whole, view_at(0, {2, 2, 3, 4}, {48, 24, 4, 1})));
  EXPECT_FALSE(begins_with(whole, view_at(0, {2, 1, 3, 4}, strides))) << "two axes";
  EXPECT_FALSE(begins_with(whole, view_at(0, {2, 3, 4}, {64, 4, 1})));
  EXPECT_FALSE(begins_with(whole, view_at(0, {2, 2, 0, 4}, strides))) << "no elements";
  EXPECT_FALSE(begins_with(whole, ConstTensorView()));
  EXPECT_TRUE(begins_with(whole, view_at(0, {2, 2, 1, 4}, {64, 32, 7, 1}))) << "the stride of one position";
  EXPECT_FALSE(begins_with(view_at(0, {5, 4}, {8, 2}), view_at(0, {3, 4}, {8, 2}))) << "innermost stride 2";
}

TEST(MemoryOverlap, ANumberIsWrittenOnceOnly) {
  EXPECT_NO_THROW(check_no_self_overlap("out", view_at(0, {2, 3}, {3, 1})));
  EXPECT_NO_THROW(check_no_self_overlap("out", view_at(0, {3, 2}, {1, 3})));
  EXPECT_THROW(check_no_self_overlap("out", view_at(0, {2, 3}, {2, 1})), Error);
  EXPECT_THROW(check_no_self_overlap("out", view_at(0, {2, 3}, {0, 1})), Error);
}

}  // namespace
}  // namespace headway::testing
