// Projections in bf16: against double on the same bf16 operands, the same bits whatever runs them, and the refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <utility>
#include <vector>

#include "headway/numerical_bound.h"
#include "ops/base/numeric.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/onednn_bf16_check.h"
#include "ops/simd/target.h"
#include "tests/ops/matmul/allocation_counter.h"
#include "tests/ops/matmul/matmul_bound.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/host_pool.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

constexpr BFloat16 kPoisonBf16{0x7FC5};
constexpr Zone kZone{"test", "test"};

PlannedMatmulSpec bf16(PlannedMatmulSpec spec, const char* implementation = "") {
  spec.type = DataType::kBF16;
  spec.implementation = implementation;
  return spec;
}

struct Bf16Problem {
  explicit Bf16Problem(const PlannedMatmulSpec& s, bool bias_given = true) : spec(s), with_bias(bias_given) {
    Random random(static_cast<std::uint64_t>(s.rows * 1000003 + s.columns * 1009 + s.depth));
    x.assign(static_cast<std::size_t>(s.rows * s.x_stride), kPoisonBf16);
    for (std::int64_t i = 0; i < s.rows; ++i) {
      for (std::int64_t k = 0; k < s.depth; ++k) {
        x[static_cast<std::size_t>(i * s.x_stride + k)] = to_bfloat16(random.normal());
      }
    }
    weight.resize(static_cast<std::size_t>(s.columns * s.depth));
    for (BFloat16& w : weight) w = to_bfloat16(random.normal());
    bias.resize(static_cast<std::size_t>(s.columns));
    for (BFloat16& b : bias) b = to_bfloat16(random.normal());
  }

  ConstTensorView weight_view() const { return view_of(weight.data(), {spec.columns, spec.depth}); }
  ConstTensorView bias_view() const { return with_bias ? view_of(bias.data(), {spec.columns}) : ConstTensorView(); }

  std::vector<BFloat16> run(const PlannedMatmul& matmul, const Threads& threads) const {
    std::vector<BFloat16> y(static_cast<std::size_t>(spec.rows * spec.y_stride), kPoisonBf16);
    const AlignedBuffer workspace(matmul.workspace_bytes(threads.workers()));
    if (workspace.size_bytes() > 0) std::memset(workspace.data(), 0xFF, workspace.size_bytes());
    matmul.run(x.data(), y.data(), workspace.data(), threads, nullptr, kZone);
    return y;
  }

  PlannedMatmulSpec spec;
  bool with_bias;
  std::vector<BFloat16> x, weight, bias;
};

bool same_bits(const std::vector<BFloat16>& a, const std::vector<BFloat16>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(BFloat16)) == 0;
}

/// Largest error over |exact| · 2^-8 + the bound of the f32 sum: one rounding, and nothing else in bf16.
double worst_ratio(const Bf16Problem& p, const std::vector<BFloat16>& y) {
  double worst = 0;
  const std::int64_t step = std::max<std::int64_t>(1, p.spec.rows / 20);
  for (std::int64_t i = 0; i < p.spec.rows; ++i) {
    if (i % step != 0 && i != p.spec.rows - 1) continue;
    for (std::int64_t n = 0; n < p.spec.columns; ++n) {
      const double b = p.with_bias ? static_cast<double>(widen(p.bias[static_cast<std::size_t>(n)])) : 0.0;
      double sum = b;
      double magnitude = std::abs(b);
      for (std::int64_t k = 0; k < p.spec.depth; ++k) {
        const double term = static_cast<double>(widen(p.x[static_cast<std::size_t>(i * p.spec.x_stride + k)])) *
                            static_cast<double>(widen(p.weight[static_cast<std::size_t>(n * p.spec.depth + k)]));
        sum += term;
        magnitude += std::abs(term);
      }
      const double got = static_cast<double>(widen(y[static_cast<std::size_t>(i * p.spec.y_stride + n)]));
      const double bound = std::abs(sum) / 256 + kMatmulBound * numerical_bound::kEpsilon * magnitude;
      EXPECT_FALSE(std::isnan(got)) << "row " << i << " column " << n;
      EXPECT_TRUE(bound > 0 || got == 0);
      if (bound > 0) worst = std::max(worst, std::abs(got - sum) / bound);
    }
    for (std::int64_t n = p.spec.columns; n < p.spec.y_stride; ++n) {
      EXPECT_EQ(y[static_cast<std::size_t>(i * p.spec.y_stride + n)].bits, kPoisonBf16.bits) << "gap of row " << i;
    }
  }
  return worst;
}

