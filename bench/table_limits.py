"""Computes the fraction of a hardware limit that a result of heddle reaches.

The limit of a workload is the least time that the hardware needs for it. The fraction is this time divided by heddle's
time. The limit is:
- for a kernel, a matrix product or an MLP: the larger one of the time to move its bytes and the time to compute its
  matrix products
- for a collective: the time to send its bytes over NVLink
- for a collective beside matrix products: the time of the matrix products alone
"""
from typing import Optional, Tuple

COPY_GB_S = 4256.4  # the fastest device copy seen on an H200: bench/results/peers-nvidia-h200_2026-11-20.json
PEAK_TFLOP_S = 989.0  # dense bf16 matrix products of an H200, from its data sheet
NVLINK_GB_S = 450.0  # of one H200 in one direction, from its data sheet
NVLINK_FROM_BYTES = 16 << 20  # smaller collectives are limited by latency, not by bandwidth

HIDDEN = 8192
FEATURES = 28672

COPY = "copy bandwidth"
PEAK = "matmul peak"
NVLINK = "NVLink"
HOST_COPY = "copy on the CPU"
PRODUCTS = "products alone"

# Bytes of operands and result, for matrix products whose time memory limits.
MATMUL_BYTES = {
    "matmul bf16 [16, 2048, 128] x [16, 128, 2048]": 16 * 2 * (2 * 2048 * 128 + 2048 * 2048),
    "matmul bf16 [16, 2048, 2048] x [16, 2048, 128]": 16 * 2 * (2 * 2048 * 128 + 2048 * 2048),
}

# Weights of a transformer block: four of attention, two of the MLP.
BLOCKS = {
    "transformer block, forward and backward": 4 * HIDDEN * HIDDEN + 2 * HIDDEN * FEATURES,
    "transformer block, forward and backward, hidden 4096": 4 * 4096 * 4096 + 2 * 4096 * 16384,
}

Limit = Tuple[float, float, str]  # from, to: fractions, equal unless a range was recorded; name of the limit


def matmul_ms(flops: float, gpus: int = 1) -> float:
    return flops / gpus / (PEAK_TFLOP_S * 1e12) * 1e3


def copy_ms(count: float) -> float:
    return count / (COPY_GB_S * 1e9) * 1e3


def one(fraction: float, name: str) -> Limit:
    return fraction, fraction, name


def mlp_limit(result: dict) -> Limit:
    tokens = result.get("batch", 1) * result["tokens"]
    features = result.get("features", FEATURES)
    gpus = result["gpus"]
    products = matmul_ms(4.0 * tokens * HIDDEN * features, gpus)
    weights = copy_ms(2.0 * 2 * HIDDEN * features / gpus)
    return one(max(products, weights) / result["gpu_ms"], PEAK if products > weights else COPY)


def collective_limit(result: dict) -> Optional[Limit]:
    if result["bytes"] < NVLINK_FROM_BYTES:
        return None
    gpus = result["gpus"]
    sent = result["bytes"] * (gpus - 1) / gpus * (2 if result["name"] == "allreduce" else 1)
    return one(sent / (NVLINK_GB_S * 1e3) / result["gpu_us"], NVLINK)


def limit_of(result: dict) -> Optional[Limit]:
    """Returns None if no limit is known for the result."""
    name = result["name"]
    if name.startswith(("tp_mlp", "sp_mlp")):
        return mlp_limit(result)
    if name in BLOCKS:
        # Forward and backward: three matrix products with each weight, 2 operations per weight and token.
        flops = 6.0 * result["tokens"] * BLOCKS[name]
        return one(matmul_ms(flops, result["gpus"]) / result["gpu_ms"], PEAK)
    if "nccl_us" in result:
        return collective_limit(result)
    if "together_ms" in result:
        return one(result["products_ms"] / result["together_ms"], PRODUCTS)
    if "tflop_s" in result:
        products = result["tflop_s"] / PEAK_TFLOP_S
        memory = copy_ms(MATMUL_BYTES.get(name, 0)) / result["gpu_ms"]
        return one(max(products, memory), PEAK if products > memory else COPY)
    if "gb_s" in result:
        return one(result["gb_s"] / COPY_GB_S, COPY)
    if "floor_ms" in result:
        return one(result["floor_ms"] / result.get("gpu_ms", result.get("cpu_ms")),
                   HOST_COPY if "cpu_ms" in result else COPY)
    if isinstance(result.get("of_copy_bandwidth"), list):
        low, high = result["of_copy_bandwidth"]
        return low, high, COPY
    return None
