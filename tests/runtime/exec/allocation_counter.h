// Counts what the whole program allocates while armed: malloc and its relatives are replaced, and operator new goes
// through malloc.
#pragma once

namespace headway::testing {

/// False where malloc cannot be replaced: under a sanitizer, or without glibc.
bool can_count_allocations();

/// Counts from its making on; one at a time.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  /// Stops counting and returns how many allocations there were on all threads.
  long stop();
};

}  // namespace headway::testing
