"""Composite ops and their gradients, computed by PyTorch's functional forms and by autograd."""
import torch
import torch.nn.functional as F

from common import DTYPES, INF, NAN


def randn(*shape):
    """Returns normal random numbers, rounded to multiples of 1/64 so that their text is short."""
    return (torch.randn(*shape) * 64).round() / 64


def grads(function, inputs, dy):
    """Returns the gradients of function(*inputs) with respect to each float input."""
    leaves = [x.detach().clone().requires_grad_() if x.dtype.is_floating_point else x for x in inputs]
    function(*leaves).backward(dy)
    return [x.grad for x in leaves if x.dtype.is_floating_point]


def wide_grads(function, inputs, dy):
    """Returns the gradients of half types as heddle computes them: in f32, and rounded once at the end."""
    exact = grads(function, [x.float() if x.dtype.is_floating_point else x for x in inputs], dy.float())
    return [e.to(dy.dtype) for e in exact]


def statistics(g):
    x = randn(2, 3, 4)
    special = torch.tensor([[1.0, NAN, 2.0], [INF, 1.0, -INF], [-INF, -INF, -INF], [1e30, 1e30, -1e30]])
    for dtype in ("f32", "f64", "bf16"):
        y = (x * 3 + 1).to(DTYPES[dtype])
        for axes, keep in ((None, False), ([1], False), ([0, -1], True), ([0, 1, 2], True)):
            how = ", ".join(([f"axes={axes}"] if axes else []) + (["keepdim=true"] if keep else []))
            with_how = f", {how}" if how else ""
            dim = axes if axes else [0, 1, 2]
            g.case(f"mean(%x0{with_how})", [y], y.mean(dim, keepdim=keep), sums=True)
            for correction in (1, 0, 2):
                c = f"{with_how}, correction={correction}"
                options = {"dim": dim, "correction": correction, "keepdim": keep}
                if dtype == "f32" or correction == 1:
                    g.case(f"var(%x0{c})", [y], torch.var(y, **options), ulps=8)
                    g.case(f"std(%x0{c})", [y], torch.std(y, **options), ulps=8)
            g.case(f"var_mean(%x0{with_how})", [y], list(torch.var_mean(y, dim, correction=1, keepdim=keep)),
                   sums=True)
            m2 = torch.var(y.double(), dim, correction=0, keepdim=keep) * (y.numel() / y.double().mean(dim).numel())
            count = torch.full_like(m2, y.numel() // m2.numel(), dtype=torch.int64)
            g.case(f"welford(%x0{with_how})", [y], [y.mean(dim, keepdim=keep), m2.to(y.dtype), count], sums=True)
            g.case(f"logsumexp(%x0{with_how})", [y], y.double().logsumexp(dim, keepdim=keep).to(y.dtype))
    g.case("mean(%x0, axes=[1])", [special], special.mean(1))
    g.case("logsumexp(%x0, axes=[1])", [special], special.logsumexp(1))
    one = torch.tensor([[3.0]])
    for correction in (0, 1, 2):
        g.case(f"var(%x0, axes=[0], correction={correction})", [one], torch.var(one, 0, correction=correction))
    empty = torch.zeros(0, 2)
    g.case("mean(%x0, axes=[0])", [empty], empty.mean(0))
    g.case("var(%x0, axes=[0])", [empty], torch.var(empty, 0))
    g.case("logsumexp(%x0, axes=[0])", [empty], empty.logsumexp(0))
    g.case("mean(%x0, axes=[1])", [empty], empty.mean(1))
    g.case("mean(%x0)", [torch.tensor(2.5)], torch.tensor(2.5))


def extremes(g):
    special = torch.tensor([[1.0, NAN, 2.0, NAN], [3.0, -INF, 3.0, INF], [-0.0, 0.0, 0.0, -0.0],
                            [INF, INF, -INF, -INF]])
    ints = torch.tensor([[1, 3, 3], [-2**62, 2**62, 0], [5, 5, 5]])
    bools = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    for x in (special, special.double(), special.bfloat16(), ints, bools):
        for axis in (0, -1):
            if x.dtype != torch.bool:
                g.case(f"argmax(%x0, axis={axis})", [x], x.argmax(axis))
                g.case(f"argmin(%x0, axis={axis}, keepdim=true)", [x], x.argmin(axis, keepdim=True))
            g.case(f"any(%x0, axes=[{axis}])", [x], x.any(axis))
            g.case(f"all(%x0, axes=[{axis}], keepdim=true)", [x], x.all(axis, keepdim=True))
            g.case(f"amax(%x0, axes=[{axis}])", [x], x.amax(axis))
            g.case(f"amin(%x0, axes=[{axis}])", [x], x.amin(axis))
        if x.dtype != torch.bool:
            g.case("argmax(%x0)", [x], x.argmax())
            g.case("argmin(%x0, keepdim=true)", [x], x.argmin(keepdim=True))
        g.case("any(%x0)", [x], x.any())
        g.case("all(%x0)", [x], x.all())
        g.case("amax(%x0)", [x], x.amax())
    empty = torch.zeros(2, 0)
    g.case("any(%x0, axes=[1])", [empty], empty.any(1))
    g.case("all(%x0, axes=[1])", [empty], empty.all(1))
    g.case("argmax(%x0, axis=0)", [empty], empty.argmax(0))
    g.case("argmax(%x0)", [torch.tensor(2.0)], torch.tensor(2.0).argmax())


def activations(g):
    x = torch.cat([randn(9), torch.tensor([0.0, -0.0, 10.0, -10.0, 30.0, -30.0, NAN])])
    dy = randn(16)
    up = randn(16)
    for dtype in ("f32", "f64", "bf16"):
        a, d, u = x.to(DTYPES[dtype]), dy.to(DTYPES[dtype]), up.to(DTYPES[dtype])
        back = wide_grads if dtype == "bf16" else grads
        for kind in ("none", "tanh"):
            g.case(f"gelu(%x0, approximate={kind})", [a], F.gelu(a, approximate=kind), sums=True)
            g.case(f"gelu_backward(%x0, %x1, approximate={kind})", [d, a],
                   back(lambda t: F.gelu(t, approximate=kind), [a], d), ulps=8, sums=True)
        g.case("silu_backward(%x0, %x1)", [d, a], back(F.silu, [a], d), ulps=8, sums=True)
        swiglu = lambda t, v: F.silu(t) * v
        g.case("swiglu_backward(%x0, %x1, %x2)", [d, a, u], back(swiglu, [a, u], d), ulps=8, sums=True)
        g.case("geglu(%x0, %x1)", [a, u], (F.gelu(a.double()) * u.double()).to(a.dtype), sums=True)
        g.case("reglu(%x0, %x1)", [a, u], F.relu(a) * u)
        pair = torch.stack([a, u], 1)
        g.case("glu(%x0, axis=1)", [pair], F.glu(pair, 1))
        g.case("glu(%x0)", [a], F.glu(a))


def softmaxes(g):
    x = randn(2, 3, 5) * 4
    special = torch.tensor([[1.0, -INF, 2.0], [INF, 1.0, 1.0], [-INF, -INF, -INF], [1.0, NAN, 0.0],
                            [1e4, -1e4, 1e4]])
    for dtype in ("f32", "f64", "bf16"):
        y = x.to(DTYPES[dtype])
        dy = randn(2, 3, 5).to(DTYPES[dtype])
        for axis in (-1, 1, 0):
            g.case(f"softmax(%x0, axis={axis})", [y], torch.softmax(y, axis), ulps=8)
            exact = torch.log_softmax(y.float() if dtype == "bf16" else y, axis).to(y.dtype)
            g.case(f"log_softmax(%x0, axis={axis})", [y], exact, ulps=8, sums=True)
            p, lp = torch.softmax(y, axis), torch.log_softmax(y, axis)
            g.case(f"softmax_backward(%x0, %x1, axis={axis})", [dy, p],
                   torch.ops.aten._softmax_backward_data(dy, p, axis, y.dtype), ulps=8, sums=True)
            g.case(f"log_softmax_backward(%x0, %x1, axis={axis})", [dy, lp],
                   torch.ops.aten._log_softmax_backward_data(dy, lp, axis, y.dtype), ulps=8, sums=True)
    for name, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
        g.case(f"{name}(%x0)", [special], function(special, -1))
    empty = torch.zeros(2, 0)
    g.case("softmax(%x0)", [empty], torch.softmax(empty, -1))
    g.case("softmax(%x0, axis=0)", [empty], torch.softmax(empty, 0))


def last_axes(g, dtype, x, dy, dims):
    shape = x.shape[-dims:]
    w, b = randn(shape).to(x.dtype), randn(shape).to(x.dtype)
    back = wide_grads if dtype == "bf16" else grads
    how = {"ulps": 8, "sums": True}
    layer = lambda t, u, v: F.layer_norm(t, shape, u, v, 1e-5)
    g.case("layer_norm(%x0, %x1, %x2)", [x, w, b], layer(x, w, b), **how)
    g.case("layer_norm(%x0, %x1, eps=0.01)", [x, w], F.layer_norm(x, shape, w, None, 1e-2), **how)
    g.case(f"layer_norm(%x0, dims={dims})", [x], F.layer_norm(x, shape), **how)
    g.case("layer_norm_backward(%x0, %x1, %x2)", [dy, x, w], back(layer, [x, w, b], dy), **how)
    g.case(f"rms_norm(%x0, dims={dims})", [x], F.rms_norm(x, shape), **how)
    g.case("rms_norm(%x0, %x1)", [x, w], F.rms_norm(x, shape, w), **how)
    rms = lambda t, u: F.rms_norm(t, shape, u, 1e-5)
    g.case("rms_norm(%x0, %x1, eps=1e-05)", [x, w], rms(x, w), **how)
    g.case("rms_norm_backward(%x0, %x1, %x2, eps=1e-05)", [dy, x, w], back(rms, [x, w], dy), **how)


def norms(g):
    how = {"ulps": 8, "sums": True}
    for dtype in ("f32", "f64", "bf16"):
        x = (randn(3, 6, 2, 4) * 2 + 1).to(DTYPES[dtype])
        dy = randn(3, 6, 2, 4).to(DTYPES[dtype])
        for dims in (1, 2):
            last_axes(g, dtype, x, dy, dims)
        w, b = randn(6).to(x.dtype), randn(6).to(x.dtype)
        for groups in (1, 3, 6):
            g.case(f"group_norm(%x0, %x1, %x2, groups={groups})", [x, w, b], F.group_norm(x, groups, w, b), **how)
        g.case("group_norm(%x0, groups=2)", [x], F.group_norm(x, 2), **how)
        for y in (x, x[:, :, 0, 0].contiguous()):
            old_mean, old_var = randn(6).to(x.dtype), torch.rand(6).to(x.dtype)
            new_mean, new_var = old_mean.clone(), old_var.clone()
            out = F.batch_norm(y, new_mean, new_var, w, b, True, 0.3, 1e-3)
            g.case("batch_norm(%x0, %x1, %x2, %x3, %x4, momentum=0.3, eps=0.001)",
                   [y, old_mean, old_var, w, b], [out, new_mean, new_var], **how)
            new_mean, new_var = old_mean.clone(), old_var.clone()
            out = F.batch_norm(y, new_mean, new_var, training=True)
            g.case("batch_norm(%x0, %x1, %x2)", [y, old_mean, old_var], [out, new_mean, new_var], **how)
        back = wide_grads if dtype == "bf16" else grads
        batch = lambda t, u, v: F.batch_norm(t, None, None, u, v, True)
        g.case("batch_norm_backward(%x0, %x1, %x2)", [dy, x, w], back(batch, [x, w, b], dy), **how)
    x = randn(4, 6).bfloat16()
    w = randn(6)
    g.case("layer_norm(%x0, %x1, %x2)", [x, w, w], F.layer_norm(x, (6,), w, w), **how)
    one = randn(6)
    g.case("layer_norm_backward(%x0, %x1, %x2)", [one, -one, w],
           grads(lambda t, u, v: F.layer_norm(t, (6,), u, v), [-one, w, w], one), **how)


def losses(g):
    how = {"ulps": 8, "sums": True}
    for dtype in ("f32", "f64", "bf16"):
        cases = ((randn(5, 4), torch.tensor([0, 3, 1, 1, 2])),
                 (randn(2, 3, 4), torch.tensor([[0, 2, 1, -100], [2, -100, 0, 0]])),
                 (randn(4), torch.tensor(2)))
        for logits, target in cases:
            x = (logits * 3).to(DTYPES[dtype])
            for reduction in ("mean", "sum", "none"):
                for smoothing in (0.0, 0.1):
                    call = f"reduction={reduction}" + (f", label_smoothing={smoothing}" if smoothing else "")
                    loss = lambda t: F.cross_entropy(t, target, reduction=reduction, label_smoothing=smoothing)
                    value = loss(x.float()).to(x.dtype) if dtype == "bf16" else loss(x)
                    g.case(f"cross_entropy(%x0, %x1, {call})", [x, target], value, **how)
                    dy = randn(value.shape).to(x.dtype)
                    back = wide_grads if dtype == "bf16" else grads
                    g.case(f"cross_entropy_backward(%x0, %x1, %x2, {call})", [dy, x, target],
                           back(loss, [x], dy), **how)
    x, target = randn(3, 2), torch.tensor([1, 1, 1])
    g.case("cross_entropy(%x0, %x1, ignore_index=1)", [x, target], F.cross_entropy(x, target, ignore_index=1))
    g.case("cross_entropy(%x0, %x1, ignore_index=1, reduction=sum)", [x, target],
           F.cross_entropy(x, target, ignore_index=1, reduction="sum"))
    masked = torch.tensor([[-INF, 1.0, 2.0], [0.0, -INF, NAN]])
    g.case("cross_entropy(%x0, %x1, reduction=none)", [masked, torch.tensor([0, 0])],
           F.cross_entropy(masked, torch.tensor([0, 0]), reduction="none"))
    none = torch.zeros(0, 3)
    g.case("cross_entropy(%x0, %x1)", [none, torch.zeros(0, dtype=torch.int64)],
           F.cross_entropy(none, torch.zeros(0, dtype=torch.int64)))
    for dtype in ("f32", "f64", "bf16"):
        a, b = randn(3, 4).to(DTYPES[dtype]), randn(3, 4).to(DTYPES[dtype])
        for reduction in ("mean", "sum", "none"):
            g.case(f"mse_loss(%x0, %x1, reduction={reduction})", [a, b],
                   F.mse_loss(a.float() if dtype == "bf16" else a, b.float() if dtype == "bf16" else b,
                              reduction=reduction).to(a.dtype), **how)


def rotated(x, cos, sin):
    low, high = x.chunk(2, -1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


def attention(g):
    how = {"ulps": 16, "sums": True}
    for dtype in ("f32", "f64", "bf16"):
        t = DTYPES[dtype]
        wide = torch.float64 if dtype == "f64" else torch.float32
        x, angle = randn(2, 3, 6).to(t), randn(3, 3)
        cos, sin = angle.cos().to(t), angle.sin().to(t)
        g.case("rope(%x0, %x1, %x2)", [x, cos, sin],
               rotated(x.to(wide), cos.to(wide), sin.to(wide)).to(t), sums=True)
        angle = (torch.arange(3.0)[:, None] * 100.0 ** (-torch.arange(3).to(wide) / 3)).to(wide)
        g.case("rope(%x0, base=100)", [x], rotated(x.to(wide), angle.cos().to(wide), angle.sin().to(wide)).to(t),
               sums=True)
        q, k, v = randn(2, 3, 4, 5).to(t), randn(2, 3, 6, 5).to(t), randn(2, 3, 6, 2).to(t)
        dy = randn(2, 3, 4, 2).to(t)
        keep = torch.rand(4, 6) < 0.6
        keep[1] = False  # this query may read no key
        bias = randn(3, 4, 6).to(t)
        for text, options in (("", {}), (", causal=true", {"is_causal": True}), (", scale=0.25", {"scale": 0.25})):
            function = lambda a, b, c: F.scaled_dot_product_attention(a, b, c, **options)
            exact = function(q.to(wide), k.to(wide), v.to(wide)).to(t)
            g.case(f"scaled_dot_product_attention(%x0, %x1, %x2{text})", [q, k, v], exact, **how)
            back = wide_grads if dtype == "bf16" else grads
            g.case(f"scaled_dot_product_attention_backward(%x0, %x1, %x2, %x3{text})", [dy, q, k, v],
                   back(function, [q, k, v], dy), **how)
        for mask in (keep, bias):
            function = lambda a, b, c: F.scaled_dot_product_attention(
                a, b, c, mask if mask.dtype == torch.bool else mask.to(a.dtype))
            exact = function(q.to(wide), k.to(wide), v.to(wide)).to(t)
            g.case("scaled_dot_product_attention(%x0, %x1, %x2, %x3)", [q, k, v, mask], exact, **how)
            g.case("scaled_dot_product_attention_backward(%x0, %x1, %x2, %x3, %x4)", [dy, q, k, v, mask],
                   wide_grads(function, [q, k, v], dy) if dtype == "bf16" else grads(function, [q, k, v], dy),
                   **how)


def overflows(g):
    """If all scores of a row are -inf without a mask, the row of the result is also 0."""
    q = torch.tensor([[-1e30, 1.0]])
    k = torch.tensor([[1e30, 1.0], [1e30, -1.0], [1e30, 0.25]])
    v = torch.arange(6.0).reshape(3, 2)
    g.case("scaled_dot_product_attention(%x0, %x1, %x2)", [q, k, v],
           F.scaled_dot_product_attention(q[None], k[None], v[None])[0])


def float16(g):
    """Adds a few cases in f16, because f16 is computed in the same way as bf16."""
    x = (randn(4, 6) * 3).half()
    w = randn(6).half()
    target = torch.tensor([0, 5, 2, 2])
    how = {"ulps": 2, "sums": True}
    g.case("mean(%x0, axes=[1])", [x], x.float().mean(1).half(), **how)
    g.case("var(%x0, axes=[1])", [x], x.float().var(1).half(), ulps=2)
    g.case("softmax(%x0)", [x], torch.softmax(x.float(), -1).half(), ulps=2)
    g.case("log_softmax(%x0)", [x], torch.log_softmax(x.float(), -1).half(), **how)
    g.case("layer_norm(%x0, %x1, %x1)", [x, w], F.layer_norm(x.float(), (6,), w.float(), w.float()).half(), **how)
    g.case("gelu(%x0)", [x], F.gelu(x.float()).half(), **how)
    g.case("cross_entropy(%x0, %x1)", [x, target], F.cross_entropy(x.float(), target).half(), **how)
    wide = F.scaled_dot_product_attention(x.float(), x.float(), x.float(), is_causal=True)
    g.case("scaled_dot_product_attention(%x0, %x0, %x0, causal=true)", [x], wide.half(), **how)


def fill(g):
    torch.manual_seed(3)
    statistics(g)
    extremes(g)
    activations(g)
    softmaxes(g)
    norms(g)
    losses(g)
    attention(g)
    overflows(g)
    float16(g)
