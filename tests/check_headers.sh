#!/usr/bin/env bash
# Checks the public headers in the form in which they are installed.
#  - Each header compiles alone, with many warnings, which are errors.
#  - A header reaches only the C++ standard library and other public headers.
#  - A comment names only sources that are installed too. It may also name files in docs/ and
#    examples/, which must exist.
#  - All headers together have fewer than 5,000 preprocessed lines.
# Arguments: the folder that contains heddle/, the C++ compiler.
set -euo pipefail
include_dir=$(cd "$1" && pwd)
source_dir=$(cd "$(dirname "$0")/.." && pwd)
export include_dir compiler=$2
most_lines=5000  # the headers must have fewer lines
banned='[/](boost|fmt|spdlog|nlohmann|openssl|CLI|gtest|cudnn[^/]*|openmpi|mpich|oneapi)/|/(cuda|cudnn|cublas|nvrtc|nccl|mpi|cblas)[^/]*\.h'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export work
bad=0

# Writes the compiler's messages about a header to a file in $work, or nothing.
check_alone() {
  local name=${1//\//.}
  echo "#include <$1>" |
    "$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only \
      -I"$include_dir" -x c++ - 2>"$work/$name.messages" || { echo "$1" >"$work/$name.failed"; }
}
export -f check_alone

cd "$include_dir"
mapfile -t headers < <(find heddle -name '*.h' | sort)
[ ${#headers[@]} -gt 10 ] || { echo "check_headers: $include_dir has no public headers"; exit 1; }
# The compilations are left out if they succeeded before with the same headers, compiler and flags.
# ALL=1 repeats them.
stamp="$include_dir/../headers_compile_alone"
inputs=$({ "$compiler" --version && echo "${headers[@]}" &&
  cat "$source_dir/tests/check_headers.sh" "${headers[@]}"; } | sha256sum)
compiled="compiled earlier"
if [ "${ALL:-0}" = 1 ] || [ "$inputs" != "$(cat "$stamp" 2>/dev/null)" ]; then
  compiled="compiled alone"
  printf '%s\0' "${headers[@]}" | xargs -0 -P "$(nproc)" -I {} bash -c 'check_alone "$1"' _ {}
  for failed in "$work"/*.failed; do
    [ -e "$failed" ] || continue
    echo "$(cat "$failed") does not compile alone:"
    head -30 "${failed%.failed}.messages"
    bad=1
  done
  [ "$bad" -ne 0 ] || echo "$inputs" >"$stamp"
fi

if grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "${headers[@]}"; then
  echo "check_headers: public headers include each other as <heddle/...>"
  bad=1
fi

# Prints HEADER:LINE:NAME for each source, folder and document that a comment names.
named_in_comments() {
  local folders='ir|codegen|comm|host|tools|tests|bench|cmake|docs|examples'
  for header in "${headers[@]}"; do
    sed '/^#include/s/.*//' "$header" | grep -noE "\b($folders)/[A-Za-z0-9_/]+(\.[a-z]+)?|\b\w+\.(h|cpp|cu)\b" |
      sed "s|^|$header:|" || true  # no name in this header
  done
}
while IFS=: read -r header line named; do
  case $named in
    docs/* | examples/*) [ -f "$source_dir/$named" ] && continue ;;
    */*) [ -f "heddle/$named" ] && continue ;;
    *) [ -n "$(find heddle -name "$named")" ] && continue ;;
  esac
  echo "$header:$line: the comment names $named, which is not installed"
  bad=1
done < <(named_in_comments)

echo '#include <heddle/heddle.h>' | "$compiler" -std=c++20 -E -I. -x c++ - >"$work/all.ii"
# A line that starts with '# NUMBER "FILE"' names the file of the lines that follow it.
if sed -nE 's/^# [0-9]+ "([^"]*)".*/\1/p' "$work/all.ii" | sort -u | grep -vE "^(\./)?heddle/" | grep -E "$banned"; then
  echo "check_headers: heddle/heddle.h reaches the headers above, which users do not need"
  bad=1
fi
lines=$(awk '/^# [0-9]+ "/ { own = ($3 ~ /^"(\.\/)?heddle\//); next } own { lines++ } END { print lines + 0 }' "$work/all.ii")
if [ "$lines" -eq 0 ] || [ "$lines" -ge "$most_lines" ]; then
  echo "check_headers: heddle's headers have $lines preprocessed lines, the limit is $most_lines"
  bad=1
fi
[ "$bad" -eq 0 ] && echo "check_headers: ok, ${#headers[@]} headers ($compiled), $lines preprocessed lines"
exit "$bad"
