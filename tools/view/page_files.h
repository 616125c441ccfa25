// The files of page/, put into the program when it is built (embed.cmake).
#pragma once

#include <string_view>

namespace headway::tools {

/// Contents of a file of page/ by its name. Throws kInternal when there is none.
std::string_view page_file(std::string_view name);

}  // namespace headway::tools
