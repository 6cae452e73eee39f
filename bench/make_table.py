#!/usr/bin/env python3
"""Makes docs/benchmarks.md from bench/results/*.json, one file a run:
{"device", "date", "command", "results": [one object a benchmark, as it prints them]}.

  bench/make_table.py                                     writes docs/benchmarks.md
  bench/make_table.py --add BENCH.jsonl DEVICE DATE CMD   makes such a file of a benchmark's lines
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"

HEAD = """# Benchmarks

Made by `bench/make_table.py` from `bench/results/`. `bench/gpu.sh DIR bench` runs them all on a GPU and
leaves one JSON line a benchmark in `DIR/bench.jsonl`. Figures are written down here, not judged by any test.

- *main example*: `examples/gelu_backward_bias_grad.fusion` at its default sizes, time on the GPU. The floor is
  the time to move its inputs and outputs once at the bandwidth of a large device copy, measured beside it;
  on the CPU, of memcpy on as many threads.
- *eager*, *torch.compile*: the same fusion in PyTorch on the same device.
- *dispatch*: what the host spends on an instruction of a prepared program, and on a launch against a
  plain loop of launches of the same kernel.
- *allreduce* and its like (`bench/gpu.sh DIR multi`): a collective of a host program on several GPUs beside the same
  NCCL call made by hand. *gpu_us*, *nccl_us*: one of nine in a row; *alone_us*: a program, or one call, alone, what the host does before it
  included; *host_us*: to issue one with its wait.
- *tp_mlp*, *sp_mlp*: the MLP of a transformer with hidden size 8192, bf16, tensor and sequence parallel. *gelu*: as the epilogue of
  the first product or as an op. *batch 4*: four batches of so many tokens. *overlap*: one collective after the product (off), as the cost model says (auto), in N chunks. *host_ms*: to issue a run. The peer's: eager,
  torch.compile, and async tensor parallelism (`bench/peers/torch_mlp.py`).
- *ms, and how many times as fast*: one job on several numbers of GPUs, against the fewest. heddle's with overlap auto and the better gelu, the
  peer's the best of its ways.
- *allreduce beside products* and its like (`bench/cuda_lanes.cpp`): 16 products alone, 8 collectives alone, and all of them at once, by
  copy engines (a host program's lanes), by NCCL, and by NCCL with at most 16 thread blocks.
- *attention*: scaled_dot_product_attention through cuDNN. Its backward computes the forward again, as the op is given no result of it;
  PyTorch's keeps that. *taken_mib*: device memory that the runs took, workspace included.
- *sort*, *topk*, *scatter_add*, *embedding*, *cumsum*: the ops that work on lines or places (`bench/cuda_index.cpp`). *gb_s*: inputs and
  outputs, moved once, by the time on the GPU.
"""

# Field -> column: what is shown, and how.
COLUMNS = {
    "gpu_ms": "{:.4f} ms on the GPU",
    "cpu_ms": "{:.1f} ms on the CPU",
    "threads": "{} threads",
    "floor_ms": "floor {:.4f} ms",
    "of_copy_bandwidth": "{:.1%} of copy bandwidth",
    "copy_gb_s": "copy {:.0f} GB/s",
    "heddle_ns_per_launch": "{:.0f} ns a launch",
    "raw_ns_per_launch": "plain loop {:.0f} ns",
    "added_ns": "added {:.0f} ns",
    "ns_per_instruction": "{:.1f} ns an instruction",
    "eager_ms": "eager {:.4f} ms",
    "compile_ms": "torch.compile {:.4f} ms",
    "async_ms": "async {:.4f} ms",
    "compute_only_ms": "products alone {:.4f} ms",
}


def cells(result):
    shown = [form.format(result[field]) for field, form in COLUMNS.items() if field in result]
    known = set(COLUMNS) | {"name", "device", "version", "bytes", "tokens", "gpus", "peer", "async_why_not"}
    shown += [f"{field} {value}" for field, value in result.items() if field not in known]
    version = f" ({result['version']})" if "version" in result else ""
    return f"| {title(result)}{version} | {', '.join(shown)} |"


def title(result):
    name = result["name"] + (f", {result['peer']}" if "peer" in result else "")
    if "gpus" not in result:
        return name
    size = f"{result['tokens']} tokens" if "tokens" in result else f"{result['bytes']} bytes"
    return f"{name}, {size}, {result['gpus']} GPUs"


def scaling(results):
    """What was measured on several numbers of GPUs in one run: a column a number, against the fewest. heddle's
    with overlap auto and the better gelu, the peer's best."""
    best = {}
    for result in results:
        times = [result[field] for field in ("gpu_ms", "eager_ms", "compile_ms", "async_ms") if field in result]
        if "gpus" not in result or "tokens" not in result or not times or result.get("overlap", "auto") != "auto":
            continue
        name = f"{result['name']}, {result['tokens']} tokens" + (f", {result['peer']}" if "peer" in result else "")
        row = best.setdefault(name, {})
        row[result["gpus"]] = min(times + [row.get(result["gpus"], float("inf"))])
    best = {name: row for name, row in best.items() if len(row) > 1}
    if not best:
        return []
    counts = sorted({gpus for row in best.values() for gpus in row})
    lines = ["| ms, and how many times as fast | " + " | ".join(f"{n} GPU{'s'[:n > 1]}" for n in counts) + " |",
             "| --- |" + " --- |" * len(counts)]
    for name, row in best.items():
        first = row[min(row)]
        shown = [f"{row[n]:.3f}, {first / row[n]:.2f}" if n in row else "" for n in counts]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return lines + [""]


def table(path):
    run = json.loads(path.read_text())
    lines = [f"## {run['device']}, {run['date']}", "", f"`{run['command']}`", ""] + scaling(run["results"])
    lines += ["| benchmark | result |", "| --- | --- |"]
    return "\n".join(lines + [cells(result) for result in run["results"]])


def add(source, device, date, command):
    lines = [line for line in pathlib.Path(source).read_text().splitlines() if line.strip()]
    run = {"device": device, "date": date, "command": command,
           "results": [json.loads(line) for line in lines]}
    name = device.lower().replace(" ", "-") + "_" + date + ".json"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(json.dumps(run, indent=1) + "\n")


def main(arguments):
    if arguments[:1] == ["--add"] and len(arguments) == 5:
        add(*arguments[1:])
    elif arguments:
        sys.exit(__doc__)
    runs = sorted(RESULTS.glob("*.json"), key=lambda path: path.stem.split("_")[-1], reverse=True)
    text = "\n\n".join([HEAD.rstrip()] + [table(path) for path in runs]) + "\n"
    (ROOT / "docs" / "benchmarks.md").write_text(text)


main(sys.argv[1:])
