#!/usr/bin/env bash
# The sharded examples one after the other as jobs of several processes, each against its reference.
# Arguments: the heddle command, the number of ranks, which is even, the device. Skipped (77) without as many GPUs.
set -euo pipefail
heddle=$1
ranks=$2
device=$3
bad=0
if [ "$device" = cuda ] && [ "$("$heddle" devices | grep -c 'cuda:' || true)" -lt "$ranks" ]; then
  echo "skipped: $ranks GPUs are needed"
  exit 77
fi

# check FILE ARGUMENTS...
check() {
  local out
  if out=$("${MPIEXEC:-mpirun}" -n "$ranks" "$heddle" run "examples/$1" --device "$device" --check "${@:2}" 2>&1 </dev/null); then
    return
  fi
  echo "mpi_examples: $*:"
  echo "$out"
  bad=1
}

for name in sp_mlp layer_norm_sharded embedding_vocab_sharded dp_tp_2d attention_tp transformer_block_tp pipeline_2stage \
  between_meshes all_reshardings; do
  [ "$name" != between_meshes ] || [ "$ranks" -ge 4 ] || continue  # its meshes name ranks 0 to 3
  check "$name.fusion"
done
check moe_dispatch_combine.hostir
[ "$bad" -eq 0 ] && echo "mpi_examples: ok"
exit "$bad"
