// How much memory the process has, as the system counts it.
#pragma once

#include <unistd.h>

#include <fstream>

namespace headway::testing {

inline double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace headway::testing
