// Runs numbered cases in a child process, so that a crash, an endless loop or a flood of memory is a finding with a
// number and not the end of the run. Knows nothing of what a case does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace headway::fuzz {

struct Limits {
  int case_seconds = 10;          ///< a case that computes longer, or waits ten times as long, is a finding
  std::int64_t memory_mb = 2048;  ///< the same for what the child has resident
  std::int64_t run_seconds = 0;   ///< stop after so long; 0: after the last case
  int max_findings = 20;
};

/// What a case was: its statistics go by this name ("ran", "refused", …), its finding is empty or one line.
struct CaseResult {
  std::string kind;
  std::string finding;
};

struct Totals {
  std::int64_t cases = 0;
  std::int64_t findings = 0;
};

/// Runs case(first) … case(first + count − 1). Prints a line a finding, which begins with `reproduce(n)`, and at the
/// end the number of cases of each kind.
Totals supervise(std::uint64_t first, std::int64_t count, const Limits& limits,
                 const std::function<CaseResult(std::uint64_t)>& run_case,
                 const std::function<std::string(std::uint64_t)>& reproduce);

}  // namespace headway::fuzz
