// Every way this machine can run attention: implementation × SIMD target × element type; and running a case on one of
// them.
#pragma once

#include <string>
#include <vector>

#include "tests/support/attention_case.h"
#include "tests/support/compare.h"

namespace headway::testing {

struct Path {
  std::string implementation;
  std::string simd;  ///< as simd_targets() spells it; empty where it makes no difference
  DataType type = DataType::kF32;
};
/// All implementations on all targets, in f32 and in bf16; the reference, which has no SIMD, once in each.
std::vector<Path> all_paths();
/// Whether the path hands its weights to a bf16 product.
bool rounds_weights(const Path& path);
/// The least width of heads from `width` on that the path takes.
std::int64_t head_width(const Path& path, std::int64_t width);
/// For test names: letters, digits and underscores.
std::string name(const Path& path);
std::ostream& operator<<(std::ostream& out, const Path& path);

/// Caps the SIMD target as long as it lives; nothing for an empty name. A plan made under it keeps the target.
class SimdCap {
 public:
  explicit SimdCap(const std::string& target);
  ~SimdCap();
  SimdCap(const SimdCap&) = delete;
  SimdCap& operator=(const SimdCap&) = delete;

 private:
  bool capped_;
};

/// Why the path cannot run the spec; empty: it can.
std::string refusal(const Path& path, const AttentionSpec& spec);

/// Poisons the outputs and the workspace, then runs; fails the test when a gap of the output was written.
void run_path(const Path& path, AttentionCase& problem, const Threads& threads);
/// The same on two workers for a quarter of the seeds and else on one: thousands of small teams of threads would
/// measure how busy the machine is, and concurrency_test.cc holds one worker against many.
void run_path(const Path& path, AttentionCase& problem);

/// Runs with tensors of the caller's instead of a case's; the workspace is poisoned, the outputs are left as they are.
void run_path(const Path& path, const AttentionSpec& spec, const AttentionArgs& args, const Threads& threads);

/// Notes a ratio of a path; the worst of each implementation is printed when the program ends.
void note_ratio(const Path& path, double ratio);

/// Runs the case on every path that takes it, of the case's type, and holds each against the reference. Returns how
/// many paths took it.
int expect_all_paths(AttentionCase& problem);
int expect_all_paths(const CaseShape& shape);
/// The same on one path; whether it took the case.
bool expect_path(const Path& path, AttentionCase& problem);

}  // namespace headway::testing
