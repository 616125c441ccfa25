#!/usr/bin/env bash
# python_wheel.sh BUILD_DIR: the Python package as its users get it. Installs a build, lets pip make the package of it in
# an environment of its own, and runs those of its tests that need no torch. Where there is no Python for that, or no
# package index, it says "skipped: " and why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tree=$PWD
build=$(cd "$1" && pwd)
work=$build/python_wheel
python=$work/venv/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK=1
rm -rf "$work"
mkdir -p "$work"

skip() {
  echo "skipped: $*"
  exit 0
}
command -v python3 >/dev/null || skip "no python3"
python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || skip "no python3-venv of 3.9 or later"
headers=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')
[[ -f $headers/Python.h ]] || skip "no $headers/Python.h (python3-dev)"
python3 -m venv "$work/venv"
"$python" -m pip install --quiet numpy pytest >"$work/pip.log" 2>&1 || skip "pip: $(tail -n 1 "$work/pip.log")"

cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
package=$(dirname "$(find "$work/prefix" -name headway-config.cmake)")
"$python" -m pip install --verbose ./tools/python -C "build-dir=$work/build" -C "cmake.define.headway_DIR=$package" \
  -C cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON >"$work/pip.log" 2>&1 || { tail -n 40 "$work/pip.log"; exit 1; }
grep -q "headway: $package" "$work/pip.log" || { echo "$work/pip.log: the library was built again"; exit 1; }

cd "$work"
"$python" -c 'import headway, pathlib
for name in ("_core.pyi", "py.typed"):
    assert pathlib.Path(headway.__file__).with_name(name).exists(), name + " is not installed"'
"$python" -B -m pytest -q -p no:cacheprovider --rootdir "$tree/tools/python" "$tree/tools/python/tests"
