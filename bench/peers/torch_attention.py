"""The attention of bench/cuda_attention.cpp through torch.nn.functional.scaled_dot_product_attention on the same GPU,
by each backend of PyTorch's and by its own choice: one JSON object a line, with the ratio when the file holds heddle's
line.

    python3 bench/peers/torch_attention.py [BENCH.jsonl]
"""
import json

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch_matmul import heddle_times, median_ms

SIZES = (16, 32, 2048, 128)
NAME = f"causal attention bf16 {list(SIZES)}"
BACKENDS = {"its choice": None, "cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def main():
    torch.manual_seed(0)
    ours = heddle_times()
    q, k, v = (torch.randn(SIZES, device="cuda").bfloat16() for _ in range(3))

    def call():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    for label, backend in BACKENDS.items():
        if backend is None:
            ms = median_ms(call, 5)
        else:
            with sdpa_kernel(backend):
                ms = median_ms(call, 5)
        result = {
            "name": f"{NAME}, torch, {label}",
            "device": torch.cuda.get_device_name(),
            "version": torch.__version__,
            "gpu_ms": round(ms, 4),
        }
        if NAME in ours:
            result["heddle_over_torch"] = round(ours[NAME] / result["gpu_ms"], 3)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
