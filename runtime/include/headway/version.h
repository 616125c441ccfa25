/* The release, at compile time and at run time. The build takes its own version from the three numbers here. For C too,
 * which has headway_version() in headway/headway.h. */
#pragma once

#include "headway/export.h"

#define HEADWAY_VERSION_MAJOR 1
#define HEADWAY_VERSION_MINOR 0
#define HEADWAY_VERSION_PATCH 0

#ifdef __cplusplus
namespace headway {

/// "1.0.0": the release of the library that was linked; the macros are that of the headers that were included. Releases
/// of one major version keep the source of a caller compiling. Static memory; thread-safe; throws nothing.
HEADWAY_API const char* version() noexcept;

}  // namespace headway
#endif
