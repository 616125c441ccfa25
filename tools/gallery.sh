#!/usr/bin/env bash
# Makes the pages that docs/gallery.md shows and takes their pictures with a headless Chromium, into docs/gallery. The
# figures on them are those of the machine it runs on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() {
  echo "gallery.sh: $*" >&2
  exit 2
}
for name in chromium chromium-browser google-chrome-stable google-chrome; do
  if browser=$(command -v "$name"); then break; fi
done
[[ -n ${browser:-} ]] || die "no Chromium here; tools/install_packages.sh --ci installs one"
tools/build.sh release headway_command >&2
headway=$PWD/build/release/bin/headway
pictures=$PWD/docs/gallery
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$pictures"

# picture NAME WIDTH HEIGHT HASH [OPTION…]: of NAME.html
picture() {
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$2,$3" "${@:5}" \
    --screenshot="$pictures/$1.png" "file://$work/$1.html#$4" >/dev/null 2>&1
  [[ -s $pictures/$1.png ]] || die "no picture of $1"
  echo "docs/gallery/$1.png"
}

if command -v em++ >/dev/null; then
  tools/web.sh "$work/live.html"
  picture live 1280 1000 'theme=light' --timeout=8000
fi
cp tests/fixtures/minilm_layer0/{weights.safetensors,input.safetensors,tokens.json} "$work"
cd "$work"  # the pages show their command line
python3 -c 'import json, sys
tokens = json.load(open(sys.argv[1]))["tokens"][1]
json.dump(tokens + ["[PAD]"] * (49 - len(tokens)), open(sys.argv[1], "w"))' tokens.json
"$headway" view --weights weights.safetensors --input input.safetensors --heads 12 --batch 1 --tokens tokens.json \
  --separator '[SEP]' --out heads.html
picture heads 1280 1000 'row=3&theme=light' --virtual-time-budget=20000
"$headway" sweep --embed-dim 1024 --seq 512 --heads 1,2,4,8,16,32,64,128 --threads 1 --html sweep.html
picture sweep 1280 900 'h=64&theme=light' --virtual-time-budget=20000
"$headway" profile --preset bert-base --html profile.html
picture profile 1280 900 'theme=dark' --virtual-time-budget=20000
