"""Reductions and broadcasts of types that are narrower than the type in which sums are computed: overflow, ties, NaN."""
import torch

from common import DTYPES, INF, NAN

INTS = ("i32", "i8", "u8")
HALVES = ("f16", "bf16")

OF_INTS = [100, -100, 127, 127, 3, -128, 0, 7, 2**31 - 1, 1, -1, 5]
OF_FLOATS = [1.5, -2.25, 3.0, 100.0, 0.125, -7.0, 2048.0, 1.0, 1.0, 0.0, -0.0, 5.5]


def table(dtype):
    if dtype == "bool":
        return torch.tensor([True, False, True, True, False, False, True, False, False, True, False, False]).reshape(3, 4)
    values = OF_INTS if dtype in INTS else OF_FLOATS
    return torch.tensor(values, dtype=torch.int64 if dtype in INTS else torch.float64).to(DTYPES[dtype]).reshape(3, 4)


def reductions(g):
    for dtype in INTS + HALVES + ("bool",):
        x = table(dtype)
        how = {"ulps": 1} if dtype in HALVES else {}
        for axes in ([0], [1], [0, 1]):
            g.case(f"sum(%x0, axes={axes})", [x], torch.sum(x, axes), **how, sums=dtype in HALVES)
            g.case(f"max(%x0, axes={axes})", [x], torch.amax(x, axes))
            g.case(f"min(%x0, axes={axes}, keepdim=true)", [x], torch.amin(x, axes, keepdim=True))
            g.case(f"any(%x0, axes={axes})", [x], (torch.any(x, axes[0]) if len(axes) == 1 else torch.any(x)).bool())
            g.case(f"all(%x0, axes={axes})", [x], (torch.all(x, axes[0]) if len(axes) == 1 else torch.all(x)).bool())
            if dtype in HALVES:
                # The reduction is computed in f32 and rounded once.
                wide = x.float()
                g.case(f"mean(%x0, axes={axes})", [x], torch.mean(wide, axes).to(x.dtype), ulps=1, sums=True)
                g.case(f"var(%x0, axes={axes})", [x], torch.var(wide, axes).to(x.dtype), ulps=1)
                g.case(f"std(%x0, axes={axes}, correction=0)", [x], torch.std(wide, axes, correction=0).to(x.dtype),
                       ulps=1)
        for axis in (0, 1):
            wide = x.float() if dtype in HALVES else x
            product = torch.prod(wide, axis)
            g.case(f"prod(%x0, axes=[{axis}])", [x], product.to(x.dtype) if dtype in HALVES else product, **how)
            if dtype != "bool":
                g.case(f"argmax(%x0, axis={axis})", [x], torch.argmax(x, axis))
                g.case(f"argmin(%x0, axis={axis})", [x], torch.argmin(x, axis))
            g.case(f"cumsum(%x0, axis={axis})", [x],
                   torch.cumsum(wide, axis).to(x.dtype) if dtype in HALVES else torch.cumsum(x, axis), **how,
                   sums=dtype in HALVES)
    for dtype in HALVES:
        x = table(dtype)
        x[0, 1], x[1, 2], x[2, 0] = NAN, INF, -INF
        g.case("max(%x0, axes=[1])", [x], torch.amax(x, 1))
        g.case("sum(%x0, axes=[1])", [x], torch.sum(x, 1))
        # In the narrow type, 2048 + 1 would be rounded to 2048. The exact sum is 2144.
        ones = torch.tensor([2048.0] + [1.0] * 96, dtype=DTYPES[dtype])
        g.case("sum(%x0, axes=[0])", [ones], torch.tensor(2144.0).to(DTYPES[dtype]), ulps=0)
    g.case("sum(%x0, axes=[0])", [torch.full((3,), 65504.0).half()], torch.tensor(INF).half())


def broadcasts(g):
    for dtype in INTS + HALVES + ("bool",):
        x = table(dtype)
        row, column, point = x[1], x[:, 2:3].contiguous(), x[0, 0].clone()
        for other in (row, column, point):
            g.case("mul(%x0, %x1)", [x, other], torch.mul(x, other))
            g.case("le(%x0, %x1)", [other, x], torch.le(other, x))
        g.case("maximum(%x0, %x1)", [row, column], torch.maximum(row, column))
        g.case("where(%x2, %x0, %x1)", [row, column, column != 0], torch.where(column != 0, row, column))
        g.case("broadcast(%x0, axes=[0, 2])", [row], row[None, :, None])
        g.case("expand(%x0, sizes=[3, 4])", [column], column.expand(3, 4))


def fill(g):
    reductions(g)
    broadcasts(g)
