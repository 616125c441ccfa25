#!/usr/bin/env bash
# build.sh PRESET [TARGET…]: configures a preset of CMakePresets.json and builds it, everything or those targets. The
# generator is the one that the build folder has, else CMAKE_GENERATOR, else the preset's Ninja, else Makefiles where
# there is no ninja; clang is whichever release is there. Knows no target by name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=$1
shift

options=()
cache=build/$preset/CMakeCache.txt
if [[ -f $cache ]]; then
  options+=(-G "$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$cache")")
elif [[ -n ${CMAKE_GENERATOR:-} ]]; then
  options+=(-G "$CMAKE_GENERATOR")
elif ! command -v ninja >/dev/null && ! command -v ninja-build >/dev/null; then
  options+=(-G "Unix Makefiles")
fi
if [[ ! -f $cache && $preset =~ ^(clang|fuzz)$ ]] && ! command -v clang++ >/dev/null; then
  clang=$(compgen -c clang++- | grep -E '^clang\+\+-[0-9]+$' | sort -t - -k 2 -n | tail -n 1)
  options+=(-D "CMAKE_CXX_COMPILER=${clang:?no clang++ here}")
fi
cmake --preset "$preset" ${options[@]+"${options[@]}"} </dev/null
cmake --build --preset "$preset" --parallel "$(nproc)" ${1+--target "$@"} </dev/null
