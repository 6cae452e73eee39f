"""Ops that move elements, new tensors, and the ways to write axes, sizes and indices."""
import torch
import torch.nn.functional as F

from common import DTYPES, INF, NAN

# Devices run only these dtypes, because they move all elements of one size in the same way.
RUN = ("f32", "bf16", "bool")
TYPES = RUN + ("i64", "f64", "f16", "i32", "i8", "u8")


def cube(dtype):
    return (torch.arange(24).reshape(2, 3, 4) % 7 - 2).to(DTYPES[dtype])


def each_type(g):
    for dtype in TYPES:
        g.reference = dtype not in RUN
        yield dtype
    g.reference = False


def special():
    return torch.tensor([[1.0, NAN, -0.0], [INF, -INF, 0.0]])


def flips(g):
    for dtype in each_type(g):
        x = cube(dtype)
        for axes in ([0], [-1, 1]):
            g.case(f"flip(%x0, axes={axes})", [x], x.flip(axes))
    x = cube("f32")
    for axes in ([], [0, 1, 2]):
        g.case(f"flip(%x0, axes={axes})", [x], x.flip(axes))
    g.case("flip(%x0, axes=[1])", [special()], special().flip([1]))
    empty = torch.zeros(0, 3)
    g.case("flip(%x0, axes=[0, 1])", [empty], empty.flip([0, 1]))
    for axis in (0, -1):
        g.case(f"flip(%x0, axes=[{axis}])", [torch.tensor(2.5)], torch.tensor(2.5).flip([axis]))


def padded(g, x, lows, highs, value=None):
    pairs = [n for pair in reversed(list(zip(lows, highs))) for n in pair]
    text = str(value).lower()
    fill = "" if value is None else f", {text}"
    g.case(f"pad(%x0{fill}, lows={lows}, highs={highs})", [x],
           F.pad(x, pairs, value=0 if value is None else value))


def pads(g):
    for dtype in each_type(g):
        padded(g, cube(dtype), [0, 1, 2], [1, 0, 3], 1)
        padded(g, cube(dtype), [0, -1, 2], [-1, 1, -3])
    for value in (NAN, -INF, -0.0, 2.5):
        padded(g, special(), [1, 0], [0, -2], value)
    x = cube("f32")
    padded(g, x, [0, 0, 0], [0, 0, 0])
    padded(g, x, [-1, -3, 0], [0, 0, -4])
    padded(g, x, [0, 3, -4], [0, -3, 5], -7.5)
    g.case("pad(%x0, lows=[1], highs=[0], mode=constant)", [x[0, 0]], F.pad(x[0, 0], (1, 0)))
    padded(g, torch.zeros(0, 2), [2, 0], [0, 1], 3.5)


