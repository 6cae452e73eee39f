"""Checks the names of GoogleTest suites and tests. Fails in these cases:

- Two files define the same suite. Filters and ctest entries could not distinguish them.
- A file defines tests, but its name does not end in _test.cpp. No program would contain them.
- The name of a file in tests/FOLDER does not begin with the name of a source file of FOLDER, and also
  not with the name of FOLDER itself, which is for tests of a complete folder. For example,
  tests/host/builder/program_builder_misuse_test.cpp tests host/builder/program_builder.cpp. The
  folders in WHOLE are excepted.
- The name of a suite does not begin with the name of its file. For example, the suites in
  cpu_matmul_cpu_test.cpp begin with CpuMatmul. The case of letters does not matter.
- The namespace of a file does not have the name of the file.
- The name of a suite ends in "Test".
- The name of a suite or a test contains a word that the project has replaced by another one.

Argument: the root of the sources.
"""

import pathlib
import re
import sys

REPLACED = {
    "Product": "Matmul",
    "Products": "Matmuls",
    "HostValue": "ByValueInput",
    "HostValues": "ByValueInputs",
    "Placed": "Indexed",
    "Lanes": "CopyChannels",
    "Trace": "Unroll, RunProfile or Timeline",
    "Board": "JobMonitor",
    "Anew": "Again",
    "Told": "Reported",
    "Whole": "Unsplit, Unsharded or Full",
}

# Folders in tests/ for tests of many parts together, with the reason why no source file has their name.
WHOLE = {
    "comm/copy_channels": "a program of its own, which compiles comm/nccl with a fake CUDA",
    "host/executable": "complete runs of an Executable or a FusionExecutor: memory, faults, messages",
    "host/nvrtc": "kernels of complete programs, compiled for GPUs without a GPU",
    "host/random": "random fusions, compared with the reference",
    "host/sizes": "runs with changing sizes, from the text of a fusion to its results",
    "host/views": "runs with views, from the text of a fusion to its results",
    "host/whole": "examples, goldens, and features of ir, codegen and host in combination",
}

# The end of the name of a file: the labels of its tests.
LABELS = re.compile(r"(_(cpu|simt|gpu|mpi|big))*_test$")
NAMESPACE = re.compile(r"^namespace (?:\w+::)*(\w+) \{", re.MULTILINE)
TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)


def replaced_words(name):
    """Returns the entries of REPLACED whose CamelCase words are in the name, next to each other."""
    words = re.findall(r"[A-Z][a-z]*|[a-z]+|\d+", name)
    found = []
    for old in REPLACED:
        parts = re.findall(r"[A-Z][a-z]*", old)
        starts = range(len(words) - len(parts) + 1)
        if any(words[i : i + len(parts)] == parts for i in starts):
            found.append(old)
    return found


def has_source(root, path):
    """Returns whether the name of a test file begins with that of a source file or of the folder."""
    folder = path.parent.relative_to(root / "tests")
    if folder.as_posix() in WHOLE:
        return True
    sources = {file.stem for file in (root / folder).glob("*") if file.suffix in (".cpp", ".h")}
    words = LABELS.sub("", path.stem).split("_")
    prefixes = ("_".join(words[:count]) for count in range(len(words), 0, -1))
    return any(prefix in sources | {folder.name} for prefix in prefixes)


def faults_of_file(root, path, suites, text):
    """Yields what is wrong with the name of a file that defines these suites."""
    if not path.name.endswith("_test.cpp"):
        yield "defines tests, so its name must end in _test.cpp"
        return
    if not has_source(root, path):
        yield "the name must begin with the name of a source file of the same folder outside of tests"
    expected = "".join(word.capitalize() for word in LABELS.sub("", path.stem).split("_"))
    for suite in suites:
        if not suite.lower().startswith(expected.lower()):
            yield f"{suite}: the name of a suite in this file must begin with {expected}"
    if path.stem not in NAMESPACE.findall(text):
        yield f"the tests must be in a namespace {path.stem}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    faults = []
    file_of = {}
    tests = 0
    for folder in WHOLE:
        if not (root / "tests" / folder).is_dir():
            faults.append(f"check_test_names: there is no folder tests/{folder}")
    for path in sorted((root / "tests").rglob("*")):
        if path.suffix not in (".cpp", ".h"):
            continue
        file = path.relative_to(root)
        text = path.read_text(encoding="utf-8")
        found = TEST.findall(text)
        if found:
            suites = {suite for suite, _ in found}
            faults += [f"{file}: {fault}" for fault in faults_of_file(root, path, suites, text)]
        for suite, test in found:
            tests += 1
            for old in replaced_words(test):
                faults.append(f"{file}: {suite}.{test}: use {REPLACED[old]} instead of {old}")
            first = file_of.setdefault(suite, file)
            if first is file:
                if suite.endswith("Test"):
                    faults.append(f"{file}: {suite}: the name of a suite must not end in Test")
                for old in replaced_words(suite):
                    faults.append(f"{file}: {suite}: use {REPLACED[old]} instead of {old}")
            elif first != file:
                faults.append(f"{file}: {suite}: {first} defines this suite too")
    for fault in sorted(set(faults)):
        print(fault)
    if tests == 0:
        print(f"check_test_names: no tests in {root / 'tests'}")
    if faults or tests == 0:
        return 1
    print(f"check_test_names: ok, {tests} tests in {len(file_of)} suites")
    return 0


if __name__ == "__main__":
    sys.exit(main())
