#!/usr/bin/env bash
# The rank on another machine dies, or throws. The remaining rank must report which rank was lost,
# and on which machine. Skipped (77) if two machines cannot be created. Argument: the heddle
# command.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$(dirname "$0")/.."
for kind in die throw; do
  code=0
  bash tests/mpi_two_machines.sh "$1" run examples/ring_allgather.hostir --device cpu --inject "rank=1,instr=4,$kind" \
    >"$work/out.txt" 2>"$work/err.txt" </dev/null || code=$?
  if [ "$code" -eq 77 ]; then
    cat "$work/out.txt"
    exit 77
  fi
  if [ "$code" -eq 0 ] || ! grep -qE "heddle: rank 0 ends: rank 1 (failed in run 1 .*instruction 4|is lost)" "$work/err.txt" ||
    ! grep -qE "^  rank 1 \\(pid [0-9]+ on heddleB" "$work/err.txt"; then
    echo "mpi_machines_losses: $kind: exit code $code"
    cat "$work/out.txt" "$work/err.txt"
    exit 1
  fi
done
echo "mpi_machines_losses: ok"
