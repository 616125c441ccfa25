// The public product of any number of rows: every epilogue against double precision, bits that rows do not share, and
// what it refuses.
#include "headway/packed_matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/ops/matmul/allocation_counter.h"
#include "tests/ops/matmul/matmul_bound.h"
#include "tests/ops/simd/tile_case.h"
#include "tests/runtime/error_of.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

constexpr float kUnwritten = std::numeric_limits<float>::quiet_NaN();

std::vector<float> normals(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = random.normal();
  return values;
}

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return 0;
}

/// A product with everything that can be asked of it; weights are [K, N] where `transposed`.
struct MatmulCase {
  MatmulCase(std::int64_t n, std::int64_t k, Activation a, bool with_gate, bool t = false)
      : columns(n),
        depth(k),
        transposed(t),
        gated(with_gate),
        weight(normals(n * k, 1)),
        gate(normals(n * k, 2)),
        bias(normals(n, 3)),
        gate_bias(normals(n, 4)),
        matmul({n, k, a}, weights()) {}

  ConstTensorView weight_view(const std::vector<float>& w) const {
    if (transposed) return view_of(w.data(), {depth, columns}).permuted({1, 0});
    return view_of(w.data(), {columns, depth});
  }
  PackedMatmulWeights weights() const {
    PackedMatmulWeights w;
    w.weight = weight_view(weight);
    w.bias = view_of(bias.data(), {columns});
    if (!gated) return w;
    w.gate = weight_view(gate);
    w.gate_bias = view_of(gate_bias.data(), {columns});
    return w;
  }

  /// A sum and what its error is measured by: Σ|x·w| + |bias|.
  struct Sum {
    double value, scale;
  };
  Sum sum(const std::vector<float>& w, const std::vector<float>& b, const float* x, std::int64_t n) const {
    const double bias_of = b[static_cast<std::size_t>(n)];
    Sum s{bias_of, std::abs(bias_of)};
    for (std::int64_t k = 0; k < depth; ++k) {
      const double product =
          static_cast<double>(x[k]) * w[static_cast<std::size_t>(transposed ? k * columns + n : n * depth + k)];
      s.value += product;
      s.scale += std::abs(product);
    }
    return s;
  }

  void expect_row(const float* x, const float* residual, const float* got) const {
    constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
    const Activation activation = matmul.spec().activation;
    for (std::int64_t n = 0; n < columns; ++n) {
      const Sum product = sum(weight, bias, x, n);
      const Sum inner = gated ? sum(gate, gate_bias, x, n) : product;
      const double a = activated(activation, inner.value);
      // No activation here is steeper than 1.13, and each is within 8 ε of its own.
      const double a_error = kMatmulBound * kEpsilon * 1.13 * inner.scale + 8 * kEpsilon * std::abs(inner.value);
      const double exact = (gated ? a * product.value : a) + (residual == nullptr ? 0.0 : residual[n]);
      const double error =
          gated ? a_error * std::abs(product.value) + (std::abs(a) + a_error) * kMatmulBound * kEpsilon * product.scale
                : a_error;
      ASSERT_NEAR(got[n], exact, error + 2 * kEpsilon * std::abs(exact)) << "column " << n;
    }
  }

  void run(const PackedMatmulArgs& args, const Threads& threads = Threads::serial()) const {
    const AlignedBuffer workspace(matmul.workspace_bytes(threads.workers()));
    matmul.run(args, workspace.data(), threads);
  }

  std::int64_t columns, depth;
  bool transposed, gated;
  std::vector<float> weight, gate, bias, gate_bias;
  PackedMatmul matmul;
};

/// Rows of a tensor whose rows lie `gap` elements apart.
struct Rows {
  Rows(std::int64_t m, std::int64_t n, std::int64_t gap, std::uint64_t seed)
      : rows(m), columns(n), stride(n + gap), values(static_cast<std::size_t>(m * (n + gap)), kUnwritten) {
    if (seed == 0) return;
    Random random(seed);
    for (std::int64_t r = 0; r < m; ++r) {
      for (std::int64_t c = 0; c < n; ++c) row(r)[c] = random.normal();
    }
  }
  float* row(std::int64_t r) { return values.data() + r * stride; }
  TensorView view() {
    return TensorView(reinterpret_cast<std::byte*>(values.data()), DataType::kF32, {rows, columns}, {stride, 1});
  }
  std::int64_t rows, columns, stride;
  std::vector<float> values;
};

