// See machine_memory.h. A container sees the machine's memory and is killed at the limit of its group.
#include "runtime/base/machine_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

namespace headway {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// The number in a file; "max", no file and anything else are no limit.
std::size_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  file >> text;
  std::size_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && end == text.data() + text.size() ? bytes : kNone;
}

/// The least limit of the group at `path` and of all around it. Inside a container the mount may begin at the group
/// itself; the path then leads nowhere and the walk ends at the mount, whose limit is the group's.
std::size_t least_limit(const std::string& mount, std::string path, const char* file) {
  std::size_t least = number_in(mount + '/' + file);
  while (!path.empty() && path != "/") {
    least = std::min(least, number_in(mount + path + '/' + file));
    path.resize(std::min(path.rfind('/'), path.size()));
  }
  return least;
}

bool names_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

}  // namespace

std::size_t control_group_bytes(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  std::size_t least = kNone;
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, least_limit(root + "/sys/fs/cgroup", path, "memory.max"));
    } else if (names_memory(controllers)) {
      least = std::min(least, least_limit(root + "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
    }
  }
  return least;
}

std::size_t machine_memory_bytes() {
  std::size_t least = control_group_bytes("");
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) {
    least = std::min(least, static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes));
  }
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    least = std::min(least, static_cast<std::size_t>(space.rlim_cur));
  }
  return least;
}

std::size_t default_memory_limit_bytes() {
  static const std::size_t limit = machine_memory_bytes() / 8 * 7;
  return limit;
}

}  // namespace headway
