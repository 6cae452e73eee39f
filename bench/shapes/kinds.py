"""Makes random fusions. The seed and the number of a fusion decide its ops, its dtypes and its sizes.

One generator of random numbers chooses the ops, and another one the sizes. The same seed and number therefore give the
same ops with large and with small sizes.
"""
import math
import random
from dataclasses import dataclass
from typing import Callable, List, Optional, Sequence

from shapes.builder import BYTES, FLOATS, Builder, Value, listed, promoted

LEAST, MOST = 16_000_000, 600_000_000  # bytes of inputs and outputs together
BUDGET = (20_000_000, 450_000_000)  # bytes that the sizes aim at
LIMIT = 0.7  # a fusion is too slow if its ratio (time of a copy of the same bytes / its time) is lower
ONE_ROW_LIMIT = 0.5  # the same for softmax and norms of a single row


@dataclass
class Fusion:
    name: str
    kind: str
    text: str
    bytes: int
    shape: str  # of the first input
    limit: float  # the lowest accepted ratio; 0: no limit


# Each function below makes the fusions of one kind or of several similar kinds.


def pointwise_of(b: Builder, values: List[Value]) -> Value:
    """Joins values of one shape by binary ops, with unary ops between them."""
    result = values[0]
    for value in values[1:]:
        if b.ops.random() < 0.5:
            value = b.unary(value)
        result = b.binary(result, value)
    for _ in range(b.ops.randint(0, 3)):
        result = b.unary(result)
    if b.ops.random() < 0.3:
        result = b.binary(result, b.op(f"mul({result.name}, 0.5)", result.dtype, result.shape), "add") \
            if result.dtype in FLOATS else b.cast(result, "f32")
    return result


def maybe_cast(b: Builder, x: Value) -> Value:
    return b.cast(x, b.ops.choice(FLOATS)) if b.ops.random() < 0.25 else x


def pointwise(b: Builder) -> None:
    shape = b.shape(b.ops.randint(1, 5))
    full = [b.input(shape) for _ in range(b.ops.randint(1, 3))]
    if b.ops.random() < 0.3:
        whole = b.input(shape, b.ops.choice(["i32", "i64"]))
        other = b.input(shape, "i32")
        full.append(b.op(f"add({whole.name}, {other.name})", promoted(whole.dtype, "i32"), shape))
    if b.ops.random() < 0.3:
        greater = b.op(f"gt({full[0].name}, {full[-1].name})", "bool", shape)
        dtype = promoted(full[0].dtype, full[-1].dtype)
        full.append(b.op(f"where({greater.name}, {full[0].name}, {full[-1].name})", dtype, shape))
    b.finish(maybe_cast(b, pointwise_of(b, full)))


def broadcasts(b: Builder) -> None:
    shape = b.shape(b.ops.randint(2, 5))
    values = [b.input(shape)] + [b.part_of(shape) for _ in range(b.ops.randint(1, 3))]
    b.finish(maybe_cast(b, pointwise_of(b, values)))


def permuted(b: Builder, x: Value) -> Value:
    axes = list(range(len(x.shape)))
    while axes == sorted(axes):
        b.ops.shuffle(axes)
    return b.op(f"permute({x.name}, axes={listed(axes)})", x.dtype, [x.shape[axis] for axis in axes])


def permute(b: Builder) -> None:
    x = b.input(b.shape(b.ops.randint(2, 6)), b.ops.choice(FLOATS + ["i32", "i64"]))
    if b.ops.random() < 0.3 and x.dtype in FLOATS:
        x = b.unary(x)
    y = permuted(b, x)
    b.finish(maybe_cast(b, b.unary(y) if y.dtype in FLOATS else b.op(f"neg({y.name})", y.dtype, y.shape)))


def permute_add(b: Builder) -> None:
    y = permuted(b, b.input(b.shape(b.ops.randint(2, 6))))
    other = b.part_of(y.shape) if b.ops.random() < 0.3 else b.input(y.shape)
    results = [pointwise_of(b, [y, other])]
    if b.ops.random() < 0.2:
        results.append(b.unary(y))
    b.finish(*results)


