#!/usr/bin/env python3
"""Times the MLP of bench/cuda_mlp.cpp in PyTorch: eager, torch.compile, and async tensor parallelism.

Only the sequence-parallel MLP has async tensor parallelism. Prints one JSON object per case, with the time of the
matrix products alone. The environment variable MLP_FEATURES replaces the default of 28672 features.

    torchrun --standalone --nproc-per-node N bench/peers/torch_mlp.py [TOKENS ...]
"""
import json
import os
import statistics
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.nn.functional as functional

HIDDEN, FEATURES = 8192, int(os.environ.get("MLP_FEATURES", 28672))
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def median_ms(work, runs=20, warm=5):
    for _ in range(warm):
        work()
    torch.cuda.synchronize()
    dist.barrier()
    times = []
    for _ in range(runs):
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    worst = torch.tensor([statistics.median(times)], device="cuda")
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    return worst.item()


def local(x, w1, w2):
    return functional.gelu(x @ w1, approximate="tanh") @ w2


def tensor_parallel(x, w1, w2):
    return collectives.wait_tensor(collectives.all_reduce(local(x, w1, w2), "sum", dist.group.WORLD))


def sequence_parallel(x, w1, w2):
    rows = collectives.wait_tensor(collectives.all_gather_tensor(x, 0, dist.group.WORLD))
    out = local(rows, w1, w2)
    return collectives.wait_tensor(collectives.reduce_scatter_tensor(out, "sum", 0, dist.group.WORLD))


def compiled_ms(function, arguments):
    torch._dynamo.reset()
    compiled = torch.compile(function, dynamic=False)
    return median_ms(lambda: compiled(*arguments))


def async_ms(arguments):
    """Returns the time and an empty text, or None and the reason if this PyTorch has no async tensor parallelism."""
    import torch._inductor.config as inductor
    try:
        from torch.distributed._symmetric_memory import enable_symm_mem_for_group
        enable_symm_mem_for_group(dist.group.WORLD.group_name)
        inductor._micro_pipeline_tp = True
        return compiled_ms(sequence_parallel, arguments), ""
    except Exception as error:  # This API of PyTorch is private and may throw anything.
        return None, repr(error)[:200]
    finally:
        inductor._micro_pipeline_tp = False


def main():
    torch.cuda.set_device(RANK)
    dist.init_process_group("nccl", device_id=torch.device("cuda", RANK))
    make = lambda *sizes: torch.randn(*sizes, device="cuda", dtype=torch.bfloat16) * 0.01
    w1, w2 = make(HIDDEN, FEATURES // RANKS), make(FEATURES // RANKS, HIDDEN)
    for tokens in [int(text) for text in sys.argv[1:]] or [4096, 16384]:
        for name, function, rows in (("tp_mlp", tensor_parallel, tokens),
                                     ("sp_mlp", sequence_parallel, tokens // RANKS)):
            arguments = (make(rows, HIDDEN), w1, w2)
            line = {"name": name, "peer": "torch", "tokens": tokens, "gpus": RANKS}
            with torch.no_grad():
                line["eager_ms"] = median_ms(lambda: function(*arguments))
                line["compile_ms"] = compiled_ms(function, arguments)
                if name == "sp_mlp":
                    line["async_ms"], line["async_why_not"] = async_ms(arguments)
                whole = (make(tokens, HIDDEN), w1, w2)
                line["compute_only_ms"] = median_ms(lambda: local(*whole))
            if RANK == 0:
                print(json.dumps(line), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