bool has_onednn() { return onednn::packed_bf16_refusal().empty(); }

TEST(PackedMatmulBf16, MatchesDoubleAtEveryEdge) {
  Random random(6);
  double worst[2] = {0, 0};
  std::vector<PlannedMatmulSpec> specs;
  for (const std::int64_t m : {0, 1, 2, 3, 9, 16, 17, 130, 300}) {
    for (const std::int64_t n : {1, 17, 48, 65, 129, 300}) {
      for (const std::int64_t k : {0, 1, 3, 32, 63, 130, 160}) specs.push_back({m, n, k, k, n});
    }
  }
  for (const std::int64_t m : {1, 8, 197}) specs.push_back({m, 1030, 1024, 1024, 1030});
  for (PlannedMatmulSpec spec : specs) {
    spec.x_stride += random.below(3) * 5;
    spec.y_stride += random.below(3) * 16;
    const Bf16Problem p(bf16(spec), random.chance(0.7));
    for (const int onednn : {0, 1}) {
      if (onednn == 1 && (spec.depth == 0 || spec.depth % 32 != 0 || !has_onednn())) continue;
      const PlannedMatmul matmul(bf16(spec, onednn == 1 ? "onednn" : "highway"), p.weight_view(), p.bias_view());
      const double ratio = worst_ratio(p, p.run(matmul, Threads::openmp(2)));
      EXPECT_LE(ratio, 1) << spec.rows << " x " << spec.columns << " x " << spec.depth << ": " << matmul.explain();
      worst[onednn] = std::max(worst[onednn], ratio);
    }
  }
  std::cout << "worst error of PlannedMatmul in bf16: highway " << worst[0] << ", onednn " << worst[1]
            << " of the bound\n";
}

TEST(PackedMatmulBf16, SameBitsOnAnyThreads) {
  for (const PlannedMatmulSpec& spec :
       {PlannedMatmulSpec{600, 400, 64, 64, 416}, PlannedMatmulSpec{1, 1000, 196, 196, 1000},
        PlannedMatmulSpec{197, 768, 96, 103, 784}}) {
    const Bf16Problem p(bf16(spec));
    for (const char* implementation : {"highway", ""}) {
      const PlannedMatmul matmul(bf16(spec, implementation), p.weight_view(), p.bias_view());
      const std::vector<BFloat16> expected = p.run(matmul, Threads::serial());
      for (const int workers : {2, 3, 8}) {
        EXPECT_TRUE(same_bits(p.run(matmul, Threads::openmp(workers)), expected)) << workers;
      }
      HostPool pool(3);
      EXPECT_TRUE(same_bits(p.run(matmul, pool.threads()), expected));
    }
  }
}

TEST(PackedMatmulBf16, AllocatesNothingOnceWarm) {
  for (const std::int64_t rows : {1, 300}) {
    const Bf16Problem p(bf16({rows, 400, 64, 64, 432}));
    for (const char* implementation : {"highway", ""}) {
      const PlannedMatmul matmul(bf16(p.spec, implementation), p.weight_view(), p.bias_view());
      const AlignedBuffer workspace(matmul.workspace_bytes(1));
      std::vector<BFloat16> y(static_cast<std::size_t>(p.spec.rows * p.spec.y_stride));
      const auto run = [&] { matmul.run(p.x.data(), y.data(), workspace.data(), Threads::serial(), nullptr, kZone); };
      run();
      const AllocationCounter counter;
      run();
      EXPECT_EQ(counter.count(), 0);
    }
  }
}