def reduced(b: Builder, x: Value, axes: Sequence[int], name: str = "", keep: bool = False) -> Value:
    name = name or b.ops.choice(["sum", "sum", "max", "mean"])
    if x.dtype not in FLOATS and name == "mean":
        x = b.cast(x, "f32")
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape) if keep or axis not in axes]
    dtype = "i64" if x.dtype not in FLOATS and name == "sum" else x.dtype
    return b.op(f"{name}({x.name}, axes={listed(axes)}{', keepdim=true' * keep})", dtype, shape)


def reduction(b: Builder, rank: int, axes: Sequence[int]) -> None:
    x = b.input(b.shape(rank), b.ops.choice(FLOATS * 2 + ["f32"] * 3 + ["i32"]))
    before = b.ops.choice(["none", "none", "square", "product", "broadcast", "unary"])
    if before == "square":
        x = b.binary(x, x, "mul")
    elif before in ("product", "broadcast"):
        x = b.binary(x, b.input(x.shape) if before == "product" or rank == 1 else b.part_of(x.shape), "mul")
    elif before == "unary":
        x = b.unary(x)
    results = [reduced(b, x, axes, keep=b.ops.random() < 0.3)]
    if b.ops.random() < 0.25:
        results.append(reduced(b, x, axes))
    if b.ops.random() < 0.3:
        results[0] = b.unary(results[0])
    b.finish(*results)


def reduce_inner(b: Builder) -> None:
    rank = b.ops.randint(2, 4)
    reduction(b, rank, list(range(b.ops.randint(1, rank - 1), rank)))


def reduce_outer(b: Builder) -> None:
    rank = b.ops.randint(2, 4)
    reduction(b, rank, list(range(b.ops.randint(1, rank - 1))))


def reduce_middle(b: Builder) -> None:
    rank = b.ops.randint(3, 5)
    first = b.ops.randint(1, rank - 2)
    reduction(b, rank, list(range(first, b.ops.randint(first + 1, rank - 1))))


def reduce_several(b: Builder) -> None:
    rank = b.ops.randint(3, 6)
    reduction(b, rank, list(range(b.ops.randint(0, 1), rank, 2)))


def reduce_full(b: Builder) -> None:
    rank = b.ops.randint(1, 4)
    reduction(b, rank, list(range(rank)))


def rows(b: Builder, rank: int, axes: Sequence[int]) -> Value:
    """Returns the operand of a softmax or a norm along the axes: an input, or the sum or product of two inputs."""
    shape = b.shape(rank)
    if math.prod(size for axis, size in enumerate(shape) if axis not in axes) == 1:
        b.limit = ONE_ROW_LIMIT
    x = b.input(shape)
    before = b.ops.random()
    if before < 0.2:
        return b.binary(x, b.input(shape, x.dtype), "add")
    if before < 0.35 and rank > 1:
        return b.binary(x, b.part_of(shape, x.dtype), "mul")
    return x


def softmax_of(b: Builder, name: str) -> None:
    rank = b.ops.randint(1, 4)
    axis = rank - 1 if b.ops.random() < 0.6 else b.ops.randrange(rank)
    x = rows(b, rank, [axis])
    y = b.op(f"{name}({x.name}, axis={axis})", x.dtype, x.shape)
    b.finish(maybe_cast(b, b.op(f"mul({y.name}, 2.0)", y.dtype, y.shape) if b.ops.random() < 0.2 else y))


def softmax(b: Builder) -> None:
    softmax_of(b, "softmax")


def log_softmax(b: Builder) -> None:
    softmax_of(b, "log_softmax")


def norm_of(b: Builder, name: str, most: int) -> None:
    rank = b.ops.randint(2, 4)
    dims = 1 if rank == 2 or b.ops.random() < 0.7 else 2
    x = rows(b, rank, range(rank - dims, rank))
    weight = b.ops.choice([x.dtype, "f32"]) if x.dtype in ("bf16", "f16") else x.dtype
    dtype = promoted(x.dtype, weight)
    operands = [x] + [b.input(x.shape[rank - dims:], weight) for _ in range(b.ops.randint(0, most))]
    names = ", ".join(value.name for value in operands)
    count = f", dims={dims}" if len(operands) == 1 else ""
    y = b.op(f"{name}({names}, eps=1e-5{count})", dtype if len(operands) > 1 else x.dtype, x.shape)
    b.finish(b.unary(y, "silu") if b.ops.random() < 0.2 else y)


