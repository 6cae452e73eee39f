#!/usr/bin/env bash
# Fails on an #include that points upwards, sideways or into an optional module. Argument: the root of the sources.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

folders=()
for folder in ir codegen comm host tools tests examples bench; do
  [ -d "$folder" ] && folders+=("$folder")
done
[ ${#folders[@]} -gt 0 ] || { echo "check_layers: no sources in $PWD" >&2; exit 2; }

# file:line:path, the path with its quotes or angle brackets.
includes() {
  grep -rnE --include='*.h' --include='*.cpp' --include='*.cu' \
    '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' "${folders[@]}" |
    sed -E 's/^([^:]+):([0-9]+):[^"<]*(["<][^">]*[">]).*/\1:\2:\3/'
}

includes | awk -F: '
  function under(path, folder) { return index(path, folder "/") == 1 }
  function moduleOf(path,   i) {
    for (i = 1; i <= modules; i++) if (under(path, module[i])) return module[i]
    return ""
  }
  function complain(why) { printf "%s:%s: includes %s: %s\n", $1, $2, $3, why; bad++ }
  BEGIN {
    modules = split("codegen/cuda host/cuda host/cudnn comm/cuda comm/nccl comm/mpi", module, " ")
    allowed["ir"] = " ir "
    allowed["codegen"] = " ir codegen "
    allowed["comm"] = " ir comm "
    allowed["host"] = " ir codegen comm host "
    rooms = " ir codegen comm host tools tests examples bench "
    # Headers of optional parts, and the only folders that may name them.
    vendor = "^(cuda.*|nvrtc|cublas.*|cudnn.*|nvToolsExt|nccl|mpi)\\.h$"
  }
  {
    from = $1; sub(/\/.*/, "", from)
    target = substr($3, 2, length($3) - 2)
    to = target; sub(/\/.*/, "", to)
    angle = substr($3, 1, 1) == "<"

    if (index(rooms, " " to " ") && to != target) {
      if (angle) complain("heddle headers are included with quotes")
      if ((from in allowed) && !index(allowed[from], " " to " "))
        complain("a file in " from "/ may include only" allowed[from])
      into = moduleOf(target)
      if (into != "" && !under($1, into) &&
          !(under($1, "host/cuda") && (into == "codegen/cuda" || into == "comm/cuda")) &&
          !(under($1, "tests/comm/lanes") && into == "comm/nccl"))  # compiled into that test
        complain(into "/ is an optional module, loaded at run time")
    } else if ((from in allowed) && target ~ vendor && moduleOf($1) == "") {
      complain("the core is built without CUDA, cuDNN, NCCL and MPI")
    }
    if (from == "ir" && angle) {
      if (target ~ /^(boost|fmt)\//) next
      if (target ~ /[\/.]/) complain("ir/ uses the C++ standard library, Boost and fmt only")
    }
    if (target ~ /^(cuda\/std|cub|thrust)\//) complain("no CCCL in kernels: NVRTC takes seconds for it")
  }
  END { if (bad) { printf "check_layers: %d bad includes\n", bad; exit 1 } }
'
echo "check_layers: ok"
