"""Times the matrix products of bench/cuda_matmul.cpp with torch.matmul on the same GPU.

Prints one JSON object per line. If BENCH.jsonl has heddle's time for the case, the line also has the ratio of the two
times.

    python3 bench/peers/torch_matmul.py [BENCH.jsonl]
"""
import json
import pathlib
import statistics
import sys

import torch

CASES = [
    ("matmul bf16 8192^3", (8192, 8192), (8192, 8192), 5),
    ("matmul bf16 [16, 2048, 128] x [16, 128, 2048]", (16, 2048, 128), (16, 128, 2048), 20),
    ("matmul bf16 [16, 2048, 2048] x [16, 2048, 128]", (16, 2048, 2048), (16, 2048, 128), 20),
]


def median_ms(call, repeats, rounds=30):
    """Returns milliseconds per call. Two events enclose several calls, so host time does not count."""
    times = []
    for i in range(rounds + 3):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(repeats):
            call()
        end.record()
        end.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end) / repeats)
    return statistics.median(times)


def heddle_times():
    """Returns heddle's times in ms by name, from the file named on the command line, if any."""
    if len(sys.argv) < 2:
        return {}
    lines = [line for line in pathlib.Path(sys.argv[1]).read_text().splitlines() if line.startswith("{")]
    return {each["name"]: each["gpu_ms"] for each in map(json.loads, lines) if "gpu_ms" in each}


def main():
    torch.manual_seed(0)
    ours = heddle_times()
    for name, a_sizes, b_sizes, repeats in CASES:
        a = torch.rand(a_sizes, device="cuda").mul(2).sub(1).bfloat16()
        b = torch.rand(b_sizes, device="cuda").mul(2).sub(1).bfloat16()
        result = {
            "name": f"{name}, torch.matmul",
            "device": torch.cuda.get_device_name(),
            "version": torch.__version__,
            "gpu_ms": round(median_ms(lambda: torch.matmul(a, b), repeats), 4),
        }
        if name in ours:
            result["heddle_over_torch"] = round(ours[name] / result["gpu_ms"], 3)
        print(json.dumps(result))


if __name__ == "__main__":
    main()
