#!/usr/bin/env bash
# "What is a head?" as a page to play with: web.sh [OUT.html] installs what is missing (Debian's Emscripten), compiles
# the kernels to WebAssembly, with vectors and without, and writes one HTML file that needs no server and no network.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
die() {
  echo "web.sh: $*" >&2
  exit 2
}
[[ $# -le 1 ]] || die "takes one file to write, $# arguments were given"
[[ ${1:-} != -* ]] || die "knows no option '$1'; it takes the file to write"
out=$(realpath -m -- "${1:-$root/build/web/headway_live.html}")
[[ ! -d $out ]] || die "$out is a folder, expected a file to write"
cd "$root"

# Highway's headers alone: the compiler must not see what else lies beside them.
hwy=${HEADWAY_HWY_INCLUDE:-/usr/include}
missing=false
for program in cmake python3 em++; do command -v "$program" >/dev/null || missing=true; done
if $missing || [[ ! -f $hwy/hwy/highway.h ]]; then tools/install_packages.sh --web >&2; fi
command -v em++ >/dev/null || die "no em++ here; install Emscripten 3.1.6 or later"
[[ -f $hwy/hwy/highway.h ]] || die "no hwy/highway.h in $hwy; HEADWAY_HWY_INCLUDE names the folder that has it"
mkdir -p build/web/include
if command -v flock >/dev/null; then
  exec 9>build/web/lock  # one build at a time
  flock 9
fi
ln -sfn "$hwy/hwy" build/web/include/hwy

# Emscripten finds its scripts' modules where Debian's own node would look; another node is told.
if [[ -d /usr/share/nodejs ]]; then export NODE_PATH=/usr/share/nodejs${NODE_PATH:+:$NODE_PATH}; fi

log=build/web/build.log
echo "compiling the kernels, a minute or two the first time; what the compiler says goes to $log" >&2
generator=()
if command -v ninja >/dev/null && [[ ! -f build/web/wasm/CMakeCache.txt ]]; then generator=(-G Ninja); fi
if ! { emcmake cmake -S tools/web -B build/web/wasm ${generator[@]+"${generator[@]}"} \
    -D HEADWAY_HWY_INCLUDE="$PWD/build/web/include" && cmake --build build/web/wasm --parallel "$(nproc)"; } >"$log" 2>&1 </dev/null; then
  tail -n 40 "$log" >&2
  echo "web.sh: the build failed; all of its output is in $log" >&2
  exit 1
fi
compiler=$(em++ --version | sed -nE '1s/.*\) ([0-9.]+).*/Emscripten \1/p')
python3 tools/web/make_page.py "$PWD" build/web/wasm "$out" "$compiler"
echo "$out: $(($(stat -c %s "$out") / 1000)) KB; open it in a browser"