TEST(PackedMatmul, EveryEpilogueAtEveryEdge) {
  constexpr Activation kAll[] = {Activation::kNone, Activation::kRelu, Activation::kSilu, Activation::kGelu,
                                 Activation::kGeluTanh};
  on_every_target([&](const std::string& target) {
    SCOPED_TRACE(target);
    Random random(7);
    for (const Activation activation : kAll) {
      for (const bool gated : {false, true}) {
        for (const auto& [m, n, k] :
             {std::tuple<int, int, int>{1, 1, 1}, {3, 50, 17}, {129, 97, 130}, {5, 200, 1030}}) {
          SCOPED_TRACE(std::string(activation_name(activation)) + (gated ? " gated " : " ") + std::to_string(m) +
                       " × " + std::to_string(n) + " × " + std::to_string(k));
          const MatmulCase problem(n, k, activation, gated, random.chance(0.5));
          Rows x(m, k, 3, 5), residual(m, n, 2, 6), out(m, n, 5, 0);
          const bool added = random.chance(0.5);
          PackedMatmulArgs args;
          args.x = x.view();
          args.out = out.view();
          if (added) args.residual = residual.view();
          problem.run(args);
          for (const std::int64_t r : {std::int64_t{0}, m / std::int64_t{2}, std::int64_t{m} - 1}) {
            problem.expect_row(x.row(r), added ? residual.row(r) : nullptr, out.row(r));
          }
          for (std::int64_t r = 0; r < m; ++r) {
            for (std::int64_t c = n; c < n + 5; ++c) ASSERT_TRUE(std::isnan(out.row(r)[c])) << "gap of row " << r;
          }
        }
      }
    }
  });
}

/// Numbers that bf16 holds, in both types.
struct BothTypes {
  explicit BothTypes(std::vector<float> values) : wide(std::move(values)) {
    for (float& v : wide) v = widen(narrow.emplace_back(to_bfloat16(v)));
  }
  std::vector<float> wide;
  std::vector<BFloat16> narrow;
};

TEST(PackedMatmul, Bf16WeightsGiveTheBitsOfTheSameNumbers) {
  constexpr std::int64_t kColumns = 101, kDepth = 1155;
  const BothTypes weight(normals(kColumns * kDepth, 1)), gate(normals(kColumns * kDepth, 2)),
      bias(normals(kColumns, 3));
  on_every_target([&](const std::string& target) {
    for (const bool gated : {false, true}) {
      PackedMatmulWeights wide, narrow;
      wide.weight = view_of(weight.wide.data(), {kDepth, kColumns}).permuted({1, 0});
      narrow.weight = view_of(weight.narrow.data(), {kDepth, kColumns}).permuted({1, 0});
      wide.bias = view_of(bias.wide.data(), {kColumns});
      narrow.bias = view_of(bias.narrow.data(), {kColumns});
      if (gated) wide.gate = view_of(gate.wide.data(), {kColumns, kDepth});
      if (gated) narrow.gate = view_of(gate.narrow.data(), {kColumns, kDepth});
      if (gated) narrow.gate_bias = wide.gate_bias = wide.bias;
      const PackedMatmulSpec spec{kColumns, kDepth, Activation::kSilu};
      const PackedMatmul of_wide(spec, wide), of_narrow(spec, narrow);
      expect_contains(of_narrow.explain(), "bf16");
      for (const std::int64_t m : {1, 2, 3, 17, 129}) {
        Rows x(m, kDepth, 1, 5), a(m, kColumns, 2, 0), b(m, kColumns, 2, 0);
        const auto run = [&](const PackedMatmul& matmul, Rows* out, const Threads& threads) {
          PackedMatmulArgs args;
          args.x = x.view();
          args.out = out->view();
          const AlignedBuffer workspace(matmul.workspace_bytes(threads.workers()));
          matmul.run(args, workspace.data(), threads);
        };
        run(of_wide, &a, Threads::serial());
        run(of_narrow, &b, Threads::openmp(3));
        ASSERT_EQ(std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)), 0)
            << target << ", " << m << " rows" << (gated ? ", gated" : "");
      }
    }
  });
}

