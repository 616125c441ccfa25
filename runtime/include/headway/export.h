/* HEADWAY_API marks what a shared library shows: classes and functions of the public headers. HEADWAY_PRIVATE marks the
 * classes inside of them that are nobody's business. Everything else is compiled hidden. */
#pragma once

#if defined(__GNUC__)
#define HEADWAY_API __attribute__((visibility("default")))
#define HEADWAY_PRIVATE __attribute__((visibility("hidden")))
#else
#define HEADWAY_API
#define HEADWAY_PRIVATE
#endif
