// Compiled alone: it declares malloc itself.
// The replaced allocator: glibc's own under the names that glibc keeps for replacements like this one.
#include "tests/runtime/exec/allocation_counter.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

std::atomic<bool> armed{false};
std::atomic<long> allocations{0};

[[maybe_unused]] void count() {
  if (armed.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) {
  count();
  return __libc_calloc(n, bytes);
}
void* realloc(void* p, std::size_t bytes) {
  count();
  return __libc_realloc(p, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  count();
  void* p = __libc_memalign(alignment, bytes);
  if (p == nullptr) return ENOMEM;
  *out = p;
  return 0;
}
}  // extern "C"

namespace headway::testing {
bool can_count_allocations() { return true; }
}  // namespace headway::testing
#else
namespace headway::testing {
bool can_count_allocations() { return false; }
}  // namespace headway::testing
#endif

namespace headway::testing {

AllocationCounter::AllocationCounter() {
  allocations = 0;
  armed = true;
}

AllocationCounter::~AllocationCounter() { armed = false; }

long AllocationCounter::stop() {
  armed = false;
  return allocations;
}

}  // namespace headway::testing
