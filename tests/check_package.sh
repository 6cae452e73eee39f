#!/usr/bin/env bash
# Installs a build. Then builds examples/embed against the installation, as another project would,
# and runs the result.
# Arguments: the root of the sources, the build folder.
set -euo pipefail
source_dir=$1
build_dir=$2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build_dir" --prefix "$work/prefix" >"$work/install.txt"
# A program that runs on one device must not need MPI.
cmake -G Ninja -S "$source_dir/examples/embed" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON \
  -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$work/bin"
cmake --build "$work/build"

cd "$source_dir"
ran=0
for program in "$work"/bin/*; do
  [ -x "$program" ] || continue
  if ldd "$program" | grep -E 'libmpi|libcuda|libnccl|not found'; then
    echo "check_package: $(basename "$program") must not be linked with these" >&2
    exit 1
  fi
  "$program"
  ran=$((ran + 1))
done
[ "$ran" -gt 0 ] || { echo "check_package: examples/embed built no program" >&2; exit 1; }
