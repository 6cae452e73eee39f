"""Times the main example (examples/gelu_backward_bias_grad.fusion) in PyTorch, eager and compiled.

Uses the GPU on which heddle is timed. Prints one JSON object per line.

    python3 bench/peers/torch_main_example.py
"""
import json

import torch
from torch_workloads import median_ms


def gelu_backward_bias_grad(t4, t5, t6, s0, s1, s2, s3):
    t8 = 0.5 * t6
    t10 = torch.pow(t6, 3.0)
    t13 = t6 + 0.044715 * t10
    t16 = torch.tanh(0.797885 * t13)
    t18 = 1.0 + t16
    t19 = torch.sum(t4, dim=(0, 1))
    t20 = t5 * t18
    t23 = 1.0 * (t5 * t8)
    t26 = 1.0 - t16 * t16
    t30 = 1.0 * ((t23 * t26) * s3)
    t32 = (t30 * s2) * s1
    t36 = t30 + t32 * torch.pow(t6, 2.0)
    return t19, t36 + t20 * s0


def main():
    torch.manual_seed(0)
    inputs = [torch.randn(16, 512, 4096, device="cuda") for _ in range(3)]
    inputs += [1.0, 2.0, 3.0, 4.0]
    compiled = torch.compile(gelu_backward_bias_grad)
    for name, call in (("eager", gelu_backward_bias_grad), ("torch.compile", compiled)):
        print(json.dumps({
            "name": f"main example, {name}",
            "device": torch.cuda.get_device_name(),
            "version": torch.__version__,
            "gpu_ms": round(median_ms(lambda: call(*inputs), runs=30), 4),
        }))


if __name__ == "__main__":
    main()
