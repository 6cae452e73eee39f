"""Times the workloads of bench/workloads in PyTorch, eager and compiled, on the same GPU.

Overwrites the L2 cache before each timed call. Prints one JSON object per line.

    python3 bench/peers/torch_workloads.py [--eager-only | --max-autotune] [NAME ...]

--max-autotune also times torch.compile with this mode, without CUDA graphs.
"""
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

BF16 = torch.bfloat16


def rand(*sizes, dtype=BF16):
    return torch.randn(*sizes, device="cuda", dtype=dtype)


def norm_backward(g, x, w):
    x = x.detach().requires_grad_()
    w = w.detach().requires_grad_()
    b = torch.zeros_like(w).requires_grad_()
    mean, rstd = torch.native_layer_norm(x, [x.shape[1]], w, b, 1e-5)[1:]
    return torch.ops.aten.native_layer_norm_backward(g, x, [x.shape[1]], mean, rstd, w, b, [True, True, True])


def rope(x, cos, sin):
    a, b = x.float().chunk(2, -1)
    c, s = cos[:, None], sin[:, None]
    return torch.cat((a * c - b * s, b * c + a * s), -1).to(x.dtype)


def dropout_norm(x, c, r, w, b):
    s = F.dropout(x + c, 0.1) + r
    return F.layer_norm(s, [s.shape[1]], w, b, 1e-5), s


def batch_norm(x, m, v, g, b):
    return F.batch_norm(x, m, v, g, b, training=True)


def residual_block(x, skip, m, v, g, b):
    s = F.relu(F.batch_norm(x, m, v, g, b, training=True)) + skip
    return s, s.contiguous(memory_format=torch.channels_last)


def adam_tensors():
    shapes = ((1023, 1025), (1001,), (257, 515), (61,))
    return tuple([rand(*shapes[p % 4], dtype=torch.float32) for p in range(200)] for _ in range(4))


def adam(w, m, v, g):
    torch._foreach_mul_(m, 0.9)
    torch._foreach_add_(m, g, alpha=0.1)
    torch._foreach_mul_(v, 0.999)
    torch._foreach_addcmul_(v, g, g, value=0.001)
    scale = torch._foreach_sqrt(v)
    torch._foreach_div_(scale, 0.03)
    torch._foreach_add_(scale, 1e-8)
    torch._foreach_addcdiv_(w, m, scale, value=-0.01)


