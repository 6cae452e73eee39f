#!/usr/bin/env bash
# Installs a build in a folder with a space in its name. Then builds examples/embed against the
# installation, as another project would, and runs the result. Also builds a program with the flags
# of pkg-config, if that is installed.
# Arguments: the root of the sources, the build folder, the C++ compiler.
set -euo pipefail
source_dir=$1
build_dir=$2
compiler=$3

fail() {
  echo "check_package: $*" >&2
  exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix="$work/a prefix"
cmake --install "$build_dir" --prefix "$work/installed" >"$work/install.txt"
# An installation can be moved.
mv "$work/installed" "$prefix"

# Only heddle's own names may appear in the folders that users share with other packages.
[ "$(ls "$prefix/include")" = heddle ] || fail "include contains more than heddle/: $(ls "$prefix/include")"
[ "$(ls "$prefix/bin")" = heddle ] || fail "bin contains more than heddle: $(ls "$prefix/bin")"
"$prefix/bin/heddle" --help >"$work/help.txt"

# libheddle.so exports its own symbols only, and every symbol that the other files need.
others=$(nm -D --defined-only --format=posix "$prefix/lib/libheddle.so" | grep -v 6heddle || true)
[ -z "$others" ] || fail "libheddle.so exports symbols of other libraries: $(head -3 <<<"$others")"
for file in "$prefix"/lib/libheddle*.so "$prefix/bin/heddle"; do
  if ldd -r "$file" 2>&1 | grep 'undefined symbol.*6heddle'; then fail "$file needs the symbols above"; fi
done

# check PROGRAM: runs a program that must not be linked with libraries that heddle loads at run time.
check() {
  if ldd "$1" | grep -E 'libmpi|libcuda|libnccl|not found'; then
    fail "$(basename "$1") must not be linked with these"
  fi
  "$1"
}

# The project finds no library except heddle. A program that runs on one device must not need MPI,
# and the public headers need neither Boost nor fmt.
options=()
for package in MPI Boost fmt nlohmann_json OpenSSL CUDAToolkit; do
  options+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
done
cmake -G Ninja -S "$source_dir/examples/embed" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" "${options[@]}" \
  -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$work/bin" --no-warn-unused-cli
cmake --build "$work/build"

cd "$source_dir"
ran=0
for program in "$work"/bin/*; do
  [ -x "$program" ] || continue
  check "$program"
  ran=$((ran + 1))
done
[ "$ran" -gt 0 ] || fail "examples/embed built no program"

if ! command -v pkg-config >/dev/null; then
  echo "check_package: skipped: there is no pkg-config"
  exit 0
fi
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
cat >"$work/version.cpp" <<'PROGRAM'
#include <heddle/heddle.h>

#include <cstdio>

int main() {
  std::printf("%s\n", heddle::version().c_str());
  return heddle::Size("n").str() == "n" ? 0 : 1;
}
PROGRAM
# pkg-config writes a backslash before a space in a path. Only eval reads the backslash as the shell does.
eval "flags=($(pkg-config --cflags --libs heddle))"
"$compiler" -std=c++20 -o "$work/version" "$work/version.cpp" "${flags[@]}" "-Wl,-rpath,$prefix/lib"
version=$(check "$work/version")
[ "$version" = "$(pkg-config --modversion heddle)" ] || fail "heddle::version() is $version, heddle.pc has another one"
echo "check_package: ok, $ran programs with CMake, one with pkg-config, version $version"
