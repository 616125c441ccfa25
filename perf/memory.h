// How much memory a stretch of work adds at its worst, as the kernel counts resident pages: to within some
// 64 pages a thread. Linux; elsewhere zero.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace headway::perf {

/// A line of /proc/self/status in KiB ("VmRSS", "VmHWM"); 0 where there is none.
inline std::int64_t status_kib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == key + ":" && status >> kib) return kib;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

/// Resident memory that `work` adds at its peak, in KiB, above what was resident when it began.
template <class Work>
std::int64_t peak_added_kib(Work&& work) {
  // What others have freed would be taken again without becoming resident anew.
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
  // "5" sets the peak back to what is resident now; a kernel that refuses leaves the peak of the process, and the
  // difference is then too large rather than too small.
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;
  const std::int64_t before = status_kib("VmRSS");
  work();
  return std::max<std::int64_t>(0, status_kib("VmHWM") - before);
}

}  // namespace headway::perf