def workloads():
    """Yields the name of the workload, its function, and a function that creates the inputs."""
    for h in (1024, 4096, 8192, 16384):
        yield (f"layer_norm_{h}", lambda x, w, b: F.layer_norm(x, [x.shape[1]], w, b, 1e-5),
               lambda h=h: (rand(16384, h), rand(h), rand(h)))
        yield f"softmax_{h}", lambda x: torch.softmax(x, -1), lambda h=h: (rand(16384, h),)
    yield "adam_200", adam, adam_tensors
    yield ("rms_norm_4096", lambda x, w: F.rms_norm(x, [x.shape[1]], w, 1e-5),
           lambda: (rand(16384, 4096), rand(4096)))
    for t, h in ((2048, 50257), (8191, 4097), (65536, 257)):
        yield f"softmax_{t}x{h}", lambda x: torch.softmax(x, -1), lambda t=t, h=h: (rand(t, h),)
    yield "softmax_64x3000x333", lambda x: torch.softmax(x, 1), lambda: (rand(64, 3000, 333),)
    yield ("channel_norm", lambda x, w, b: F.layer_norm(x.mT, [x.shape[1]], w, b, 1e-5).mT,
           lambda: (rand(64, 256, 4096), rand(256), rand(256)))
    for t, h in ((8000000, 3), (128, 1048576)):
        yield (f"softmax_f32_{t}x{h}", lambda x: torch.softmax(x, -1),
               lambda t=t, h=h: (rand(t, h, dtype=torch.float32),))
    yield ("dropout_residual_norm", dropout_norm,
           lambda: (rand(16384, 4096), rand(4096), rand(16384, 4096), rand(4096), rand(4096)))
    yield ("layer_norm_backward", norm_backward,
           lambda: (rand(16384, 4096), rand(16384, 4096), rand(4096)))
    yield ("cross_entropy", F.cross_entropy,
           lambda: (rand(8192, 128256), torch.randint(128256, (8192,), device="cuda")))
    yield ("batch_norm", batch_norm, lambda: (
        rand(256, 64, 112, 112), *(torch.rand(64, device="cuda") for _ in range(4))))
    yield ("residual_block_nhwc", residual_block, lambda: (
        *(rand(256, 64, 56, 56).to(memory_format=torch.channels_last) for _ in range(2)),
        *(torch.rand(64, device="cuda") for _ in range(4))))
    yield ("group_norm", lambda x, g, b: F.group_norm(x, 32, g, b),
           lambda: (rand(64, 256, 4096), rand(256), rand(256)))
    yield ("transpose_add", lambda x, z: x.t() + z,
           lambda: (rand(16384, 16384, dtype=torch.float32), rand(16384, 16384, dtype=torch.float32)))
    yield "permute_bf16", lambda x: -x.permute(2, 0, 1).contiguous(), lambda: (rand(128, 1024, 1000),)
    for sizes, axis in (((1000003, 61), 1), ((7, 10000019), 1), ((4097, 16411), 1), ((64, 3000, 333), 1)):
        yield ("sum_" + "x".join(map(str, sizes)), lambda x, axis=axis: x.sum(axis),
               lambda sizes=sizes: (rand(*sizes, dtype=torch.float32),))
    yield "sum_flat", lambda x: x.sum(), lambda: (rand(268435456, dtype=torch.float32),)
    yield ("broadcast_add_mul", lambda x, m, k: (x + m[:, None]) * k,
           lambda: (rand(333, 517, 771), rand(517), rand(771)))
    yield ("cat_silu", lambda *x: F.silu(torch.cat(x, 1)),
           lambda: tuple(rand(16384, 2048) for _ in range(3)))
    yield ("rope", rope, lambda: (rand(8192, 32, 128), rand(8192, 64, dtype=torch.float32),
                                  rand(8192, 64, dtype=torch.float32)))
    yield "swiglu", lambda g, u: F.silu(g) * u, lambda: (rand(8192, 14336), rand(8192, 14336))
    yield ("transformer_block", transformer_block, lambda: (
        rand(4096, 4096), rand(4096, 4096), rand(4096), rand(4096), *(rand(4096, 4096) for _ in range(4)),
        rand(4096), rand(4096), rand(4096, 16384), rand(16384, 4096)))
    yield ("sum_rows_columns", lambda x: (x.sum(1), x.sum(0)),
           lambda: (rand(65536, 4096, dtype=torch.float32),))


def transformer_block(grad, *inputs):
    """Runs the block of bench/workloads/transformer_block.fusion and returns all gradients."""
    x, g1, b1, wq, wk, wv, wo, g2, b2, w1, w2 = inputs = [each.detach().requires_grad_() for each in inputs]
    tokens, hidden = x.shape

    def heads(y):
        return y.view(tokens, 32, 128).transpose(0, 1)[None]

    n1 = F.layer_norm(x, (hidden,), g1, b1)
    o = F.scaled_dot_product_attention(heads(n1 @ wq), heads(n1 @ wk), heads(n1 @ wv), is_causal=True)
    y = x + o[0].transpose(0, 1).reshape(tokens, 4096) @ wo
    n2 = F.layer_norm(y, (hidden,), g2, b2)
    z = y + F.gelu(n2 @ w1, approximate="tanh") @ w2
    return z, *torch.autograd.grad(z, inputs, grad)


def median_ms(call, flush=None, runs=20):
    """Times the call. If `flush` is a tensor, overwrites it before each call, so often that the host has enqueued the
    call before the GPU starts it. Keeps the GPU busy before the first call, because an idle GPU lowers its clock."""
    end_of_warm = time.monotonic() + 0.2
    while time.monotonic() < end_of_warm:
        if flush is not None:
            flush.zero_()
        call()
        torch.cuda.synchronize()
    times = []
    for i in range(runs + 3):
        for _ in range(0 if flush is None else 4):
            flush.zero_()
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def main():
    names = [name for name in sys.argv[1:] if not name.startswith("-")]
    torch.manual_seed(0)
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for name, call, make in workloads():
        if names and name not in names:
            continue
        inputs = make()
        torch._dynamo.reset()
        calls = {"eager": call}
        if "--eager-only" not in sys.argv:
            calls["torch.compile"] = torch.compile(call, dynamic=False)
        if "--max-autotune" in sys.argv:
            calls["torch.compile with max-autotune"] = torch.compile(
                call, dynamic=False, mode="max-autotune-no-cudagraphs")
        for kind, timed in calls.items():
            print(json.dumps({
                "name": f"{name}, {kind}",
                "device": torch.cuda.get_device_name(),
                "version": torch.__version__,
                "gpu_ms": round(median_ms(lambda: timed(*inputs), flush), 4),
            }), flush=True)


if __name__ == "__main__":
    main()
