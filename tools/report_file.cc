// See report_file.h.
#include "tools/report_file.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>

#include "headway/safetensors.h"

namespace headway::tools {

void check_report_path(const std::string& path) {
  if (path.empty() || path == "-") return;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!std::filesystem::is_directory(folder)) fail(ErrorCode::kIo, path, ": cannot write: no folder ", folder);
  if (::access(folder.c_str(), W_OK) != 0) fail(ErrorCode::kIo, path, ": cannot write in ", folder);
}

void write_report(const std::string& path, const std::string& contents) {
  if (path.empty()) return;
  if (path == "-") {
    fmt::print("{}", contents);
  } else {
    write_file_atomically(path, contents);
  }
}

}  // namespace headway::tools
