#!/usr/bin/env python3
"""Measures random fusions on a GPU: random ops, dtypes and sizes, 16 MB to 600 MB of inputs and outputs each.

  bench/random_shapes.py                      measures 200 fusions and prints the slowest ones and a table by kind
  bench/random_shapes.py --json FILE          also stores all figures
  bench/random_shapes.py --choices FILE       uses the choices that `heddle tune --export FILE` has written
  bench/random_shapes.py --write-only DIR     writes the fusions into DIR and generates their kernels; needs no GPU
  bench/random_shapes.py --check cpu          runs the fusions with small sizes on the CPU device and compares all
                                              elements with the reference; needs no GPU
  bench/random_shapes.py --check cuda         runs the large fusions on the GPU and compares a sample of the elements

The speed of a fusion is the time of a copy of the same bytes, divided by the time of the fusion. docs/benchmarks.md
shows the newest file in bench/results/random with the default seed.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Dict, List

sys.dont_write_bytecode = True

from shapes.kinds import LIMIT, ONE_ROW_LIMIT, Fusion, random_fusion  # noqa: E402

BENCH = pathlib.Path(__file__).resolve().parent
RESULTS = BENCH / "results" / "random"
AT_ONCE = 10  # fusions per process
LONGEST = 300  # seconds after which a process is stopped
WORST = 10
SEED = 1  # the default


def run(command: List[str], timeout: int = LONGEST) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as stopped:
        said = (stopped.stdout or b"").decode()
        return subprocess.CompletedProcess(command, -1, said, f"stopped after {timeout} seconds")


def in_parallel(function, items: list) -> list:
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as threads:
        return list(threads.map(function, items))


def failure(fusion: Fusion, done: subprocess.CompletedProcess) -> dict:
    message = done.stderr.strip()[-2000:] or f"exit {done.returncode}"
    return {"name": fusion.name, "kind": fusion.kind, "message": message, "text": fusion.text}


def failures_of(fusions: List[Fusion], folder: pathlib.Path, commands: List[List[str]]) -> List[dict]:
    """Runs each command with the file of each fusion. Returns the fusions for which a command fails."""

    def first_failure(fusion: Fusion):
        for command in commands:
            done = run(command[:2] + [str(path_of(folder, fusion))] + command[2:])
            if done.returncode != 0:
                return failure(fusion, done)
        return None

    return [found for found in in_parallel(first_failure, fusions) if found]


def path_of(folder: pathlib.Path, fusion: Fusion) -> pathlib.Path:
    return folder / f"{fusion.name}.fusion"


def measure(fusions: List[Fusion], folder: pathlib.Path, program: List[str]) -> tuple:
    """Returns the results and the failures. If a process ends early, the first fusion without a line of output counts
    as failed, and another process measures the fusions after it."""
    results, failures, left = [], [], list(fusions)
    while left:
        batch = left[:AT_ONCE]
        done = run(program + [str(path_of(folder, fusion)) for fusion in batch])
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode == 0 and not lines:
            sys.exit(f"{program[0]}: {done.stderr.strip()}")
        for fusion, line in zip(batch, lines):
            results.append({**line, "kind": fusion.kind, "shape": fusion.shape, "limit": fusion.limit})
        if len(lines) < len(batch):
            failures.append(failure(batch[len(lines)], done))
        left = left[min(len(lines) + 1, len(batch)):]
        print(f"{len(fusions) - len(left)} of {len(fusions)}", file=sys.stderr, flush=True)
    return results, failures


def table(head: List[str], rows: List[List[str]], texts: int) -> List[str]:
    align = ["---"] * texts + ["---:"] * (len(head) - texts)
    return ["| " + " | ".join(line) + " |" for line in [head, align] + rows]


def kind_table(results: List[dict]) -> List[str]:
    kinds: Dict[str, List[dict]] = {}
    for result in results:
        kinds.setdefault(result["kind"], []).append(result)
    rows = []
    for kind, found in kinds.items():
        ratios = [result["of_copy"] for result in found]
        below = sum(result["of_copy"] < result["limit"] for result in found)
        rows.append([kind, str(len(found)), f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f}", str(below)])
    return table(["kind", "fusions", "median speed", "lowest speed", "below the limit"], rows, 1)


def worst_table(results: List[dict]) -> List[str]:
    limited = [result for result in results if result["limit"]]
    worst = sorted(limited, key=lambda result: result["of_copy"])[:WORST]
    rows = [[result["name"], result["shape"], f"{result['bytes'] / 1e6:.0f}", f"{result['gpu_ms']:.4f}",
             f"{result['copy_ms']:.4f}", f"{result['of_copy']:.2f}"] for result in worst]
    return table(["fusion", "first input", "MB", "heddle, ms", "copy, ms", "speed"], rows, 2)


def report(run_: dict) -> str:
    results, failures = run_["results"], run_["failures"]
    below = sum(result["of_copy"] < result["limit"] for result in results)
    lines = [f"A fusion is too slow if its speed is below its limit. The limit is {LIMIT}. For a softmax or "
             f"norm of a tensor that has only one row, it is {ONE_ROW_LIMIT}. Fusions that look up pieces of fewer than 64 bytes, at random places in "
             "more than 1 MB of memory, have no limit. "
             f"{below} of {len(results)} fusions are too slow. {len(failures)} fusions failed to run. Among the fusions "
             "that have a limit, these have the lowest speeds:", ""]
    return "\n".join(lines + worst_table(results) + [""] + kind_table(results))


def random_section() -> str:
    """Returns the section of docs/benchmarks.md on the newest result with the default seed, or an empty text if there
    is no such result."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]
    runs = [run_ for run_ in files if run_["seed"] == SEED]
    if not runs:
        return ""
    newest = max(runs, key=lambda run_: run_["date"])
    return "\n".join([
        "## Random shapes", "",
        "`bench/random_shapes.py` measures fusions with random ops, dtypes and sizes. A seed decides all of them. Each "
        "fusion has 16 MB to 600 MB of inputs and outputs. The *speed* is the time of a copy of the same bytes, "
        "divided by heddle's time. Below 1, heddle is slower than the copy. All bytes of inputs and outputs count once. A slice or lookup may skip part of its "
        "input, so its speed may exceed 1.", "", report(newest), "",
        f"Measured on {newest['date']} on {newest['device']}: `{newest['command']}`."])


