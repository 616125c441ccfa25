// How much memory the process has taken at most. Knows no more than the system tells.
#pragma once

namespace headway::tools {

/// Peak resident bytes of this process so far; 0 when unknown.
double peak_resident_bytes();

}  // namespace headway::tools
