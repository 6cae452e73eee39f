"""Writes a table of single results: per workload, the figures of heddle and those of other libraries."""
from typing import Dict, List

from table_samples import PEER_LABELS, PEER_SUFFIX, full_name, workload_of

# Fields of a result -> how a table shows them, for heddle and for other libraries.
OURS = {
    "gpu_ms": "{:.4f} ms",
    "cpu_ms": "{:g} ms",
    "tflop_s": "{:.1f} TFLOP/s",
    "gb_s": "{:.0f} GB/s",
    "taken_mib": "{} MiB of device memory",
    "heddle_ns_per_launch": "{:.0f} ns per call",
    "added_ns": "{:+.0f} ns",
    "new_output_ns": "{:.0f} ns per run",
    "preallocated_ns": "{:.0f} ns with a preallocated output",
    "prepared_ns": "{:.0f} ns as a prepared run",
    "ns_per_instruction": "{:.1f} ns per instruction",
    "ns_per_run": "{:.0f} ns of host time per run",
    "allocations_per_run": "{:g} heap allocations",
    "us_per_plan": "{:.0f} us per plan",
    "kernels": "kernels: {}",
    "floor_ms": "floor {:g} ms",
    "copy_gb_s": "copy {:.0f} GB/s",
    "threads": "{} threads",
}
OTHERS = {
    "eager_ms": "eager {:g} ms",
    "compile_ms": "torch.compile {:g} ms",
    "raw_ns_per_launch": "plain loop {:.0f} ns per call",
    "heddle_over_raw": "ratio {:.3f}",
    "host_us": "{:.2f} us",
    "per_node_us": "{:.2f} us per node",
    "one_shot_us": "one-shot {:.2f} us",
    "two_shot_us": "two-shot {:.2f} us",
    "copy_gb_s": "{:.0f} GB/s",
    "copy_ms": "copy {:g} ms",
}


def table(head: List[str], rows: List[List[str]], numbers: bool = True) -> List[str]:
    align = "---:" if numbers else "---"
    lines = [head, ["---"] + [align] * (len(head) - 1)] + rows
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def shown(result: dict, fields: Dict[str, str]) -> List[str]:
    return [form.format(result[key]) for key, form in fields.items() if key in result]


def ours_text(result: dict) -> str:
    part = result.get("of_copy_bandwidth")
    if part is None:
        return ", ".join(shown(result, OURS))
    text = f"{part[0]:.0%} to {part[1]:.0%}" if isinstance(part, list) else f"{part:.1%}"
    return ", ".join(shown(result, OURS) + [f"{text} of copy bandwidth"])


def comparison_table(results: List[dict]) -> List[str]:
    """Returns one row per workload, with the figures of heddle and those of other libraries."""
    rows: List[List[str]] = []
    last: Dict[str, List[str]] = {}

    def row_of(name: str, new: bool) -> List[str]:
        if new or name not in last:
            last[name] = [name, "", ""]
            rows.append(last[name])
        return last[name]

    for result in results:
        match = PEER_SUFFIX.match(result["name"])
        if match:
            label = PEER_LABELS.get(match.group(2), match.group(2))
            ratio = f" (ratio {result['heddle_over_torch']:.3f})" if "heddle_over_torch" in result else ""
            found = [f"{label} {result['gpu_ms']:.4f} ms{ratio}"]
            row = row_of(full_name(match.group(1)), False)
        elif "peer" in result:
            found = shown(result, OTHERS)
            row = row_of(workload_of(result, result["name"]), False)
        else:
            found = shown(result, {key: OTHERS[key] for key in ("raw_ns_per_launch", "heddle_over_raw")})
            row = row_of(full_name(result["name"]), True)
            row[1] = ours_text(result)
        row[2] = "; ".join(([row[2]] if row[2] else []) + found)
    version = next((f" (PyTorch {result['version']})" for result in results if "version" in result), "")
    if not any(row[2] for row in rows):
        return table(["workload", "heddle"], [row[:2] for row in rows], False)
    if not any(row[1] for row in rows):
        return table(["workload", "other library"], [[row[0], row[2]] for row in rows], False)
    return table(["workload", "heddle", "other library" + version], rows, False)
