#!/usr/bin/env bash
# Reads the machine code of the register tiles and fails when an inner loop moves vectors to or from the stack: a
# spilled accumulator costs a third of the speed and shows in no other test. Usage: check_tile_loops.sh OBJECT...
set -euo pipefail

command -v objdump >/dev/null || { echo "objdump is not installed"; exit 1; }

checked=0
for object in "$@"; do
  case $(basename "$object") in attention_tile* | bf16_tile* | packed_gemm*) ;; *) continue ;; esac
  report=$(objdump -d --no-show-raw-insn "$object" | awk '
    function address(text,   i, value) {
      value = 0
      for (i = 1; i <= length(text); ++i) value = value * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
      return value
    }
    function finish(   i, j, k, target, fma, stack, inner) {
      for (i = 1; i <= n; ++i) {
        if (jump[i] == "" || address(jump[i]) > at[i]) continue
        target = address(jump[i])
        fma = 0; stack = 0; inner = 1
        for (k = i; k >= 1 && at[k] >= target; --k) {
          if (code[k] ~ /vfmadd|vdpbf16/) ++fma
          if (code[k] ~ /%[xyz]mm[0-9]/ && code[k] ~ /%rsp/) ++stack
          if (k < i && jump[k] != "" && address(jump[k]) <= at[k] && address(jump[k]) >= target) inner = 0
        }
        # Tiles have 8 products a step or more; the loops of exp read constants from the stack and may.
        if (!inner || fma < 8 || fma % 4 != 0 || exps[name]) continue
        ++loops
        # One move in many products is lost among them; newer compilers make a few in a loop that is written out.
        if (stack * 16 > fma) { print "SPILL " name ": a loop of " fma " products has " stack " stack operands"; ++bad }
      }
      n = 0
    }
    /^[0-9a-f]+ <.*>:$/ { finish(); name = $2; exps[name] = name ~ /Softmax|Exp|Adjust|Tanh/; next }
    /^ *[0-9a-f]+:/ {
      ++n
      at[n] = address(substr($1, 1, length($1) - 1))
      code[n] = $0
      jump[n] = ($2 ~ /^j/ && $3 ~ /^[0-9a-f]+$/) ? $3 : ""
    }
    END { finish(); print "LOOPS " loops + 0 }')
  echo "$(basename "$object"): $(grep LOOPS <<<"$report" | cut -d' ' -f2) tile loops"
  if grep SPILL <<<"$report"; then exit 1; fi
  checked=$((checked + $(grep LOOPS <<<"$report" | cut -d' ' -f2)))
done
if ((checked < 8)); then
  echo "only $checked tile loops found, expected at least 8: the check no longer sees the tiles"
  exit 1
fi
