// See peak_memory.h. Linux tells it in /proc/self/status.
#include "tools/measure/peak_memory.h"

#include <fstream>
#include <string>

namespace headway::tools {

double peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    double kib = 0;
    return status >> kib ? kib * 1024 : 0;
  }
  return 0;
}

}  // namespace headway::tools