def store(options: argparse.Namespace, results: List[dict], failures: List[dict]) -> dict:
    device = results[0]["device"] if results else "unknown"
    run_ = {"device": device, "date": datetime.date.today().isoformat(), "seed": options.seed,
            "command": f"bench/random_shapes.py --seed {options.seed} --count {options.count}"
                      + (" --choices FILE" if options.choices else ""),
            "results": [{key: value for key, value in result.items() if key != "device"} for result in results],
            "failures": failures}
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(run_, indent=1) + "\n", encoding="utf-8")
    return run_


def print_failures(failures: List[dict]) -> None:
    for one in failures:
        print(f"{one['name']} failed: {one['message']}\n{one['text']}", file=sys.stderr)


def work(options: argparse.Namespace, folder: pathlib.Path) -> List[dict]:
    """Does what the options say. Returns the failures."""
    heddle = str(options.bin / "heddle")
    fusions = [random_fusion(options.seed, number, options.check == "cpu") for number in range(options.count)]
    for fusion in fusions:
        path_of(folder, fusion).write_text(fusion.text, encoding="utf-8")
    if options.check:
        part = "--check=full" if options.check == "cpu" else "--check"
        failures = failures_of(fusions, folder, [[heddle, "run", "--device", options.check, part]])
        print(f"{options.count - len(failures)} of {options.count} fusions are right with --device {options.check}")
        return failures
    if options.write_only:
        return failures_of(fusions, folder, [[heddle, "dump", "--stage", "segments"],
                                             [heddle, "dump", "--stage", "kernel", "--device", "cuda"]])
    choices = ["--choices", str(options.choices)] if options.choices else []
    results, failures = measure(fusions, folder, [str(options.bin / "bench_cuda_workloads")] + choices)
    print(report(store(options, results, failures)))
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED, help="decides ops, dtypes and sizes")
    parser.add_argument("--count", type=int, default=200, help="number of fusions")
    parser.add_argument("--write-only", type=pathlib.Path, metavar="DIR", help="the folder for the files")
    parser.add_argument("--check", choices=["cpu", "cuda"], help="the device whose results are compared")
    parser.add_argument("--choices", type=pathlib.Path, help="the candidates to use")
    parser.add_argument("--bin", type=pathlib.Path, default=BENCH.parent / "build" / "release" / "bin",
                        help="the folder of heddle and bench_cuda_workloads")
    parser.add_argument("--json", type=pathlib.Path, help="the file for the figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.write_only or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        failures = work(options, folder)
    print_failures(failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
