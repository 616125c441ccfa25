// The replaced allocator: glibc's own under the names that glibc keeps for replacements like this one.
#include "tests/robustness/failing_allocator.h"

#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<bool> armed{false};
std::atomic<long> asked_for{0};
std::atomic<long> first_failing{0};
std::atomic<bool> all_after{false};
std::atomic<long> live{0};

/// Where the code of the spared library lies.
struct Range {
  std::uintptr_t begin = 0, end = 0;
} spared;

bool inside_spared_library() {
  if (spared.end == 0) return false;
  void* frames[64];
  const int count = backtrace(frames, 64);
  return std::any_of(frames, frames + count, [](void* frame) {
    const auto at = reinterpret_cast<std::uintptr_t>(frame);
    return spared.begin <= at && at < spared.end;
  });
}

[[maybe_unused]] bool fails() {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const long n = asked_for.fetch_add(1, std::memory_order_relaxed) + 1;
  const long first = first_failing.load(std::memory_order_relaxed);
  if (first == 0 || n < first || (n > first && !all_after.load(std::memory_order_relaxed))) return false;
  return !inside_spared_library();
}

[[maybe_unused]] void* counted(void* p) {
  if (p != nullptr) live.fetch_add(1, std::memory_order_relaxed);
  if (p == nullptr) errno = ENOMEM;
  return p;
}

}  // namespace

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Visible even where a build hides its symbols, so that the shared libraries get these too.
#pragma GCC visibility push(default)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t bytes) { return counted(fails() ? nullptr : __libc_malloc(bytes)); }
void* calloc(std::size_t n, std::size_t bytes) { return counted(fails() ? nullptr : __libc_calloc(n, bytes)); }
void* memalign(std::size_t alignment, std::size_t bytes) {
  return counted(fails() ? nullptr : __libc_memalign(alignment, bytes));
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  void* p = memalign(alignment, bytes);
  if (p == nullptr) return ENOMEM;
  *out = p;
  return 0;
}
void free(void* p) {
  if (p == nullptr) return;
  live.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(p);
}
void* realloc(void* p, std::size_t bytes) {
  if (p == nullptr) return malloc(bytes);
  if (bytes == 0) {
    free(p);
    return nullptr;
  }
  if (fails()) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_realloc(p, bytes);
}
}  // extern "C"
#pragma GCC visibility pop

namespace headway::testing {
bool can_fail_allocations() { return true; }
}  // namespace headway::testing
#else
namespace headway::testing {
bool can_fail_allocations() { return false; }
}  // namespace headway::testing
#endif

namespace headway::testing {

long live_allocations() { return live; }

FailAllocations::FailAllocations(long nth, Mode mode) {
  asked_for = 0;
  first_failing = nth;
  all_after = mode == kOneAndAllAfter;
  armed = true;
}

FailAllocations::~FailAllocations() { armed = false; }

long FailAllocations::asked() const { return asked_for; }

bool spare_library(const char* name) {
  struct Search {
    const char* name;
    Range found;
  } search{name, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* argument) {
        auto* wanted = static_cast<Search*>(argument);
        if (std::strstr(library->dlpi_name, wanted->name) == nullptr) return 0;
        for (int i = 0; i < library->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = library->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          wanted->found.begin = library->dlpi_addr + part.p_vaddr;
          wanted->found.end = wanted->found.begin + part.p_memsz;
        }
        return 1;
      },
      &search);
  void* frame = nullptr;
  backtrace(&frame, 1);  // loads what it needs, which allocates
  spared = search.found;
  return spared.end != 0;
}

}  // namespace headway::testing
