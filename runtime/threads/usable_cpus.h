// How many CPUs this process may use at once: what its affinity mask and its cgroup's quota leave of the machine.
#pragma once

#include <string>

namespace headway {

/// At least 1. Asked of the system every time: both limits can change.
int usable_cpus();

/// CPUs that the quota of a cgroup and of those around it pay for, rounded up; 0 when there is no quota. `cgroups` is
/// the text of /proc/self/cgroup, `mounted` the folder where the hierarchies are mounted. Versions 1 and 2.
int cgroup_cpus(const std::string& cgroups, const std::string& mounted);

}  // namespace headway
