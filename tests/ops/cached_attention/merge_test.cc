// Results over two halves of the keys made one, against the whole; and T5's biases by distance.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "headway/error.h"
#include "headway/numerical_bound.h"
#include "tests/ops/cached_attention/cached_case.h"
#include "tests/ops/simd/tile_case.h"

namespace headway::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

CachedShape whole_shape(DataType type) {
  CachedShape shape;
  shape.spec.type = type;
  shape.spec.num_heads = 6;
  shape.spec.num_kv_heads = 2;
  shape.spec.head_dim = 24;
  shape.spec.causal = false;
  shape.sequences = {{1, 3, 300}, {2, 1, 41}};
  return shape;
}

/// The same rows over keys [0, cut) or [cut, length) alone.
class HalfCase {
 public:
  HalfCase(const CachedShape& shape, bool first, bool sinks) : problem_(masked(shape, sinks)), first_(first) {}

  void run() {
    const CachedAttention attention(problem_.shape().spec);
    const AlignedBuffer workspace(attention.workspace_bytes(1));
    CachedAttentionArgs args = problem_.args();
    const std::int64_t tokens = args.query.dims[0], width = 300;
    mask_.assign(static_cast<std::size_t>(tokens * width), 0);
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t j = 0; j < width; ++j) {
        // The second sequence's keys all are in the first half.
        const bool in_first = t == 3 || j < 130;
        if (in_first != first_) mask_[static_cast<std::size_t>(t * width + j)] = -kInfinity;
      }
    }
    args.mask = view_of(std::as_const(mask_).data(), {tokens, width});
    attention.run(args, workspace.data(), Threads::serial());
    part = {args.out, args.log_sum_exp};
  }
  PartialAttention part;

 private:
  static CachedShape masked(CachedShape shape, bool sinks) {
    shape.sinks = sinks;
    return shape;
  }
  CachedCase problem_;
  bool first_;
  std::vector<float> mask_;
};

TEST(Merge, OfTwoHalvesIsTheWhole) {
  on_every_target([&](const std::string& target) {
    for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
      for (const bool sinks : {false, true}) {
        CachedShape shape = whole_shape(type);
        shape.sinks = sinks;
        CachedCase whole(shape);
        HalfCase a(shape, true, sinks), b(shape, false, false);  // one part alone has the sinks
        a.run();
        b.run();
        Tensor out(type, {4, 6, 24}), logs(DataType::kF32, {4, 6});
        merge(a.part, b.part, out.view(), logs.view(), Threads::openmp(2));
        for (std::size_t s = 0; s < 2; ++s) {
          for (std::int64_t t = 0; t < shape.sequences[s].tokens; ++t) {
            for (std::int64_t h = 0; h < 6; ++h) {
              const CachedCase::Exact exact = whole.exact(s, t, h);
              const std::int64_t row = (whole.first_token(s) + t) * 6 + h;
              EXPECT_NEAR(logs.data<float>()[row], exact.log_sum_exp, 1e-5) << target;
              for (std::int64_t d = 0; d < 24; ++d) {
                const auto at = static_cast<std::size_t>(d);
                // Weights are good to ε·(8 + |lse|), parts and result are rounded to the type.
                const double bound = 2 * numerical_bound::of_out(exact.weighted[at], exact.magnitude) +
                                     2.02 * half_step(type, exact.weighted[at]);
                const float got = cached_element(std::as_const(out).view(), row * 24 + d);
                ASSERT_NEAR(got, exact.out[at], bound) << target << " " << type_name(type) << ", row " << row;
              }
            }
          }
        }
      }
    }
  });
}

TEST(Merge, APartWithoutKeysHasNoSay) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> a = {1, 2, 0, 0}, b = {nan, nan, 0, 0}, out(4);
  std::vector<float> log_a = {0.5f, -kInfinity}, log_b = {-kInfinity, -kInfinity}, log(2);
  merge({view_of(a.data(), {2, 2}), view_of(log_a.data(), {2})},
        {view_of(b.data(), {2, 2}), view_of(log_b.data(), {2})}, view_of(out.data(), {2, 2}), view_of(log.data(), {2}),
        Threads::serial());
  EXPECT_EQ(out, (std::vector<float>{1, 2, 0, 0}));
  EXPECT_EQ(log, (std::vector<float>{0.5f, -kInfinity}));
}

