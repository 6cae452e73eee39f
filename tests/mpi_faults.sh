#!/usr/bin/env bash
# Tests mistakes of the user in a job of several processes. mpirun must return 2, stderr must contain
# the reason once, and stdout must be empty. Arguments: the heddle command, the number of ranks.
set -euo pipefail
export heddle=$1
ranks=$2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work
bad=0

# expect REASON COMMAND: every rank runs the shell command, in which $rank is its number.
expect() {
  local reason=$1 code=0 count
  shift
  "${MPIEXEC:-mpirun}" -n "$ranks" sh -c "rank=\$OMPI_COMM_WORLD_RANK; $*" \
    >"$work/out.txt" 2>"$work/err.txt" </dev/null || code=$?
  count=$(grep -cF "$reason" "$work/err.txt" || true)
  if [ "$code" -eq 2 ] && [ "$count" -eq 1 ] && [ ! -s "$work/out.txt" ]; then return; fi
  echo "mpi_faults: $*: exit code $code (expected 2), '$reason' printed $count times (expected once)"
  cat "$work/out.txt" "$work/err.txt"
  bad=1
}

for rank in $(seq 0 $((ranks - 1))); do
  op=neg
  [ "$rank" -eq 0 ] || op=abs
  cat >"$work/differs$rank.fusion" <<TEXT
heddle 1
mesh @m = [x=ranks]
fusion f(%x: f32[t] shard(@m, 0: x)) with t = 8 {
  %y = $op(%x)
  return %y
}
TEXT
done
cp "$work/differs0.fusion" "$work/only0.fusion"
sed 's/x=ranks/x=8/' "$work/differs0.fusion" >"$work/mesh.fusion"
cat >"$work/compiler" <<'TEXT'
#!/bin/sh
for argument in "$@"; do
  case $argument in *kernel.cpp) echo "made to fail" >&2; exit 1 ;; esac
done
exec c++ "$@"
TEXT
chmod +x "$work/compiler"

cat >"$work/posts.hostir" <<'TEXT'
heddle 1
mesh @m = [x=ranks]
program main(%x: f32[4]) -> (%y) {
  slot %y: f32[4]
  %y = allocate
  if rank == 0 {
    $t = communicate allreduce %x -> %y team=@m op=sum
    wait $t
  } else {
    $t = communicate allreduce %x -> %y team=@m op=max
    wait $t
  }
}
TEXT

export run="exec $heddle run --device cpu"
last=$((ranks - 1))
export last
expect "heddle: no_such.fusion: cannot read the file" '$run no_such.fusion'
expect "mesh.fusion: mesh @m = [x=8] needs 8 ranks, the job has $ranks" '$run $work/mesh.fusion'
expect "posts allreduce(sum) of" '$run $work/posts.hostir'
expect "heddle: the ranks run different programs; the first difference is in line" \
  '$run $work/differs$rank.fusion'
expect "heddle: rank $last: $work/only$last.fusion: cannot read the file" \
  'if [ $rank != $last ]; then $run $work/only0.fusion; fi; $run $work/only$rank.fusion'
expect "heddle: rank $last: input %x: out of memory" \
  'if [ $rank = $last ]; then limit="--memory-limit 9000"; fi; $run examples/tp_mlp.fusion $limit'
expect "heddle: rank $last: $work/compiler failed with exit code 1 on a kernel" \
  'if [ $rank = $last ]; then export HEDDLE_CXX=$work/compiler HEDDLE_CACHE_DIR=$work/cache; fi
  $run examples/tp_mlp.fusion'
expect "heddle: --ranks 7 under mpirun, whose job has $ranks rank(s)" \
  '$run examples/tp_mlp.fusion --ranks 7'
expect "heddle: --deadline differs between ranks, and must not: 10 s on rank 0, 5 s on rank $last" \
  'deadline=10; [ $rank -ne '"$last"' ] || deadline=5;' '$run $work/only0.fusion --deadline $deadline'
expect "heddle: rank $last cannot compile kernels, but rank 0 can" \
  '[ $rank -ne '"$last"' ] || export HEDDLE_CXX=/no/such/compiler;' '$run $work/only0.fusion'
expect "heddle: --seed differs between ranks, and must not: 0 on rank 0, 5 on rank $last" \
  'if [ $rank = $last ]; then other="--seed 5"; fi; $run examples/tp_mlp.fusion --check $other'
expect "heddle: --check differs between ranks, and must not: sample on rank 0, not given on rank $last" \
  'if [ $rank != $last ]; then other="--check"; fi; $run examples/tp_mlp.fusion $other'
expect "heddle: --inject: there is no instruction 700, the program has" \
  '$run examples/tp_mlp.fusion --inject rank=$last,instr=700,die'
# If a rank throws outside of its runs, all ranks learn of it, and only this rank prints a message.
for task in read compile settings programs; do
  export task
  expect "heddle: rank $last: injected: throw" '$run $work/only0.fusion --inject rank=$last,task=$task,throw'
  expect "heddle: " '$run $work/only0.fusion --inject rank=$last,task=$task,throw'
done
[ "$bad" -eq 0 ] && echo "mpi_faults: ok"
exit "$bad"
