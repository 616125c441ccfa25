// See report_file.h.
#include "tools/command/report_file.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/base/atomic_file.h"
#include "runtime/base/check.h"

namespace headway::tools {

namespace {

void check_folder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!std::filesystem::is_directory(folder)) fail(ErrorCode::kIo, path, ": cannot write: no folder ", folder);
  if (::access(folder.c_str(), W_OK) != 0) fail(ErrorCode::kIo, path, ": cannot write in ", folder);
}

/// Whether two paths lead to one file, be it there or not.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (std::filesystem::equivalent(a, b, ignored)) return true;
  const auto whole = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
  };
  return whole(a) == whole(b);
}

}  // namespace

void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].empty()) continue;
    for (std::size_t k = 0; k < i; ++k) {
      const bool both = outputs[i] == "-" || outputs[k] == "-"
                            ? outputs[i] == outputs[k]
                            : !outputs[k].empty() && same_file(outputs[i], outputs[k]);
      require(!both, outputs[i], " would be written twice, expected a file for each output");
    }
    if (outputs[i] == "-") continue;
    check_folder(outputs[i]);
    for (const std::string& input : inputs) {
      require(input.empty() || !same_file(outputs[i], input), outputs[i],
              " is an input of this command, expected another file to write");
    }
  }
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
