"""Writes every figure in bench/results/*.json as tables, one section per run, the newest run first."""
from typing import Callable, Dict, List, Sequence

from table_compare import comparison_table, table
from table_runs import NOTES
from table_samples import PEER_FIELDS, Run, bytes_text, full_name, load_runs, workload_of

MLP_PEER = {**PEER_FIELDS, "compute_only_ms": "PyTorch, products alone"}
KERNEL_PEER = {"eager_ms": "eager", "compile_ms": "torch.compile", "max_autotune_ms": "max-autotune",
               "floor_ms": "floor", "bytes": "bytes", "compile_s": "compilation, s"}
COLLECTIVE = {"gpu_us": "heddle", "nccl_us": "NCCL", "of_nccl": "NCCL ÷ heddle", "alone_us": "heddle, alone",
              "nccl_alone_us": "NCCL, alone", "host_us": "heddle, host", "nccl_host_us": "NCCL, host"}
BESIDE = {"products_ms": "products alone", "collectives_ms": "collectives alone", "together_ms": "together"}


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


def pivot(cells: Dict[str, Dict[str, str]], first: str, last_columns: Sequence[str] = ()) -> List[str]:
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    columns.sort(key=lambda column: last_columns.index(column) if column in last_columns else -1)
    return table([first] + columns, [[name] + [row.get(key, "") for key in columns] for name, row in cells.items()])


def chunk_table(results: List[dict]) -> List[str]:
    cells: Dict[str, Dict[str, str]] = {}
    for result in results:
        name = "not split" if result["overlap"] == "whole" else result["overlap"].replace("chunks ", "")
        cells.setdefault(name, {})[mlp_label(result)] = f"{result['gpu_ms']:.4f}"
    return pivot(cells, "lengths of chunks; ms")


def mlp_table(results: List[dict]) -> List[str]:
    """Returns one row per job, with the settings of heddle and the ways of PyTorch as columns."""
    cells: Dict[str, Dict[str, str]] = {}
    for result in sorted(results, key=lambda result: "peer" in result):
        row = cells.setdefault(mlp_label(result), {})
        if "peer" in result:
            row.update({label: f"{result[key]:.4f}" for key, label in MLP_PEER.items() if result.get(key) is not None})
        else:
            host = f" ({result['host_ms']:.4f})" if "host_ms" in result else ""
            row[setting(result)] = f"{result['gpu_ms']:.4f}{host}"
    return pivot(cells, "ms", list(MLP_PEER.values()))


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
    return table(["best time in ms, speed-up"] + [f"{n} GPU{'s'[:n > 1]}" for n in counts], rows) if rows else []


def collective_label(result: dict) -> str:
    return f"{full_name(result['name'])}, {bytes_text(result['bytes'])}"


def beside_label(result: dict) -> str:
    by = {"copies": "copy engines", "nccl": "NCCL", "nccl, 16 blocks": "NCCL with 16 thread blocks"}[result["by"]]
    return f"{collective_label(result).replace(' beside matrix products', '')}, by {by}"


def kind_of(result: dict) -> str:
    if "nccl_us" in result:
        return "collective"
    if "together_ms" in result:
        return "beside"
    if str(result.get("overlap", "")).startswith("chunks") or result.get("overlap") == "whole":
        return "chunks"
    if "tokens" in result:
        return "mlp"
    return "kernel peer" if "max_autotune_ms" in result else "comparison"


def tables_of(kind: str, results: List[dict]) -> List[str]:
    if kind == "collective":
        return field_table("us", COLLECTIVE, results, collective_label)
    if kind == "beside":
        rows = ", ".join(sorted({str(result["rows"]) for result in results}))
        return field_table(f"beside products of {rows} rows; ms", BESIDE, results, beside_label)
    if kind == "chunks":
        return chunk_table(results)
    if kind == "mlp":
        return mlp_table(results)
    if kind == "kernel peer":
        return field_table("PyTorch, ms", KERNEL_PEER, results, lambda result: result["name"])
    return comparison_table(results)


def section(run: Run) -> str:
    notes = NOTES.get(run.stem, {})
    title = f": {notes['title']}" if "title" in notes else ""
    lines = [f"### {notes.get('device', run.device)}, {run.date}{title}", ""]
    command = notes.get("command", run.command)
    plain = command.startswith("not recorded") or "not in the repository" in command
    lines += [f"Command: {command}." if plain else f"`{command}`", ""]
    lines += [notes["remarks"], ""] if "remarks" in notes else []
    lines += scaling(run.results)
    kinds: Dict[str, List[dict]] = {}
    for result in run.results:
        kinds.setdefault(kind_of(result), []).append(result)
    for index, (kind, results) in enumerate(kinds.items()):
        lines += [notes["more"], ""] if index == 1 and "more" in notes else []
        lines += tables_of(kind, results)
    return "\n".join(lines).rstrip()


def raw_sections() -> str:
    return "\n\n".join(section(run) for run in load_runs())
