"""Times the attention of bench/cuda_attention.cpp in PyTorch on the same GPU.

Runs torch.nn.functional.scaled_dot_product_attention with the default backend, cuDNN and flash. Times its backward
alone, which reuses the result and the row sums of the forward pass. Prints one JSON object per line. If BENCH.jsonl has
heddle's time for the case, the line also has the ratio of the two times.

    python3 bench/peers/torch_attention.py [BENCH.jsonl]
"""
import contextlib
import json

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch_matmul import heddle_times, median_ms

SIZES = (16, 32, 2048, 128)
FORWARD = f"causal attention bf16 {list(SIZES)}"
BACKWARD = f"causal attention backward bf16 {list(SIZES)}"
BACKENDS = {"its choice": None, "cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def report(name, label, ms, ours):
    result = {
        "name": f"{name}, torch, {label}",
        "device": torch.cuda.get_device_name(),
        "version": torch.__version__,
        "gpu_ms": round(ms, 4),
    }
    if name in ours:
        result["heddle_over_torch"] = round(ours[name] / result["gpu_ms"], 3)
    print(json.dumps(result), flush=True)


def main():
    torch.manual_seed(0)
    ours = heddle_times()
    g, q, k, v = (torch.randn(SIZES, device="cuda").bfloat16() for _ in range(4))
    leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]

    def forward():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    for label, backend in BACKENDS.items():
        with contextlib.nullcontext() if backend is None else sdpa_kernel(backend):
            report(FORWARD, label, median_ms(forward, 5), ours)
            y = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=True)
            backward = lambda: torch.autograd.grad(y, leaves, g, retain_graph=True)
            report(BACKWARD, label, median_ms(backward, 5), ours)


if __name__ == "__main__":
    main()
