#!/usr/bin/env bash
# Every part of the harness for as long as one likes: run.sh SECONDS [FIRST [CORPUS…]]. Builds headway_fuzz under ASan
# and UBSan, divides the time among its modes, and begins at case FIRST (default: the seconds since 1970, so that every
# night tries other cases). A CORPUS is a folder of files to spoil, besides those of the tree. Findings are printed with a command that reproduces them; exit code 1 when there was one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:?usage: tests/fuzz/run.sh SECONDS [FIRST [CORPUS...]]}
first=${2:-$(date +%s)}

tools/install_packages.sh >&2
cmake --preset asan-ubsan >/dev/null
cmake --build --preset asan-ubsan --target headway_fuzz >/dev/null
fuzz=build/asan-ubsan/bin/headway_fuzz
corpora=(--corpus tests/fixtures --corpus tests/fuzz/corpus)
for corpus in "${@:3}"; do corpora+=(--corpus "$corpus"); done

status=0
modes=(graphs spoiled models files safetensors npy tensors manifests attention c_api)
for mode in "${modes[@]}"; do
  arguments=()
  if [[ $mode == models || $mode == files ]]; then arguments=("${corpora[@]}"); fi
  echo "== $mode from case $first, $((seconds / ${#modes[@]})) s"
  "$fuzz" "$mode" --first "$first" --count 1000000000 --seconds $((seconds / ${#modes[@]})) "${arguments[@]}" || status=1
done
exit $status
