#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that a build from source needs, and only those that are missing: a machine that
# has them all is never asked for rights or for a network. With --ci also what only .ci/run needs: the format check's
# release of clang-format, clang with its OpenMP and its sanitizers, and a browser; with --python, or --ci, what the
# Python package of tools/python needs before pip does the rest; with --web only what tools/web.sh needs. Knows nothing
# of the build itself.
set -euo pipefail
ci=false
python=false
if [[ ${1:-} == --ci ]]; then ci=true; fi
if [[ ${1:-} == --python ]]; then python=true; fi

packages=(
  g++ cmake ninja-build pkg-config                      # to build and to embed
  libdnnl-dev libhwy-dev                                # what the libraries link
  libprotobuf-dev protobuf-compiler libonnx-dev         # the importer of ONNX files
  libcli11-dev nlohmann-json3-dev libfmt-dev            # the command
  libgtest-dev libbenchmark-dev                         # tests, benchmarks
)

die() {
  echo "install_packages.sh: $*" >&2
  exit 1
}

if ! command -v dpkg-query >/dev/null; then
  # Another distribution: the build itself says what it misses.
  command -v cmake >/dev/null || die "not a Debian or Ubuntu system and no cmake here; README.md lists what to install"
  exit 0
fi

as_root=()
apt() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive timeout 900 apt-get -q -y -o Acquire::Retries=3 \
    -o DPkg::Lock::Timeout=120 "$@" </dev/null
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# install PACKAGE…: those of them that are missing.
install() {
  local missing=() package status
  for package in "$@"; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) || status=absent
    [[ $status == installed ]] || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0

  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || die "needs root or sudo to install: ${missing[*]}"
    sudo -n true 2>/dev/null || [[ -t 0 ]] || die "needs root or a sudo without password to install: ${missing[*]}"
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}"
  apt update >"$log" 2>&1 || { tail -n 5 "$log" >&2; die "apt-get update failed; still missing: ${missing[*]}"; }
  apt install --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
    { tail -n 5 "$log" >&2; die "apt-get install failed; still missing: ${missing[*]}"; }
}

# known PACKAGE…: those of them that this release of the distribution has.
known() {
  local package
  for package in "$@"; do
    if apt-cache show "$package" >/dev/null 2>&1; then echo "$package"; fi
  done
}

clang_release() {
  compgen -c clang++- | sed -nE 's/^clang\+\+-([0-9]+)$/\1/p' | sort -n | tail -n 1
}

if [[ ${1:-} == --web ]]; then packages=(cmake ninja-build libhwy-dev python3 emscripten); fi
if $python || $ci; then packages+=(python3-dev python3-venv); fi
install "${packages[@]}"
if $ci; then
  [[ -n $(clang_release) ]] || install clang
  release=$(clang_release)
  install "clang-$release" "libomp-$release-dev"
  # Not every release of a distribution has these: the sanitizers came with the compiler before.
  mapfile -t extra < <(known "libclang-rt-$release-dev" clang-format-14)
  install ${extra[@]+"${extra[@]}"}
  command -v clang-format-14 clang-format >/dev/null || install clang-format
  # A browser opens the pages in a test. Where the distribution has none as a package, the test says that it is skipped.
  if ! command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null; then
    mapfile -t browser < <(known chromium)
    install python3 ${browser[@]+"${browser[@]}"}
  fi
fi
