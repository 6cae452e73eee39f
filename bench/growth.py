#!/usr/bin/env python3
"""Measures how the time of heddle to compile grows with the size of a fusion or host program.

  bench/growth.py                        measures every pattern and prints one line each
  bench/growth.py --pattern cat views    measures the patterns whose name contains one of these words
  bench/growth.py --check                also exits 1 if a pattern exceeds its limit or grows too fast
  bench/growth.py --instructions         also counts instructions; this takes about 10 minutes on 4 cores
  bench/growth.py --store                also stores the figures in bench/results/growth and runs bench/make_table.py

The time is the user time of one command from reading the text to the plan, on the null device or without a device. No
kernel is compiled. The user time of a command with a single op is subtracted. Of several repetitions the shortest time
counts.

Other programs on the machine can double a time. --instructions therefore also counts the instructions of the last two
sizes with valgrind, and computes the exponents from these counts.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from compile_time.patterns import EMPTY, PATTERNS, Pattern  # noqa: E402
from compile_time.report import FASTEST_GROWTH, RESULTS, curves_of, exponent_of  # noqa: E402

BENCH = pathlib.Path(__file__).resolve().parent
HEDDLE = BENCH.parent / "build" / "release" / "bin" / "heddle"
CORE = max(os.sched_getaffinity(0))  # the core on which all commands run
LONGEST = 120  # seconds after which a command is stopped


def user_seconds(command: list, environment: dict) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, preexec_fn=lambda: os.sched_setaffinity(0, {CORE}), env=environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=LONGEST, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.strip()[:500]}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def command_of(pattern: Pattern, size: int, options: argparse.Namespace, folder: str) -> list:
    path = pathlib.Path(folder) / f"{pattern.name.replace(' ', '_')}_{size}.{pattern.suffix}"
    path.write_text(pattern.text(size), encoding="utf-8")
    return [str(options.heddle)] + pattern.command(str(path), size)


def environment_of(folder: str) -> dict:
    # The tests verify the result of every pass; users do not. Threads of the BLAS library that wait for work would add
    # user time.
    return {**os.environ, "HEDDLE_VERIFY_EACH": "0", "HEDDLE_CACHE_DIR": folder, "OPENBLAS_NUM_THREADS": "1"}


def measure(commands: list, options: argparse.Namespace, folder: str) -> list:
    """Returns the shortest time of each command. The repetitions of all commands alternate: if other programs slow the
    machine down for some seconds, this affects all commands and not only one."""
    environment = environment_of(folder)
    rounds = [[user_seconds(command, environment) for command in commands] for _ in range(options.repeat)]
    return [min(times) for times in zip(*rounds)]


def instructions_of(command: list, folder: str) -> int:
    counter = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run(counter + command, env=environment_of(folder), stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not counted:
        sys.exit(f"{' '.join(counter + command)} failed: {done.stderr.strip()[-500:]}")
    return int(counted.group(1))


def add_instructions(all_results: list, options: argparse.Namespace, folder: str) -> None:
    """Adds the member "instructions" to the results of the last two sizes of each pattern."""
    start = instructions_of(command_of(EMPTY, 1, options, folder), folder)

    def count(result: dict) -> None:
        pattern = next(pattern for pattern in PATTERNS if pattern.name == result["pattern"])
        if result["size"] in pattern.sizes[-2:]:
            command = command_of(pattern, result["size"], options, folder)
            result["instructions"] = instructions_of(command, folder) - start

    with concurrent.futures.ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as threads:
        list(threads.map(count, all_results))


def results_of(pattern: Pattern, options: argparse.Namespace, folder: str) -> list:
    commands = [command_of(EMPTY, 1, options, folder)]
    commands += [command_of(pattern, size, options, folder) for size in pattern.sizes]
    start, *times = measure(commands, options, folder)
    return [{"pattern": pattern.name, "axis": pattern.axis, "size": size, "limit": pattern.limit,
             "seconds": round(max(seconds - start, 0.001), 4)} for size, seconds in zip(pattern.sizes, times)]


def processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def store(results: list, options: argparse.Namespace) -> None:
    date = datetime.date.today().isoformat()
    command = f"bench/growth.py --repeat {options.repeat}{' --instructions' if options.instructions else ''} --store"
    run = {"device": processor(), "date": date, "command": command, "results": results}
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"growth_{date}.json"
    path.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    subprocess.run([sys.executable, str(BENCH / "make_table.py")], check=True)


def report(results: list) -> bool:
    """Prints one line for a pattern. Returns whether it is too slow."""
    last, exponent = results[-1], exponent_of(results)
    bad = last["seconds"] > last["limit"] or exponent >= FASTEST_GROWTH
    print(f"{last['pattern']}: {last['size']} {last['axis']} in {last['seconds']:.2f} s, exponent {exponent:.2f}"
          f"{'  <-- too slow' if bad else ''}", flush=True)
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", type=pathlib.Path, default=HEDDLE, help="the command to measure")
    parser.add_argument("--pattern", nargs="+", default=[""],
                        help="measure only patterns whose name contains one of these words")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--store", action="store_true")
    options = parser.parse_args()
    chosen = [pattern for pattern in PATTERNS if any(word in pattern.name for word in options.pattern)]
    if options.store and len(chosen) < len(PATTERNS):
        sys.exit("--store needs all patterns")
    all_results, failed = [], False
    with tempfile.TemporaryDirectory() as folder:
        for pattern in chosen:
            all_results += results_of(pattern, options, folder)
        if options.instructions:
            add_instructions(all_results, options, folder)
    for results in curves_of(all_results).values():
        failed = report(results) or failed
    if options.store:
        store(all_results, options)
    return 1 if options.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
