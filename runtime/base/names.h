// How names out of a file appear in messages.
#pragma once

#include <string>
#include <string_view>

namespace headway {

/// In quotes, fit for a message of one line, cut to a length that leaves room for the rest.
std::string quoted(std::string_view name);

}  // namespace headway
