#!/usr/bin/env bash
# Runs the sharded examples, one after the other, as jobs of several processes, and compares each
# with its reference. Arguments: the heddle command, the number of ranks (at least 2), the device.
# Skipped (77) if there are fewer GPUs than ranks.
# The meshes of two examples do not fit every job: dp_tp_2d needs two rows of ranks, and
# between_meshes names ranks 0 to 3. Jobs that do not fit must reject these examples with a certain
# message.
set -euo pipefail
heddle=$1
ranks=$2
device=$3
bad=0
if [ "$device" = cuda ] && [ "$("$heddle" devices | grep -c 'cuda:' || true)" -lt "$ranks" ]; then
  echo "skipped: $ranks GPUs are needed"
  exit 77
fi

# check FILE ARGUMENTS...: runs an example and requires that its results are right.
check() {
  local out
  if out=$("${MPIEXEC:-mpirun}" -n "$ranks" "$heddle" run "examples/$1" --device "$device" --check "${@:2}" 2>&1 </dev/null); then
    return
  fi
  echo "mpi_examples: $*:"
  echo "$out"
  bad=1
}

# refuse MESSAGE FILE: requires that an example is rejected with the message.
refuse() {
  local out code=0
  out=$("${MPIEXEC:-mpirun}" -n "$ranks" "$heddle" run "examples/$2" --device "$device" 2>&1 </dev/null) || code=$?
  if [ "$code" -eq 2 ] && grep -qF "$1" <<<"$out"; then return; fi
  echo "mpi_examples: $2: exit code $code; expected 2 and '$1':"
  echo "$out"
  bad=1
}

for name in sp_mlp layer_norm_sharded embedding_vocab_sharded attention_tp transformer_block_tp pipeline_2stage \
  all_reshardings; do
  check "$name.fusion"
done
if [ $((ranks % 2)) -eq 0 ]; then check dp_tp_2d.fusion; else refuse "the job has $ranks rank(s), but must have a multiple of 2" dp_tp_2d.fusion; fi
if [ "$ranks" -ge 4 ]; then check between_meshes.fusion; else refuse ", the job has $ranks rank(s)" between_meshes.fusion; fi
# Other tests run this example on fewer ranks.
[ "$ranks" -lt 4 ] || check moe_dispatch_combine.hostir
[ "$bad" -eq 0 ] && echo "mpi_examples: ok"
exit "$bad"