def takes(g):
    for dtype in each_type(g):
        x = cube(dtype)
        rows = torch.tensor([2, 0, 2, 1])
        g.case("take(%x0, %x1, axis=1)", [x, rows], x.index_select(1, rows))
        place = torch.tensor([[[0, 2, 1, 1], [2, 2, 0, 1]], [[1, 1, 1, 0], [0, 1, 2, 2]]])
        g.case("take_along_axis(%x0, %x1, axis=1)", [x, place], x.gather(1, place))
    x = cube("f32")
    many = torch.tensor([[1, 0, 3], [3, 3, 2]])
    g.case("take(%x0, %x1, axis=-1)", [x, many], x[..., many])
    g.case("take(%x0, %x1, axis=0)", [x, torch.tensor(1)], x[1])
    g.case("take(%x0, %x1, axis=0)", [x, many.clamp(max=1).to(torch.int32)], x[many.clamp(max=1)])
    none = torch.zeros(2, 0, dtype=torch.int64)
    g.case("take(%x0, %x1, axis=2)", [x, none], x[..., none])
    for shape, axis in (((1, 3, 4), 0), ((2, 1, 4), 2), ((1, 5, 2), 1), ((1, 1, 1), -1), ((2, 0, 4), 1),
                        ((0, 2, 3), 2)):
        at = (torch.arange(60) * 7 % x.shape[axis])[:torch.Size(shape).numel()].reshape(shape)
        for op in ("take_along_axis", "gather"):
            g.case(f"{op}(%x0, %x1, axis={axis})", [x, at], x.gather(axis, at))
    narrow = torch.tensor([[[1, 0, 1, 0]]], dtype=torch.int32)
    g.case("take_along_axis(%x0, %x1, axis=0)", [x, narrow], x.gather(0, narrow.long()))
    # A tensor without axes counts as a line of one element.
    zero, zeros = torch.tensor(0), torch.tensor([0, 0, 0])
    one = torch.tensor(2.5)
    for op in ("take_along_axis", "gather"):
        g.case(f"{op}(%x0, %x1, axis=-1)", [one, zero], one.gather(-1, zero))
        g.case(f"{op}(%x0, %x1, axis=0)", [one, zeros], one.gather(0, zeros))
        g.case(f"{op}(%x0, %x1, axis=0)", [x[0, 0], zero + 2], x[0, 0].gather(0, zero + 2))
    g.case("take(%x0, %x1, axis=-1)", [one, zeros], one.expand(3).contiguous())
    g.case("index_select(%x0, %x1, axis=1)", [x, zero + 2], x.index_select(1, zero + 2))
    g.case("index_select(%x0, %x1, axis=0)", [one, zero], one.index_select(0, zero))
    g.case("index_select(%x0, %x1, axis=-1)", [one, zeros[:1]], one.index_select(-1, zeros[:1]))


def views(g):
    x = cube("f32")
    for axes in ([0], [-1], [0, 2, -1]):
        y = x
        for axis in sorted(a % (3 + len(axes)) for a in axes):
            y = y.unsqueeze(axis)
        g.case(f"broadcast(%x0, axes={axes})", [x], y)
    row = x[:1, :, :1].contiguous()
    for shape in ([2, 3, 4], [-1, 3, 2], [5, 1, -1, -1], [2, 0, 1, 3, 1], [0, 3, 4]):
        g.case(f"expand(%x0, sizes={shape})", [row], row.expand(shape).contiguous())
    g.case("expand(%x0, sizes=[2, 3])", [torch.tensor(4)], torch.tensor(4).expand(2, 3).contiguous())
    for dtype in ("bf16", "f8e4m3"):
        y = row.to(DTYPES[dtype])
        g.case("expand(%x0, sizes=[2, -1, 2])", [y], y.expand(2, -1, 2).contiguous())
    for axes in ([2, 0, 1], [0, -1, 1]):
        g.case(f"permute(%x0, axes={axes})", [x], x.permute(axes).contiguous())
    g.case("slice(%x0, starts=[0, 1, 0], stops=[2, 3, 4], steps=[1, 1, 3])", [x], x[:, 1:, ::3].contiguous())
    g.case("slice(%x0, starts=[1, 3, 2], stops=[1, 3, 3])", [x], x[1:1, 3:3, 2:3].contiguous())
    g.case("squeeze(%x0, axes=[])", [row], row)
    g.case("repeat(%x0, repeats=[3, 2])", [special()[:, 0]], special()[:, 0].repeat(3, 2))


def mixed(g):
    a, b, c = torch.tensor([[1.5, -2.0]]), torch.tensor([[7, 2**40]]), torch.tensor([[True, False]])
    parts = [a.half(), b, c, a, a.double(), a.bfloat16(), c.to(torch.uint8)]
    for i, j in ((0, 1), (6, 2), (3, 4), (1, 2), (2, 0), (0, 5), (6, 1), (5, 2)):
        g.reference = (i, j) not in ((0, 1), (6, 2))
        pair = [parts[i], parts[j]]
        if b.dtype in (pair[0].dtype, pair[1].dtype):
            pair = [p.clamp(max=100) if p.dtype == b.dtype else p for p in pair]
        g.case("cat(%x0, %x1, axis=1)", pair, torch.cat(pair, 1))
        g.case("stack(%x0, %x1, axis=1)", pair, torch.stack(pair, 1))
    g.reference = False
    x = cube("i64")
    for chunks in (2, 3, 4):
        g.case(f"chunk(%x0, chunks={chunks}, axis=2)", [x], [p.contiguous() for p in x.chunk(chunks, 2)])


