#!/usr/bin/env bash
# Finds the programs and libraries that heddle is built and tested with. If some are missing, the
# script prints the apt-get command that installs them, and runs it if it is root. If nothing is
# missing, it uses no network. A missing optional library is no error.
set -euo pipefail
cd "$(dirname "$0")/.."

probe_dir=build/setup
libraries=(libboost-dev libfmt-dev nlohmann-json3-dev libcli11-dev libgtest-dev libssl-dev
  libopenblas-dev libopenmpi-dev openmpi-bin)

have() { command -v "$1" >/dev/null 2>&1; }

cmake_is_new_enough() {
  have cmake || return 1
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*//p')
  [ "$(printf '%s\n' 3.25 "$version" | sort -V | head -n 1)" = 3.25 ]
}

compiler_is_new_enough() {
  have "${CXX:-c++}" && echo '#include <span>
#include <barrier>' | "${CXX:-c++}" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null
}

# Lets CMake look for the libraries and sets `missing` and `optional`. Argument: --fresh or nothing.
probe() {
  mkdir -p "$probe_dir"
  cmake ${1:+"$1"} -G Ninja -S tools/setup -B "$probe_dir" >"$probe_dir/log.txt" 2>&1 || {
    cat "$probe_dir/log.txt"
    echo "setup: CMake could not look for the libraries" >&2
    exit 1
  }
  mapfile -t missing < <(grep . "$probe_dir/missing.txt" || true)
  mapfile -t optional < <(grep . "$probe_dir/optional.txt" || true)
}

# Sets `missing` to the missing Debian packages that heddle needs, and `optional` to the missing
# packages that heddle is also built without.
find_missing() {
  missing=()
  optional=()
  compiler_is_new_enough || missing+=(g++)
  cmake_is_new_enough || missing+=(cmake)
  have ninja || missing+=(ninja-build)
  have python3 || missing+=(python3)
  have clang-format || missing+=(clang-format)
  if [ ${#missing[@]} -gt 0 ]; then
    # Without these programs CMake cannot look for the libraries. The script therefore lists all
    # libraries. apt-get does not change libraries that are installed.
    missing+=("${libraries[@]}")
    return
  fi
  probe ""
  # A library that was missing in an earlier call may be installed now. --fresh discards CMake's
  # cached results.
  [ $((${#missing[@]} + ${#optional[@]})) -eq 0 ] || probe --fresh
}

has_candidate() {
  local candidate
  candidate=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p')
  [ -n "$candidate" ] && [ "$candidate" != "(none)" ]
}

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get "$@"; }

install_missing() {
  local package updated=no
  for package in "${missing[@]}"; do
    if ! has_candidate "$package"; then
      apt_get update
      updated=yes
      break
    fi
  done
  apt_get install -y --no-install-recommends "${missing[@]}" && return
  # The installation may have failed because the package lists are older than the archive.
  [ "$updated" = no ] || return 1
  apt_get update
  apt_get install -y --no-install-recommends "${missing[@]}"
}

# Installs the optional libraries that are missing. If this is impossible, prints a message.
install_optional() {
  local package
  for package in "${optional[@]}"; do
    if have apt-get && [ "$(id -u)" -eq 0 ] && has_candidate "$package" &&
      apt_get install -y --no-install-recommends "$package"; then
      continue
    fi
    echo "setup: the optional package $package was not installed; heddle is built without it"
  done
}

find_missing
if [ ${#missing[@]} -eq 0 ]; then
  install_optional
  exit 0
fi

echo "setup: missing, install with:"
echo "  apt-get install -y --no-install-recommends ${missing[*]}"
if ! have apt-get; then
  echo "setup: there is no apt-get: install these packages by other means, then try again" >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "setup: not root, so nothing was installed: run the line above as root, then try again" >&2
  exit 1
fi
install_missing
find_missing
if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: still not found after installing: ${missing[*]}" >&2
  exit 1
fi
install_optional