TEST(PackedMatmul, TheResidualMayBeTheOutput) {
  const MatmulCase problem(70, 1100, Activation::kGelu, false);
  Rows x(9, 1100, 0, 5), residual(9, 70, 0, 6), out = residual;
  PackedMatmulArgs args;
  args.x = x.view();
  args.out = out.view();
  args.residual = args.out;
  problem.run(args);
  for (std::int64_t r = 0; r < 9; ++r) problem.expect_row(x.row(r), residual.row(r), out.row(r));
}

TEST(PackedMatmul, ARowHasTheSameBitsWhateverIsBesideIt) {
  on_every_target([&](const std::string& target) {
    const MatmulCase problem(130, 300, Activation::kSilu, true);
    Rows x(150, 300, 0, 5), all(150, 130, 0, 0);
    PackedMatmulArgs args;
    args.x = x.view();
    args.out = all.view();
    problem.run(args);
    for (const auto& [first, count] : {std::pair<int, int>{0, 1}, {149, 1}, {3, 2}, {70, 7}, {20, 130}}) {
      Rows some(count, 130, 9, 0);
      args.x = x.view().sliced(0, first, first + count);
      args.out = some.view();
      problem.run(args, Threads::openmp(3));
      for (std::int64_t r = 0; r < count; ++r) {
        ASSERT_EQ(std::memcmp(some.row(r), all.row(first + r), 130 * sizeof(float)), 0) << target << ", row " << r;
      }
    }
  });
}

TEST(PackedMatmul, AllocatesNothingAtAnyNumberOfRows) {
  const MatmulCase problem(96, 64, Activation::kGeluTanh, true);
  Rows x(40, 64, 0, 5), out(40, 96, 0, 0);
  const AlignedBuffer workspace(problem.matmul.workspace_bytes(1));
  const AllocationCounter counter;
  for (std::int64_t m = 0; m <= 40; ++m) {
    PackedMatmulArgs args;
    args.x = x.view().sliced(0, 0, m);
    args.out = out.view().sliced(0, 0, m);
    problem.matmul.run(args, workspace.data(), Threads::serial());
  }
  EXPECT_EQ(counter.count(), 0);
}

TEST(PackedMatmul, RefusesWhatDoesNotFit) {
  const MatmulCase problem(8, 4, Activation::kNone, false);
  Rows x(3, 4, 0, 5), out(3, 8, 0, 0), wide(3, 5, 0, 5);
  const auto refused = [&](const ConstTensorView& in, const TensorView& to, const ConstTensorView& residual = {}) {
    PackedMatmulArgs args;
    args.x = in;
    args.out = to;
    args.residual = residual;
    return error_of([&] { problem.run(args); });
  };
  expect_contains(refused(wide.view(), out.view()), "x has dims [3, 5], expected [3, 4]");
  expect_contains(refused(x.view(), out.view().sliced(0, 0, 2)), "out has dims [2, 8], expected [3, 8]");
  expect_contains(refused(x.view(), out.view(), wide.view()), "residual has dims [3, 5], expected [3, 8]");
  expect_contains(refused(x.view(), out.view().permuted({1, 0})), "out has dims [8, 3]");
  Rows both(3, 12, 0, 5);
  expect_contains(refused(both.view().sliced(1, 0, 4), both.view().sliced(1, 2, 10)), "out");
  // Columns of their own in one buffer are apart.
  PackedMatmulArgs args;
  args.x = both.view().sliced(1, 0, 4);
  args.out = both.view().sliced(1, 4, 12);
  problem.run(args);
  problem.expect_row(both.row(2), nullptr, both.row(2) + 4);

  PackedMatmulWeights weights = problem.weights();
  expect_contains(error_of([&] {
                    PackedMatmul({8, 5, Activation::kNone}, weights);
                  }),
                  "weight has dims [8, 4], expected [8, 5]");
  PackedMatmulWeights mixed = weights;
  const std::vector<BFloat16> narrow(32);
  mixed.gate = view_of(narrow.data(), {8, 4});
  expect_contains(error_of([&] {
                    PackedMatmul({8, 4, Activation::kNone}, mixed);
                  }),
                  "gate is bf16, expected f32 as weight");
  mixed.gate = {};
  mixed.bias = view_of(narrow.data(), {8});
  expect_contains(error_of([&] {
                    PackedMatmul({8, 4, Activation::kNone}, mixed);
                  }),
                  "weight's bias is bf16, expected f32");
  weights.gate_bias = weights.bias;
  expect_contains(error_of([&] { PackedMatmul({8, 4, Activation::kNone}, weights); }), "gate_bias");
}

}  // namespace
}  // namespace headway::testing
