#!/usr/bin/env bash
# Writes the linker script (version script) of the installed libheddle.so. It exports the symbols
# that users and the other installed files need, and hides all others:
#  - A symbol of the namespace heddle, if the public headers contain its name, or the name of its
#    class or inner namespace. All operators.
#  - Symbols that the modules and the command heddle name.
# Arguments: the command nm, the script to write, the folder of the public headers, the libheddle.so
# that exports every symbol of heddle, and the files that use it.
set -euo pipefail
nm=$1 output=$2 headers=$3 library=$4
shift 4

{
  find "$headers" -name '*.h' -exec cat {} + | sed 's|//.*||' | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u | sed 's/^/word /'
  for user in "$@"; do "$nm" -D --format=posix "$user" | sed 's/^/used /'; done
  "$nm" -D --defined-only --format=posix "$library" | sed 's/^/symbol /'
} | awk '
  # Returns the first name in a mangled symbol that is not one of the outer namespaces, or "" for an
  # operator. A mangled name is a list of lengths and words: 6heddle4host10Executable3runE...
  function outer(symbol,    rest, length_of, word) {
    rest = substr(symbol, index(symbol, "6heddle") + 7)
    while (match(rest, /^[0-9]+/)) {
      length_of = substr(rest, 1, RLENGTH)
      word = substr(rest, RLENGTH + 1, length_of)
      rest = substr(rest, RLENGTH + 1 + length_of)
      if (word != "host" && word != "comm" && word != "codegen") return word
    }
    return ""
  }
  BEGIN { print "{\n  global:" }
  $1 == "word" { words[$2] = 1 }
  $1 == "used" { used[$2] = 1 }
  $1 == "symbol" {
    name = outer($2)
    if ($2 in used || name == "" || name in words) print "    " $2 ";"
  }
  END { print "  local:\n    *;\n};" }' >"$output"
