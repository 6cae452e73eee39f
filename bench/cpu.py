#!/usr/bin/env python3
"""Times the workloads of bench/cpu_workloads in heddle and in PyTorch on the same CPUs, and compares
the times with the targets. Uses no network.

    bench/cpu.py RESULT_DIR [--threads 8] [--build build/release | --packed FILE] [--eager-only]
    bench/cpu.py --pack FILE [--build build/release]

--pack writes an archive with the benchmark and its libraries, for a machine that lacks them. That
machine still needs a C++ compiler, for the kernels, and PyTorch.

RESULT_DIR gets cpu.jsonl (bench/make_table.py --add stores it), and two files with heddle's times
under other settings: ordinary stores (plain_stores.jsonl) and matrix products by OpenBLAS
(openblas.jsonl). Each program is limited to the same CPUs, one per core as far as possible.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = "bench_cpu_workloads"
# The targets. COPIES: the largest time as a multiple of the time of a copy of f32 [8192, 4096]. PEERS: the largest time
# as a multiple of PyTorch's time.
COPIES = {"softmax": 1.7, "layer_norm": 1.7, "gelu (tanh)": 1.3, "transpose + add": 3.0, "row sums": 0.5,
          "column sums": 0.5}
PEERS = {"matmul f32": 1 / 0.95, "matmul bf16": 1 / 0.95}
SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc|libm|libmvec|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s)[-.]")


def chosen_cpus(count):
    """Returns CPUs that this process may use: first one CPU of each core, then the other CPUs of the cores."""
    by_core = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        path = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = path.read_text(encoding="utf-8").strip() if path.exists() else str(cpu)
        by_core.setdefault(core, []).append(cpu)
    ordered = sorted((place, cpu) for cpus in by_core.values() for place, cpu in enumerate(cpus))
    if len(ordered) < count:
        sys.exit(f"bench/cpu.py: {count} threads need as many CPUs, but this process may use {len(ordered)}")
    return [cpu for _, cpu in ordered[:count]]


def libraries_of(path):
    lines = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout.splitlines()
    found = [re.match(r"\s*(\S+) => (/\S+)", line) for line in lines]
    return {match.group(1): match.group(2) for match in found if match and not SYSTEM.match(match.group(1))}


def pack(build, archive):
    module = build / "lib" / "libheddle_onednn.so"
    files = {BENCH: str(build / "bin" / BENCH)}
    if module.exists():
        files[module.name] = str(module)
    for path in list(files.values()):
        files.update(libraries_of(path))
    with tempfile.TemporaryDirectory() as folder:
        for name, path in files.items():
            shutil.copy(path, f"{folder}/{name}")
            subprocess.run(["strip", f"{folder}/{name}"], check=False)
        with tarfile.open(archive, "w:xz") as packed:
            packed.add(folder, ".")
    print(f"{archive}: {os.path.getsize(archive) >> 20} MiB, {', '.join(sorted(files))}")


def run(cpus, command, environment):
    """Runs a program on the CPUs. Returns its lines, or an empty list if it fails."""
    pinned = ["taskset", "-c", ",".join(map(str, cpus))] + command
    done = subprocess.run(pinned, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        print(f"bench/cpu.py: {' '.join(command)} failed", file=sys.stderr)
    return [line for line in done.stdout.splitlines() if line.startswith("{")]


def measure(options, bench, libraries):
    cpus = chosen_cpus(options.threads)
    ours = {"LD_LIBRARY_PATH": libraries} if libraries else {}
    command = [bench, str(options.threads)]
    peer = [sys.executable, "bench/peers/torch_cpu.py", "--threads", str(options.threads)]
    peer += ["--eager-only"] if options.eager_only else []
    print(f"CPUs {cpus}", flush=True)
    results = {
        "cpu": run(cpus, command, ours) + run(cpus, peer, {"OMP_NUM_THREADS": str(options.threads)}),
        "plain_stores": run(cpus, command, {**ours, "HEDDLE_CPU_STREAM_BYTES": str(1 << 60)}),
        "openblas": run(cpus, command + ["matmul_f32", "matmul_bf16"], {**ours, "HEDDLE_CPU_MATMUL": "openblas"}),
    }
    folder = pathlib.Path(options.results)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in results.items():
        (folder / f"{name}.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return {name: [json.loads(line) for line in lines] for name, lines in results.items()}


def times_of(results):
    return {one["name"]: one["cpu_ms"] for one in results if "cpu_ms" in one}


def report(results):
    peers = {one["name"]: one for one in results["cpu"] if "peer" in one}
    plain, openblas = times_of(results["plain_stores"]), times_of(results["openblas"])
    print("| workload | ms | copies | at most | PyTorch eager | compiled | ÷ fastest | at most | plain stores | OpenBLAS |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    missed = []
    for one in results["cpu"]:
        if "peer" in one:
            continue
        name, peer = one["name"], peers.get(one["name"], {})
        theirs = [peer[key] for key in ("eager_ms", "compile_ms") if key in peer]
        ratio = one["cpu_ms"] / min(theirs) if theirs else None
        copies = next((limit for start, limit in COPIES.items() if name.startswith(start)), None)
        most = next((limit for start, limit in PEERS.items() if name.startswith(start)), None)
        cells = [name, one["cpu_ms"], one["copies"], copies, peer.get("eager_ms"), peer.get("compile_ms"),
                 ratio and round(ratio, 3), most and round(most, 3), plain.get(name), openblas.get(name)]
        print("| " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |")
        if (copies and one["copies"] > copies) or (most and ratio and ratio > most):
            missed.append(name)
    print(f"\ndevice: {results['cpu'][0].get('device') if results['cpu'] else 'no result'}")
    print(f"missed: {', '.join(missed) or 'none'}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results", nargs="?", help="folder for the results")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--pack", metavar="FILE")
    parser.add_argument("--packed", metavar="FILE")
    parser.add_argument("--eager-only", action="store_true")
    options = parser.parse_args()
    if options.pack:
        return pack(options.build, options.pack)
    if not options.results:
        parser.error("name the folder for the results, or --pack FILE")
    if not options.packed:
        return report(measure(options, str(options.build / "bin" / BENCH), None))
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(options.packed) as packed:
            packed.extractall(folder, filter="data")
        return report(measure(options, f"{folder}/{BENCH}", folder))


if __name__ == "__main__":
    main()
