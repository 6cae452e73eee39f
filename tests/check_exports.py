#!/usr/bin/env python3
"""Checks the symbols that an installed libheddle.so exports.

Usage: check_exports.py COMPILER INCLUDE_DIR LIBRARY USERS...

A symbol may be exported if one of the USERS (modules and commands) uses it, or if programs can use it
through <heddle/heddle.h>: the header declares the function or variable, and for a member also defines
the class. The script asks the compiler whether this is so. Private members count as usable, because
inline functions may call them.

Exit status: 0 if all symbols may be exported, 1 otherwise.
"""

import re
import subprocess
import sys

NAMESPACES = {"heddle", "host", "comm", "codegen"}


def symbols_of(path, *options):
    output = subprocess.run(["nm", "-D", "--format=posix", *options, path], check=True,
                            capture_output=True, text=True).stdout
    return {line.split()[0].split("@")[0] for line in output.splitlines() if line}


def names_in(symbol):
    """Returns the first name of a mangled symbol as a list of words, and whether the last word is a
    class. For example, ["heddle", "host", "Device"] and True for _ZN6heddle4host6DeviceD0Ev."""
    at = symbol.find("6heddle")
    nested = at > 0 and symbol[at - 1] in "NKRO"
    words = []
    while True:
        digits = re.match(r"\d+", symbol[at:])
        if not digits:
            break
        at += len(digits.group())
        words.append(symbol[at:at + int(digits.group())])
        at += int(digits.group())
        tag = re.match(r"B(\d+)", symbol[at:])
        if tag:
            at += len(tag.group()) + int(tag.group(1))
    rest = symbol[at:at + 1]
    is_type = symbol.startswith(("_ZTI", "_ZTS", "_ZTV")) and not symbol.startswith("_ZTVSt")
    is_class = nested and rest not in ("E", "I", "") or is_type and rest in ("E", "")
    return words, is_class


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__.strip())
    compiler, include_dir, library, *users = sys.argv[1:]
    used = set().union(*(symbols_of(user) for user in users))
    checks = {}  # one line of C++ per check, with a symbol that needs it
    count = 0
    for symbol in sorted(symbols_of(library, "--defined-only") - used):
        words, is_class = names_in(symbol)
        inner = [i for i, word in enumerate(words) if word not in NAMESPACES]
        if not inner:
            continue  # an operator
        count += 1
        first = inner[0] + 1
        checks.setdefault("::".join(["using "] + words[:first]) + ";", symbol)
        for end in range(first, len(words) + (1 if is_class else 0)):
            checks.setdefault(f"static_assert(sizeof({'::'.join([''] + words[:end])}) > 0);", symbol)
    lines = ["#include <heddle/heddle.h>"]
    lines += [f"namespace check_{i} {{ {line} }}" for i, line in enumerate(checks)]
    result = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-fno-access-control", "-fmax-errors=0",
         f"-I{include_dir}", "-x", "c++", "-"], input="\n".join(lines), capture_output=True,
        text=True, check=False)
    bad = sorted({int(number) for number in re.findall(r"<stdin>:(\d+):\d+: error", result.stderr)})
    if result.returncode != 0 and not bad:
        sys.exit(f"check_exports: the compiler failed:\n{result.stderr}")
    symbols = list(checks.values())
    for number in bad:
        print(f"{symbols[number - 2]}: heddle/heddle.h does not allow `{list(checks)[number - 2]}`")
    if bad:
        print(f"check_exports: {len(bad)} internal functions or classes are exported")
        return 1
    print(f"check_exports: ok, {count} symbols for users, {len(checks)} names checked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
