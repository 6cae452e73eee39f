#!/usr/bin/env bash
# Every test: the release build with all labels but `big`, then what the sanitizers can see, then a minute of fuzzing.
# Stops at the first stage that fails. Ends with the time by label.
set -euo pipefail
cd "$(dirname "$0")/.."

logs=build/test_logs
mkdir -p "$logs"
rm -f "$logs"/*.log

step() { printf '\n== %s [%dm%02ds]\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

# build PRESET [TARGET...]: only what is named, or everything.
build() {
  local preset=$1
  shift
  step "build $preset ${*:-all}"
  cmake --preset "$preset" >"$logs/configure_$preset.txt" || { cat "$logs/configure_$preset.txt"; return 1; }
  if [ $# -gt 0 ]; then
    cmake --build --preset "$preset" --target "$@"
  else
    cmake --build --preset "$preset"
  fi
}

# The sanitizers need their fixed shadow addresses, which a randomized layout of many bits can take.
fixed_layout=()
if setarch "$(uname -m)" -R true 2>/dev/null; then fixed_layout=(setarch "$(uname -m)" -R); fi

# run_ctest PRESET ARGUMENTS...
run_ctest() {
  local preset=$1 wrapper=()
  shift
  [ "$preset" = release ] || wrapper=("${fixed_layout[@]}")
  step "test $preset $*"
  "${wrapper[@]}" ctest --test-dir "build/$preset" -j2 --output-on-failure --no-tests=error "$@" </dev/null |
    tee "$logs/$preset.log"
}

build release
run_ctest release -LE '^big$'

build asan tests_unit tests_cpu heddle_fuzzer
run_ctest asan -L '^(unit|cpu)$'

build tsan tests_threads
run_ctest tsan -L '^(host|comm)$' -L '^(unit|cpu)$'

if [ -x build/asan/bin/heddle-fuzz ]; then
  step "heddle-fuzz, 60 s"
  LSAN_OPTIONS="suppressions=$PWD/tests/leak_suppressions.txt:print_suppressions=0" \
    "${fixed_layout[@]}" build/asan/bin/heddle-fuzz --seconds 60 </dev/null
fi

step "time by label"
for log in "$logs"/*.log; do
  awk -v preset="$(basename "$log" .log)" '
    /^Label Time Summary/ { table = 1; next }
    table && / = / { printf "%-8s %s\n", preset, $0; next }
    table { table = 0 }
    /^Total Test time/ { printf "%-8s total, real       = %8s sec\n", preset, $(NF - 1) }
  ' "$log"
done
