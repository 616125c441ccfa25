// Runs paths under GoogleTest, and keeps the worst ratio of each implementation.
#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <map>

#include "tests/support/paths.h"

namespace headway::testing {
namespace {

std::map<std::string, double>& worst_ratios() {
  static std::map<std::string, double> ratios;
  return ratios;
}

class PrintWorst : public ::testing::Environment {
  void TearDown() override {
    for (const auto& [implementation, ratio] : worst_ratios()) {
      std::cout << "worst error of " << implementation << ": " << ratio << " of the bound\n";
    }
  }
};
// NOLINTNEXTLINE: registration has to be static.
[[maybe_unused]] ::testing::Environment* const kPrintWorst = ::testing::AddGlobalTestEnvironment(new PrintWorst);

}  // namespace

void run_path(const Path& path, const AttentionSpec& spec, const AttentionArgs& args, const Threads& threads) {
  EXPECT_EQ(path.type, spec.type) << path << " runs a problem of another type";
  const SimdCap cap(path.simd);
  const Attention attention(spec, {path.implementation});
  const AlignedBuffer workspace(attention.workspace_bytes(threads.workers()));
  // All ones is a NaN: scratch that is read before it is written shows.
  if (workspace.size_bytes() > 0) std::memset(workspace.data(), 0xff, workspace.size_bytes());
  attention.run(args, workspace.data(), threads);
}

void run_path(const Path& path, AttentionCase& problem, const Threads& threads) {
  problem.poison_outputs();
  run_path(path, problem.spec(), problem.args(), threads);
  EXPECT_FALSE(problem.out.gaps_written()) << path << ": wrote beside the output";
  EXPECT_FALSE(problem.scores.gaps_written()) << path << ": wrote beside the scores";
  EXPECT_FALSE(problem.log_sum_exp.gaps_written()) << path << ": wrote beside the log-sum-exp";
}

void run_path(const Path& path, AttentionCase& problem) {
  run_path(path, problem, problem.shape().seed % 4 == 0 ? Threads::openmp(2) : Threads::serial());
}

void note_ratio(const Path& path, double ratio) {
  double& worst = worst_ratios()[path.implementation + " " + type_name(path.type)];
  worst = std::max(worst, ratio);
}

namespace {

bool expect_path(const Path& path, AttentionCase& problem, const Expected& expected) {
  if (path.type != problem.spec().type || !refusal(path, problem.spec()).empty()) return false;
  run_path(path, problem);
  const Comparison comparison = expected.compare(problem.args(), rounds_weights(path));
  note_ratio(path, comparison.worst);
  EXPECT_TRUE(comparison.ok()) << path << ": " << comparison.failure << "\n  " << describe(problem.shape());
  return true;
}

}  // namespace

bool expect_path(const Path& path, AttentionCase& problem) {
  return expect_path(path, problem, Expected(problem.spec(), problem.args()));
}

int expect_all_paths(AttentionCase& problem) {
  const Expected expected(problem.spec(), problem.args());
  int taken = 0;
  for (const Path& path : all_paths()) taken += expect_path(path, problem, expected) ? 1 : 0;
  return taken;
}

int expect_all_paths(const CaseShape& shape) {
  AttentionCase problem(shape);
  return expect_all_paths(problem);
}

}  // namespace headway::testing
