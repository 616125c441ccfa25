// Memory that cannot be had: what the standard library reports as std::bad_alloc leaves the public functions as an
// Error. Knows nothing of who asked for how much.
#pragma once

#include <new>
#include <utility>

namespace headway {

/// Throws Error kOutOfMemory. Allocates nothing: the error was made when the program started.
[[noreturn]] void throw_out_of_memory();

/// Returns what `fn` returns. For the outermost function of a public call: below it std::bad_alloc is let through.
template <class Fn>
decltype(auto) translate_bad_alloc(Fn&& fn) {
  try {
    return std::forward<Fn>(fn)();
  } catch (const std::bad_alloc&) {
    throw_out_of_memory();
  }
}

}  // namespace headway