TEST(Merge, IntoAPartAndOverStrides) {
  // Rows of [2, 2, Dv] lie apart, and the result replaces the first part.
  std::vector<float> a = {1, 9, 2, 9, 3, 9, 4, 9}, b = {5, 6, 7, 8};
  std::vector<float> log_a = {0, 1, 2, 3}, log_b = {0, 1, 2, 3};
  const TensorView first = view_of(a.data(), {2, 2, 1}, {4, 2, 1});
  const TensorView logs = view_of(log_a.data(), {2, 2});
  merge({first, logs}, {view_of(b.data(), {2, 2, 1}), view_of(log_b.data(), {2, 2})}, first, logs, Threads::serial());
  EXPECT_EQ(a, (std::vector<float>{3, 9, 4, 9, 5, 9, 6, 9}));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(log_a[static_cast<std::size_t>(i)], i + std::log(2.0), 1e-6);
}

TEST(Merge, RefusesWhatDoesNotFit) {
  std::vector<float> x(64);
  const TensorView out = view_of(x.data(), {3, 4}), log = view_of(x.data() + 12, {3});
  const PartialAttention part{view_of(x.data() + 20, {3, 4}), view_of(x.data() + 40, {3})};
  const auto message = [&](const PartialAttention& a, const TensorView& to, const TensorView& log_to) -> std::string {
    try {
      merge(a, part, to, log_to, Threads::serial());
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  EXPECT_EQ(message(part, {}, log), "out is absent, expected f32, bf16 or f16 [.., columns]");
  EXPECT_EQ(message(part, out, view_of(x.data() + 12, {2})), "log_sum_exp has dims [2], expected [3]");
  EXPECT_EQ(message({part.out.sliced(1, 0, 3), part.log_sum_exp}, out, log), "a.out has dims [3, 3], expected [3, 4]");
  EXPECT_EQ(message({part.out, {}}, out, log), "a.log_sum_exp is absent, expected f32 [3]");
  EXPECT_EQ(message(part, view_of(x.data() + 21, {3, 4}), log),
            "out overlaps a.out: of 48 bytes written, 44 are shared");
  EXPECT_EQ(message(part, out, view_of(x.data() + 11, {3})),
            "log_sum_exp overlaps out: of 12 bytes written, 4 are shared");
  EXPECT_EQ(message(part, out, log), "nothing was refused");
}

TEST(RelativeBias, FollowsT5sBuckets) {
  // Known answers of transformers' T5Attention._relative_position_bucket, 32 buckets, distance 128; by j − i.
  std::vector<float> table;
  for (int bucket = 0; bucket < 32; ++bucket) table.push_back(static_cast<float>(bucket));
  std::vector<float> both(128 + 1 + 128), past(129);
  relative_bias_by_distance(view_of(table.data(), {32, 1}), 128, true, view_of(both.data(), {257, 1}));
  const std::pair<int, float> bidirectional[] = {{-128, 15}, {-64, 14}, {-32, 12}, {-16, 10}, {-8, 8},
                                                 {-7, 7},    {-1, 1},   {0, 0},    {1, 17},   {7, 23},
                                                 {8, 24},    {16, 26},  {32, 28},  {64, 30},  {128, 31}};
  for (const auto& [offset, bucket] : bidirectional) {
    EXPECT_EQ(both[static_cast<std::size_t>(128 - offset)], bucket) << offset;
  }
  relative_bias_by_distance(view_of(table.data(), {32, 1}), 128, false, view_of(past.data(), {129, 1}));
  const std::pair<int, float> decoder[] = {{0, 0},   {15, 15}, {16, 16},  {17, 16},
                                           {32, 21}, {64, 26}, {127, 31}, {128, 31}};
  for (const auto& [distance, bucket] : decoder)
    EXPECT_EQ(past[static_cast<std::size_t>(distance)], bucket) << distance;
}

}  // namespace
}  // namespace headway::testing
