"""matmul and linear: types, batches that broadcast, operands that are views, bias, activations, empty and 1-d operands.

heddle rounds a result once, after the activation. The expected values are therefore computed in f64 and rounded here.
"""
import torch

from common import DTYPES

FLOATS = ("f64", "f32", "f16", "bf16")
INTS = ("i64", "i32", "i8", "u8")
PAIRS = [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (2, 4, 5)),
         ((2, 3, 4), (1, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)),
         ((5, 1, 1, 3), (2, 3, 2)), ((1, 1), (1, 1)),
         ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)),
         ((3, 0), (0, 2)), ((0, 4), (4, 2)), ((3, 4), (4, 0)), ((0, 3, 4), (4, 2)), ((2, 3, 0), (0, 5)),
         ((0,), (0,)), ((2, 3, 0), (0,))]
LINEAR = [((3, 4), (5, 4)), ((2, 3, 4), (5, 4)), ((4,), (5, 4)), ((0, 4), (5, 4)), ((3, 0), (2, 0)),
          ((3, 4), (0, 4)), ((2, 1, 3, 4), (1, 4))]
ACTIVATIONS = {"none": lambda t: t, "relu": torch.relu,
               "gelu_tanh": lambda t: torch.nn.functional.gelu(t, approximate="tanh")}


def values(shape, dtype):
    """Returns multiples of 1/8 in [-2, 2], or small integers. Sums of their products are exact in any order."""
    if dtype in INTS:
        return torch.randint(0 if dtype == "u8" else -5, 6, shape).to(DTYPES[dtype])
    return (torch.randint(-16, 17, shape) / 8).to(DTYPES[dtype])


def wide(x):
    return x.double() if x.dtype.is_floating_point else x


def shapes(g):
    for dtype in FLOATS + INTS:
        for a, b in PAIRS:
            x, y = values(a, dtype), values(b, dtype)
            g.case("matmul(%x0, %x1)", [x, y], torch.matmul(wide(x), wide(y)).to(x.dtype))
        for a, w in LINEAR:
            x, y, bias = values(a, dtype), values(w, dtype), values(w[:1], dtype)
            product = torch.matmul(wide(x), wide(y).mT)
            g.case("linear(%x0, %x1)", [x, y], product.to(x.dtype))
            g.case("linear(%x0, %x1, %x2)", [x, y, bias], (product + wide(bias)).to(x.dtype))


def activations(g):
    for dtype in FLOATS:
        for name, function in ACTIVATIONS.items():
            x, y, bias = values((3, 4), dtype), values((4, 5), dtype), values((5,), dtype)
            g.case(f"matmul(%x0, %x1, activation={name})", [x, y],
                   function(wide(x) @ wide(y)).to(x.dtype), sums=True)
            g.case(f"linear(%x0, %x1, %x2, activation={name})", [x, y.mT.contiguous(), bias],
                   function(wide(x) @ wide(y) + wide(bias)).to(x.dtype), sums=True)
            empty, none = values((3, 0), dtype), values((5, 0), dtype)
            g.case(f"linear(%x0, %x1, %x2, activation={name})", [empty, none, bias],
                   function(wide(bias)).to(x.dtype).expand(3, 5), sums=True)
    for dtype in INTS:
        x, y = values((3, 4), dtype), values((4, 5), dtype)
        g.case("matmul(%x0, %x1, activation=relu)", [x, y], torch.relu(x @ y))
    torch.manual_seed(7)
    x, y = torch.randn(3, 40), torch.randn(40, 5)
    g.case("matmul(%x0, %x1)", [x, y], x @ y, sums=True)


