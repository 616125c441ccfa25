// malloc and its relatives, replaced in the whole program (operator new goes through them): counts what is live, and
// fails the allocations that it is told to.
#pragma once

namespace headway::testing {

/// False where malloc cannot be replaced: under a sanitizer, or without glibc.
bool can_fail_allocations();

/// Allocations that are live now, on all threads.
long live_allocations();

/// Counts allocations from its making on, and fails the nth of them (from 1), or that and all after it. One at a time.
class FailAllocations {
 public:
  enum Mode { kOne, kOneAndAllAfter };
  /// 0 fails none.
  FailAllocations(long nth, Mode mode);
  ~FailAllocations();
  /// How many were asked for so far.
  long asked() const;
};

/// From now on allocations that are asked for from inside this shared library, directly or through another, are counted
/// but not failed: for libraries that crash on it. False when it is not loaded as such.
bool spare_library(const char* name);

}  // namespace headway::testing
