#!/usr/bin/env bash
# Outside of a run, one rank stalls while the other ranks wait for it, or it gets SIGTERM. After the
# time limit --patience the job must end. The messages must name the ranks and what they do.
# Arguments: the heddle command, the number of ranks, the part of the tests (tasks or runs).
set -euo pipefail
export heddle=$1
ranks=$2
part=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work
bad=0
others=$((ranks - 1))
cp tests/losses.hostir "$work/sum.hostir"
# The reference computes these matrix products much more slowly than the device.
{
  echo 'heddle 1'
  echo 'mesh @m = [x=ranks]'
  echo 'fusion f(%y0: f32[t, t] shard(@m, 0: x), %w: f32[t, t] shard(@m)) with t = 1500 {'
  for i in $(seq 16); do echo "  %y$i = matmul(%y$((i - 1)), %w)"; done
  echo '  return %y16'
  echo '}'
} >"$work/slow_check.fusion"

complain() {
  echo "mpi_waits: $1 ($name)"
  cat "$work/out.txt" "$work/err.txt"
  bad=1
}
# job CODE COMMAND: every rank runs the shell command, in which $rank is its number. Requires that
# the job ends with CODE.
job() {
  local expected=$1 code=0
  shift
  name=$*
  timeout 120 "${MPIEXEC:-mpirun}" -n "$ranks" sh -c "rank=\$OMPI_COMM_WORLD_RANK; $*" \
    >"$work/out.txt" 2>"$work/err.txt" </dev/null || code=$?
  [ "$code" -eq "$expected" ] || complain "exit code $code, expected $expected"
}
# said COUNT TEXT: requires that COUNT lines of stderr contain TEXT.
said() {
  local count
  count=$(grep -cF -- "$2" "$work/err.txt" || true)
  [ "$count" -eq "$1" ] || complain "'$2' printed $count times, expected $1"
}
export run="exec $heddle run --device cpu $work/sum.hostir"

# absent TASK PATIENCE SECONDS WHAT: rank 1 stalls in TASK. Every other rank must print WHAT rank 1
# does, and that nothing has moved for SECONDS.
absent() {
  job 2 "\$run --inject rank=1,task=$1,stall --patience $2"
  said "$others" " ends: rank 1 is lost"
  said "$others" "while it $4: nothing has moved on any rank for $3 s, and rank 0 waits for it"
  grep -qE "^  rank 0 \(pid .*: waiting, .* waits for rank 1( |$)" "$work/err.txt" ||
    complain "the line of rank 0 does not name rank 1"
}
test_tasks() {
  absent compile 1 10 "compiles the program"
  absent settings 2 2 "compares its settings with the other ranks"
  absent programs 2 2 "compares its program with the other ranks"
  absent communicators 2 2 "creates communicators"
  absent outputs 2 2 "collects the outputs of all ranks"
  absent leave 2 2 "leaves its job"
}

test_runs() {
  # The other ranks wait in the first run.
  job 2 '$run --inject rank=1,task=prepare,stall --patience 1'
  said "$others" " ends: rank 1 is lost"
  said "$others" "while it prepares a run: nothing has moved on any rank for 10 s, and others wait"

  # A rank that gets SIGTERM prints what it does.
  job 2 'if [ $rank = 1 ]; then (sleep 3; kill -TERM $$) & fi; $run --inject rank=1,task=inputs,delay=60s'
  said 1 "heddle: rank 1 ends: told to end by signal 15 before its first run, while it copies its inputs to the device"
  job 143 'if [ $rank = 0 ]; then
      (until [ -e $work/rank1_ended ]; do sleep 0.2; done; sleep 2; kill -TERM $$) &
      exec $heddle run --device cpu $work/slow_check.fusion --check=full
    fi
    $heddle run --device cpu $work/slow_check.fusion --check=full
    touch $work/rank${rank}_ended'
  said 1 "heddle: rank 0 ends: told to end by signal 15 while it checks the outputs"
}

"test_$part"
[ "$bad" -eq 0 ] && echo "mpi_waits: ok"
exit "$bad"
