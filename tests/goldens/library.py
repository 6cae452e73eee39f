"""cumsum, argsort, scatter and scatter_add."""
import torch

from common import DTYPES, INF, NAN, values_of

TYPES = ("f64", "f32", "bf16", "i64", "bool")
FLOATS = ("f64", "f32", "bf16", "f16")
OTHERS = ("f16", "i32", "i8", "u8")  # each kind of op has few cases of these types
F8 = ("f8e4m3", "f8e5m2")  # f8 is only moved


def scans(g):
    for dtype in TYPES:
        x = values_of(dtype)
        small = torch.tensor([1, 2, 0, 3, 1, 1, 0, 5, 1, 0, 2, 2]).to(DTYPES[dtype])
        cube = small.reshape(2, 3, 2)
        for axis in (0, 1, -1):
            g.case(f"cumsum(%x0, axis={axis})", [cube], torch.cumsum(cube, axis))
            for flag in (False, True):
                order = torch.argsort(cube, dim=axis, descending=flag, stable=True)
                g.case(f"argsort(%x0, axis={axis}, descending={str(flag).lower()})", [cube], order)
        for flag in (False, True):
            order = torch.argsort(x, dim=0, descending=flag, stable=True)
            g.case(f"argsort(%x0, axis=0, descending={str(flag).lower()})", [x], order)
            g.case(f"argsort(%x0, axis=0, descending={str(flag).lower()}, first=5)", [x],
                   order[:5])
        for shape, axis in (((0,), 0), ((3, 0), 0), ((3, 0), 1), ((1,), 0)):
            empty = torch.ones(shape).to(DTYPES[dtype])
            g.case(f"cumsum(%x0, axis={axis})", [empty], torch.cumsum(empty, axis))
            order = torch.argsort(empty, dim=axis, stable=True)
            g.case(f"argsort(%x0, axis={axis})", [empty], order)
    for dtype in FLOATS:
        for edge in ([1.0, INF, 2.0, -INF, 3.0], [1.0, NAN, 2.0], [-0.0, -0.0], [-INF, 1.0]):
            x = torch.tensor(edge, dtype=DTYPES[dtype])
            g.case("cumsum(%x0, axis=0)", [x], torch.cumsum(x, 0))
    wraps = torch.tensor([2**63 - 1, 1, -5])
    g.case("cumsum(%x0, axis=0)", [wraps], torch.cumsum(wraps, 0))


def other_scans(g):
    for dtype in OTHERS:
        x = values_of(dtype)
        if dtype != "f16":  # scans() covers cumsum of floats
            g.case("cumsum(%x0, axis=0)", [x], torch.cumsum(x, 0))
        for flag in (False, True):
            order = torch.argsort(x, dim=0, descending=flag, stable=True)
            g.case(f"argsort(%x0, axis=0, descending={str(flag).lower()})", [x], order)
        cube = torch.tensor([1, 2, 0, 3, 1, 1, 0, 5, 1, 0, 2, 2]).to(DTYPES[dtype]).reshape(2, 3, 2)
        g.case("cumsum(%x0, axis=1)", [cube], torch.cumsum(cube, 1))
        g.case("argsort(%x0, axis=1)", [cube], torch.argsort(cube, dim=1, stable=True))


def other_scatters(g):
    index = torch.tensor([[0, 2, 1], [1, 2, 0], [3, 3, 3], [0, 0, 0], [2, 1, 1]])
    once = torch.tensor([[2, 0, 1], [0, 3, 3]])
    for dtype in OTHERS + F8:
        value = torch.arange(12).reshape(4, 3).to(DTYPES[dtype])
        source = (torch.arange(15).reshape(5, 3) % 7).to(DTYPES[dtype])
        put = bits(value).scatter(0, once, bits(source[:2])).view(value.dtype)
        for at in (once, once.to(torch.int32)):
            g.case("scatter(%x0, %x1, %x2, axis=0)", [value, at, source[:2]], put)
        if dtype in F8:
            continue
        for at in (index, index.to(torch.int32)):
            g.case("scatter_add(%x0, %x1, %x2, axis=0)", [value, at, source],
                   value.scatter_add(0, index, source))
        if dtype != "f16":
            ends = torch.iinfo(DTYPES[dtype])
            value = torch.tensor([ends.max, ends.min, ends.max], dtype=DTYPES[dtype])
            at = torch.tensor([0, 1, 2, 2])
            source = torch.tensor([1, ends.max, ends.max, 3], dtype=DTYPES[dtype])
            g.case("scatter_add(%x0, %x1, %x2, axis=0)", [value, at, source],
                   value.scatter_add(0, at, source))


def bits(x):
    """Returns the bits of f8 as u8, because PyTorch cannot scatter f8."""
    return x.view(torch.uint8) if x.element_size() == 1 else x


def scatters(g):
    index = torch.tensor([[0, 2, 1], [1, 2, 0], [3, 3, 3], [0, 0, 0], [2, 1, 1]])
    rows = index[:, :1]
    for dtype in TYPES:
        value = torch.arange(12).reshape(4, 3).to(DTYPES[dtype])
        source = (torch.arange(15).reshape(5, 3) % 7).to(DTYPES[dtype])
        once = torch.tensor([[2, 0, 1], [0, 3, 3]])
        g.case("scatter(%x0, %x1, %x2, axis=0)", [value, once, source[:2]],
               value.scatter(0, once, source[:2]))
        g.case("scatter(%x0, %x1, %x2, axis=-1)",
               [value, torch.tensor([[2, 0], [1, 2], [0, 1], [1, 0]]), source[:4, :2]],
               value.scatter(1, torch.tensor([[2, 0], [1, 2], [0, 1], [1, 0]]), source[:4, :2]))
        g.case("scatter_add(%x0, %x1, %x2, axis=0)", [value, index, source],
               value.scatter_add(0, index, source))
        # All elements of a row have the same index, as in the gradient of an embedding.
        g.case("scatter_add(%x0, %x1, %x2, axis=0, stretch=true)", [value, rows, source],
               value.index_add(0, rows[:, 0], source))
        g.case("scatter_add(%x0, %x1, %x2, axis=0)", [value, index[:0], source[:0]],
               value.scatter_add(0, index[:0], source[:0]))
    for dtype in FLOATS:
        value = torch.tensor([0.0, -0.0, INF, 1.0], dtype=DTYPES[dtype])
        at = torch.tensor([0, 1, 2, 3])
        source = torch.tensor([NAN, -0.0, -INF, INF], dtype=DTYPES[dtype])
        for op in ("scatter", "scatter_add"):
            g.case(f"{op}(%x0, %x1, %x2, axis=0)", [value, at, source],
                   getattr(value, op)(0, at, source))


def fill(g):
    scans(g)
    scatters(g)
    other_scans(g)
    other_scatters(g)
