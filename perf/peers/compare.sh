#!/usr/bin/env bash
# The same attention on Headway, PyTorch, ONNX Runtime and OpenVINO in one command: builds our worker, installs the peers in a
# private Python environment, compares. Nothing here is needed to build or test the library.
#
#   compare.sh [--threads 1,2] [--rounds N] [--shapes quick|all|name,...] [--models PATH,...] [--out FILE.md]
#              [--peers torch,ort,openvino]
#
# HEADWAY_PEERS_VENV is where the environment goes (build/peers-venv); HEADWAY_PEER_WORKER is a worker built already.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
venv="${HEADWAY_PEERS_VENV:-$root/build/peers-venv}"
worker="${HEADWAY_PEER_WORKER:-$root/build/release/bin/headway_peer_worker}"
mkdir -p "$root/build"
log="$root/build/peers.log"
: >"$log"

if [[ -z "${HEADWAY_PEER_WORKER:-}" ]]; then
  if ! (cd "$root" && cmake --preset release -DHEADWAY_BUILD_PERF=ON &&
      cmake --build --preset release --target headway_peer_worker) >>"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    echo "compare.sh: the build failed; all of its output is in $log" >&2
    exit 1
  fi
fi

python="$venv/bin/python"
if [[ ! -x "$python" ]] && ! python3 -m venv "$venv" >>"$log" 2>&1; then
  echo "compare.sh: python3 -m venv failed (Debian: python3-venv); see $log" >&2
  exit 1
fi
pip_install() {  # pip_install NAME PACKAGES: says in one line what cannot be had
  "$python" -m pip install -q --disable-pip-version-check "${@:2}" >>"$log" 2>&1 </dev/null && return
  echo "compare.sh: $1 cannot be installed; see $log" >&2
  return 1
}
"$python" -c 'import numpy, safetensors' 2>/dev/null || pip_install "the driver" numpy safetensors || exit 1
"$python" -c 'import torch' 2>/dev/null || pip_install PyTorch torch==2.13.0 || true
"$python" -c 'import onnx, onnxruntime' 2>/dev/null || pip_install "ONNX Runtime" onnx onnxruntime || true
"$python" -c 'import openvino' 2>/dev/null || pip_install OpenVINO openvino || true

exec "$python" -B "$root/perf/peers/compare.py" --worker "$worker" "$@"
