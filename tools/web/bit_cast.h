// std::bit_cast for a standard library that is older than its compiler (Debian's emscripten 3.1.6); included before
// everything else.
#pragma once

#include <version>
#ifndef __cpp_lib_bit_cast
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif
