#!/usr/bin/env bash
# Runs a C++ program in which one rank throws its own exception, leaves early, or stays longer than
# the other ranks. If it throws, the catch block of this rank must run, and the other ranks must
# report which rank failed and why. The job must then end with an error, and no process may be left.
# Arguments: the program of job_leaves.cpp, the number of ranks, their device. Skipped (77) if there
# are fewer GPUs than ranks.
set -euo pipefail
program=$1
ranks=$2
device=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$program" "$work/program"  # the path identifies the processes of the job
bad=0

complain() {
  echo "job_leaves: $1 ($name)"
  cat "$work/err.txt"
  bad=1
}
# processes PATTERN: prints the processes whose command line matches the pattern, with one line each.
processes() {
  for process in /proc/[0-9]*; do
    ! { tr '\0' ' ' <"$process/cmdline"; } 2>/dev/null | grep -q -- "$1" || echo "$process"
  done
}
# launch ARGUMENTS: runs the job, and sets `code` to its exit code. mpirun of Open MPI 4.1 sometimes
# waits forever in PMIx_server_finalize(), or crashes there, after all ranks have ended. If mpirun has
# not ended 10 s after the ranks, or has crashed there, the function runs the job again.
launch() {
  local launcher began idle start
  for _ in 1 2 3; do
    code=0 began=no idle=0
    LD_LIBRARY_PATH="$(dirname "$program")/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
      "${MPIEXEC:-mpirun}" -n "$ranks" "$work/program" "$@" "$device" >"$work/out.txt" 2>"$work/err.txt" </dev/null &
    launcher=$!
    start=$SECONDS
    while kill -0 "$launcher" 2>/dev/null && [ $((SECONDS - start)) -lt 60 ] && [ "$idle" -lt 10 ]; do
      sleep 0.2
      if [ -n "$(processes "^$work/program ")" ]; then began=$SECONDS; fi
      [ "$began" = no ] || idle=$((SECONDS - began))
    done
    if [ "$idle" -lt 10 ]; then
      if kill -0 "$launcher" 2>/dev/null; then
        complain "has not ended within 60 s"
        kill -TERM "$launcher" || true
      fi
      wait "$launcher" || code=$?
      if [ "$code" -ne 139 ] || ! grep -q "PMIx_server_finalize" "$work/err.txt"; then return 0; fi
      echo "job_leaves: mpirun has crashed after its ranks ($name)"
      continue
    fi
    echo "job_leaves: mpirun has not ended 10 s after its ranks ($name)"
    kill -KILL "$launcher" || true
    wait "$launcher" || code=$?
  done
}
# job CODES ARGUMENTS: requires that the job ends in time with one of the exit codes.
job() {
  local codes=$1 code=0
  shift
  name=$*
  launch "$@"
  if [ "$code" -eq 77 ]; then exit 77; fi
  [[ " $codes " == *" $code "* ]] || complain "exit code $code, $codes expected"
  sleep 0.2
  for process in $(processes "$work/program"); do complain "$process is still running"; done
}
# left CODES ARGUMENTS: calls job, and requires that every rank prints the exception that it caught.
# On a GPU, streams and communicators may take longer to end than the time limit. heddle then prints
# the reason instead of the program.
left() {
  job "$@"
  [ "$(grep -cF "rank 1 caught: thrown by the program" "$work/err.txt")" -eq 1 ] || complain "rank 1 does not print what it threw"
  for rank in $(seq 0 $((ranks - 1))); do
    local says="rank $rank caught:"
    if [ "$device" = cuda ]; then says+="|heddle: rank $rank:"; fi
    [ "$rank" -eq 1 ] || grep -qE "^($says) .*rank 1 (failed|left).*its reason" "$work/err.txt" ||
      complain "rank $rank does not print why it ends"
  done
}

job 0 program never finalize
left 3 program first return
left 3 heddle later return
left 3 program later abort
left 2 program later finalize
# With NCCL, a rank that leaves waits up to 120 s for the other ranks to destroy their communicators (docs/faults.md).
# These two cases therefore run on the CPU only.
if [ "$device" = cpu ]; then
  job 3 heddle early return
  for rank in $(seq 0 $((ranks - 1))); do
    [ "$rank" -eq 1 ] || grep -qE "^(rank $rank caught:|heddle: rank $rank:) .*rank 1 left the job" "$work/err.txt" ||
      complain "rank $rank does not print why it ends"
  done
  job 2 heddle keeps return
  grep -qE "^heddle: rank [02] ends: the job has not ended within 1 s: it waits for the other ranks to call MPI_Finalize" \
    "$work/err.txt" || complain "no rank prints that it waits for MPI_Finalize"
fi
[ "$bad" -eq 0 ] && echo "job_leaves: ok"
exit "$bad"
