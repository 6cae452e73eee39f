#!/usr/bin/env python3
"""Compares tuned with untuned kernels on CPUs: the fusions of bench/workloads, or the given files. Uses no network.

    bench/cpu_tuned.py                        full sizes, 2 threads
    bench/cpu_tuned.py --elements 4000000     halves the first size of a fusion, then the next ones, until no input has
                                              more elements than this number; the report says so
                                              (below 200000, some fusions are not valid any more)
    bench/cpu_tuned.py --json FILE            also writes one JSON object per line

First, `heddle tune` measures the candidates of all fusions, and prints the rank correlation of predicted and measured
times. Then each fusion runs with the chosen candidates and with the first candidates, alternately, each time in a
process of its own. A time is the median of the processes, each of which reports the median of its runs. The ratio is
tuned / untuned. A fusion whose choices are all first candidates runs the same kernels twice. Its ratio shows the noise.
"""
import argparse
import csv
import io
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from cpu import chosen_cpus  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
FEW = 32  # a size is halved only if it is above this number
DEFAULTS = re.compile(r"(\) with )([^{]*)( \{)")


def scaled(text, most):
    """Returns the text with smaller default sizes, and these sizes. If `most` is 0, the sizes do not change. A text
    without default sizes does not change either."""
    found = DEFAULTS.search(text)
    if not found:
        return text, {}
    sizes = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", found.group(2))}
    shapes = [shape.split(", ") for shape in re.findall(r"\[([^]]*)\]", text[:found.start()])]

    def elements():
        return max(math.prod(int(sizes.get(axis, axis)) for axis in shape) for shape in shapes)

    while most and elements() > most:
        large = [name for name, size in sizes.items() if size > FEW]
        if not large:
            break
        sizes[large[0]] //= 2
    listed = ", ".join(f"{name} = {value}" for name, value in sizes.items())
    return DEFAULTS.sub(lambda match: match.group(1) + listed + match.group(3), text, count=1), sizes


class Heddle:
    """Runs the heddle command on the given CPUs, with the given folder as kernel cache."""

    def __init__(self, program, cpus, cache):
        self.program = str(program)
        self.cpus = cpus
        self.environment = {**os.environ, "HEDDLE_CACHE_DIR": str(cache)}

    def __call__(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, check=False,
                              env=self.environment, preexec_fn=lambda: os.sched_setaffinity(0, self.cpus))
        if done.returncode != 0:
            sys.exit(f"bench/cpu_tuned.py: heddle {' '.join(map(str, arguments))}:\n{done.stderr}")
        return done

    def median_ms(self, path, options, repeat):
        done = self("run", path, "--device", "cpu", "--repeat", repeat, "--json", *options)
        return json.loads(done.stdout)["median_ms"]


def changed_files(csv_text):
    """Returns the files with a kernel whose choice is not the first candidate."""
    rows = csv.DictReader(io.StringIO(csv_text))
    return {row["file"] for row in rows if row["chosen"] == "1" and row["candidate"] != "0"}


def measure(heddle, path, choices, arguments):
    tuned, untuned = [], []
    for _ in range(arguments.rounds):
        untuned.append(heddle.median_ms(path, [], arguments.repeat))
        tuned.append(heddle.median_ms(path, ["--choices", choices, "--choices-only"], arguments.repeat))
    return statistics.median(tuned), statistics.median(untuned)


def geometric_mean(ratios):
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="fusions with default sizes")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--elements", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5, help="processes per fusion and per kind of choice")
    parser.add_argument("--repeat", type=int, default=20, help="timed runs per process")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    files = arguments.files or sorted((ROOT / "bench/workloads").glob("*.fusion"))
    results = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        cache = folder / "cache"
        cache.mkdir(mode=0o700)
        heddle = Heddle(arguments.build / "bin/heddle", chosen_cpus(arguments.threads), cache)
        paths, sizes = [], {}
        for file in files:
            text, sizes[file.name] = scaled(file.read_text(encoding="utf-8"), arguments.elements)
            paths.append(folder / file.name)
            paths[-1].write_text(text, encoding="utf-8")
        choices = folder / "choices.txt"
        tuning = heddle("tune", *paths, "--device", "cpu", "--csv", "--export", choices)
        changed = changed_files(tuning.stdout)
        for path in paths:
            tuned, untuned = measure(heddle, path, choices, arguments)
            results.append({"name": path.stem, "sizes": sizes[path.name], "threads": arguments.threads,
                            "tuned_ms": round(tuned, 4), "untuned_ms": round(untuned, 4),
                            "ratio": round(tuned / untuned, 4), "changed": str(path) in changed})
            print(f"{path.stem:28} {untuned:10.3f} ms untuned {tuned:10.3f} ms tuned   ratio {tuned / untuned:.3f}"
                  f"{'' if str(path) in changed else '   same kernels'}", flush=True)
    ratios = [result["ratio"] for result in results]
    how = "full sizes"
    if arguments.elements:
        how = f"sizes halved until no input has more than {arguments.elements} elements"
    print(f"{len(ratios)} fusions, {arguments.threads} threads, {how}: geometric mean of tuned / untuned "
          f"{geometric_mean(ratios):.3f}, largest {max(ratios):.3f}")
    same = [result["ratio"] for result in results if not result["changed"]]
    if same:
        print(f"of these, {len(same)} with the same kernels: {geometric_mean(same):.3f}, which shows the noise")
    print(tuning.stderr.strip())
    if arguments.json:
        arguments.json.write_text("".join(json.dumps(result) + "\n" for result in results), encoding="utf-8")


if __name__ == "__main__":
    main()
