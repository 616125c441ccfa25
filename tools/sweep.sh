#!/usr/bin/env bash
# "What does the head count cost on this CPU?" in one command: installs what is missing, builds the headway command,
# runs its sweep. Arguments go to `headway sweep`; without any, d_model 1024 at 512 tokens from 1 to 128 heads.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install_packages.sh >&2
log=build/sweep.log
mkdir -p build
echo "building the headway command; what the compiler says goes to $log" >&2
if ! tools/build.sh release headway_command >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "sweep.sh: the build failed; all of its output is in $log" >&2
  exit 1
fi

if [[ $# -eq 0 ]]; then
  set -- --embed-dim 1024 --seq 512 --heads 1,2,4,8,16,32,64,128 --threads 1
fi
exec build/release/bin/headway sweep "$@"
