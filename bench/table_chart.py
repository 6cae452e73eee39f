"""Draws docs/ratios.svg: one bar per workload on a logarithmic axis.

A bar runs from 1.0 to heddle's time divided by the time of the fastest peer.
"""
import math
from typing import List

from table_rows import GROUPS, Row

WIDTH = 960
LEFT = 430  # where the axis begins; labels end before it
RIGHT = 910
LOW, HIGH = 1 / 16, 8.0
ROW = 17
BAR = 11
HEADER = 30
TOP = 92

STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de; }
  text { font-family: -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; font-size: 11px; fill: #1f2328; }
  .title { font-size: 16px; font-weight: 600; }
  .group { font-size: 13px; font-weight: 600; }
  .quiet { fill: #59636e; }
  .label { text-anchor: end; }
  .tick { text-anchor: middle; fill: #59636e; }
  .grid { stroke: #d8dee4; stroke-width: 1; }
  .one { stroke: #1f2328; stroke-width: 1.5; }
  .faster { fill: #2f81c7; }
  .slower { fill: #d9602b; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #3d444d; }
    text { fill: #e6edf3; }
    .quiet, .tick { fill: #9198a1; }
    .grid { stroke: #2a313c; }
    .one { stroke: #e6edf3; }
    .faster { fill: #4493f8; }
    .slower { fill: #f0883e; }
  }
"""


def x_of(ratio: float) -> float:
    share = math.log(ratio / LOW) / math.log(HIGH / LOW)
    return LEFT + share * (RIGHT - LEFT)


def number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def text(x: float, y: float, content: str, kind: str = "") -> str:
    shown = f' class="{kind}"' if kind else ""
    return f'<text{shown} x="{number(x)}" y="{number(y)}">{escape(content)}</text>'


def rect(kind: str, x: float, y: float, width: float, height: float, more: str = "") -> str:
    return (f'<rect class="{kind}" x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}"{more}/>')


def line(kind: str, x: float, top: float, bottom: float) -> str:
    return f'<line class="{kind}" x1="{number(x)}" x2="{number(x)}" y1="{number(top)}" y2="{number(bottom)}"/>'


def bar(row: Row, y: float) -> List[str]:
    one, end = x_of(1.0), x_of(min(max(row.ratio, LOW), HIGH))
    kind = "slower" if row.slower else "faster"
    middle = y + BAR - 1.5
    value = f"{row.ratio:.2f}"
    shapes = [text(LEFT - 10, middle, row.workload, "label"),
              rect(kind, min(one, end), y, max(abs(end - one), 1.0), BAR)]
    if row.ratio >= 1:
        return shapes + [text(max(end, one) + 4, middle, value)]
    return shapes + [text(end - 4, middle, value, "label")]


def chart(rows: List[Row]) -> str:
    groups = [(name, [row for row in rows if row.group == name and row.ratio is not None]) for name in GROUPS]
    groups = [(name, found) for name, found in groups if found]
    bottom = TOP + sum(HEADER + ROW * len(found) for _, found in groups)
    height = bottom + 34
    ticks = [2.0 ** power for power in range(-4, 4)]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
             f'height="{height}" role="img">',
             "<title>Time of heddle divided by the time of the fastest other library</title>",
             f"<style>{STYLE}</style>",
             rect("card", 0.5, 0.5, WIDTH - 1, height - 1, ' rx="8"'),
             text(24, 32, "Time of heddle divided by the time of the fastest other library", "title"),
             text(24, 52, "Logarithmic axis. docs/benchmarks.md has the times, libraries and dates.", "quiet"),
             rect("faster", LEFT + 170, 43, 11, 11), text(LEFT + 186, 52, "heddle is faster or equal"),
             rect("slower", LEFT + 340, 43, 11, 11), text(LEFT + 356, 52, "heddle is slower")]
    for tick in ticks:
        label = "1.0" if tick == 1 else f"{tick:g}" if tick > 1 else f"1/{1 / tick:g}"
        if tick != 1:
            parts.append(line("grid", x_of(tick), TOP - 8, bottom + 4))
        parts += [text(x_of(tick), TOP - 13, label, "tick"), text(x_of(tick), bottom + 19, label, "tick")]
    y = TOP
    for name, found in groups:
        parts.append(text(24, y + HEADER - 9, name, "group"))
        y += HEADER
        for row in found:
            parts += bar(row, y)
            y += ROW
    parts.append(line("one", x_of(1.0), TOP - 8, bottom + 4))
    return "\n".join(parts + ["</svg>"]) + "\n"
