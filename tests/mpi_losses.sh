#!/usr/bin/env bash
# In a job of several processes, one rank throws, is killed, is stopped or gets SIGTERM during a
# run. Every other rank must end and print which rank was lost, where and why. No process may be
# left. A rank that is only slow must not end the job. Arguments: the heddle command, the number of
# ranks, the program of embed_losses.cpp.
set -euo pipefail
export heddle=$1
ranks=$2
export embedded=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work
bad=0
others=$((ranks - 1))

cp tests/losses.hostir "$work/sum.hostir"
cp examples/tp_mlp.fusion "$work/busy.fusion"
cat >"$work/neg.fusion" <<'TEXT'
heddle 1
mesh @m = [x=ranks]
fusion f(%x: f32[t] shard(@m, 0: x)) with t = 64 {
  %y = neg(%x)
  return %y
}
TEXT
cat >"$work/slow_compiler" <<'TEXT'
#!/bin/sh
for argument in "$@"; do
  case $argument in *kernel.cpp) sleep 2 ;; esac
done
exec c++ "$@"
TEXT
# The child process of this compiler does not receive the signals that mpirun sends to the ranks.
cat >"$work/stuck_compiler" <<'TEXT'
#!/bin/sh
for argument in "$@"; do
  case $argument in *kernel.cpp) touch "$0.compiles" && setsid -w sh -c 'sleep 60; exit 1' "$0" ;; esac
done
exec c++ "$@"
TEXT
chmod +x "$work/slow_compiler" "$work/stuck_compiler"
mkdir "$work/tmp"
# A library for LD_PRELOAD. It sends SIGTERM to the process after the destructors of the program's
# static objects have run.
cat >"$work/late.cpp" <<'TEXT'
#include <signal.h>
#include <stdlib.h>
__attribute__((constructor)) static void begin(void) { unsetenv("LD_PRELOAD"); }
__attribute__((destructor)) static void end(void) { raise(SIGTERM); }
TEXT
c++ -shared -fPIC "$work/late.cpp" -o "$work/late.so"

# job COMMAND: every rank runs the shell command, in which $rank is its number. Sets $code.
job() {
  code=0
  "${MPIEXEC:-mpirun}" -n "$ranks" sh -c "rank=\$OMPI_COMM_WORLD_RANK; $*" \
    >"$work/out.txt" 2>"$work/err.txt" </dev/null || code=$?
}
complain() {
  echo "mpi_losses: $1"
  cat "$work/out.txt" "$work/err.txt"
  bad=1
}
# said COUNT TEXT: requires that COUNT lines of stderr contain TEXT.
said() {
  local count
  count=$(grep -cF -- "$2" "$work/err.txt" || true)
  [ "$count" -eq "$1" ] || complain "'$2' printed $count times, expected $1 ($name)"
}
# Prints the processes of the last job. Their command lines contain the work folder.
leftovers() {
  echo "$work/" | grep -slaF -f - /proc/[0-9]*/cmdline | cut -d/ -f3 || true
}
nothing_left() {
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ -n "$(leftovers)" ] || return 0
    sleep 0.5
  done
  complain "processes are still there: $(leftovers) ($name)"
}
# lost CODE COMMAND: requires that the job ends with CODE, and that every rank except rank 1 prints
# once that rank 1 is the cause. If a signal kills rank 1, mpirun may notice the end of another rank
# first, whose code is 2. The job may then end with 2, but only if mpirun says so.
lost() {
  local expected=$1
  shift
  name=$*
  job "$@"
  if [ "$expected" -eq 137 ] && grep -qE 'Process name: \[\[[0-9]+,1\],[02]\]' "$work/err.txt"; then
    expected=2
  fi
  [ "$code" -eq "$expected" ] || complain "exit code $code, $expected expected ($name)"
  said "$others" " ends: rank 1 "
  [ ! -s "$work/out.txt" ] || complain "something on stdout ($name)"
  nothing_left
}
fine() {
  name=$*
  job "$@"
  [ "$code" -eq 0 ] || complain "exit code $code, 0 expected ($name)"
  nothing_left
}

copy='instruction 1 (copy %x -> %a stream=0)'
sum='instruction 5 ($t = communicate allreduce %a -> %y team=@m[x] op=sum stream=1)'
export run="exec $heddle run --device cpu"
export slow="exec $heddle run --device cpu $work/sum.hostir --deadline 3 --inject rank=1,instr=1,delay=30s"

lost 2 '$run $work/sum.hostir --inject rank=1,instr=1,throw'
said 1 "/sum.hostir:8: $copy: injected: throw"
said "$others" "ends: rank 1 failed in run 1 at $copy: $copy: injected: throw"

lost 137 '$run $work/sum.hostir --inject rank=1,instr=5,die'
said "$others" "ends: rank 1 is lost in run 1"
said "$others" "killed, or ended without leaving"
grep -qE "^  rank 1 \(pid [0-9]+ on .*\): gone, in run 1 .*instruction 5" "$work/err.txt" ||
  complain "the last instruction of the dead rank is not printed"
grep -qF "communicating, in run 1 communicating at $sum" "$work/err.txt" ||
  complain "the instruction of a rank that waits is not printed"

lost 2 '$run $work/sum.hostir --inject rank=1,instr=1,stall --patience 1'
said "$others" "ends: rank 1 is lost in run 1 computing at $copy"
said "$others" "nothing has moved on any rank for 1 s, and others wait"

lost 137 'if [ $rank = 1 ]; then (sleep 2; kill -KILL $$) & fi; $slow'
said "$others" "ends: rank 1 is lost"

