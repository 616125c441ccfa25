// Where a report goes: a file that appears whole or not at all, or "-" for the standard output.
#pragma once

#include <string>

namespace headway::tools {

/// Throws kIo when the folder of `path` cannot be written: better before an hour of measuring than after. Takes "" and
/// "-" as they are.
void check_report_path(const std::string& path);
/// Does nothing when `path` is empty.
void write_report(const std::string& path, const std::string& contents);

}  // namespace headway::tools
