#!/usr/bin/env bash
# check_exports.sh LIBRARY SOURCE_TREE ARCHIVE…: a shared library shows what the public headers mark with HEADWAY_API
# and nothing else; and whatever they declare and the archives define is marked. Knows names, not signatures.
set -euo pipefail
library=$1
tree=$2
shift 2
headers=("$tree"/runtime/include/headway/*.h "$tree"/ops/include/headway/*.h)
failures=0

# The class or function that a symbol belongs to: the first name after headway::, or after headway::detail::, which holds
# what the public headers call themselves.
owners() { sed -nE 's/^[^:]*headway::(detail::)?(operator[^(]+|[A-Za-z0-9_]+).*/\2/p' | sort -u; }
# Classes, and functions by the name before their parenthesis.
marked=$(grep -hE '\bHEADWAY_API [A-Za-z]' "${headers[@]}" | grep -v '#define' |
  sed -E 's/^ *(class|struct) HEADWAY_API ([A-Za-z0-9_]+).*/\2/; t; s/^[^(]*[ *&](operator[^(]+|[A-Za-z0-9_]+)\(.*/\1/' |
  sort -u)
shown=$(nm -D -C --defined-only "$library" | cut -d ' ' -f 3-)
[[ $(wc -l <<<"$marked") -ge 20 && $(wc -l <<<"$shown") -ge 50 ]] || {
  echo "found $(wc -l <<<"$marked") marks and $(wc -l <<<"$shown") symbols: too few to be all"
  exit 1
}

strangers=$(nm -D --defined-only "$library" | cut -d ' ' -f 3- | grep -vE '^(headway_|_Z(T[ISV])?NK?7headway)' || true)
if [[ -n $strangers ]]; then
  echo "shown but not of namespace headway:"
  echo "$strangers"
  failures=1
fi
unmarked=$(comm -23 <(owners <<<"$shown") <(echo "$marked"))
inner=$(grep -E '::(Impl|Worker)::' <<<"$shown" || true)
if [[ -n $inner ]]; then
  echo "shown although it is private:"
  echo "$inner"
  failures=1
fi
if [[ -n $unmarked ]]; then
  echo "shown but not marked with HEADWAY_API in a public header:" $unmarked
  failures=1
fi

# Declared in a public header: classes with a body, functions at the beginning of a line.
declared=$(grep -hE '^(class|struct) [^;]*\{|^[A-Za-z][^=]*\(' "${headers[@]}" |
  sed -E 's/^(class|struct) (HEADWAY_API )?([A-Za-z0-9_]+).*/\3/; t; s/^[^(]*[ *&](operator[^(]+|[A-Za-z0-9_]+)\(.*/\1/' |
  sort -u)
defined=$(nm -C --defined-only --extern-only "$@" | grep -E '^[0-9a-f]+ [TDRB] ' | cut -d ' ' -f 3- | owners)
hidden=$(comm -12 <(echo "$declared") <(echo "$defined") | comm -23 - <(owners <<<"$shown"))
if [[ -n $hidden ]]; then
  echo "public and defined, but not shown:" $hidden
  failures=1
fi
exit $failures
