#!/usr/bin/env bash
# build_test.sh SOURCE_TREE SCRATCH_FOLDER: which generator and compiler tools/build.sh asks cmake for, on machines that
# have ninja or not and that were configured before or not. A stand-in for cmake says what it was asked; nothing is built.
set -euo pipefail
tree=$1
scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch/tree/tools" "$scratch/bin"
cp "$tree/tools/build.sh" "$scratch/tree/tools/"
for program in bash env dirname grep nproc sed sort tail; do ln -s "$(command -v $program)" "$scratch/bin/"; done
printf '#!/usr/bin/env bash\necho "cmake $*"\n' >"$scratch/bin/cmake"
chmod +x "$scratch/bin/cmake"
cores=$(nproc)
failures=0

# expect WHAT CONFIGURE BUILD ARGUMENT…: the two calls of cmake that build.sh makes of those arguments.
expect() {
  local what=$1 expected got
  expected=$(printf 'cmake --preset %s\ncmake --build --preset %s' "$2" "$3")
  shift 3
  got=$(env -u CMAKE_GENERATOR PATH="$scratch/bin" ${generator:+CMAKE_GENERATOR="$generator"} \
    "$scratch/tree/tools/build.sh" "$@" 2>&1) || got+=" (failed)"
  if [[ $got != "$expected" ]]; then
    printf '%s\n  got      %s\n  expected %s\n' "$what" "$got" "$expected"
    failures=$((failures + 1))
  fi
}

generator=
expect "no ninja" "release -G Unix Makefiles" "release --parallel $cores" release
expect "targets" "release -G Unix Makefiles" "release --parallel $cores --target a b" release a b
ln -s "$scratch/bin/cmake" "$scratch/bin/ninja"
expect "ninja" "release" "release --parallel $cores" release
generator="Ninja Multi-Config"
expect "what the environment says" "release -G Ninja Multi-Config" "release --parallel $cores" release
mkdir -p "$scratch/tree/build/release"
echo "CMAKE_GENERATOR:INTERNAL=Unix Makefiles" >"$scratch/tree/build/release/CMakeCache.txt"
expect "what was configured" "release -G Unix Makefiles" "release --parallel $cores" release
generator=
for release in 9 14; do ln -s "$scratch/bin/cmake" "$scratch/bin/clang++-$release"; done
expect "clang by its number" "clang -D CMAKE_CXX_COMPILER=clang++-14" "clang --parallel $cores" clang
ln -s "$scratch/bin/cmake" "$scratch/bin/clang++"
expect "clang by its name" "clang" "clang --parallel $cores" clang
exit $((failures > 0))
