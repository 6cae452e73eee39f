#!/usr/bin/env bash
# Installs a build in a folder with a space in its name, and checks what is installed: names,
# exported symbols, soname and version. Then builds examples/embed against the installation, as
# another project would, and runs the result. If pkg-config is installed, also builds a program with
# its flags.
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

# `make run` and `make install` build the target heddle_product. Its commands must build each library
# and program that is installed.
ninja -C "$build_dir" -t commands heddle_product >"$work/commands.txt"
grep -ohE "\"$build_dir/(bin|lib|installed)/[^\"]+\"" "$build_dir/cmake_install.cmake" | tr -d '"' |
  sed "s|^$build_dir/||" | sort -u >"$work/files.txt"
grep -qx bin/heddle "$work/files.txt" || fail "cmake_install.cmake does not install bin/heddle"
while read -r file; do
  grep -qE "[ =]$file( |$)" "$work/commands.txt" || fail "heddle_product does not build $file, which is installed"
done <"$work/files.txt"

cmake --install "$build_dir" --prefix "$work/installed" >"$work/install.txt"
# An installation can be moved.
mv "$work/installed" "$prefix"

# Only heddle's own names may appear in the folders that users share with other packages.
[ "$(ls "$prefix/include")" = heddle ] || fail "include contains more than heddle/: $(ls "$prefix/include")"
[ "$(ls "$prefix/bin")" = heddle ] || fail "bin contains more than heddle: $(ls "$prefix/bin")"
"$prefix/bin/heddle" --help >"$work/help.txt"

# libheddle.so must export only its own symbols, and every symbol that the other files need.
others=$(nm -D --defined-only --format=posix "$prefix/lib/libheddle.so" | grep -v 6heddle || true)
[ -z "$others" ] || fail "libheddle.so exports symbols of other libraries: $(head -3 <<<"$others")"
for file in "$prefix"/lib/libheddle*.so "$prefix/bin/heddle"; do
  if ldd -r "$file" 2>&1 | grep 'undefined symbol.*6heddle'; then fail "$file needs the symbols above"; fi
done

users=()
for file in "$prefix"/lib/libheddle_*.so "$prefix/bin/heddle"; do
  [ ! -e "$file" ] || users+=("$file")
done
exports="$(dirname "$0")/check_exports.py"
python3 "$exports" "$compiler" "$prefix/include" "$prefix/lib/libheddle.so" "${users[@]}" || fail "see above"
# The libheddle.so in the build folder exports all symbols, so the same check must fail for it.
if python3 "$exports" "$compiler" "$prefix/include" "$build_dir/lib/libheddle.so" "${users[@]}" >"$work/all.txt"; then
  fail "check_exports.py finds no internal symbol in a library that exports all symbols"
fi

# A program that was built with version 0.2.1 runs with 0.2.3, but not with 0.3.
version_file="$prefix/lib/cmake/heddle/heddle-config-version.cmake"
version=$(sed -nE 's/^set\(PACKAGE_VERSION "([^"]*)"\)/\1/p' "$version_file")
IFS=. read -r major minor _ <<<"$version"
soname=$(objdump -p "$prefix/lib/libheddle.so" | awk '$1 == "SONAME" { print $2 }')
[ "$soname" = "libheddle.so.$major.$minor" ] || fail "version $version has the soname $soname"
[ -e "$prefix/lib/$soname" ] || fail "there is no file $soname"
mkdir "$work/versions"
cat >"$work/versions/CMakeLists.txt" <<PROJECT
cmake_minimum_required(VERSION 3.25)
project(versions LANGUAGES CXX)
foreach(version $major.$((minor + 1)) $((major + 1)).0 $major.$minor.999)
  find_package(heddle \${version} QUIET)
  if(heddle_FOUND)
    message(FATAL_ERROR "find_package(heddle \${version}) accepts version $version")
  endif()
endforeach()
find_package(heddle $major.$minor REQUIRED)
PROJECT
cmake -G Ninja -S "$work/versions" -B "$work/versions/build" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$prefix" >"$work/versions.txt" || fail "see above"

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
printed=$(check "$work/version")
[ "$printed" = "$version" ] || fail "heddle::version() is $printed, not $version"
[ "$(pkg-config --modversion heddle)" = "$version" ] || fail "heddle.pc has another version than $version"
echo "check_package: ok, $ran programs with CMake, one with pkg-config, version $version"
