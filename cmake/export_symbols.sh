#!/usr/bin/env bash
# Writes the linker script (version script) of the installed libheddle.so. It exports the symbols
# that users and the other installed files need, and hides all others:
#  - Symbols of the functions, variables and classes that a public header declares in the namespace
#    heddle, and all operators of this namespace. A class that the headers only name, such as a
#    friend or a nested `struct Impl;`, is internal.
#  - Symbols that the modules and the command heddle use.
# Arguments: the command nm, the script to write, the folder of the public headers, the libheddle.so
# that exports every symbol of heddle, and the files that use it (modules and the command).
set -euo pipefail
nm=$1 output=$2 headers=$3 library=$4
shift 4

{
  find "$headers" -name '*.h' -exec cat {} + | sed -e 's|//.*||' -e '/^#/d' -e 's/[[:space:]]*$//' -e 's/^/header /'
  for user in "$@"; do "$nm" -D --format=posix "$user" | sed 's/^/used /'; done
  "$nm" -D --defined-only --format=posix "$library" | sed 's/^/symbol /'
} | awk '
  # Reads one line of a header. The sources are formatted, so a declaration in a namespace begins at
  # the start of a line.
  function read(line,    name) {
    name = line
    if (line ~ /^namespace heddle/) {
      space = line; sub(/.*heddle/, "", space); sub(/ .*/, "", space)
    } else if (line ~ /(class|struct) [A-Za-z_0-9]+;$/) {  # a friend, or a declaration without a body
      sub(/;$/, "", name); sub(/.* /, "", name); named[name] = 1
    } else if (match(line, /(class|struct|enum) [A-Z][A-Za-z_0-9]*( |$)/) && line !~ /^template/) {
      name = substr(line, RSTART, RLENGTH); sub(/ $/, "", name); sub(/.* /, "", name); defined[name] = 1
      if (line ~ /^[a-z]/) public[space "::" name] = 1
    } else if (line ~ /^[A-Za-z]/ && line !~ /^(namespace|using|template|public|private|protected)/) {
      sub(/[(=;{\[].*/, "", name); sub(/ *$/, "", name); sub(/.*[ *&]/, "", name); public[space "::" name] = 1
    }
  }
  # Returns whether a public header declares a symbol. A mangled name is a list of lengths and words:
  # 6heddle4host10Executable3runE... The words are namespaces, classes and a function.
  function isPublic(symbol,    rest, word, outer) {
    rest = substr(symbol, index(symbol, "6heddle") + 7)
    while (match(rest, /^[0-9]+/)) {
      word = substr(rest, RLENGTH + 1, substr(rest, 1, RLENGTH))
      rest = substr(rest, RLENGTH + 1 + length(word))
      if ((word in named) && !(word in defined)) return 0
      if (outer ~ /^(::(host|comm|codegen))?$/) outer = outer "::" word
    }
    return outer ~ /^(::(host|comm|codegen))?$/ || outer in public
  }
  BEGIN { print "{\n  global:" }
  $1 == "header" { read(substr($0, 8)) }
  $1 == "used" { used[$2] = 1 }
  $1 == "symbol" && ($2 in used || isPublic($2)) { print "    " $2 ";" }
  END { print "  local:\n    *;\n};" }' >"$output"
