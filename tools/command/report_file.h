// Where a report goes: a file that appears whole or not at all, or "-" for the standard output.
#pragma once

#include <string>
#include <vector>

namespace headway::tools {

/// Checks the output paths of a command before it starts its work. Throws kIo where a file cannot be written,
/// kInvalidArgument where an output is one of `inputs` or two outputs are the same. "" and "-" are no files; at most
/// one may be "-".
void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs = {});
/// Does nothing when `path` is empty.
void write_report(const std::string& path, const std::string& contents);

struct Report {
  std::string path;
  std::string contents;
};
/// Writes every report that can be written, then throws what was thrown first.
void write_reports(const std::vector<Report>& reports);

}  // namespace headway::tools
