#!/usr/bin/env python3
"""Updates the generated parts of docs/benchmarks.md and its charts from bench/results.

  bench/make_table.py                                     writes all files
  bench/make_table.py --check                             writes nothing; exits 1 if a file is out of date
  bench/make_table.py --add BENCH.jsonl DEVICE DATE CMD   stores the lines of a benchmark as a new result file, then
                                                          writes all files

The script replaces the text between <!-- begin NAME --> and <!-- end NAME -->. All other text of the page stays.
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True

from compile_time.report import CHART as GROWTH_CHART, growth_chart, growth_section  # noqa: E402
from random_shapes import random_section  # noqa: E402
from table_chart import chart  # noqa: E402
from table_raw import raw_sections  # noqa: E402
from table_rows import make_rows  # noqa: E402
from table_samples import RESULTS  # noqa: E402
from table_text import missing_list, ratio_table, slower_list  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
CHART = ROOT / "docs" / "ratios.svg"


def replace(page: str, name: str, text: str) -> str:
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        sys.exit(f"{PAGE}: needs one line '{begin}' and one line '{end}'")
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}"


def generate() -> dict:
    """Returns the new text of each file."""
    rows, peers_only = make_rows()
    page = PAGE.read_text(encoding="utf-8")
    page = replace(page, "ratios", ratio_table(rows))
    page = replace(page, "slower", slower_list(rows))
    page = replace(page, "missing", missing_list(rows, peers_only))
    page = replace(page, "growth", growth_section())
    page = replace(page, "random shapes", random_section())
    page = replace(page, "results", raw_sections())
    return {PAGE: page, CHART: chart(rows), GROWTH_CHART: growth_chart()}


def check() -> int:
    old = [path for path, text in generate().items()
           if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in old:
        print(f"{path.relative_to(ROOT)} is out of date: run python3 bench/make_table.py", file=sys.stderr)
    return 1 if old else 0


def add(source: str, device: str, date: str, command: str) -> None:
    lines = [line for line in pathlib.Path(source).read_text(encoding="utf-8").splitlines() if line.strip()]
    run = {"device": device, "date": date, "command": command, "results": [json.loads(line) for line in lines]}
    path = RESULTS / (device.lower().replace(" ", "-") + "_" + date + ".json")
    if path.exists():
        sys.exit(f"{path.name} exists: add a word to DEVICE, as in 'NVIDIA H200 attention'")
    path.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def main(arguments: list) -> int:
    if arguments == ["--check"]:
        return check()
    if arguments[:1] == ["--add"] and len(arguments) == 5:
        add(*arguments[1:])
    elif arguments:
        sys.exit(__doc__)
    for path, text in generate().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