lost 2 'if [ $rank = 1 ]; then (sleep 2; kill -STOP $$) & fi; $slow'
said "$others" "ends: rank 1 is lost"
grep -qE "its process \(pid [0-9]+ on .*\) is stopped" "$work/err.txt" ||
  complain "the reason of a stopped rank is not printed"

lost 2 'if [ $rank = 1 ]; then (sleep 2; kill -TERM $$) & fi; $slow'
said 1 "heddle: rank 1 ends: told to end by signal 15"

# handling: prints the processes of the job that handle SIGTERM: mpirun and the ranks that are
# ready. The next test sends SIGTERM to mpirun, which sends it to all ranks and kills them later.
# Every rank must print its reason before it is killed.
handling() {
  for process in $(leftovers); do
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$process/status" 2>/dev/null || true)
    if [ $((0x${caught:-0} & 0x4000)) -ne 0 ]; then echo "$process"; fi
  done
}
for times in 1 2 3; do
  name="mpirun is told to end, $times"
  "${MPIEXEC:-mpirun}" -n "$ranks" "$heddle" run --device cpu "$work/busy.fusion" --repeat 1000000000 \
    >"$work/out.txt" 2>"$work/err.txt" </dev/null &
  until [ "$(handling | wc -l)" -gt "$ranks" ]; do sleep 0.2; done
  sleep 0.5
  kill -TERM $!
  wait $! || true
  for rank in $(seq 0 "$others"); do said 1 "heddle: rank $rank ends: "; done
  nothing_left
done

name='told to end after its last destructor'
job 'if [ $rank = 1 ]; then export LD_PRELOAD=$work/late.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0; fi
  $run $work/sum.hostir'
[ "$code" -eq 143 ] || complain "exit code $code, 143 expected ($name)"
said 1 "heddle: rank 1 ends: told to end by signal 15 while it leaves its job"

name='ends while it compiles'
job 'if [ $rank = 1 ]; then export HEDDLE_CXX=$work/stuck_compiler HEDDLE_CACHE_DIR=$work/stuck TMPDIR=$work/tmp; fi
  if [ $rank = 0 ]; then (until [ -e $work/stuck_compiler.compiles ]; do sleep 0.1; done; kill -TERM $$) & fi
  $run examples/tp_mlp.fusion'
[ "$code" -eq 2 ] || complain "exit code $code, 2 expected ($name)"
said "$others" " ends: rank 0 failed"
nothing_left
[ -z "$(ls "$work/tmp" | grep heddle-)" ] || complain "folders are still there: $(ls "$work/tmp") ($name)"

# This fault occurs before the job monitor exists, so mpirun ends the other ranks when the first
# rank has ended.
name='stopped before the start'
job 'if [ $rank = 1 ]; then kill -STOP $$; fi; $run $work/sum.hostir --start-limit 1'
[ "$code" -eq 2 ] || complain "exit code $code, 2 expected ($name)"
# mpirun may continue the stopped rank (SIGCONT) when it sends SIGTERM. This rank then also prints the
# line.
waits=$(grep -cF "it waits for all ranks to start and to find each other by MPI" "$work/err.txt" || true)
[ "$waits" -ge "$others" ] || complain "$waits ranks printed what they wait for, expected $others ($name)"
grep -qF "ends: the job has not started within 1 s" "$work/err.txt" || complain "the limit is not printed ($name)"
grep -qE "^  rank 1 \(pid [0-9]+ on .*\): stopped" "$work/err.txt" || complain "the stopped rank is not printed"
nothing_left

fine '$run $work/sum.hostir --deadline 1 --inject rank=1,instr=1,delay=3s'
fine 'if [ $rank = 1 ]; then export HEDDLE_CXX=$work/slow_compiler HEDDLE_CACHE_DIR=$work/cache; fi
  $run examples/tp_mlp.fusion --deadline 1 --patience 1'
fine '$run $work/sum.hostir --trace $work/trace.json'
for rank in $(seq 0 "$others"); do
  grep -q "\"pid\": $rank," "$work/trace.json" || complain "rank $rank is not in the trace"
done
# embedded COMMAND: requires that a C++ program gets an exception on every remaining rank and goes on.
embedded() {
  name=$*
  job "$@"
  [ "$code" -eq 5 ] || complain "exit code $code, 5 expected ($name)"
  nothing_left
}
embedded '$embedded $work/sum.hostir rank=1,instr=1,throw'
said 1 "embedded rank 1 goes on: $copy: injected: throw"
# A rank that still waits for other ranks before its first run names no instruction of its own.
for rank in 0 2; do
  lines=$(grep -F "embedded rank $rank goes on: " "$work/err.txt" |
    grep -cF ": rank 1 failed in run 1 at $copy" || true)
  [ "$lines" -eq 1 ] || complain "rank $rank names the failed rank $lines times, expected 1 ($name)"
done
embedded 'if [ $rank = 1 ]; then (sleep 3; kill -STOP $$) & fi; exec $embedded $work/sum.hostir rank=1,instr=1,delay=30s'
said 2 "goes on: $sum: rank 1 is lost"

name=corrupt
job '$run $work/neg.fusion --check=full --inject rank=1,instr=1,corrupt'
[ "$code" -eq 1 ] || complain "exit code $code of a corrupted run, 1 expected"

# Corrupts the copy of one rank only. Instruction 15 computes the replicated result.
name='corrupt copy'
job '$run examples/tp_mlp.fusion --check --inject rank=1,instr=15,corrupt'
[ "$code" -eq 1 ] || complain "exit code $code of a corrupted copy, 1 expected"
grep -qF "%z, the copy of rank 1, WRONG in" "$work/out.txt" || complain "the wrong copy is not printed"

[ "$bad" -eq 0 ] && echo "mpi_losses: ok"
exit "$bad"
