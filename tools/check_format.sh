#!/usr/bin/env bash
# Fails when a C++ file is not as .clang-format has it. CLANG_FORMAT names another program than clang-format; any from
# version 14 on will do. Files that git does not track count too, unless it ignores them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${CLANG_FORMAT:-clang-format}

version=$("$program" --version | sed -E 's/.*version ([0-9]+).*/\1/')
if [[ $version -lt 14 ]]; then
  echo "check_format.sh: $program is version $version, expected at least 14" >&2
  exit 1
fi
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  list=(git ls-files --cached --others --exclude-standard -z '*.cc' '*.h')
else
  list=(find . -path ./build -prune -o '(' -name '*.cc' -o -name '*.h' ')' -print0)
fi
mapfile -d '' -t files < <("${list[@]}")
"$program" --dry-run -Werror --style=file "${files[@]}"
echo "format: ${#files[@]} files as .clang-format has them"
