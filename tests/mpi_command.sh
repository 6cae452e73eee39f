#!/usr/bin/env bash
# Runs the heddle command as the ranks of one job. Skipped (77) if the job needs more GPUs than the
# machine has. Arguments: the heddle command, the number of ranks, the arguments of the command.
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
