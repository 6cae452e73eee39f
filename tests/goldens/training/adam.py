"""Writes adam.json: 50 parameters after 1,000 steps of Adam, computed with 64-bit floats.

    python3 tests/goldens/training/adam.py      # needs only Python

The update is that of torch.optim.Adam without weight decay and amsgrad (Algorithm 1 of Kingma and Ba, 2015). The
gradient of parameter p at step t is w - target + noise, so that the updates depend on all earlier ones. All inputs
are rounded to 32-bit floats, as in the test. If PyTorch is installed, the script compares its result with PyTorch's.
"""
import json
import math
import pathlib
import struct

PARAMETERS, STEPS = 50, 1000
LR, BETA1, BETA2, EPS = 1e-3, 0.9, 0.999, 1e-8


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def shape(p):
    return [p % 7 + 1, p % 5 + 3]


def start(p, i):
    return f32(math.sin(0.37 * i + p))


def target(p, i):
    return f32(0.5 * math.cos(0.11 * i - p))


def noise(p, i, t):
    return f32(0.1 * math.cos(0.7 * i + 0.3 * p + 0.05 * t))


def train(p):
    count = shape(p)[0] * shape(p)[1]
    w = [start(p, i) for i in range(count)]
    m, v = [0.0] * count, [0.0] * count
    for t in range(1, STEPS + 1):
        for i in range(count):
            g = w[i] - target(p, i) + noise(p, i, t)
            m[i] = BETA1 * m[i] + (1 - BETA1) * g
            v[i] = BETA2 * v[i] + (1 - BETA2) * g * g
            step = LR / (1 - BETA1**t)
            w[i] -= step * m[i] / (math.sqrt(v[i]) / math.sqrt(1 - BETA2**t) + EPS)
    return {"w": w, "m": m, "v": v}


def compare_with_torch(results):
    try:
        import torch
    except ImportError:
        return
    for p, result in enumerate(results):
        count = len(result["w"])
        w = torch.tensor([start(p, i) for i in range(count)], dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([w], lr=LR, betas=(BETA1, BETA2), eps=EPS)
        for t in range(1, STEPS + 1):
            offsets = [noise(p, i, t) - target(p, i) for i in range(count)]
            w.grad = w.detach() + torch.tensor(offsets, dtype=torch.float64)
            optimizer.step()
        assert torch.allclose(w.detach(), torch.tensor(result["w"], dtype=torch.float64), atol=1e-12)


def main():
    results = [train(p) for p in range(PARAMETERS)]
    compare_with_torch(results)
    rounded = [{name: [float(f"{x:.9g}") for x in values] for name, values in r.items()} for r in results]
    path = pathlib.Path(__file__).with_suffix(".json")
    lines = ",\n".join(json.dumps(r, separators=(",", ":")) for r in rounded)
    path.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
