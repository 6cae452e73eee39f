"""Writes the section of docs/benchmarks.md on the time to compile, and its chart, from bench/results/growth/*.json."""
import json
import math
import pathlib
from typing import Dict, List

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "results" / "growth"
CHART = RESULTS / "growth.svg"
FASTEST_GROWTH = 1.2  # largest exponent that counts as linear
SHORTEST = 0.02  # seconds; shorter times are too inexact to compute an exponent

COLUMNS = 3
PANEL_WIDTH, PANEL_HEIGHT = 300, 250
LEFT, TOP = 44, 70
PLOT_WIDTH, PLOT_HEIGHT = 235, 120
LOW, HIGH = 0.001, 10.0  # seconds
COLORS = ["#2f81c7", "#d9602b", "#3f9a53", "#8d5bc1", "#b8860b", "#c2417c", "#2a9d9d", "#7a7a7a", "#5b6abf",
          "#a0522d"]
STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de; }
  text { font-family: -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; font-size: 11px; fill: #1f2328; }
  .title { font-size: 16px; font-weight: 600; }
  .axis { font-size: 13px; font-weight: 600; }
  .tick { fill: #59636e; font-size: 10px; }
  .grid { stroke: #d8dee4; stroke-width: 1; }
  .curve { fill: none; stroke-width: 1.8; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d; }
    text { fill: #e6edf3; }
    .tick { fill: #9198a1; }
    .grid { stroke: #2a313c; }
  }
"""


def latest_run() -> dict:
    paths = sorted(RESULTS.glob("growth_*.json"))
    return json.loads(paths[-1].read_text(encoding="utf-8")) if paths else {}


def curves_of(results: List[dict]) -> Dict[str, List[dict]]:
    curves: Dict[str, List[dict]] = {}
    for result in results:
        curves.setdefault(result["pattern"], []).append(result)
    return curves


def exponent_of(results: List[dict]) -> float:
    """Returns e if the work grows as size**e between the last two sizes. The work is the number of instructions. If it
    was not counted, or if the last time is at most SHORTEST, the work is the time."""
    before, last = results[-2], results[-1]
    if "instructions" not in last or last["seconds"] <= SHORTEST:
        return time_exponent_of(results)
    return math.log(last["instructions"] / before["instructions"]) / math.log(last["size"] / before["size"])


def time_exponent_of(results: List[dict]) -> float:
    """Returns e if the time grows as size**e between the last two sizes. Times below SHORTEST count as SHORTEST."""
    before, last = results[-2], results[-1]
    ratio = max(last["seconds"], SHORTEST) / max(before["seconds"], SHORTEST)
    return math.log(ratio) / math.log(last["size"] / before["size"])


def growth_section() -> str:
    run = latest_run()
    lines = ["| Pattern | size | time | limit | exponent | of the time |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for name, results in curves_of(run.get("results", [])).items():
        last = results[-1]
        lines.append(f"| {name} | {last['size']} {last['axis']} | {last['seconds']:.2f} s | {last['limit']:g} s | "
                     f"{exponent_of(results):.2f} | {time_exponent_of(results):.2f} |")
    lines += ["", f"Measured on {run.get('date')} on one core of {run.get('device')}: `{run.get('command')}`."]
    return "\n".join(lines + (["", run["remarks"]] if "remarks" in run else []))


def number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def label(x: float, y: float, content: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{number(x)}" y="{number(y)}" text-anchor="{anchor}">{content}</text>'


def grid(x1: float, y1: float, x2: float, y2: float) -> str:
    return (f'<line class="grid" x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" '
            f'y2="{number(y2)}"/>')


def panel(axis: str, curves: Dict[str, List[dict]], left: float, top: float) -> List[str]:
    sizes = sorted({result["size"] for results in curves.values() for result in results})

    def x_of(size: float) -> float:
        return left + math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0]) * PLOT_WIDTH

    def y_of(seconds: float) -> float:
        share = math.log(min(max(seconds, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
        return top + PLOT_HEIGHT * (1 - share)

    parts = [label(left, top - 10, f"seconds, by {axis}", "axis")]
    for seconds in (0.001, 0.01, 0.1, 1, 10):
        parts += [grid(left, y_of(seconds), left + PLOT_WIDTH, y_of(seconds)),
                  label(left - 5, y_of(seconds) + 3, f"{seconds:g}", "tick", "end")]
    for size in (sizes[0], sizes[-1]):
        parts.append(label(x_of(size), top + PLOT_HEIGHT + 14, str(size), "tick",
                           "start" if size == sizes[0] else "end"))
    for index, (name, results) in enumerate(curves.items()):
        color = COLORS[index % len(COLORS)]
        points = " ".join(f"{number(x_of(result['size']))},{number(y_of(result['seconds']))}" for result in results)
        parts.append(f'<polyline class="curve" stroke="{color}" points="{points}"/>')
        x, y = left + index % 2 * 122, top + PLOT_HEIGHT + 30 + index // 2 * 13
        parts += [f'<rect fill="{color}" x="{number(x)}" y="{number(y - 8)}" width="8" height="8"/>',
                  label(x + 12, y, name, "tick")]
    return parts


def growth_chart() -> str:
    axes: Dict[str, Dict[str, List[dict]]] = {}
    for name, results in curves_of(latest_run().get("results", [])).items():
        axes.setdefault(results[0]["axis"], {})[name] = results
    rows = -(-len(axes) // COLUMNS)
    width, height = LEFT + COLUMNS * PANEL_WIDTH, TOP + rows * PANEL_HEIGHT
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
             f'height="{height}" role="img">', "<title>Time to compile by size of the program</title>",
             f"<style>{STYLE}</style>",
             f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
             label(24, 32, "Time to compile, from text to plan, on one core", "title")]
    for index, (axis, curves) in enumerate(axes.items()):
        parts += panel(axis, curves, LEFT + index % COLUMNS * PANEL_WIDTH, TOP + index // COLUMNS * PANEL_HEIGHT)
    return "\n".join(parts + ["</svg>"]) + "\n"
