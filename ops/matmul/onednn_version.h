// The releases of oneDNN at compile time and at run time, and whether they fit. Knows no product.
#pragma once

#include <string>

namespace headway {

/// "2.6.3": of the headers compiled against.
std::string onednn_compiled_version();
/// Of the library that is linked at run time.
std::string onednn_version();

/// Throws kUnsupported naming both unless the majors are the same: from one to the next oneDNN's structures change, and
/// a call would end anywhere.
void require_same_onednn(int compiled_major, int runtime_major);

}  // namespace headway
