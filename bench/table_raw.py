"""Writes every figure in bench/results/*.json as tables, one section per run, the newest run first."""
from typing import Callable, Dict, List, Tuple

from table_runs import NOTES
from table_samples import Run, bytes_text, full_name, load_runs, workload_of

# Field of a single result -> how the table shows it.
SINGLE = {
    "gpu_ms": "{:.4f} ms on the GPU",
    "cpu_ms": "{:.4g} ms on the CPU",
    "copy_ms": "{:.4g} ms",
    "eager_ms": "eager {:.4f} ms",
    "compile_ms": "torch.compile {:.4f} ms",
    "max_autotune_ms": "max-autotune {:.4f} ms",
    "floor_ms": "floor {:.4f} ms",
    "threads": "{} threads",
    "copy_gb_s": "copy {:.0f} GB/s",
    "tflop_s": "{:.1f} TFLOP/s",
    "gb_s": "{:.0f} GB/s",
    "taken_mib": "{} MiB of device memory",
    "heddle_over_torch": "heddle ÷ PyTorch {:.3f}",
    "heddle_ns_per_launch": "{:.0f} ns per call",
    "raw_ns_per_launch": "plain loop {:.0f} ns",
    "added_ns": "added {:.0f} ns",
    "heddle_over_raw": "heddle ÷ plain loop {:.3f}",
    "ns_per_instruction": "{:.1f} ns per instruction",
    "host_us": "{:.2f} us on the host",
    "per_node_us": "{:.2f} us per node",
    "kernels": "kernels: {}",
    "one_shot_us": "one-shot {:.2f} us",
    "two_shot_us": "two-shot {:.2f} us",
    "compile_s": "compilation {:.2f} s",
}
MLP_PEER = {"eager_ms": "eager", "compile_ms": "torch.compile", "max_autotune_ms": "max-autotune",
            "async_ms": "async tensor parallelism", "compute_only_ms": "products alone"}
KERNEL_PEER = {"eager_ms": "eager", "compile_ms": "torch.compile", "max_autotune_ms": "max-autotune",
               "floor_ms": "floor", "bytes": "bytes", "compile_s": "compilation, s"}
COLLECTIVE = {"gpu_us": "heddle", "nccl_us": "NCCL", "of_nccl": "NCCL ÷ heddle", "alone_us": "heddle, alone",
              "nccl_alone_us": "NCCL, alone", "host_us": "heddle, host", "nccl_host_us": "NCCL, host"}
BESIDE = {"products_ms": "products alone, ms", "collectives_ms": "collectives alone, ms", "together_ms": "together, ms"}


def table(head: List[str], rows: List[List[str]]) -> List[str]:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)] + rows
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def decimals(field: str, value) -> str:
    return f"{value:.4f}" if field.endswith("_ms") else str(value)


def field_table(first: str, fields: Dict[str, str], results: List[dict], label: Callable[[dict], str]) -> List[str]:
    used = [key for key in fields if any(result.get(key) is not None for result in results)]
    rows = [[label(result)] + ["" if result.get(key) is None else decimals(key, result[key]) for key in used]
            for result in results]
    return table([first] + [fields[key] for key in used], rows)


def mlp_label(result: dict) -> str:
    return workload_of(result, result["name"])


def setting(result: dict) -> str:
    if "overlap" not in result:
        return "heddle"
    gelu = f"gelu {result['gelu']}, " if "gelu" in result else ""
    return f"{gelu}overlap {result['overlap']}"


def pivot(results: List[dict], row: Callable[[dict], str], column: Callable[[dict], str], first: str) -> List[str]:
    columns = list(dict.fromkeys(column(result) for result in results))
    cells: Dict[str, Dict[str, str]] = {}
    for result in results:
        host = f" ({result['host_ms']:.4f})" if "host_ms" in result else ""
        cells.setdefault(row(result), {})[column(result)] = f"{result['gpu_ms']:.4f}{host}"
    return table([first] + columns, [[name] + [found.get(key, "") for key in columns] for name, found in cells.items()])