def new_tensors(g):
    for dtype, value in (("f32", 2.5), ("f64", NAN), ("bf16", 1.01), ("f16", -INF), ("i64", -3), ("i32", 7), ("i8", -3),
                         ("u8", 7), ("bool", True)):
        text = str(value).lower()
        g.case(f"full({text}, sizes=[2, 3], dtype={dtype})", [], torch.full((2, 3), value, dtype=DTYPES[dtype]))
    g.case("full(1.5, sizes=[], dtype=f32)", [], torch.full((), 1.5))
    g.case("full(1.5, sizes=[2, 0], dtype=f32)", [], torch.full((2, 0), 1.5))
    for shape, axis in (([5], 0), ([2, 3, 4], 1), ([2, 3], -1), ([0, 3], 1)):
        line = [1] * len(shape)
        line[axis] = -1
        g.case(f"iota(sizes={shape}, axis={axis})", [],
               torch.arange(shape[axis]).reshape(line).expand(shape).contiguous())
    for dtype in ("f16", "i32", "i8", "u8"):
        g.case(f"zeros(sizes=[3], dtype={dtype})", [], torch.zeros(3, dtype=DTYPES[dtype]))
        g.case(f"ones(sizes=[2, 2], dtype={dtype})", [], torch.ones(2, 2, dtype=DTYPES[dtype]))
        g.case(f"eye(sizes=[2, 3], dtype={dtype})", [], torch.eye(2, 3).to(DTYPES[dtype]))
        g.case(f"arange(start=1, stop=9, step=3, dtype={dtype})", [], torch.arange(1, 9, 3, dtype=DTYPES[dtype]))
        x = cube("i64").abs().to(DTYPES[dtype])
        g.case("tril(%x0, diagonal=-1)", [x], x.tril(-1))
        g.case("triu(%x0, diagonal=1)", [x], x.triu(1))


def no_axes(g):
    """A tensor without axes accepts axis 0 and axis -1, which change nothing. A reduction without an axis list reduces
    all axes."""
    one, whole = torch.tensor(2.5), torch.tensor(3, dtype=torch.int32)
    for axis in (0, -1):
        for op, function in (("sum", torch.sum), ("max", torch.amax), ("mean", torch.mean), ("amin", torch.amin),
                             ("any", torch.any), ("all", torch.all), ("logsumexp", torch.logsumexp)):
            g.case(f"{op}(%x0, axes=[{axis}])", [one], function(one, dim=axis))
        g.case(f"sum(%x0, axes=[{axis}], keepdim=true)", [whole], torch.sum(whole, dim=axis, keepdim=True))
        for op in ("softmax", "log_softmax", "cumsum", "argsort", "argmax", "argmin"):
            g.case(f"{op}(%x0, axis={axis})", [one], getattr(torch, op)(one, axis))
        g.case(f"cumsum(%x0, axis={axis})", [whole], torch.cumsum(whole, axis))
        g.case(f"softmax_backward(%x0, %x1, axis={axis})", [one, one],
               torch.ops.aten._softmax_backward_data(one, one, axis, one.dtype))
        g.case(f"log_softmax_backward(%x0, %x1, axis={axis})", [one, one],
               torch.ops.aten._log_softmax_backward_data(one, one, axis, one.dtype))
        g.case(f"sort(%x0, axis={axis})", [one], list(torch.sort(one, dim=axis)))
        g.case(f"topk(%x0, k=1, axis={axis})", [one], list(torch.topk(one, 1, axis)))
        g.case(f"squeeze(%x0, axes=[{axis}])", [one], one.squeeze(axis))
        g.case(f"transpose(%x0, axes=[{axis}, 0])", [one], one.transpose(axis, 0))
        g.case(f"unsqueeze(%x0, axis={axis})", [one], one.unsqueeze(axis))
    for dtype in ("f32", "i32", "bool"):
        g.reference = dtype != "f32"
        x = cube(dtype)
        for how in ("", ", axes=[]"):
            g.case(f"sum(%x0{how})", [x], torch.sum(x), sums=True)
            g.case(f"max(%x0{how})", [x], torch.amax(x))
        g.case("prod(%x0)", [x[:1, :, :2].contiguous()], torch.prod(x[:1, :, :2]))
        g.case("min(%x0, keepdim=true)", [x], torch.amin(x, keepdim=True, dim=()))
        for op, function in (("any", torch.any), ("all", torch.all)):
            g.case(f"{op}(%x0, axes=[])", [x], function(x, dim=[]))
    g.reference = False
    x = cube("f32")
    for op in ("mean", "amax", "var", "std"):
        g.case(f"{op}(%x0, axes=[])", [x], getattr(torch, op)(x, dim=[]), ulps=8)
    g.case("argsort(%x0)", [x], torch.argsort(x, stable=True))
    g.case("argsort(%x0, descending=true)", [x], torch.argsort(x, stable=True, descending=True))


