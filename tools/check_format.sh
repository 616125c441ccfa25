#!/usr/bin/env bash
# Fails when a C++ file is not as .clang-format has it. Releases of clang-format break lambdas differently, so the tree
# is held to one of them, 14; with another the differences are only told. CLANG_FORMAT names another program. Files that
# git does not track count too, unless it ignores them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pinned=14

program=${CLANG_FORMAT:-$(command -v "clang-format-$pinned" || echo clang-format)}
version=$("$program" --version | sed -E 's/.*version ([0-9]+).*/\1/')
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  list=(git ls-files --cached --others --exclude-standard -z '*.cc' '*.h')
else
  list=(find . -path ./build -prune -o '(' -name '*.cc' -o -name '*.h' ')' -print0)
fi
files=()
while IFS= read -r -d '' file; do
  # A file that was deleted but is still tracked has no format.
  if [[ -f $file ]]; then files+=("$file"); fi
done < <("${list[@]}")

if [[ $version -eq $pinned ]]; then
  "$program" --dry-run -Werror --style=file "${files[@]}"
  echo "format: ${#files[@]} files as .clang-format has them"
else
  differing=0
  for file in "${files[@]}"; do
    "$program" --style=file "$file" | cmp -s - "$file" || differing=$((differing + 1))
  done
  echo "format: $program is version $version, which would change $differing of ${#files[@]} files; only $pinned decides"
fi
