#!/usr/bin/env bash
# Runs the commands of README.md and docs/guide.md in a temporary folder, and compares what they print.
# Arguments: the root of the sources, the build folder.
#
# Fenced blocks, by the word after the three backticks:
#   sh         Runs. Each command must exit with 0. A pipe fails when any of its commands fails.
#   sh fails   Runs. The last command must fail, and all other commands must exit with 0. `sh fails=2` gives the exit
#              status of the last command.
#   output     Belongs to the sh block above it. The sh block must print each line of the output block, in this order,
#              on stdout or stderr. Other lines may come between. `...` inside a line matches any text. A line that
#              consists of `...` shows the reader that lines were left out; it is not compared.
#   cpp        The cpp block in README.md must equal the program that the guide writes to embed/main.cpp.
#   any other  Is only for the reader.
# The blocks of a page share the current folder and the exported variables. If there is no
# mpirun, or heddle has no MPI, blocks that call mpirun are skipped, and a message says so.
set -euo pipefail
source_dir=$(cd "$1" && pwd)
build_dir=$(cd "$2" && pwd)
block_limit=60  # seconds

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A copy of the root of the repository, with the files that the pages need.
root=$work/heddle
mkdir -p "$root/build"
ln -s "$source_dir/examples" "$root/examples"
ln -s "$build_dir" "$root/build/release"

export PATH="$build_dir/bin:$PATH"
export HEDDLE_CACHE_DIR="$work/cache"
# Lets several ranks share a few cores, also as root in a container. tests/CMakeLists.txt has the same
# settings.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_btl_vader_single_copy_mechanism=none
export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}" MPIEXEC_TIMEOUT="$block_limit"

heddle devices >"$work/devices.txt"
have_mpi=no
if command -v mpirun >/dev/null && grep -q '^mpi  *present' "$work/devices.txt"; then have_mpi=yes; fi

# split PAGE FOLDER: writes each block to FOLDER/NNN.sh, its line and fence to NNN.info, and its
# output block, if it has one, to NNN.output. The program of README goes to FOLDER/program.cpp.
split() {
  awk -v folder="$2" -v page="$1" '
    function complain(why) { printf "%s:%d: %s\n", page, FNR, why > "/dev/stderr"; failed = 1; exit 1 }
    !open && /^```/ {
      open = 1
      kind = substr($0, 4)
      into = ""
      if (kind ~ /^sh( fails(=[0-9]+)?)?$/) {
        stem = sprintf("%s/%03d", folder, ++blocks)
        print FNR, kind > (stem ".info")
        into = stem ".sh"
        has_output = 0
      } else if (kind ~ /^sh( |$)/) {
        complain("unknown fence: " kind)
      } else if (kind == "output") {
        if (stem == "" || has_output++) complain("an output block that follows no sh block")
        into = stem ".output"
      } else if (kind == "cpp") {
        into = folder "/program.cpp"
      }
      next
    }
    open && /^```$/ { open = 0; next }
    open && into != "" { print > into }
    END { if (open && !failed) { printf "%s: a fence is not closed\n", page > "/dev/stderr"; exit 1 } }
  ' "$1"
}

# script BLOCK: prints a shell script that runs the block. The script starts in the folder in which the previous block
# ended, and with the variables that it exported. Its arguments are the files state, failures and last. The script
# writes "STATUS COMMAND" to `failures` for each command that fails, and the status of the last command to `last`.
script() {
  cat <<'PROLOGUE'
. "$1"
set -o pipefail
trap 'printf "%d %s\n" $? "${BASH_COMMAND%%$'\''\n'\''*}" >>"$2"' ERR
PROLOGUE
  cat "$1"
  cat <<'EPILOGUE'
echo $? >"$3"
{ export -p; printf 'cd %q\n' "$PWD"; } >"$1"
EPILOGUE
}