/// All targets sum in the same order up to the width of vectors, but only roughly alike: each is held against double.
TEST(PackedMatmulBf16, HighwayOnEveryTarget) {
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    for (const PlannedMatmulSpec& spec :
         {PlannedMatmulSpec{1, 131, 300, 305, 140}, PlannedMatmulSpec{9, 131, 300, 305, 140},
          PlannedMatmulSpec{131, 50, 129, 129, 50}, PlannedMatmulSpec{150, 700, 129, 129, 700}}) {
      const Bf16Problem p(bf16(spec, "highway"));
      const PlannedMatmul matmul(p.spec, p.weight_view(), p.bias_view());
      EXPECT_LE(worst_ratio(p, p.run(matmul, Threads::serial())), 1) << target;
      expect_contains(matmul.explain(), target + ", bf16 widened to f32");
    }
    cap_simd_target("");
  }
}

/// Widening changes nothing, so what is rounded is the f32 product of the same numbers, bit by bit, however its depth
/// is cut.
TEST(PackedMatmulBf16, IsTheF32ProductRounded) {
  constexpr std::pair<std::int64_t, std::int64_t> kShapes[] = {{1, 300},   {7, 300},  {40, 300},
                                                               {300, 300}, {7, 2200}, {131, 2200}};
  for (const auto& [rows, depth] : kShapes) {
    const Bf16Problem p(bf16({rows, 250, depth, depth, 250}, "highway"));
    std::vector<float> x, weight, bias, y(static_cast<std::size_t>(rows * 250));
    for (const BFloat16 v : p.x) x.push_back(widen(v));
    for (const BFloat16 v : p.weight) weight.push_back(widen(v));
    for (const BFloat16 v : p.bias) bias.push_back(widen(v));
    const PlannedMatmul wide({rows, 250, depth, depth, 250, "highway"}, view_of(weight.data(), {250, depth}),
                             view_of(bias.data(), {250}));
    wide.run(x.data(), y.data(), nullptr, Threads::serial(), nullptr, kZone);
    std::vector<BFloat16> rounded;
    for (const float v : y) rounded.push_back(to_bfloat16(v));
    const PlannedMatmul narrow(p.spec, p.weight_view(), p.bias_view());
    EXPECT_TRUE(same_bits(p.run(narrow, Threads::serial()), rounded)) << rows << " x " << depth;
  }
}

TEST(PackedMatmulBf16, SaysWhichAndWhy) {
  const auto explained = [](std::int64_t rows) {
    const Bf16Problem p(bf16({rows, 64, 64, 64, 64}));
    return PlannedMatmul(p.spec, p.weight_view(), p.bias_view()).explain();
  };
  const Bf16Problem odd(bf16({64, 64, 63, 63, 64}));
  expect_contains(PlannedMatmul(odd.spec, odd.weight_view(), odd.bias_view()).explain(), "multiple of 32, not 63");
  expect_contains(error_of([&] { PlannedMatmul(bf16(odd.spec, "onednn"), odd.weight_view(), odd.bias_view()); },
                           ErrorCode::kUnsupported),
                  "has depth 63, expected a multiple of 32");
  expect_contains(explained(1), "highway");
  expect_contains(explained(1), "not onednn");
  if (has_onednn() && simd_lanes() >= 16) {
    expect_contains(explained(64), "onednn");
    expect_contains(explained(64), "in bf16");
  }
  const std::string best = simd_target();
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    if (simd_lanes() < 16) expect_contains(explained(64), "not onednn: its bf16 products need 16 lanes");
    cap_simd_target("");
  }
}

TEST(PackedMatmulBf16, RefusesAMixture) {
  const Bf16Problem p(bf16({4, 6, 8, 8, 6}));
  const std::vector<float> weight(48), bias(6);
  expect_contains(error_of([&] {
                    PlannedMatmul(p.spec, view_of(weight.data(), {6, 8}), {});
                  }),
                  "weight is f32, expected bf16");
  expect_contains(error_of([&] { PlannedMatmul(p.spec, p.weight_view(), view_of(bias.data(), {6})); }),
                  "bias is f32, expected bf16");
  expect_contains(error_of([&] {
                    PlannedMatmul({4, 6, 8, 8, 6}, p.weight_view(), {});
                  }),
                  "weight is bf16, expected f32");
  PlannedMatmulSpec spec = p.spec;
  spec.type = DataType::kF16;
  expect_contains(error_of([&] { PlannedMatmul(spec, p.weight_view(), {}); }), "type is f16, expected f32 or bf16");
}

}  // namespace
}  // namespace headway::testing
