// What the build is watched by. libgomp synchronises where the thread sanitizer cannot see it, so tests of OpenMP
// teams would only report false races; the address sanitizer replaces malloc, so nobody else can.
#pragma once

namespace headway::testing {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

/// How many of `cases` random ones to run: sanitized code takes ten times as long, and looks for faults that more cases
/// of a kind show no better.
constexpr int sanitized_share(int cases) { return kAddressSanitizer || kThreadSanitizer ? cases / 4 : cases; }

}  // namespace headway::testing
