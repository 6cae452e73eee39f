"""Times the ops of bench/cuda_index.cpp in PyTorch on the same GPU.

Prints one JSON object per line. If BENCH.jsonl has heddle's time for the case, the line also has the ratio of the two
times.

    python3 bench/peers/torch_index.py [BENCH.jsonl]
"""
import json

import torch
from torch_matmul import heddle_times, median_ms


def normal(*sizes, dtype=torch.float32):
    return torch.randn(sizes, device="cuda", dtype=dtype)


def cases():
    """Returns the cases: name, PyTorch function, repetitions, and a function that prepares the call.

    The last function creates the inputs, so that memory holds the inputs of only one case at a time.
    """

    def of(make, call):
        def prepare():
            inputs = make()
            return lambda: call(*inputs)

        return prepare

    def scattered():
        index = torch.randint(100000, (1000000,), device="cuda")
        return torch.zeros(100000, 128, device="cuda"), index, normal(1000000, 128)

    def rows():
        return torch.randint(128256, (65536,), device="cuda"), normal(128256, 4096, dtype=torch.bfloat16)

    square = lambda: (normal(4096, 4096),)
    logits = lambda: (normal(256, 128256),)
    added = "scatter_add f32 [1000000, 128] into [100000, 128]"
    return [
        ("sort f32 [4096, 4096]", "torch.sort(stable)", 5, of(square, lambda x: torch.sort(x, stable=True))),
        ("argsort f32 [4096, 4096]", "torch.argsort(stable)", 5, of(square, lambda x: torch.argsort(x, stable=True))),
        ("sort f32 [64, 262144]", "torch.sort(stable)", 3,
         of(lambda: (normal(64, 262144),), lambda x: torch.sort(x, stable=True))),
        ("topk 8 of f32 [16384, 128]", "torch.topk", 20, of(lambda: (normal(16384, 128),), lambda x: torch.topk(x, 8))),
        ("topk 50 of f32 [256, 128256]", "torch.topk", 5, of(logits, lambda x: torch.topk(x, 50))),
        (added, "torch.scatter_add (atomic)", 5,
         of(scattered, lambda z, i, s: torch.scatter_add(z, 0, i[:, None].expand_as(s), s))),
        (added, "torch.index_add (atomic)", 5, of(scattered, lambda z, i, s: torch.index_add(z, 0, i, s))),
        ("embedding bf16 65536 of [128256, 4096]", "torch.embedding", 5, of(rows, lambda i, w: torch.embedding(w, i))),
        ("cumsum f32 [8192, 8192]", "torch.cumsum", 5, of(lambda: (normal(8192, 8192),), lambda x: torch.cumsum(x, 1))),
        ("cumsum f32 [16, 4194304]", "torch.cumsum", 5,
         of(lambda: (normal(16, 4194304),), lambda x: torch.cumsum(x, 1))),
    ]


def main():
    torch.manual_seed(0)
    ours = heddle_times()
    for name, peer, repeats, prepare in cases():
        result = {
            "name": f"{name}, {peer}",
            "device": torch.cuda.get_device_name(),
            "version": torch.__version__,
            "gpu_ms": round(median_ms(prepare(), repeats, 20), 4),
        }
        if name in ours:
            result["heddle_over_torch"] = round(ours[name] / result["gpu_ms"], 3)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
