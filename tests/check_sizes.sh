#!/usr/bin/env bash
# Fails if a source file is longer than 400 lines, unless tests/size_exceptions.txt lists the file as
# "path: reason". Also fails if this list names a file that needs no exception. Argument: the root of
# the sources.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

limit=400
exceptions=tests/size_exceptions.txt
bad=0

listed() { [ -f "$exceptions" ] && grep -qE "^${1//./\\.}: .+" "$exceptions"; }

# Prints "LINES FILE" for each source file.
count_lines() {
  find ir codegen comm host tools tests examples bench cmake \
    \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' \) \
    -type f -print0 2>/dev/null | sort -z | xargs -0 -n 1000 wc -l | grep -vE '^ *[0-9]+ total$'
}
files=0
while read -r lines source; do
  files=$((files + 1))
  if [ "$lines" -gt "$limit" ] && ! listed "$source"; then
    echo "$source: $lines lines, at most $limit are allowed: split it, or list it with a reason in $exceptions"
    bad=1
  fi
done < <(count_lines)

if [ -f "$exceptions" ]; then
  while IFS=: read -r path _; do
    case $path in '' | '#'*) continue ;; esac
    if [ ! -f "$path" ] || [ "$(wc -l <"$path")" -le "$limit" ]; then
      echo "$exceptions: $path needs no exception"
      bad=1
    fi
  done <"$exceptions"
fi
[ "$bad" -eq 0 ] && echo "check_sizes: ok, $files files"
exit "$bad"