def layer_norm(b: Builder) -> None:
    norm_of(b, "layer_norm", 2)


def rms_norm(b: Builder) -> None:
    norm_of(b, "rms_norm", 1)


def norm_middle(b: Builder) -> None:
    """Normalizes over axes that are not the last ones."""
    rank = b.ops.randint(2, 5)
    first = b.ops.randint(0, rank - 2)
    axes = list(range(first, b.ops.randint(first + 1, rank - 1)))
    original = rows(b, rank, axes)
    x = b.cast(original, "f32") if original.dtype in ("bf16", "f16") else original
    if b.ops.random() < 0.6:
        x = b.op(f"sub({x.name}, {reduced(b, x, axes, 'mean', True).name})", x.dtype, x.shape)
    square = reduced(b, b.binary(x, x, "mul"), axes, "mean", True)
    added = b.op(f"add({square.name}, 1e-5)", x.dtype, square.shape)
    y = b.binary(x, b.unary(added, "rsqrt"), "mul")
    b.finish(b.cast(b.binary(y, b.part_of(y.shape, "f32"), "mul") if b.ops.random() < 0.5 else y, original.dtype))


def cat(b: Builder) -> None:
    rank, parts = b.ops.randint(1, 4), b.ops.randint(2, 4)
    axis, shape = b.ops.randrange(rank), b.shape(rank, part=1 / parts)
    dtype = b.ops.choice(FLOATS)
    lengths = [max(1, shape[axis] + b.length(-(shape[axis] // 3), shape[axis] // 2)) for _ in range(parts)]
    values = [b.input(shape[:axis] + (b.extent(length),) + shape[axis + 1:], dtype) for length in lengths]
    result = list(shape)
    result[axis] = sum(lengths)
    y = b.op(f"cat({', '.join(value.name for value in values)}, axis={axis})", dtype, result)
    b.finish(b.unary(y))


def pad(b: Builder) -> None:
    x = b.input(b.shape(b.ops.randint(1, 4)))
    lows, highs = ([b.length(-min(2, (size - 1) // 2), min(70, size // 4 + 1)) for size in x.shape] for _ in range(2))
    kept = [b.ops.random() < 0.6 for _ in x.shape]
    lows, highs = ([number * keep for number, keep in zip(numbers, kept)] for numbers in (lows, highs))
    result = [size + low + high for size, low, high in zip(x.shape, lows, highs)]
    fill = b.ops.choice(["", ", 1.5"])
    y = b.op(f"pad({x.name}{fill}, lows={listed(lows)}, highs={listed(highs)})", x.dtype, result)
    b.finish(b.unary(y))


def slice_(b: Builder) -> None:
    x = b.input(b.shape(b.ops.randint(1, 4)))
    steps = [b.ops.choice([1, 1, 1, 1, 2, 3]) for _ in x.shape]
    starts = [b.length(0, min(40, size // 4)) for size in x.shape]
    stops = [size - b.length(0, min(40, size // 4)) for size in x.shape]
    result = [-(-(stop - start) // step) for start, stop, step in zip(starts, stops, steps)]
    steps_text = f", steps={listed(steps)}" if max(steps) > 1 else ""
    y = b.op(f"slice({x.name}, starts={listed(starts)}, stops={listed(stops)}{steps_text})", x.dtype, result)
    b.finish(b.unary(y))


def roll(b: Builder) -> None:
    x = b.input(b.shape(b.ops.randint(1, 4)))
    axis = max(range(len(x.shape)), key=lambda axis: (x.shape[axis] > 1, b.ops.random()))
    cut = b.length(0, x.shape[axis])
    ends = []
    for start, stop in ((cut, x.shape[axis]), (0, cut)):
        part = x.shape[:axis] + (stop - start,) + x.shape[axis + 1:]
        ends.append(b.op(f"slice_axis({x.name}, axis={axis}, start={start}, stop={stop})", x.dtype, part).name)
    b.finish(b.unary(b.op(f"cat({ends[0]}, {ends[1]}, axis={axis})", x.dtype, x.shape)))


def flip(b: Builder) -> None:
    x = b.input(b.shape(b.ops.randint(1, 4)), b.ops.choice(FLOATS + ["i32"]))
    axes = sorted(b.ops.sample(range(len(x.shape)), b.ops.randint(1, len(x.shape))))
    b.finish(b.unary(b.op(f"flip({x.name}, axes={listed(axes)})", x.dtype, x.shape)))


def set_limit_of_lookup(b: Builder, table: Value, axis: int, piece: int) -> None:
    """Removes the limit if the fusion reads pieces of fewer than 64 bytes at random places of a block larger than 1 MB.
    The GPU then transfers more bytes than a copy does. `piece` is the number of neighbouring elements."""
    block = math.prod(table.shape[axis:]) * BYTES[table.dtype]
    if piece * BYTES[table.dtype] < 64 and block > 1_000_000:
        b.limit = 0


def index_select(b: Builder) -> None:
    rank = b.ops.randint(1, 4)
    axis = b.ops.randrange(rank)
    x = b.input(b.shape(rank, axis))
    set_limit_of_lookup(b, x, axis, math.prod(x.shape[axis + 1:]))
    index = b.input([b.extent(max(1, x.shape[axis] * b.length(1, 4) // 2))], b.ops.choice(["i32", "i64"]))
    result = x.shape[:axis] + (index.shape[0],) + x.shape[axis + 1:]
    b.finish(b.unary(b.op(f"index_select({x.name}, {index.name}, axis={axis})", x.dtype, result)))


def embedding(b: Builder) -> None:
    weight_shape = b.shape(2, 0)
    count = max(1, weight_shape[0] * b.length(1, 4) // 2)
    index_shape = [b.extent(count)] if b.ops.random() < 0.5 else [b.extent(2), b.extent(-(-count // 2))]
    index = b.input(index_shape, b.ops.choice(["i32", "i64"]))
    weight = b.input(weight_shape)
    set_limit_of_lookup(b, weight, 0, weight_shape[1])
    y = b.op(f"embedding({index.name}, {weight.name})", weight.dtype, [*index_shape, weight_shape[1]])
    b.finish(b.unary(y))


def gather(b: Builder) -> None:
    rank = b.ops.randint(1, 4)
    axis = b.ops.randrange(rank)
    x = b.input(b.shape(rank, axis))
    set_limit_of_lookup(b, x, axis, 1)
    length = b.extent(max(1, x.shape[axis] * b.length(1, 3) // 2))
    index = b.input(x.shape[:axis] + (length,) + x.shape[axis + 1:], b.ops.choice(["i32", "i64"]))
    b.finish(b.unary(b.op(f"gather({x.name}, {index.name}, axis={axis})", x.dtype, index.shape)))


KINDS = {function.__name__.rstrip("_"): function for function in (
    pointwise, broadcasts, permute, permute_add, reduce_inner, reduce_outer, reduce_middle, reduce_several, reduce_full,
    softmax, log_softmax, layer_norm, rms_norm, norm_middle, cat, pad, slice_, roll, flip, index_select, embedding,
    gather)}


def build(make: Callable[[Builder], None], key: str, attempt: int, elements: Optional[float]) -> Builder:
    builder = Builder(random.Random(f"{key} ops"), random.Random(f"{key} sizes {attempt}"), elements, LIMIT)
    make(builder)
    return builder


def sized(make: Callable[[Builder], None], key: str) -> Builder:
    """Returns a fusion whose bytes are near a random number of bytes. Sizes of special forms do not follow the wanted
    number of elements exactly, so the function tries several numbers."""
    low, high = (math.log(limit) for limit in BUDGET)
    budget = math.exp(random.Random(key + " bytes").uniform(low, high))
    elements = budget / 4
    for attempt in range(40):
        builder = build(make, key, attempt // 4, elements)
        if LEAST <= builder.bytes <= MOST:
            return builder
        elements = min(max(elements * budget / builder.bytes, 1000), MOST)
    raise ValueError(f"{key}: no sizes give {LEAST} to {MOST} bytes")


def random_fusion(seed: int, number: int, small: bool = False) -> Fusion:
    kind = list(KINDS)[number % len(KINDS)]
    key = f"{seed} {number}"
    builder = build(KINDS[kind], key, 0, None) if small else sized(KINDS[kind], key)
    name = f"{number:04}_{kind}"
    first = builder.inputs[0]
    return Fusion(name, kind, builder.text(name), builder.bytes, f"{first.dtype}{listed(first.shape)}", builder.limit)
