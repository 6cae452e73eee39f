"""Composite ops that move or create elements."""
import torch
import torch.nn.functional as F

from common import DTYPES, INF, NAN


def shapes(g):
    x = torch.arange(24.0).reshape(2, 3, 4) - 7
    row = torch.randn(4)
    g.case("expand_as(%x0, %x1)", [row, x], row.expand_as(x).contiguous())
    one = torch.randn(2, 1, 3, 1)
    g.case("squeeze(%x0)", [one], one.squeeze())
    g.case("squeeze(%x0, axes=[-1, 0])", [one], one.squeeze((-1, 0)))
    g.case("squeeze(%x0, axes=[0])", [one], one.squeeze(0))
    for axis in (0, 2, -1, -4):
        g.case(f"unsqueeze(%x0, axis={axis})", [x], x.unsqueeze(axis))
    g.case("transpose(%x0, axes=[0, -1])", [x], x.transpose(0, -1).contiguous())
    g.case("flatten(%x0)", [x], x.flatten())
    g.case("flatten(%x0, start_axis=1)", [x], x.flatten(1))
    g.case("flatten(%x0, start_axis=0, end_axis=-2)", [x], x.flatten(0, -2))
    g.case("flatten(%x0)", [torch.tensor(3.0)], torch.tensor(3.0).flatten())
    for start, stop, step in ((-3, None, 1), (1, -1, 1), (None, None, 2), (None, 100, 3), (-100, 2, 1),
                              (3, 1, 1), (0, 0, 1)):
        text = "".join(f", {k}={v}" for k, v in (("start", start), ("stop", stop)) if v is not None)
        g.case(f"slice_axis(%x0, axis=-1{text}, step={step})", [x], x[..., start:stop:step].contiguous())
    for axis, index in ((0, 1), (1, -1), (-1, -4)):
        g.case(f"select(%x0, axis={axis}, index={index})", [x], x.select(axis, index).contiguous())
    for shape in ("[-1]", "[4, -1]", "[2, -1, 2, 1]"):
        g.case(f"reshape(%x0, sizes={shape})", [x], x.reshape(eval(shape)))
    empty = torch.zeros(0, 3)
    g.case("reshape(%x0, sizes=[-1, 3])", [empty], empty.reshape(-1, 3))
    for repeats in ([2, 1, 3], [2, 1, 1, 2], [1, 0, 1], [1, 1, 1]):
        g.case(f"repeat(%x0, repeats={repeats})", [x], x.repeat(repeats))
    g.case("repeat(%x0, repeats=[3])", [torch.tensor(2.5)], torch.tensor(2.5).repeat(3))


def joins(g):
    a, b, c = torch.randn(2, 3), torch.randn(2, 1), torch.randn(2, 4)
    g.case("cat(%x0, %x1, %x2, axis=1)", [a, b, c], torch.cat([a, b, c], 1))
    g.case("cat(%x0, %x1, axis=-2)", [a, a], torch.cat([a, a], -2))
    g.case("cat(%x0)", [a], torch.cat([a]))
    none = torch.zeros(2, 0)
    g.case("cat(%x0, %x1, %x2, axis=1)", [none, a, none], torch.cat([none, a, none], 1))
    special = torch.tensor([[NAN, INF, -0.0], [-INF, 1.0, NAN]])
    g.case("cat(%x0, %x1)", [special, a], torch.cat([special, a]))
    for dtype in ("f64", "bf16", "i64", "bool"):
        u, v = (a * 3).to(DTYPES[dtype]), (c * 3).to(DTYPES[dtype])
        g.case("cat(%x0, %x1, axis=1)", [u, v], torch.cat([u, v], 1))
    whole = torch.tensor([[1, 2]])
    g.case("cat(%x0, %x1, axis=-1)", [whole, torch.tensor([[0.5]])],
           torch.cat([whole, torch.tensor([[0.5]])], -1))
    for axis in (0, 1, -1):
        g.case(f"stack(%x0, %x1, axis={axis})", [a, -a], torch.stack([a, -a], axis))
    scalars = [torch.tensor(1.0), torch.tensor(2.0)]
    g.case("stack(%x0, %x1)", scalars, torch.stack(scalars))
    x = torch.randn(7, 3)
    for chunks in (3, 2, 7, 5):
        g.case(f"chunk(%x0, chunks={chunks})", [x], [p.contiguous() for p in torch.chunk(x, chunks)])
    g.case("chunk(%x0, chunks=3, axis=-1)", [x], [p.contiguous() for p in torch.chunk(x, 3, -1)])


