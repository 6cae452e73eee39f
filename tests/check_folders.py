#!/usr/bin/env python3
"""Checks the include directives of all sources. Usage: check_folders.py ROOT

Rules:
 - A file includes project headers of its own folder and of folders that come earlier in
   tests/folder_order.txt. tools, tests, bench and examples come after all of them.
 - comm and codegen do not include each other.
 - The tests of ir, codegen and comm, and the headers directly in tests/, include nothing of host, tools,
   bench and examples, and nothing of tests/host, tests/tools and tests/text. tests/run_all.sh leaves out
   the tests of ir, codegen and comm if nothing else has changed since they passed.
 - The core includes no header of an optional module, because modules are loaded at run time.
 - Only modules and comm/cuda_call include headers of CUDA, cuDNN, NCCL, MPI and oneDNN.
 - ir includes the C++ standard library, Boost and fmt only. ir/system also includes POSIX headers.
 - No file includes CCCL: NVRTC needs seconds to compile it.
 - Project headers are included in quotes and exist.
 - A folder holds at most 25 sources.
 - The public headers (cmake/public_headers.cmake) exist and include no other project headers.

Exit status: 0 if every rule holds, 1 otherwise.
"""

import collections
import os
import re
import sys

MOST_FILES = 25
TOP = ["tools", "tests", "bench", "examples"]
MODULES = {
    "codegen/cuda": "heddle_cuda",
    "comm/cuda": "heddle_cuda",
    "host/device/cuda": "heddle_cuda",
    "host/device/cudnn": "heddle_cudnn",
    "host/device/onednn": "heddle_onednn",
    "comm/mpi": "heddle_mpi",
    "comm/nccl": "heddle_nccl",
}
# Folders that contain only headers, with the modules that may include them. The core may not.
SHARED_HEADERS = {"comm/cuda_call": ("heddle_cuda", "heddle_cudnn", "heddle_nccl")}
# Test folders whose programs compile the sources of a module themselves.
COMPILED_IN = {"tests/comm/copy_channels": "heddle_nccl"}
LOWER_TESTS = re.compile(r"^tests/((ir|codegen|comm)/|[^/]+\.h$)")
NOT_IN_LOWER_TESTS = re.compile(r"^(tests/)?(host|tools)/|^(bench|examples)/|^tests/text/")
VENDOR = re.compile(r"^(cuda.*|nvrtc|cublas.*|cudnn.*|nvToolsExt|nccl|mpi|omp|oneapi/.*)\.h(pp)?$")
CCCL = re.compile(r"^(cuda/std|cub|thrust)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def read_order(root):
    with open(os.path.join(root, "tests", "folder_order.txt"), encoding="utf-8") as lines:
        names = [line.split("#")[0].strip() for line in lines]
    return {name: rank for rank, name in enumerate(name for name in names if name)}


def top_of(path):
    return path.split("/", 1)[0]


def module_of(folder, table):
    """Returns the module that compiles this folder, or None for the core."""
    for prefix, module in table.items():
        if folder == prefix or folder.startswith(prefix + "/"):
            return module
    return None


def sources(root, order):
    found = []
    for top in sorted({top_of(folder) for folder in order}) + TOP:
        for folder, _, names in os.walk(os.path.join(root, top)):
            found += [os.path.relpath(os.path.join(folder, name), root)
                      for name in names if name.endswith((".h", ".cpp", ".cu"))]
    return sorted(found)


def check_project_include(path, target, order):
    """Returns an error message if file `path` may not include the project file `target`, or None."""
    source, into = os.path.dirname(path), os.path.dirname(target)
    module = module_of(into, MODULES)
    allowed = (module_of(source, MODULES), module_of(source, COMPILED_IN))
    if module and module not in allowed:
        return f"{into} is part of the module {module}, which is loaded at run time"
    if into in SHARED_HEADERS and source != into and not set(SHARED_HEADERS[into]) & set(allowed):
        return f"{into} is for the modules {', '.join(SHARED_HEADERS[into])} only"
    if LOWER_TESTS.match(path) and NOT_IN_LOWER_TESTS.match(target):
        return "tests of ir, codegen and comm include nothing of host, tools, bench, examples and their tests"
    if top_of(source) in TOP or source == into:
        return None
    if into not in order:
        return f"{into} is not in tests/folder_order.txt"
    if order[into] > order[source]:
        return f"{into} comes after {source} in tests/folder_order.txt"
    if {top_of(source), top_of(into)} == {"comm", "codegen"}:
        return "comm and codegen do not include each other"
    return None


def check_system_include(path, target):
    """Returns an error message if file `path` may not include `target`, a header of another project, or None."""
    source = os.path.dirname(path)
    if CCCL.match(target):
        return "NVRTC needs seconds to compile CCCL"
    if top_of(source) in TOP:
        return None
    if VENDOR.match(target) and not module_of(source, MODULES) \
            and source not in SHARED_HEADERS:
        return "the core is built without CUDA, cuDNN, NCCL, MPI and oneDNN"
    if top_of(source) == "ir" and source != "ir/system" and re.search(r"[/.]", target) \
            and not target.startswith(("boost/", "fmt/")):
        return "ir uses the C++ standard library, Boost and fmt only"
    return None


def check_file(root, path, order, tops):
    with open(os.path.join(root, path), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, target = match.groups()
            wrong = None
            if "/" not in target and quote == '"':
                wrong = None if path.startswith("codegen/runtime/") else "give the path from the root"
            elif top_of(target) not in tops:
                wrong = check_system_include(path, target)
            elif quote == "<":
                wrong = "project headers are included in quotes"
            elif not os.path.exists(os.path.join(root, target)):
                wrong = "this file does not exist"
            else:
                wrong = check_project_include(path, target, order)
            if wrong:
                yield f"{path}:{number}: includes {target}: {wrong}"


def check_public_headers(root, tops):
    with open(os.path.join(root, "cmake", "public_headers.cmake"), encoding="utf-8") as lines:
        public = set(re.findall(r"^\s+([\w/]+\.h)", lines.read(), re.M))
    for header in sorted(public):
        if not os.path.exists(os.path.join(root, header)):
            yield f"cmake/public_headers.cmake: {header} does not exist"
            continue
        with open(os.path.join(root, header), encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                match = INCLUDE.match(line)
                if match and top_of(match.group(2)) in tops and match.group(2) not in public:
                    yield f"{header}:{number}: a public header includes {match.group(2)}, " \
                          "which is not installed"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    root = sys.argv[1]
    order = read_order(root)
    tops = {top_of(folder) for folder in order} | set(TOP)
    files = sources(root, order)
    wrong = [text for path in files for text in check_file(root, path, order, tops)]
    wrong += check_public_headers(root, tops)
    for folder, count in sorted(collections.Counter(map(os.path.dirname, files)).items()):
        if count > MOST_FILES:
            wrong.append(f"{folder}: {count} files, at most {MOST_FILES} are allowed")
        if top_of(folder) not in TOP and folder not in order:
            wrong.append(f"{folder}: is not in tests/folder_order.txt")
    for folder in order:
        if not os.path.isdir(os.path.join(root, folder)):
            wrong.append(f"tests/folder_order.txt: {folder} does not exist")
    print("\n".join(wrong) if wrong else f"check_folders: ok, {len(files)} files")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
