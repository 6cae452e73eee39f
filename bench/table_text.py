"""Writes the table of ratios, the workloads on which heddle is slower, and the workloads that lack a figure."""
from typing import List

from table_rows import EQUAL, GROUPS, Row
from table_samples import COLLECTIVES, FULL_NAMES, bytes_text

# Known causes. If the cause of a row is unknown and heddle launches several kernels, the row gives their number.
CAUSES = {
    "layer_norm backward": "The kernel executes about 34 instructions per element, because it rounds after every op.",
    "layer_norm bf16": "The time of the kernel is within 8% of the time of a copy of the same bytes.",
    "rms_norm bf16": "The time of the kernel is within 8% of the time of a copy of the same bytes.",
    "softmax bf16": "The time of the kernel is within 8% of the time of a copy of the same bytes.",
    "residual block": "The kernel of the statistics reaches half of the memory bandwidth: a thread needs 78 registers, so "
                      "few threads run at the same time.",
    "main example": "heddle launches two kernels, and each of them reads its inputs from device memory.",
    "transformer block with backward, hidden 4096": "Of the 7.8 ms of all kernels, matrix products by cuBLASLt take 6.3 ms, and the backward of attention 0.9 ms. heddle's backward of attention is bitwise reproducible. PyTorch's is not.",
    "causal attention backward": "heddle computes the forward pass again. PyTorch keeps the result of the forward pass.",
    "scatter_add": "heddle adds in a fixed order, so its results are bitwise reproducible. PyTorch adds atomically.",
    "host time of a": "heddle adds its own host time to each CUDA call.",
}
UNITS = {"ms": 1.0, "us": 1e3, "ns": 1e6}


def time_text(ms: float, unit: str) -> str:
    value = ms * UNITS[unit]
    return f"{value:.0f} {unit}" if value >= 1000 else f"{value:.4g} {unit}"


def dates_text(row: Row) -> str:
    if row.two_runs:
        return f"two runs: heddle {row.ours.run.date}, other {row.peer_run.date}"
    return row.ours.run.date


def limit_text(row: Row) -> str:
    if row.limit is None:
        return "– | –"
    low, high, name = row.limit
    shown = f"{low:.0%}" if low == high else f"{100 * low:.0f}–{high:.0%}"
    return f"{shown} | {name}"


def row_text(row: Row) -> str:
    time = "–" if row.ours.ms is None else time_text(row.ours.ms, row.ours.unit)
    if row.ratio is None:
        peer = "– | – | –"
    else:
        ratio = f"**{row.ratio:.2f}**" if row.slower else f"{row.ratio:.2f}"
        peer = f"{time_text(row.peer_ms, row.ours.unit)} | {row.peer} | {ratio}"
    return f"| {row.workload} | {time} | {peer} | {limit_text(row)} | {dates_text(row)} |"


def ratio_table(rows: List[Row]) -> str:
    lines = ["| Workload | heddle | other | which other | heddle ÷ other | of the limit | limit | measured |",
             "| --- | ---: | ---: | --- | ---: | ---: | --- | --- |"]
    for group in GROUPS:
        lines.append(f"| **{group}** | | | | | | | |")
        lines += [row_text(row) for row in rows if row.group == group]
    return "\n".join(lines)


def cause_of(row: Row) -> str:
    for start, cause in CAUSES.items():
        if row.workload.startswith(start):
            return cause
    kernels = row.ours.result.get("kernels", 1)
    if kernels > 1:
        return f"heddle runs {kernels} kernels and stores intermediates in device memory."
    return "Not analysed."


def collective_lines(rows: List[Row]) -> List[str]:
    lines = []
    for kind in COLLECTIVES:
        for gpus in sorted({row.ours.result["gpus"] for row in rows}):
            found = [row for row in rows if row.ours.result["name"] == kind and row.ours.result["gpus"] == gpus]
            found.sort(key=lambda row: row.ours.result["bytes"])
            shown = [f"{bytes_text(row.ours.result['bytes'])} {row.ratio:.3f}" for row in found if row.slower]
            if shown:
                lines.append(f"- {FULL_NAMES[kind]}, {gpus} GPUs: {', '.join(shown)}")
    return lines


def span(values: List[float], form: str) -> str:
    return f"{form.format(min(values))} to {form.format(max(values))}"


def slower_list(rows: List[Row]) -> str:
    compared = [row for row in rows if row.ratio is not None]
    slower = [row for row in compared if row.slower]
    equal = [row for row in compared if abs(row.ratio - 1) < EQUAL]
    others = sorted((row for row in slower if row.group != "Collectives"), key=lambda row: -row.ratio)
    collectives = [row for row in rows if row.group == "Collectives"]
    lines = [f"heddle is slower on {len(slower)} of {len(compared)} workloads that another library also ran. "
             f"{len(slower) - len(others)} of the {len(slower)} workloads are collectives, and {len(others)} are "
             "kernels, library calls or models. The first table lists the workloads that are not collectives.", "",
             "| Workload | heddle ÷ other | Cause |", "| --- | ---: | --- |"]
    lines += [f"| {row.workload} | {row.ratio:.2f} | {cause_of(row)} |" for row in others]
    added = [row.ours.result["gpu_us"] - row.ours.result["nccl_us"] for row in collectives if row.slower]
    alone = [row.ours.result["alone_us"] / row.ours.result["nccl_alone_us"] for row in collectives]
    if added:
        lines += ["", "This list has the collectives on which heddle is slower. The number after each size is heddle's "
                  "time divided by NCCL's time.", ""] + collective_lines(collectives)
        lines += ["", f"For these collectives, heddle takes {span(added, '{:.1f}')} us longer than NCCL. A "
                  "second measurement runs one collective: once in a host program, once as an NCCL call. Both times "
                  "include host time. Over all collectives, the host program takes "
                  f"{span(alone, '{:.2f}')} times as long as the call."]
    if equal:
        names = "; ".join(row.workload for row in equal)
        lines += ["", f"The times of heddle and of the other library are equal within {EQUAL:.1%} for: {names}."]
    return "\n".join(lines)


def missing_list(rows: List[Row], peers_only: List[str]) -> str:
    no_peer = [row.workload for row in rows if row.ratio is None]
    hopper = [name for name in no_peer if name.endswith(" on an H100")]
    no_peer = [name for name in no_peer if name not in hopper]
    if hopper:
        no_peer.append(f"the {len(hopper)} workloads on an H100")
    eight = [name for name in peers_only if name.endswith(", 8 GPUs")]
    others = [name for name in peers_only if name not in eight]
    if eight:
        others.append(f"{len(eight)} collectives and MLPs on 8 GPUs")
    lines = []
    for who, names in [("heddle", no_peer), ("another library", others)]:
        if names:
            lines += [f"- For these workloads, only {who} was measured:"] + [f"  - {name}" for name in names]
    return "\n".join(lines)
