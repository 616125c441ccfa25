// Refusing in one line: the two functions that throw, by their short names for the code of this repository. Public
// headers do not include it, so that the names stay out of an engine's way.
#pragma once

#include "headway/error.h"

namespace headway {

using detail::fail;
using detail::require;

}  // namespace headway
