#!/usr/bin/env bash
# One rank throws, dies, stalls or is stopped, while the GPUs of the other ranks wait for its next
# collective. Every other rank must end within 10 s, with an error that names the rank that is the
# cause. No process may be left, and the next job must work. Arguments: the heddle command, the
# number of ranks, and optionally an attribute of the collective ("lane=1": copy engines move the
# data). Skipped (77) if there are fewer GPUs than ranks.
set -euo pipefail
export heddle=$1
ranks=$2
if [ "$("$heddle" devices | grep -c 'cuda:' || true)" -lt "$ranks" ]; then
  echo "skipped: $ranks GPUs are needed"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

sed "s/op=sum/op=sum ${3:-}/" tests/losses.hostir >"$work/sum.hostir"  # this path identifies the processes
export program=$work/sum.hostir

complain() {
  echo "mpi_losses_cuda: $1"
  cat "$work/out.txt"
  bad=1
}
leftovers() {
  for process in /proc/[0-9]*; do
    if { tr '\0' ' ' <"$process/cmdline"; } 2>/dev/null | grep -qF "$program"; then echo "${process#/proc/}"; fi
  done
}
# lost SECONDS COMMAND: runs a job whose fault occurs SECONDS after the start. Requires that the job
# ends within 10 s after the fault.
lost() {
  local most=$(($1 + 10)) begin=$SECONDS code=0
  shift
  timeout 90 "${MPIEXEC:-mpirun}" -n "$ranks" sh -c "rank=\$OMPI_COMM_WORLD_RANK; $*" >"$work/out.txt" 2>&1 </dev/null || code=$?
  [ "$code" -ne 0 ] && [ "$code" -ne 124 ] || complain "exit code $code ($*)"
  [ $((SECONDS - begin)) -le "$most" ] || complain "$((SECONDS - begin)) s, at most $most expected ($*)"
  grep -qF "$blamed" "$work/out.txt" || complain "no rank prints which rank caused it ($*)"
  sleep 1
  [ -z "$(leftovers)" ] || complain "processes are still there: $(leftovers) ($*)"
}
export run="exec $heddle run --device cuda $program"
blamed=" ends: rank 1 "
start=10  # seconds for starting MPI, CUDA and NCCL, with a margin

lost $start '$run --inject rank=1,instr=1,throw'
lost $start '$run --inject rank=1,instr=5,die'
if [ -n "${3:-}" ]; then blamed=" ends: rank "; fi  # copy engines: no rank can see which rank's stream stopped
lost $start '$run --inject rank=1,instr=1,stall --patience 1'
blamed=" ends: rank 1 "
lost $((start + 10)) 'if [ $rank = 1 ]; then (sleep 10; kill -KILL $$) & fi; $run --deadline 3 --inject rank=1,instr=1,delay=60s'
lost $((start + 10)) 'if [ $rank = 1 ]; then (sleep 10; kill -STOP $$) & fi; $run --deadline 3 --inject rank=1,instr=1,delay=60s'

code=0
timeout 90 "${MPIEXEC:-mpirun}" -n "$ranks" "$heddle" run examples/tp_mlp.fusion --device cuda --check=full --trace "$work/trace.json" \
  >"$work/out.txt" 2>&1 </dev/null || code=$?
[ "$code" -eq 0 ] || complain "exit code $code of the job after the faults"
for rank in $(seq 0 $((ranks - 1))); do
  grep -q "\"pid\": $rank," "$work/trace.json" || complain "rank $rank is not in the trace"
done
[ "$bad" -eq 0 ] && echo "mpi_losses_cuda: ok"
exit "$bad"
