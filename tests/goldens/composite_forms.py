"""Variants of losses, matrix products and attention: weights, probabilities, shared heads, broadcasting."""
import torch
import torch.nn.functional as F

from common import DTYPES
from composites import grads, randn, wide_grads

HOW = {"ulps": 8, "sums": True}


def linears(g):
    for dtype in ("f32", "bf16"):
        x, w = randn(2, 3, 4).to(DTYPES[dtype]), randn(4).to(DTYPES[dtype])
        g.case("linear(%x0, %x1)", [x, w], F.linear(x, w), **HOW)
        g.case("linear(%x0, %x1)", [w, w], F.linear(w, w), **HOW)
        wide = randn(5, 4).to(DTYPES[dtype])
        for bias in (randn(1), torch.tensor(0.5)):
            g.case("linear(%x0, %x1, %x2)", [x, wide, bias.to(x.dtype)],
                   F.linear(x.float(), wide.float(), bias.to(x.dtype).float()).to(x.dtype), **HOW)


def squares(g):
    a, row, column = randn(3, 4), randn(4), randn(3, 1)
    for reduction in ("mean", "sum", "none"):
        for b in (row, column, torch.tensor(0.25), a.double()):
            g.case(f"mse_loss(%x0, %x1, reduction={reduction})", [a, b], F.mse_loss(a, b, reduction=reduction), **HOW)
    g.case("mse_loss(%x0, %x1)", [row, a], F.mse_loss(row, a), **HOW)


def entropy(g, logits, target, weight, options):
    """Adds cases of the forward and the backward of cross_entropy, computed in f32 or wider and rounded once."""
    x = logits
    arguments = [x, target] + ([] if weight is None else [weight])
    names = "".join(f", %x{i}" for i in range(1, len(arguments)))
    text = "".join(f", {key}={value}" for key, value in options.items())
    half = x.dtype == torch.bfloat16

    def loss(t):
        y, w = target, weight
        if half:
            y = y.float() if y.is_floating_point() else y
            w = None if w is None else w.float()
        return F.cross_entropy(t, y, weight=w, **options)

    value = loss(x.float()).to(x.dtype) if half else loss(x)
    g.case(f"cross_entropy(%x0{names}{text})", arguments, value, **HOW)
    dy = randn(value.shape).to(x.dtype)
    back = wide_grads if half else grads
    shifted = "".join(f", %x{i}" for i in range(2, len(arguments) + 1))
    g.case(f"cross_entropy_backward(%x0, %x1{shifted}{text})", [dy] + arguments, back(loss, [x], dy), **HOW)


def entropies(g):
    shapes = ((randn(5, 4) * 3, torch.tensor([0, 3, 1, 1, 2])),
              (randn(2, 3, 4), torch.tensor([[0, 2, 1, -100], [2, -100, 0, 0]])), (randn(4), torch.tensor(2)))
    for dtype in ("f32", "f64", "bf16"):
        for logits, target in shapes if dtype == "f32" else shapes[1:2]:
            x = logits.to(DTYPES[dtype])
            weight = (torch.rand(x.shape[0 if x.dim() == 1 else 1]) + 0.5).to(x.dtype)
            chances = torch.softmax(randn(*x.shape), 0 if x.dim() == 1 else 1).to(x.dtype)
            for reduction in ("mean", "sum", "none") if dtype == "f32" else ("mean",):
                for smoothing in (0.0, 0.25):
                    options = {"reduction": reduction}
                    if smoothing:
                        options["label_smoothing"] = smoothing
                    g.reference = dtype == "f64"
                    entropy(g, x, target, weight, options)
                    g.reference = dtype != "f32"
                    entropy(g, x, chances, None, options)
                    entropy(g, x, chances, weight, options)
    g.reference = False
    x, weight = randn(4, 3), torch.rand(3) + 0.5
    entropy(g, x, torch.tensor([0, 1, 2, 1]), weight, {"ignore_index": 1, "reduction": "mean"})
    entropy(g, x, torch.tensor([0, 1, 2, 1]), weight, {"ignore_index": 1, "label_smoothing": 0.1, "reduction": "sum"})
    entropy(g, x, torch.ones(4, 3), None, {"reduction": "mean"})  # these probabilities do not sum to 1


def attends(g, q, k, v, options, text, mask=None):
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    function = lambda a, b, c: F.scaled_dot_product_attention(a, b, c, mask if mask is None or mask.dtype == torch.bool
                                                              else mask.to(a.dtype), **options)
    exact = function(q.to(wide), k.to(wide), v.to(wide)).to(q.dtype)
    masks = [] if mask is None else [mask]
    name = ", %x3" if masks else ""
    how = {"ulps": 16, "sums": True}
    g.case(f"scaled_dot_product_attention(%x0, %x1, %x2{name}{text})", [q, k, v] + masks, exact, **how)
    dy = randn(*exact.shape).to(q.dtype)
    back = wide_grads if q.dtype == torch.bfloat16 else grads
    name = ", %x4" if masks else ""
    g.case(f"scaled_dot_product_attention_backward(%x0, %x1, %x2, %x3{name}{text})", [dy, q, k, v] + masks,
           back(function, [q, k, v], dy), **how)


def attention(g):
    shared = {"enable_gqa": True}
    for dtype in ("f32", "bf16"):
        q, k, v = (randn(*s).to(DTYPES[dtype]) for s in ((2, 6, 4, 5), (2, 2, 3, 5), (2, 2, 3, 2)))
        attends(g, q, k, v, shared, ", gqa=true")
        g.reference = dtype == "bf16"
        attends(g, q, k, v, {**shared, "is_causal": True}, ", causal=true, gqa=true")
        attends(g, q, k, v, shared, ", gqa=true", torch.rand(4, 3) < 0.7)
        g.reference = False
    q = randn(2, 6, 4, 5)
    attends(g, q[:, :2], randn(1, 1, 3, 5), randn(1, 1, 3, 2), {}, "")
    attends(g, q[:, :2], randn(3, 5), randn(3, 2), {}, "")
    attends(g, q[0, 0], randn(2, 3, 5), randn(2, 3, 2), {}, "")
    attends(g, q, randn(1, 3, 3, 5), randn(1, 3, 3, 2), shared, ", gqa=true", randn(6, 4, 3))
    attends(g, q[0], randn(1, 3, 5), randn(1, 3, 2), shared, ", gqa=true")


def fill(g):
    torch.manual_seed(6)
    linears(g)
    squares(g)
    entropies(g)
    attention(g)