# matches EXPECTED OUTPUT: prints the first expected line that the output lacks.
matches() {
  local line pattern
  exec 3<"$2"
  while IFS= read -r line; do
    [ "$line" = ... ] && continue
    pattern=$(LC_ALL=C sed 's/\.\.\./\x01/g; s/[^A-Za-z0-9\x01]/\\&/g; s/\x01/*/g' <<<"$line")
    found=no
    while IFS= read -r got <&3 || [ -n "$got" ]; do
      # shellcheck disable=SC2053
      if [[ $got == $pattern ]]; then found=yes; break; fi
    done
    if [ "$found" = no ]; then exec 3<&-; printf '%s\n' "$line"; return 1; fi
  done <"$1"
  exec 3<&-
}

bad=0 ran=0 skipped=0
state=$work/state failures=$work/failures last=$work/last

# report PAGE LINE WHY: prints the reason and the output of the block.
report() {
  echo "$1:$2: $3"
  sed 's/^/    /' "$work/out.txt" | tail -60
  bad=1
}

# wrong_status FAILS: prints what is wrong with the exit statuses of the last block, or nothing. FAILS is the text after
# `sh` in the fence.
wrong_status() {
  local count status
  count=$(wc -l <"$failures")
  status=$(cat "$last")
  if [ -z "$1" ]; then
    [ "$count" -eq 0 ] || echo "exit status $(head -n 1 "$failures")"
  elif [ "$status" -eq 0 ]; then
    echo "the last command succeeded, and is expected to fail"
  elif [ "$count" -gt 1 ] || [ "$status" -eq 126 ] || [ "$status" -eq 127 ]; then
    echo "exit status $(head -n 1 "$failures")"
  elif [[ $1 == *=* ]] && [ "$status" -ne "${1##*=}" ]; then
    echo "exit status $status, expected ${1##*=}"
  fi
}

# run_page PAGE: runs the blocks of a page. Stops at the first bad block, because later blocks may depend on it.
run_page() {
  local page=$1 blocks block line kind missing limit
  blocks=$work/blocks/$page
  mkdir -p "$blocks"
  split "$source_dir/$page" "$blocks"
  { export -p; printf 'cd %q\n' "$root"; } >"$state"
  for block in "$blocks"/*.sh; do
    [ -e "$block" ] || continue
    read -r line kind <"${block%.sh}.info"
    if [ "$have_mpi" = no ] && grep -qE '(^|[^A-Za-z_])mpirun ' "$block"; then
      grep -E '(^|[^A-Za-z_])mpirun ' "$block" | sed "s|^|check_guide: skipped, no MPI: $page:$line: |"
      skipped=$((skipped + 1))
      continue
    fi
    script "$block" >"$work/script.sh"
    rm -f "$last"
    : >"$failures"
    limit=0
    timeout -k 5 "$block_limit" bash --noprofile --norc "$work/script.sh" "$state" "$failures" "$last" >"$work/out.txt" 2>&1 \
      </dev/null || limit=$?
    ran=$((ran + 1))
    if [ "$limit" -eq 124 ] || [ "$limit" -eq 137 ]; then
      report "$page" "$line" "did not end within $block_limit s"
      return
    fi
    [ -e "$last" ] || { report "$page" "$line" "the block ended its shell"; return; }
    missing=$(wrong_status "${kind#sh}")
    [ -z "$missing" ] || { report "$page" "$line" "$missing"; return; }
    if [ -e "${block%.sh}.output" ] && ! missing=$(matches "${block%.sh}.output" "$work/out.txt"); then
      report "$page" "$line" "no such line in the output, or not in this order: $missing"
      return
    fi
  done
}

run_page README.md
[ "$bad" -eq 1 ] || run_page docs/guide.md

program=$work/blocks/README.md/program.cpp
written=$root/build/guide/embed/main.cpp
if [ "$bad" -eq 0 ] && [ -e "$program" ] && ! diff "$program" "$written"; then
  echo "README.md: its program is not the one of docs/guide.md"
  bad=1
fi
[ "$bad" -eq 0 ] && echo "check_guide: ok, $ran blocks ran, $skipped skipped, $SECONDS s"
exit "$bad"