def new_tensors(g):
    for dtype in ("f32", "f64", "bf16", "i64", "bool"):
        g.case(f"zeros(sizes=[2, 3], dtype={dtype})", [], torch.zeros(2, 3, dtype=DTYPES[dtype]))
        g.case(f"ones(sizes=[3], dtype={dtype})", [], torch.ones(3, dtype=DTYPES[dtype]))
        g.case(f"eye(sizes=[3, 5], dtype={dtype})", [], torch.eye(3, 5).to(DTYPES[dtype]))
    g.case("zeros(sizes=[0, 2])", [], torch.zeros(0, 2))
    g.case("ones(sizes=[])", [], torch.ones(()))
    g.case("eye(sizes=[4])", [], torch.eye(4))
    g.case("eye(sizes=[4, 2])", [], torch.eye(4, 2))
    for start, stop, step in ((0, 5, 1), (2, -3, -2), (1, 10, 4), (3, 3, 1), (-(2**62), -(2**62) + 3, 1)):
        g.case(f"arange(start={start}, stop={stop}, step={step})", [], torch.arange(start, stop, step))
    for start, stop, step in ((0.0, 1.0, 0.1), (1.5, -1.0, -0.5), (0, 1, 0.25)):
        g.case(f"arange(start={start}, stop={stop}, step={step})", [], torch.arange(start, stop, step))
    g.case("arange(stop=4, dtype=f64)", [], torch.arange(4, dtype=torch.float64))
    g.case("arange(stop=300, step=7, dtype=bf16)", [], torch.arange(0, 300, 7).to(torch.bfloat16))
    x = torch.randn(2, 3, 4)
    x[0, 0, 3] = NAN  # a masked NaN becomes 0
    for diagonal in (0, 1, -2, 10, -10):
        g.case(f"tril(%x0, diagonal={diagonal})", [x], torch.tril(x, diagonal))
        g.case(f"triu(%x0, diagonal={diagonal})", [x], torch.triu(x, diagonal))
    for dtype in ("bf16", "i64", "bool"):
        y = torch.tensor([[1, 2, 3], [4, 0, 6], [7, 8, 9]]).to(DTYPES[dtype])
        g.case("tril(%x0)", [y], torch.tril(y))
        g.case("triu(%x0)", [y], torch.triu(y))


def indexing(g):
    classes = torch.tensor([[0, 3, 1], [2, 2, 0]])
    g.case("one_hot(%x0, num_classes=4)", [classes], F.one_hot(classes, 4))
    g.case("one_hot(%x0, num_classes=2)", [torch.tensor(1)], F.one_hot(torch.tensor(1), 2))
    x = torch.randn(4, 3, 2)
    index = torch.tensor([2, 0, 0, 1, 2])
    g.case("index_select(%x0, %x1, axis=1)", [x, index], torch.index_select(x, 1, index))
    g.case("index_select(%x0, %x1, axis=-3)", [x, index], torch.index_select(x, -3, index))
    none = torch.zeros(0, dtype=torch.int64)
    g.case("index_select(%x0, %x1, axis=0)", [x, none], torch.index_select(x, 0, none))
    for dtype in ("f32", "bf16", "f64"):
        weight = torch.randn(4, 3).to(DTYPES[dtype])
        g.case("embedding(%x0, %x1)", [classes, weight], F.embedding(classes, weight))
    place = torch.randint(0, 3, (4, 5, 2))
    g.case("gather(%x0, %x1, axis=1)", [x, place], torch.gather(x, 1, place))
    smaller = torch.randint(0, 3, (2, 4, 1))
    g.case("gather(%x0, %x1, axis=-2)", [x, smaller], torch.gather(x, -2, smaller))


def fill(g):
    torch.manual_seed(2)
    shapes(g)
    joins(g)
    new_tensors(g)
    indexing(g)
