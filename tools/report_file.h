// Where a report goes: a file that appears whole or not at all, or "-" for the standard output.
#pragma once

#include <string>

namespace headway::tools {

/// Does nothing when `path` is empty.
void write_report(const std::string& path, const std::string& contents);

}  // namespace headway::tools
