// Projections against double precision: every edge of the blocks, strides, and the same bits whatever runs them.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>
#include <vector>

#include "headway/numerical_bound.h"
#include "ops/matmul/matmul.h"
#include "ops/simd/target.h"
#include "tests/ops/matmul/allocation_counter.h"
#include "tests/ops/matmul/matmul_bound.h"
#include "tests/runtime/error_of.h"
#include "tests/runtime/host_pool.h"
#include "tests/support/random_data.h"

namespace headway::testing {
namespace {

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

struct Problem {
  explicit Problem(const PlannedMatmulSpec& s, bool bias_given = true, bool weight_transposed = false)
      : spec(s), with_bias(bias_given), transposed(weight_transposed) {
    Random random(static_cast<std::uint64_t>(s.rows * 1000003 + s.columns * 1009 + s.depth));
    x.assign(static_cast<std::size_t>(s.rows * s.x_stride), kPoison);
    for (std::int64_t i = 0; i < s.rows; ++i) {
      for (std::int64_t k = 0; k < s.depth; ++k) x[static_cast<std::size_t>(i * s.x_stride + k)] = random.normal();
    }
    weight.resize(static_cast<std::size_t>(s.columns * s.depth));
    for (float& w : weight) w = random.normal();
    bias.resize(static_cast<std::size_t>(s.columns));
    for (float& b : bias) b = random.normal();
  }

  ConstTensorView weight_view() const {
    if (transposed) return view_of(weight.data(), {spec.depth, spec.columns}).permuted({1, 0});
    return view_of(weight.data(), {spec.columns, spec.depth});
  }
  ConstTensorView bias_view() const { return with_bias ? view_of(bias.data(), {spec.columns}) : ConstTensorView(); }
  double w(std::int64_t n, std::int64_t k) const {
    return weight[static_cast<std::size_t>(transposed ? k * spec.columns + n : n * spec.depth + k)];
  }

  std::vector<float> run(const PlannedMatmul& matmul, const Threads& threads) const {
    std::vector<float> y(static_cast<std::size_t>(spec.rows * spec.y_stride), kPoison);
    const AlignedBuffer workspace(matmul.workspace_bytes(threads.workers()));
    static constexpr Zone kTestZone{"test", "test"};
    matmul.run(x.data(), y.data(), workspace.data(), threads, nullptr, kTestZone);
    return y;
  }

  PlannedMatmulSpec spec;
  bool with_bias, transposed;
  std::vector<float> x, weight, bias;
};

/// Largest ratio of an error to its bound over some rows; gaps between rows must be untouched.
double worst_ratio(const Problem& p, const std::vector<float>& y) {
  double worst = 0;
  const std::int64_t step = std::max<std::int64_t>(1, p.spec.rows / 20);
  for (std::int64_t i = 0; i < p.spec.rows; ++i) {
    if (i % step != 0 && i != p.spec.rows - 1) continue;
    for (std::int64_t n = 0; n < p.spec.columns; ++n) {
      const double b = p.with_bias ? p.bias[static_cast<std::size_t>(n)] : 0.0;
      double sum = b;
      double magnitude = std::abs(b);
      for (std::int64_t k = 0; k < p.spec.depth; ++k) {
        const double term = p.x[static_cast<std::size_t>(i * p.spec.x_stride + k)] * p.w(n, k);
        sum += term;
        magnitude += std::abs(term);
      }
      const double error = std::abs(y[static_cast<std::size_t>(i * p.spec.y_stride + n)] - sum);
      EXPECT_FALSE(std::isnan(error)) << "row " << i << " column " << n;
      EXPECT_TRUE(magnitude > 0 || error == 0);
      if (magnitude > 0) worst = std::max(worst, error / (kMatmulBound * numerical_bound::kEpsilon * magnitude));
    }
    for (std::int64_t n = p.spec.columns; n < p.spec.y_stride; ++n) {
      EXPECT_TRUE(std::isnan(y[static_cast<std::size_t>(i * p.spec.y_stride + n)])) << "gap of row " << i;
    }
  }
  return worst;
}

TEST(PlannedMatmul, MatchesDoubleAtEveryEdge) {
  Random random(5);
  double worst = 0;
  std::vector<PlannedMatmulSpec> specs;
  for (const std::int64_t m : {0, 1, 2, 63, 255, 257, 513, 700}) {
    for (const std::int64_t n : {1, 2, 17, 63, 64, 65, 129, 300}) {
      for (const std::int64_t k : {0, 1, 3, 16, 65}) specs.push_back({m, n, k, k, n});
    }
  }
  for (const std::int64_t n : {768, 1030}) {
    for (const std::int64_t m : {1, 8, 197}) specs.push_back({m, n, 1024, 1024, n});
  }
  for (PlannedMatmulSpec spec : specs) {
    spec.x_stride += random.below(3) * 5;
    spec.y_stride += random.below(3) * 16;
    const Problem p(spec, random.chance(0.7), random.chance(0.3));
    for (const char* implementation : {"highway", "onednn"}) {
      if (spec.depth == 0 && std::string(implementation) == "onednn") continue;
      spec.implementation = implementation;
      const PlannedMatmul matmul(spec, p.weight_view(), p.bias_view());
      const double ratio = worst_ratio(p, p.run(matmul, Threads::openmp(2)));
      EXPECT_LE(ratio, 1) << spec.rows << " x " << spec.columns << " x " << spec.depth << ": " << matmul.explain();
      worst = std::max(worst, ratio);
    }
  }
  std::cout << "worst error of PlannedMatmul: " << worst << " of the bound\n";
}

TEST(PlannedMatmul, SameBitsOnAnyThreads) {
  for (const PlannedMatmulSpec& spec :
       {PlannedMatmulSpec{600, 400, 64, 64, 416}, PlannedMatmulSpec{1, 1000, 96, 96, 1000},
        PlannedMatmulSpec{197, 768, 100, 103, 784}}) {
    const Problem p(spec);
    const PlannedMatmul matmul(spec, p.weight_view(), p.bias_view());
    const std::vector<float> expected = p.run(matmul, Threads::serial());
    const std::size_t bytes = expected.size() * sizeof(float);
    for (const int workers : {2, 3, 8}) {
      EXPECT_EQ(std::memcmp(p.run(matmul, Threads::openmp(workers)).data(), expected.data(), bytes), 0) << workers;
    }
    HostPool pool(3);
    EXPECT_EQ(std::memcmp(p.run(matmul, pool.threads()).data(), expected.data(), bytes), 0);
  }
}

std::size_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), std::filesystem::directory_iterator()));
}

