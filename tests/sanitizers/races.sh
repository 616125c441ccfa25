#!/usr/bin/env bash
# races.sh: what shares memory between threads, under ThreadSanitizer: the runtime with its pool, plan cache and sessions,
# attention and sessions under several callers, a paged cache on a pool. OpenMP is left out by the tests themselves:
# libgomp is not instrumented, and its barriers would be taken for races. The last lines are ctest's own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export OMP_WAIT_POLICY=passive
tools/build.sh tsan runtime_tests headway_soak headway_cached_soak race
ctest --preset tsan -j 2 -R '^(runtime_tests_[0-9]+|soak|cached_soak|races_are_found)$'
