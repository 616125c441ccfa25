// Lists and runs the paths; keeps the worst ratio of each implementation.
#include "tests/support/paths.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <iostream>
#include <map>

#include "ops/attention/implementation.h"
#include "ops/simd/attention_tile.h"
#include "ops/simd/target.h"

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

/// Whether there is anything to test: a target without products of pairs refuses every spec.
bool has_pairs(const std::string& target) {
  const SimdCap cap(target);
  return bf16_tile_kernels().score != nullptr;
}

}  // namespace

std::vector<Path> all_paths() {
  std::vector<Path> paths;
  for (const DataType type : {DataType::kF32, DataType::kBF16}) {
    for (const std::string& implementation : attention_implementations()) {
      if (implementation == "reference") {
        paths.push_back({implementation, "", type});
        continue;
      }
      for (const std::string& target : simd_targets()) {
        if (implementation == "bf16_pairs" && (type != DataType::kBF16 || !has_pairs(target))) continue;
        paths.push_back({implementation, target, type});
      }
    }
  }
  return paths;
}

bool rounds_weights(const Path& path) {
  return path.type == DataType::kBF16 && (path.implementation == "onednn_tiles" || path.implementation == "bf16_pairs");
}

std::int64_t head_width(const Path& path, std::int64_t width) {
  if (!rounds_weights(path)) return width;
  const std::int64_t multiple = path.implementation == "bf16_pairs" ? 2 : 32;
  return (width + multiple - 1) / multiple * multiple;
}

std::string name(const Path& path) {
  std::string text = path.implementation;
  if (!path.simd.empty()) text.append("_").append(path.simd);
  if (path.type != DataType::kF32) text.append("_").append(type_name(path.type));
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

std::ostream& operator<<(std::ostream& out, const Path& path) { return out << name(path); }

SimdCap::SimdCap(const std::string& target) : capped_(!target.empty()) {
  if (capped_) cap_simd_target(target);
}

SimdCap::~SimdCap() {
  if (capped_) cap_simd_target("");
}

std::string refusal(const Path& path, const AttentionSpec& spec) {
  const SimdCap cap(path.simd);
  for (const ImplementationEntry& entry : implementation_table()) {
    if (entry.name == path.implementation) return entry.why_impossible(spec);
  }
  return "unknown";
}

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
}

void run_path(const Path& path, AttentionCase& problem) {
  run_path(path, problem, problem.shape().seed % 4 == 0 ? Threads::openmp(2) : Threads::serial());
}

void note_ratio(const Path& path, double ratio) {
  double& worst = worst_ratios()[path.implementation + " " + type_name(path.type)];
  worst = std::max(worst, ratio);
}

namespace {

void expect_path(const Path& path, AttentionCase& problem, const Expected& expected) {
  if (path.type != problem.spec().type || !refusal(path, problem.spec()).empty()) return;
  run_path(path, problem);
  const Comparison comparison = expected.compare(problem.args(), rounds_weights(path));
  note_ratio(path, comparison.worst);
  EXPECT_TRUE(comparison.ok()) << path << ": " << comparison.failure << "\n  " << describe(problem.shape());
}

}  // namespace

void expect_path(const Path& path, AttentionCase& problem) {
  expect_path(path, problem, Expected(problem.spec(), problem.args()));
}

void expect_all_paths(AttentionCase& problem) {
  const Expected expected(problem.spec(), problem.args());
  for (const Path& path : all_paths()) expect_path(path, problem, expected);
}

void expect_all_paths(const CaseShape& shape) {
  AttentionCase problem(shape);
  expect_all_paths(problem);
}

}  // namespace headway::testing
