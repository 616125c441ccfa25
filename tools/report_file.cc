// See report_file.h.
#include "tools/report_file.h"

#include <fmt/core.h>

#include "headway/safetensors.h"

namespace headway::tools {

void write_report(const std::string& path, const std::string& contents) {
  if (path.empty()) return;
  if (path == "-") {
    fmt::print("{}", contents);
  } else {
    write_file_atomically(path, contents);
  }
}

}  // namespace headway::tools