def scatters(g):
    for dtype in ("f32", "i64", "bf16"):
        x = torch.arange(20).reshape(4, 5).to(DTYPES[dtype])
        source = (torch.arange(15).reshape(3, 5) + 50).to(DTYPES[dtype])
        for index in ([[3, 1, 0, 2, 2]], [[1], [3], [0]], [[2]], [[0, 3], [1, 1], [2, 0]], [[3, 2, 1, 0, 0]] * 3):
            at = torch.tensor(index)
            if dtype != "i64" and len(index) < 3:
                at = at.to(torch.int32)
            once = len({(v, i) for row in index for i, v in enumerate(row)}) == at.numel()
            if once:
                g.case("scatter(%x0, %x1, %x2, axis=0)", [x, at, source], x.scatter(0, at.long(), source))
            g.case("scatter_add(%x0, %x1, %x2, axis=0)", [x, at, source], x.scatter_add(0, at.long(), source))
        rows = torch.tensor([[2], [0], [3]])
        g.case("scatter(%x0, %x1, %x2, axis=0, stretch=true)", [x, rows, source],
               x.index_copy(0, rows[:, 0], source))
        g.case("scatter_add(%x0, %x1, %x2, axis=0, stretch=true)", [x, rows, source],
               x.index_add(0, rows[:, 0], source))
        columns = torch.tensor([[4, 1]])
        g.case("scatter_add(%x0, %x1, %x2, axis=-1, stretch=true)", [x[:3].contiguous(), columns, source[:, :2].contiguous()],
               x[:3].index_add(1, columns[0], source[:, :2]))
    x, none = cube("f32"), torch.zeros(0, 3, 4, dtype=torch.int64)
    g.case("scatter(%x0, %x1, %x2, axis=0)", [x, none, x], x)
    one, zero = torch.tensor(2.5), torch.tensor(0)
    for op in ("scatter", "scatter_add"):
        g.case(f"{op}(%x0, %x1, %x2, axis=-1)", [one, zero, one], getattr(one, op)(-1, zero, one))
        line = torch.tensor([1.0, 2.0, 3.0])
        g.case(f"{op}(%x0, %x1, %x2, axis=0)", [line, zero + 1, one], getattr(line, op)(0, zero + 1, one))


def fill(g):
    flips(g)
    pads(g)
    takes(g)
    views(g)
    mixed(g)
    new_tensors(g)
    no_axes(g)
    scatters(g)
