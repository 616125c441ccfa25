// How much memory this process may have. Knows nothing of what it is for.
#pragma once

#include <cstddef>
#include <string>

namespace headway {

/// The least of the machine's memory, the limits of the control groups that the process is in (version 1 and 2) and its
/// limit of address space, in bytes. The largest std::size_t where nothing says. Reads files: ask once.
std::size_t machine_memory_bytes();

/// Seven eighths of that: the limit where nobody names one. The rest is for everything else in the process and for the
/// page cache of mapped weights.
std::size_t default_memory_limit_bytes();

/// What the files below `root` say, "/" but in tests: the least limit of the groups that proc/self/cgroup names and of
/// those around them. The largest std::size_t for none.
std::size_t control_group_bytes(const std::string& root);

}  // namespace headway
