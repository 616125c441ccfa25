// Counts what the program allocates through operator new while it is asked to. What the shared oneDNN library allocates
// for itself is not counted: that is out of this library's hands.
#pragma once

#include <cstdint>

namespace headway::testing {

/// Counts the allocations of all threads during the life of the object. One at a time.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;
  std::int64_t count() const;
};

}  // namespace headway::testing
