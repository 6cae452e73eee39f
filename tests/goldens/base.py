"""Common ops: elementwise ops, reductions, softmax and related ops, matmul."""
import torch

from common import DTYPES, INF, NAN, OTHER_BOOLS, values_of

TYPES = ("f64", "f32", "bf16", "i64", "bool")

UNARY = {"neg": torch.neg, "abs": torch.abs, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
         "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "tanh": torch.tanh, "erf": torch.erf,
         "sin": torch.sin, "cos": torch.cos, "sigmoid": torch.sigmoid,
         "silu": torch.nn.functional.silu, "relu": torch.relu, "isnan": torch.isnan,
         "logical_not": torch.logical_not}
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
          "maximum": torch.maximum, "minimum": torch.minimum, "eq": torch.eq, "ne": torch.ne,
          "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
          "logical_and": torch.logical_and, "logical_or": torch.logical_or}


def elementwise(g):
    for dtype in TYPES:
        x = values_of(dtype)
        for op, function in UNARY.items():
            g.attempt(f"{op}(%x0)", function, [x])
        for target in TYPES:
            if target in ("i64",) and dtype in ("f64", "f32", "bf16"):
                continue  # PyTorch does not define casts of values out of range
            g.case(f"cast(%x0, dtype={target})", [x], x.to(DTYPES[target]))
        for other in TYPES:
            y = values_of(other, other=True)
            for op, function in BINARY.items():
                if op == "pow" and (dtype == "i64" and other in ("i64", "bool")):
                    y = y.abs() if other == "i64" else y  # PyTorch refuses negative exponents
                g.attempt(f"{op}(%x0, %x1)", function, [x, y])
            condition = torch.tensor(OTHER_BOOLS)
            g.attempt("where(%x0, %x1, %x2)", torch.where, [condition, x, y])
    # Values half way between two bf16 numbers, to test rounding.
    halves = torch.tensor([1.00390625, 1.01171875, 3.3895314e38, -1.00390625], dtype=torch.float64)
    g.case("cast(%x0, dtype=bf16)", [halves], halves.to(torch.bfloat16))


def reductions(g):
    for dtype in TYPES:
        base = values_of(dtype)[:12].reshape(2, 3, 2)
        clean = torch.tensor([[[1, 2], [3, -4], [0, 5]], [[-2, 1], [2, 2], [7, -1]]]).to(DTYPES[dtype])
        for x in (base, clean):
            for axes in ([0], [1], [2], [0, 2], [0, 1, 2]):
                for keepdim in (False, True):
                    how = f"axes={axes}" + (", keepdim=true" if keepdim else "")
                    g.attempt(f"sum(%x0, {how})", lambda t: torch.sum(t, dim=axes, keepdim=keepdim),
                              [x], sums=True)
                    g.attempt(f"max(%x0, {how})", lambda t: torch.amax(t, dim=axes, keepdim=keepdim), [x])
                    g.attempt(f"min(%x0, {how})", lambda t: torch.amin(t, dim=axes, keepdim=keepdim), [x])
                    if len(axes) == 1:
                        g.attempt(f"prod(%x0, {how})",
                                  lambda t: torch.prod(t, dim=axes[0], keepdim=keepdim), [x])
        empty = torch.zeros((0, 3), dtype=DTYPES[dtype])
        g.attempt("sum(%x0, axes=[0])", lambda t: torch.sum(t, dim=[0]), [empty])
        g.attempt("prod(%x0, axes=[0])", lambda t: torch.prod(t, dim=0), [empty])
    nan = torch.tensor([[1.0, NAN], [-INF, -INF], [-3.0, -2.0]])
    g.case("max(%x0, axes=[1])", [nan], torch.amax(nan, dim=[1]))
    g.case("min(%x0, axes=[1])", [nan], torch.amin(nan, dim=[1]))


def composites(g):
    torch.manual_seed(0)
    x = torch.randn(3, 5)
    for axis in (-1, 0):
        g.case(f"softmax(%x0, axis={axis})", [x], torch.softmax(x, axis))
    w, b = torch.randn(5), torch.randn(5)
    g.case("layer_norm(%x0, %x1, %x2, eps=1e-05)", [x, w, b],
           torch.nn.functional.layer_norm(x, (5,), w, b, 1e-5), sums=True)
    gates = values_of("f32")[:12]
    for kind in ("none", "tanh"):
        g.case(f"gelu(%x0, approximate={kind})", [gates],
               torch.nn.functional.gelu(gates, approximate=kind), sums=True)
    up = torch.randn(12)
    g.case("swiglu(%x0, %x1)", [gates, up], torch.nn.functional.silu(gates) * up)


def matmuls(g):
    torch.manual_seed(1)
    for dtype in ("f64", "f32", "bf16"):
        for a, b in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 0), (0, 2)),
                     ((0, 4), (4, 2)), ((1, 1), (1, 1))):
            x, y = torch.randn(a).to(DTYPES[dtype]), torch.randn(b).to(DTYPES[dtype])
            g.case("matmul(%x0, %x1)", [x, y], torch.matmul(x, y), sums=True)


def fill(g):
    elementwise(g)
    reductions(g)
    composites(g)
    matmuls(g)