TEST(PlannedMatmul, StaysOnItsThread) {
  const Problem p({512, 512, 128, 128, 512});
  std::thread([&] {
    const int setting = omp_get_max_threads();  // what oneDNN would take
    const std::size_t before = threads_of_process();
    const PlannedMatmul matmul(p.spec, p.weight_view(), p.bias_view());
    const AlignedBuffer workspace(matmul.workspace_bytes(1));
    std::vector<float> y(static_cast<std::size_t>(p.spec.rows * p.spec.y_stride));
    for (std::int64_t task = 0; task < matmul.tasks(); ++task) {
      matmul.run_task(task, 0, p.x.data(), y.data(), workspace.data());
    }
    EXPECT_EQ(threads_of_process(), before);
    EXPECT_EQ(omp_get_max_threads(), setting);
  }).join();
}

TEST(PlannedMatmul, AllocatesNothingOnceWarm) {
  const Problem p({300, 400, 64, 64, 432});
  const PlannedMatmul matmul(p.spec, p.weight_view(), p.bias_view());
  const AlignedBuffer workspace(matmul.workspace_bytes(1));
  std::vector<float> y(static_cast<std::size_t>(p.spec.rows * p.spec.y_stride));
  const auto run = [&] {
    for (std::int64_t task = 0; task < matmul.tasks(); ++task) {
      matmul.run_task(task, 0, p.x.data(), y.data(), workspace.data());
    }
  };
  run();
  const AllocationCounter counter;
  run();
  EXPECT_EQ(counter.count(), 0);
}

TEST(PlannedMatmul, CountsItsWork) {
  const Problem p({300, 401, 64, 64, 432});
  const PlannedMatmul matmul(p.spec, p.weight_view(), p.bias_view());
  std::int64_t flops = 0;
  for (std::int64_t task = 0; task < matmul.tasks(); ++task) flops += matmul.task_flops(task);
  EXPECT_EQ(flops, 2 * 300 * 401 * 64);
  expect_contains(matmul.explain(), std::to_string(matmul.tasks()) + " tasks");
}

TEST(PlannedMatmul, HighwayOnEveryTarget) {
  for (const std::string& target : simd_targets()) {
    cap_simd_target(target);
    // Depths of one slice and of several, the last of one step, of one block, of odd length.
    for (PlannedMatmulSpec spec :
         {PlannedMatmulSpec{9, 131, 300, 305, 140}, PlannedMatmulSpec{131, 50, 129, 129, 50},
          PlannedMatmulSpec{1, 17, 1025, 1025, 17}, PlannedMatmulSpec{9, 131, 2176, 2180, 140},
          PlannedMatmulSpec{133, 98, 2500, 2500, 99}, PlannedMatmulSpec{12, 49, 1024, 1024, 49}}) {
      spec.implementation = "highway";
      const Problem p(spec);
      const PlannedMatmul matmul(spec, p.weight_view(), p.bias_view());
      EXPECT_LE(worst_ratio(p, p.run(matmul, Threads::serial())), 1) << target;
      expect_contains(matmul.explain(), target);
    }
    cap_simd_target("");
  }
}

TEST(PlannedMatmul, TakesTheImplementationAskedFor) {
  Problem p({4, 6, 8, 8, 6});
  p.spec.implementation = "onednn";
  expect_contains(PlannedMatmul(p.spec, p.weight_view(), p.bias_view()).explain(), "onednn");
  p.spec.implementation = "fastest";
  expect_contains(error_of([&] { PlannedMatmul(p.spec, p.weight_view(), p.bias_view()); }),
                  "'fastest', expected one of highway, onednn");
}

TEST(PlannedMatmul, NamesWhatIsWrong) {
  const Problem p({4, 6, 8, 8, 6});
  const auto made = [&](const PlannedMatmulSpec& spec, const ConstTensorView& weight, const ConstTensorView& bias) {
    return error_of([&] { PlannedMatmul(spec, weight, bias); });
  };
  expect_contains(made({4, 6, 9, 9, 6}, p.weight_view(), {}), "weight has dims [6, 8], expected [6, 9]");
  expect_contains(made(p.spec, p.weight_view(), view_of(p.bias.data(), {5})), "bias has dims [5], expected [6]");
  expect_contains(made({4, 6, 8, 7, 6}, p.weight_view(), {}), "x_stride is 7");
  expect_contains(made({4, 6, 8, 8, 5}, p.weight_view(), {}), "y_stride is 5");
}

}  // namespace
}  // namespace headway::testing