def scaling(results: List[dict]) -> List[str]:
    """Returns one row per job that ran on several numbers of GPUs, and one column per number."""
    best: Dict[str, Dict[int, float]] = {}
    for result in results:
        times = [result[key] for key in ("gpu_ms", "eager_ms", "compile_ms", "async_ms") if result.get(key) is not None]
        if "gpus" not in result or "tokens" not in result or not times or result.get("overlap", "auto") != "auto":
            continue
        label = mlp_label(result).rsplit(", ", 1)[0] + (", PyTorch" if "peer" in result else "")
        row = best.setdefault(label, {})
        row[result["gpus"]] = min(times + [row.get(result["gpus"], float("inf"))])
    best = {label: row for label, row in best.items() if len(row) > 1}
    counts = sorted({gpus for row in best.values() for gpus in row})
    rows = [[label] + [f"{row[n]:.3f}, {row[min(row)] / row[n]:.2f}" if n in row else "" for n in counts]
            for label, row in best.items()]
    return table(["time in ms, speed-up"] + [f"{n} GPU{'s'[:n > 1]}" for n in counts], rows) if rows else []


def single_text(result: dict) -> str:
    shown = [form.format(result[key]) for key, form in SINGLE.items() if key in result]
    part = result.get("of_copy_bandwidth")
    if part is not None:
        shown.append(f"{part[0]:.0%} to {part[1]:.0%} of copy bandwidth" if isinstance(part, list)
                     else f"{part:.1%} of copy bandwidth")
    return ", ".join(shown)


def single_name(result: dict) -> str:
    version = f" ({result['version']})" if "version" in result else ""
    name = workload_of(result, result["name"]) if "gpus" in result else full_name(result["name"])
    return name + (", PyTorch" if result.get("peer") == "torch" else "") + version


def collective_label(result: dict) -> str:
    return f"{full_name(result['name'])}, {bytes_text(result['bytes'])}"


def kind_of(result: dict) -> str:
    if "nccl_us" in result:
        return "collective"
    if "together_ms" in result:
        return "beside"
    if str(result.get("overlap", "")).startswith("chunks") or result.get("overlap") == "whole":
        return "chunks"
    if "tokens" in result:
        return "mlp peer" if "peer" in result else "mlp"
    return "kernel peer" if "max_autotune_ms" in result else "single"


def tables_of(kind: str, results: List[dict]) -> List[str]:
    if kind == "collective":
        return field_table("us", COLLECTIVE, results, collective_label)
    if kind == "beside":
        return field_table("1024 rows", BESIDE, results,
                           lambda result: f"{collective_label(result)}, by {result['by'].replace('nccl', 'NCCL')}")
    if kind == "chunks":
        return pivot(results, lambda result: result["overlap"], mlp_label, "ms")
    if kind == "mlp":
        return pivot(results, mlp_label, setting, "ms")
    if kind == "mlp peer":
        return field_table("PyTorch, ms", MLP_PEER, results, mlp_label)
    if kind == "kernel peer":
        return field_table("PyTorch, ms", KERNEL_PEER, results, lambda result: result["name"])
    return table(["benchmark", "result"], [[single_name(result), single_text(result)] for result in results])


def section(run: Run) -> str:
    notes = NOTES.get(run.stem, {})
    title = f": {notes['title']}" if "title" in notes else ""
    lines = [f"### {notes.get('device', run.device)}, {run.date}{title}", ""]
    command = notes.get("command", run.command)
    not_run = command.startswith("not recorded") or "which the repository does not contain" in command
    lines += [f"Command: {command}." if not_run else f"`{command}`", ""]
    lines += [notes["remarks"], ""] if "remarks" in notes else []
    lines += scaling(run.results)
    kinds: Dict[str, List[dict]] = {}
    for result in run.results:
        kinds.setdefault(kind_of(result), []).append(result)
    for kind, results in kinds.items():
        lines += tables_of(kind, results)
    return "\n".join(lines).rstrip()


def raw_sections() -> str:
    return "\n\n".join(section(run) for run in load_runs())
