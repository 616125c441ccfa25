#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test. HEADWAY_PRESET names another preset of
# CMakePresets.json than release; arguments go to ctest. The last lines are ctest's own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${HEADWAY_PRESET:-release}

tools/install_packages.sh
tools/build.sh "$preset"
ctest --preset "$preset" -j 2 "$@" </dev/null
