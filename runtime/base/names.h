// How names out of a file appear in messages.
#pragma once

#include <string>

namespace headway::importer {

/// In quotes, fit for a message of one line, cut to a length that leaves room for the rest.
std::string quoted(const std::string& name);

}  // namespace headway::importer