def views(g):
    for dtype in FLOATS + ("i64",):
        x, y = values((3, 4), dtype), values((4, 5), dtype)
        product = torch.matmul(wide(x), wide(y)).to(x.dtype)
        turned, other = x.mT.contiguous(), y.mT.contiguous()
        swap = "permute({}, axes=[1, 0])".format
        g.case("matmul(%t0, %x1)", [turned, y], product, setup=[f"%t0 = {swap('%x0')}"])
        g.case("matmul(%x0, %t0)", [x, other], product, setup=[f"%t0 = {swap('%x1')}"])
        g.case("matmul(%t0, %t1)", [turned, other], product,
               setup=[f"%t0 = {swap('%x0')}", f"%t1 = {swap('%x1')}"])
        g.case("linear(%x0, %t0)", [x, y], product, setup=[f"%t0 = {swap('%x1')}"])
        a, b = values((2, 4, 3), dtype), values((5, 2, 4), dtype)
        g.case("matmul(%t0, %t1)", [a, b],
               torch.matmul(wide(a).permute(0, 2, 1), wide(b).permute(1, 2, 0)).to(a.dtype),
               setup=["%t0 = permute(%x0, axes=[0, 2, 1])", "%t1 = permute(%x1, axes=[1, 2, 0])"])
        long, tall = values((3, 8), dtype), values((9, 5), dtype)
        g.case("matmul(%t0, %t1)", [long, tall],
               torch.matmul(wide(long)[:, ::2], wide(tall)[1:8:2]).to(long.dtype),
               setup=["%t0 = slice(%x0, starts=[0, 0], stops=[3, 8], steps=[1, 2])",
                      "%t1 = slice(%x1, starts=[1, 0], stops=[8, 5], steps=[2, 1])"])
        one, rows = values((1, 4, 5), dtype), values((2, 3, 4), dtype)
        g.case("matmul(%x0, %t0)", [rows, one], torch.matmul(wide(rows), wide(one)).to(one.dtype),
               setup=["%t0 = expand(%x1, sizes=[2, 4, 5])"])
        flat = values((1, 4), dtype)
        g.case("matmul(%t0, %x1)", [flat, y], torch.matmul(wide(flat).expand(3, 4), wide(y)).to(y.dtype),
               setup=["%t0 = expand(%x0, sizes=[3, 4])"])


def wraps(g):
    for dtype, big in (("i64", 2**62), ("i32", 2**30), ("i8", 100), ("u8", 200)):
        x = torch.tensor([[big, 3], [2, 1]], dtype=DTYPES[dtype])
        y = torch.tensor([[3, 2], [big, 5]], dtype=DTYPES[dtype])
        g.case("matmul(%x0, %x1)", [x, y], torch.matmul(x, y))


def float8(g):
    """Matrix products of one or two f8 types. The result has a wider type, or the type of both operands. Sums are exact
    before they are rounded."""
    for a, b, result in (("f8e4m3", "f8e4m3", "f32"), ("f8e4m3", "f8e5m2", "bf16"), ("f8e5m2", "f8e4m3", "f16"),
                         ("f8e5m2", "f8e5m2", "bf16"), ("f8e4m3", "f8e4m3", None), ("f8e5m2", "f8e5m2", None)):
        to, attr = DTYPES[result or a], f", dtype={result}" if result else ""
        x, y, bias = values((2, 3, 20), a), values((20, 5), b), values((5,), result or a)
        product = torch.matmul(wide(x), wide(y))
        g.case(f"matmul(%x0, %x1{attr})", [x, y], product.to(to))
        g.case(f"linear(%x0, %t0, %x2{attr}, activation=relu)", [x, y, bias],
               torch.relu(product + wide(bias)).to(to), setup=["%t0 = permute(%x1, axes=[1, 0])"])
    x, w = values((16, 32), "f8e4m3"), values((16, 32), "f8e5m2")
    g.case("linear(%x0, %x1, dtype=f32)", [x, w], (wide(x) @ wide(w).mT).float())


def fill(g):
    torch.manual_seed(3)
    shapes(g)
    activations(g)
    views(g)
    wraps(g)
    float8(g)
