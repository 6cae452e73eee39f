#!/usr/bin/env bash
# Runs every test: first the release build with all labels except `big`, then the tests with
# sanitizers, and 40 seconds of fuzzing. Many tests wait more than they compute, so the builds with
# sanitizers run at low priority beside other stages. The script stops at the first stage that fails
# and shows the output of this stage. At the end it prints the time per label.
# Leaves out tests that have passed with the same sources (see leave_out). ALL=1 leaves out none.
set -euo pipefail
cd "$(dirname "$0")/.."

logs=build/test_logs
mkdir -p "$logs"
rm -f "$logs"/*.log

# Prints a headline with the time since the start. If the last headline was some seconds ago, also
# prints how busy all processors were since then.
busy_before=0 all_before=0
step() {
  local user nice system idle iowait rest
  read -r _ user nice system idle iowait rest </proc/stat
  local busy=$((user + nice + system)) all=$((user + nice + system + idle + iowait))
  printf '\n== %s [%dm%02ds' "$*" $((SECONDS / 60)) $((SECONDS % 60))
  [ $all_before -eq 0 ] || [ $((all - all_before)) -lt 1000 ] ||
    printf ', processors %d %% busy since the last line' $((100 * (busy - busy_before) / (all - all_before)))
  printf ']\n'
  busy_before=$busy all_before=$all
}

# build PRESET [TARGET...]: builds the named targets, or everything.
build() {
  local preset=$1 log=$logs/build_$1.txt
  shift
  step "build $preset ${*:-all}"
  rm -f "$log"
  cmake --preset "$preset" >"$logs/configure_$preset.txt" 2>&1 || { build_errors "$preset"; return 1; }
  if [ $# -gt 0 ]; then
    set -- --target "$@"
  fi
  cmake --build --preset "$preset" "$@" >"$log" 2>&1 || { build_errors "$preset"; return 1; }
  grep -E "warning:" "$log" | sort -u | head -20 || true
}
# build_errors PRESET: prints the errors of a build that failed.
build_errors() {
  if [ -e "$logs/build_$1.txt" ]; then
    grep -E "error|FAILED|undefined" -A 5 "$logs/build_$1.txt" | head -100
  else
    cat "$logs/configure_$1.txt"
  fi
}

# idle COMMAND...: runs the command with the processor time that all other work leaves.
idle() {
  chrt --idle --pid 0 $BASHPID 2>/dev/null || renice -n 19 -p $BASHPID >/dev/null
  "$@"
}

# The tests of ir, codegen and comm do not depend on host and tools, nor on their tests:
# tests/check_folders.py checks this. They depend only on these files, on the variables, compilers and
# libraries that machine() lists, and on a GPU if there is one.
lower_sources() {
  find ir codegen comm cmake CMakeLists.txt CMakePresets.json examples docs/ops.md tests \
    \( -path tests/host -o -path tests/text -o -path tests/tools -o -name __pycache__ \) -prune \
    -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum
}
# machine PRESET: prints a hash of the variables, compilers, libraries and GPU driver of a build.
machine() {
  local preset=$1 compiler
  {
    env | grep -E '^(HEDDLE_|CXX=|GTEST_|NCCL_|OMPI_)' | sort
    for compiler in c++ clang++ "${CXX:-}" "${HEDDLE_CXX:-}"; do "$compiler" --version; done
    cat "build/$preset/CMakeCache.txt" /proc/driver/nvidia/version
    sed -n 's/^[^#]*:FILEPATH=//p' "build/$preset/CMakeCache.txt" | sort -u | xargs stat -L -c '%n %s %Y'
  } 2>/dev/null | sha256sum
}
# leave_out PRESET: sets `left_out` to the labels of the tests that are left out, each after a "|".
# If the tests of ir, codegen and comm have passed with the same sources on the same machine, they are
# left out.
sources=$(lower_sources) || true
leave_out() {
  left_out=
  [ "${ALL:-0}" != 1 ] || return 0
  [ "$sources $(machine "$1")" = "$(cat "build/$1/lower_tests_passed" 2>/dev/null)" ] || return 0
  left_out='|ir|codegen|comm'
  step "$1: ir, codegen and comm are as they were when their tests passed; ALL=1 tests them again"
}
# passed PRESET: notes that the tests of ir, codegen and comm have passed, now or earlier. Notes nothing
# if a source has changed since the start of this script, because the builds may lack the change.
passed() {
  [ "$sources" = "$(lower_sources)" ] || return 0
  echo "$sources $(machine "$1")" >"build/$1/lower_tests_passed"
}

# Turns off the randomized address space layout: it could use the fixed addresses that sanitizers
# need.
fixed_layout=()
if setarch "$(uname -m)" -R true 2>/dev/null; then fixed_layout=(setarch "$(uname -m)" -R); fi

# run_ctest LOG PRESET ARGUMENTS...: runs ctest and writes its output to the log. Runs three tests at a
# time, even on two cores, because some tests mostly wait. The arguments may change this with -j.
run_ctest() {
  local log=$1 preset=$2 wrapper=()
  shift 2
  [ "$preset" = release ] || wrapper=("${fixed_layout[@]}")
  "${wrapper[@]}" ctest --test-dir "build/$preset" -j3 --output-on-failure --no-tests=error "$@" </dev/null \
    >"$logs/$log.log" 2>&1
}

fuzz() {
  [ -x build/asan/bin/heddle-fuzz ] || { echo "heddle-fuzz: not built" >"$logs/fuzz.log"; return 1; }
  LSAN_OPTIONS="suppressions=$PWD/tests/leak_suppressions.txt:print_suppressions=0" \
    ASAN_OPTIONS=intercept_tls_get_addr=0 "${fixed_layout[@]}" build/asan/bin/heddle-fuzz --seconds 40 </dev/null >"$logs/fuzz.log" 2>&1
}

# begin NAME COMMAND...: runs the command in the background, in a process group of its own, so that
# the end of the script can also end the children of the command.
declare -A pids
begin() {
  local name=$1
  shift
  step "begin $name"
  set -m
  "$@" &
  pids[$name]=$!
  set +m
}
# built PRESET: waits for the build that `begin build_PRESET` has started.
built() {
  wait "${pids[build_$1]}" || { step "the build $1 has failed"; build_errors "$1"; return 1; }
}
# finish NAME: waits for the command NAME and prints its result, with the failed tests if there are
# any.
finish() {
  local name=$1 status=0
  wait "${pids[$name]}" || status=$?
  step "end of $name"
  if [ $status -ne 0 ]; then
    grep -vE '^ *Start +[0-9]+:|\.\.\. +Passed|\*\*\*Skipped' "$logs/$name.log" | tail -400
  else
    grep -E 'tests passed|Total Test time|heddle-fuzz:' "$logs/$name.log"
  fi
  return $status
}
trap 'for pid in "${pids[@]}"; do kill -- "-$pid" 2>/dev/null || true; done' EXIT

# A test exchanges tensors with NumPy. It is skipped if NumPy cannot be installed.
python3 -c 'import numpy' 2>/dev/null || python3 -m pip install --quiet numpy >"$logs/numpy.txt" 2>&1 || true

begin build_asan idle build asan tests_unit tests_cpu heddle_fuzzer
build release
leave_out release
if ! [ -e /dev/nvidiactl ] && ! [ -e /dev/dxg ]; then
  left_out+='|gpu|gpu_mpi'
  step "release: there is no GPU, so the tests with the labels gpu and gpu_mpi do not run"
fi
begin release run_ctest release release -LE "^(big|mpi$left_out)\$"
finish release
passed release

# Ranks poll for each other and would compete with other work for the cores. The concurrent build and
# the fuzzer therefore get only the time in which all ranks wait.
built asan
begin build_tsan idle build tsan tests_threads
begin fuzz idle fuzz
begin mpi run_ctest mpi release -j4 -L '^mpi$'
finish mpi

leave_out asan
begin asan run_ctest asan asan -L '^(unit|cpu)$' -LE "^(source$left_out)\$"
built tsan
# Near the end of its tests, a stage leaves a processor idle. The other stage then uses it.
leave_out tsan
begin tsan run_ctest tsan tsan -j2 -L '^(host|comm)$' -L '^(unit|cpu)$' -LE "^(source$left_out)\$"
finish asan
passed asan
finish fuzz
finish tsan
passed tsan

step "time by label"
for log in "$logs"/{release,mpi,asan,tsan}.log; do
  awk -v preset="$(basename "$log" .log)" '
    /^Label Time Summary/ { table = 1; next }
    table && / = / { printf "%-8s %s\n", preset, $0; next }
    table { table = 0 }
    /^Total Test time/ { printf "%-8s total, real       = %8s sec\n", preset, $(NF - 1) }
  ' "$log"
done
