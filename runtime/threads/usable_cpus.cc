// See usable_cpus.h.
#include "runtime/threads/usable_cpus.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace headway {
namespace {

int affinity_cpus() {
#if defined(__linux__)
  // A set of fixed size holds 1024 CPUs; the kernel refuses one that is smaller than its own.
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 4) {
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(cpus));
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// CPUs of one group; 0 when it has no quota of its own.
int group_cpus(const std::string& folder, bool version_2) {
  std::istringstream text(version_2
                              ? contents(folder + "/cpu.max")
                              : contents(folder + "/cpu.cfs_quota_us") + ' ' + contents(folder + "/cpu.cfs_period_us"));
  double quota = 0, period = 0;  // "max" in version 2 and -1 in version 1 are none
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::ceil(std::min(quota / period, 1e6)));
}

}  // namespace

int cgroup_cpus(const std::string& cgroups, const std::string& mounted) {
  int least = 0;
  std::istringstream lines(cgroups);
  for (std::string line; std::getline(lines, line);) {  // hierarchy:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const bool version_2 = controllers == ",,";
    if (!version_2 && controllers.find(",cpu,") == std::string::npos) continue;
    // In a container the path may lie outside what is mounted; the mounted root is the container's own group then.
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      while (!path.empty() && path.back() == '/') path.pop_back();
      const int cpus = group_cpus(mounted + (version_2 ? "" : "/cpu") + path, version_2);
      if (cpus > 0) least = least == 0 ? cpus : std::min(least, cpus);
      if (path.find('/') == std::string::npos) break;
    }
  }
  return least;
}

int usable_cpus() {
  const int cpus = affinity_cpus();
#if defined(__linux__)
  if (const int quota = cgroup_cpus(contents("/proc/self/cgroup"), "/sys/fs/cgroup"); quota > 0) {
    return std::min(cpus, quota);
  }
#endif
  return cpus;
}

}  // namespace headway
