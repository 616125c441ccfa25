// Where a report goes: a file that appears whole or not at all, or "-" for the standard output.
#pragma once

#include <string>
#include <vector>

namespace headway::tools {

/// Throws when what a command is about to write cannot be written or would be its own undoing, better before an hour of
/// measuring than after: kIo where a folder cannot be written, kInvalidArgument where an output is one of `inputs` or
/// two outputs are the same. Takes "" and "-" as no file; at most one may be "-".
void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs = {});
/// Does nothing when `path` is empty.
void write_report(const std::string& path, const std::string& contents);

}  // namespace headway::tools
