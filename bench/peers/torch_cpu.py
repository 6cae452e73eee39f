"""Times the workloads of bench/cpu_workloads in PyTorch on the CPU, eager and compiled.

Prints one JSON object per line. The caller chooses the CPUs (taskset).

    python3 bench/peers/torch_cpu.py [--threads N] [--eager-only] [NAME ...]
"""
import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F

ROUNDS = 15
WARM = 3
ROWS, COLUMNS, SIDE = 8192, 4096, 2048


def rand(*sizes, dtype=torch.float32):
    return torch.randn(*sizes, dtype=dtype)


def workloads():
    """Yields the name of the file, the name of the workload, the function and its inputs."""
    x = rand(ROWS, COLUMNS)
    shape = f"f32 [{ROWS}, {COLUMNS}] on the CPU"
    yield "softmax", f"softmax {shape}", lambda x: torch.softmax(x, -1), (x,)
    yield ("layer_norm", f"layer_norm {shape}", lambda x, w, b: F.layer_norm(x, [COLUMNS], w, b, 1e-5),
           (x, rand(COLUMNS), rand(COLUMNS)))
    yield "gelu", f"gelu (tanh) {shape}", lambda x: F.gelu(x, approximate="tanh"), (x,)
    out = rand(ROWS, COLUMNS)
    yield ("transpose_add", f"transpose + add {shape}", lambda x, z, out: torch.add(x.t(), z, out=out),
           (rand(COLUMNS, ROWS), rand(ROWS, COLUMNS), out))
    yield "row_sums", f"row sums {shape}", lambda x: x.sum(1), (x,)
    yield "column_sums", f"column sums {shape}", lambda x: x.sum(0), (x,)
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        yield (f"matmul_{name}", f"matmul {name} {SIDE}^3 on the CPU", torch.matmul,
               (rand(SIDE, SIDE, dtype=dtype), rand(SIDE, SIDE, dtype=dtype)))


def median_ms(call):
    times = []
    for i in range(ROUNDS + WARM):
        begin = time.perf_counter()
        call()
        if i >= WARM:
            times.append(1e3 * (time.perf_counter() - begin))
    return round(statistics.median(times), 3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--eager-only", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    for file, name, call, inputs in workloads():
        if options.names and file not in options.names:
            continue
        result = {"name": name, "peer": "torch", "version": torch.__version__, "threads": options.threads,
                  "eager_ms": median_ms(lambda: call(*inputs))}
        if not options.eager_only:
            torch._dynamo.reset()
            compiled = torch.compile(call, dynamic=False)
            result["compile_ms"] = median_ms(lambda: compiled(*inputs))
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    with torch.no_grad():
        main()
