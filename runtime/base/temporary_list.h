// The names of this process's temporary files, kept where a signal handler can read them: no locks, no heap.
#pragma once

#include <string>

namespace headway {

/// Remembers a file to be removed when the process is stopped; returns its slot, -1 when there is none left (more than
/// 64 at a time, or a path too long to be one). Thread-safe.
int remember_temporary(const std::string& path) noexcept;
/// Forgets it; -1 is fine.
void forget_temporary(int slot) noexcept;

}  // namespace headway
