#!/usr/bin/env bash
# Runs the command as ranks of one job. Skipped (77) when it wants more GPUs than there are.
# Arguments: the heddle command, the number of ranks, what the command is to do.
set -euo pipefail
heddle=$1
ranks=$2
shift 2

if [[ " $* " == *" --device cuda "* ]]; then
  gpus=$("$heddle" devices | grep -c 'cuda:' || true)
  if [ "$gpus" -lt "$ranks" ]; then
    echo "skipped: $ranks GPUs are needed, there are $gpus"
    exit 77
  fi
fi
exec "${MPIEXEC:-mpirun}" -n "$ranks" "$heddle" "$@"
