#!/usr/bin/env bash
# A rank of a C++ program leaves by an exception of its own: its catch runs, the others hear who and why, the job ends
# with an error, and nothing is left behind. Arguments: the program of job_leaves.cpp, the number of ranks, their device.
# Skipped (77) without as many GPUs.
set -euo pipefail
program=$1
ranks=$2
device=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$program" "$work/program"  # by whose path its processes are known
bad=0

complain() {
  echo "job_leaves: $1 ($name)"
  cat "$work/err.txt"
  bad=1
}
# job CODES ARGUMENTS: the job ends with one of the exit codes, in time.
job() {
  local codes=$1 code=0
  shift
  name=$*
  LD_LIBRARY_PATH="$(dirname "$program")/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" timeout 60 \
    "${MPIEXEC:-mpirun}" -n "$ranks" "$work/program" "$@" "$device" >"$work/out.txt" 2>"$work/err.txt" </dev/null || code=$?
  if [ "$code" -eq 77 ]; then exit 77; fi
  [[ " $codes " == *" $code "* ]] || complain "exit code $code, $codes expected"
  sleep 0.2
  for process in /proc/[0-9]*; do
    ! { tr '\0' ' ' <"$process/cmdline"; } 2>/dev/null | grep -qF "$work/program" || complain "$process is left behind"
  done
}
# left CODES ARGUMENTS: the same, and all ranks say what they have caught; on a GPU their streams and communicators may
# take longer than they have to end, so that heddle says it there.
left() {
  job "$@"
  [ "$(grep -cF "rank 1 caught: thrown by the program" "$work/err.txt")" -eq 1 ] || complain "rank 1 does not say what it threw"
  for rank in $(seq 0 $((ranks - 1))); do
    local says="rank $rank caught:"
    if [ "$device" = cuda ]; then says+="|heddle: rank $rank:"; fi
    [ "$rank" -eq 1 ] || grep -qE "^($says) .*rank 1 (failed|left).*its reason" "$work/err.txt" ||
      complain "rank $rank does not say why it ends"
  done
}

job 0 program never finalize
left 3 program first return
left 3 heddle later return
left 3 program later abort
left 2 program later finalize
[ "$bad" -eq 0 ] && echo "job_leaves: ok"
exit "$bad"
