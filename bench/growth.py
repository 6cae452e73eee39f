#!/usr/bin/env python3
"""Measures how the time of heddle to compile grows with the size of a fusion or host program.

  bench/growth.py                        measures every pattern and prints one line each
  bench/growth.py --pattern cat views    measures the patterns whose name contains one of these words
  bench/growth.py --check                also exits 1 if a pattern exceeds its limit or grows too fast
  bench/growth.py --store                also stores the figures in bench/results/growth and runs bench/make_table.py

The time is the user time of one command from reading the text to the plan, on the null device or without a device. No
kernel is compiled. The time to start the command is subtracted. Of several repetitions the shortest time counts.
"""
import argparse
import datetime
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from compile_time.patterns import EMPTY, PATTERNS, Pattern  # noqa: E402
from compile_time.report import FASTEST_GROWTH, RESULTS, exponent_of  # noqa: E402

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


def measure(pattern: Pattern, size: int, options: argparse.Namespace, folder: str) -> float:
    path = pathlib.Path(folder) / f"{pattern.name.replace(' ', '_')}_{size}.{pattern.suffix}"
    path.write_text(pattern.text(size), encoding="utf-8")
    # The tests verify after every pass; users do not. Threads of the BLAS library that wait for work would add user
    # time.
    environment = {**os.environ, "HEDDLE_VERIFY_EACH": "0", "HEDDLE_CACHE_DIR": folder, "OPENBLAS_NUM_THREADS": "1"}
    command = [str(options.heddle)] + pattern.command(str(path), size)
    return min(user_seconds(command, environment) for _ in range(options.repeat))


def results_of(pattern: Pattern, start: float, options: argparse.Namespace, folder: str) -> list:
    results = []
    for size in pattern.sizes:
        seconds = max(measure(pattern, size, options, folder) - start, 0.001)
        results.append({"pattern": pattern.name, "axis": pattern.axis, "size": size, "seconds": round(seconds, 4),
                        "limit": pattern.limit})
    return results


def processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def store(results: list) -> None:
    date = datetime.date.today().isoformat()
    run = {"device": processor(), "date": date, "command": "bench/growth.py --store", "results": results}
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"growth_{date}.json"
    path.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    subprocess.run([sys.executable, str(BENCH / "make_table.py")], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", type=pathlib.Path, default=HEDDLE, help="the command to measure")
    parser.add_argument("--pattern", nargs="+", default=[""], help="words of which a name must contain one")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--store", action="store_true")
    options = parser.parse_args()
    chosen = [pattern for pattern in PATTERNS if any(word in pattern.name for word in options.pattern)]
    if options.store and len(chosen) < len(PATTERNS):
        sys.exit("--store needs all patterns")
    all_results, failed = [], False
    with tempfile.TemporaryDirectory() as folder:
        start = measure(EMPTY, 1, options, folder)
        for pattern in chosen:
            results = results_of(pattern, start, options, folder)
            last, exponent = results[-1], exponent_of(results)
            bad = last["seconds"] > pattern.limit or exponent >= FASTEST_GROWTH
            failed = failed or bad
            print(f"{pattern.name}: {last['size']} {pattern.axis} in {last['seconds']:.2f} s, exponent {exponent:.2f}"
                  f"{'  <-- too slow' if bad else ''}", flush=True)
            all_results += results
    if options.store:
        store(all_results)
    return 1 if options.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
