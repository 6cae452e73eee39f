"""Reads bench/results/*.json and turns every timed result into a Sample: one time of heddle or of a peer.
A peer is PyTorch, NCCL, or plain calls of CUDA.

A result file is {"device", "date", "command", "results": [one object per benchmark]}. Its name ends in _DATE.json.
"""
import json
import pathlib
import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

RESULTS = pathlib.Path(__file__).resolve().parent / "results"

# Facts that the command of a run states and its results omit.
OMITTED = {"2-x-nvidia-h200_2026-11-21": {"features": 7168}}

FULL_NAMES = {
    "tp_mlp": "tensor-parallel MLP",
    "sp_mlp": "sequence-parallel MLP",
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "transformer block, forward and backward": "transformer block with backward",
    "cuda dispatch": "host time of a kernel launch",
    "cuda library call": "host time of a library call",
    "dispatch launch, arguments filled": "host time of a launch, no GPU, arguments filled",
    "dispatch launch, null device": "host time of a launch, null device",
    "dispatch matmul, null device": "host time of a matrix product, null device",
    "dispatch allocate and free, null device": "host time of allocate and free, null device",
}
COLLECTIVES = ("allreduce", "allgather", "reduce_scatter", "all_to_all")

PEER_FIELDS = {
    "eager_ms": "PyTorch eager",
    "compile_ms": "torch.compile",
    "max_autotune_ms": "torch.compile with max-autotune",
    "async_ms": "PyTorch async tensor parallelism",
}
PEER_SUFFIX = re.compile(r"^(.*), (torch, .*|torch\.[a-z_]+.*|eager)$")
PEER_LABELS = {
    "eager": "PyTorch eager",
    "torch, its choice": "PyTorch, default backend",
    "torch, cuDNN": "PyTorch, cuDNN backend",
    "torch, flash": "PyTorch, flash backend",
}


@dataclass
class Run:
    stem: str
    device: str
    date: str
    command: str
    results: List[dict]

    @property
    def order(self) -> str:
        return self.stem.rsplit("_", 1)[-1]


@dataclass
class Sample:
    workload: str
    group: str
    run: Run
    result: dict
    ms: Optional[float]
    unit: str
    peers: List[Tuple[float, str]] = field(default_factory=list)  # measured alternately with this sample


def load_runs() -> List[Run]:
    """Returns all runs, newest first. Runs of one date are in alphabetical order."""
    runs = []
    for path in sorted(RESULTS.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        extra = OMITTED.get(path.stem, {})
        results = [split_name({**(extra if "tokens" in result else {}), **result}) for result in data["results"]]
        runs.append(Run(path.stem, data["device"], data["date"], data["command"], results))
    return sorted(runs, key=lambda run: run.order, reverse=True)


def split_name(result: dict) -> dict:
    """Moves sizes from the name, as in "tp_mlp, features 14336", to fields of their own."""
    match = re.match(r"^(.*), (features|batch) (\d+)$", result["name"])
    return {**result, "name": match.group(1), match.group(2): int(match.group(3))} if match else result


def bytes_text(count: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} bytes"


def gpus_text(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def full_name(name: str) -> str:
    for short, full in FULL_NAMES.items():
        if name == short or name.startswith((short + ",", short + " ")):
            name = full + name[len(short):]
            break
    return name.replace(" beside products", " beside matrix products")


def workload_of(result: dict, name: str) -> str:
    parts = [full_name(name)]
    if "features" in result:
        parts.append(f"features {result['features']}")
    if "tokens" in result:
        tokens = "1 token" if result["tokens"] == 1 else f"{result['tokens']} tokens"
        parts.append(f"{result['batch']} x {tokens}" if "batch" in result else tokens)
    if "gpus" in result:
        if "bytes" in result:
            parts.append(bytes_text(result["bytes"]))
        parts.append(gpus_text(result["gpus"]))
    return ", ".join(parts)


def group_of(result: dict, name: str) -> str:
    if "nccl_us" in result or "two_shot_us" in result:
        return "Collectives"
    if result.get("gpus", 1) > 1:
        return "Several GPUs"
    on_cpu = "cpu_ms" in result or "null device" in name or "arguments filled" in name or " on the CPU" in name
    return "CPU" if on_cpu else "One GPU"


def samples_of(run: Run) -> Tuple[List[Sample], List[Sample]]:
    """Returns the samples of heddle and those of peers. A peer's sample has its times in `peers`.

    The fields of a result determine its kind. The function tests for results of peers before it tests for results of
    heddle, because both may have the fields nccl_us and gpu_ms.
    """
    ours, theirs = [], []
    for result in run.results:
        match = PEER_SUFFIX.match(result["name"])
        name = match.group(1) if match else result["name"]

        def sample(ms, unit, peers=(), workload=None):
            return Sample(workload or workload_of(result, name), group_of(result, name), run, result, ms, unit,
                          list(peers))

        if "together_ms" in result:
            if result["by"] == "copies":
                ours.append(sample(result["together_ms"], "ms"))
            else:
                label = "NCCL" if result["by"] == "nccl" else "NCCL with 16 thread blocks"
                theirs.append(sample(None, "ms", [(result["together_ms"], label)]))
        elif "peer" in result:
            times = [(result[key], label) for key, label in PEER_FIELDS.items() if result.get(key) is not None]
            if "nccl_us" in result:
                times = [(result["nccl_us"] * 1e-3, "NCCL")]
            if times:
                theirs.append(sample(None, "ms", times))
        elif match:
            label = PEER_LABELS.get(match.group(2), match.group(2))
            theirs.append(sample(None, "ms", [(result["gpu_ms"], label)]))
        elif "nccl_us" in result:
            ours.append(sample(result["gpu_us"] * 1e-3, "us", [(result["nccl_us"] * 1e-3, "NCCL")]))
        elif "heddle_ns_per_launch" in result:
            peer = (result["raw_ns_per_launch"] * 1e-6, "plain loop of the same calls")
            ours.append(sample(result["heddle_ns_per_launch"] * 1e-6, "ns", [peer]))
        elif "ns_per_instruction" in result:
            ours.append(sample(result["ns_per_instruction"] * 1e-6, "ns"))
        elif "gpu_ms" in result or "cpu_ms" in result:
            ours.append(sample(result.get("gpu_ms", result.get("cpu_ms")), "ms"))
        elif "of_copy_bandwidth" in result:
            ours.append(sample(None, "ms"))
    return ours, theirs


def all_samples() -> Tuple[Dict[str, List[Sample]], Dict[str, List[Sample]]]:
    """Returns the samples of heddle and of peers, by workload, the newest run first."""
    ours: Dict[str, List[Sample]] = {}
    theirs: Dict[str, List[Sample]] = {}
    for run in load_runs():
        for samples, found in zip((ours, theirs), samples_of(run)):
            for sample in found:
                samples.setdefault(sample.workload, []).append(sample)
    return ours, theirs
