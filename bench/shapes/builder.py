"""Builds one random fusion: chooses sizes and dtypes, and collects inputs and statements."""
import math
import random
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence, Tuple

SMALL = 20_000  # elements of the largest tensor of a small fusion
PRIMES = [n for n in range(2, 70) if all(n % d for d in range(2, n))]
BYTES = {"bool": 1, "f16": 2, "bf16": 2, "f32": 4, "i32": 4, "f64": 8, "i64": 8}
FLOATS = ["bf16"] * 4 + ["f32"] * 3 + ["f16"] * 2 + ["f64"]
UNARY = ["relu", "tanh", "sigmoid", "silu", "abs", "neg", "sin", "gelu"]
BINARY = ["add", "sub", "mul", "maximum", "minimum"]


class Extent(int):
    """A size with the text that stands for it in the inputs: a number or a symbol."""
    text: str

    def __new__(cls, size: int, text: str = "") -> "Extent":
        made = super().__new__(cls, size)
        made.text = text or str(size)
        return made


@dataclass
class Value:
    name: str
    dtype: str
    shape: Tuple[int, ...]

    @property
    def bytes(self) -> int:
        return BYTES[self.dtype] * math.prod(self.shape)


def listed(numbers: Sequence[int]) -> str:
    return "[" + ", ".join(str(int(number)) for number in numbers) + "]"


def promoted(a: str, b: str) -> str:
    """Returns the common dtype of two tensors with axes."""
    if a == b:
        return a
    order = ["bool", "i32", "i64", "bf16", "f16", "f32", "f64"]
    return "f32" if {a, b} == {"bf16", "f16"} else max(a, b, key=order.index)


def prime_from(size: int) -> int:
    while size < 2 or any(size % d == 0 for d in range(2, math.isqrt(size) + 1)):
        size += 1
    return size


@dataclass
class Builder:
    """Collects the inputs and statements of one fusion."""
    ops: random.Random
    sizes: random.Random
    elements: Optional[float]  # of the largest tensor; None: the sizes are small
    limit: float  # the lowest accepted ratio: time of a copy of the same bytes / time of the fusion
    inputs: List[Value] = field(default_factory=list)
    body: List[str] = field(default_factory=list)
    outputs: List[Value] = field(default_factory=list)
    symbols: Dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.literal = self.ops.random() < 0.3  # whether the inputs have numbers instead of symbols as sizes

    def extent(self, size: int, name: str = "") -> Extent:
        if self.literal and not name:
            return Extent(size)
        name = name or f"s{len(self.symbols)}"
        self.symbols[name] = size
        return Extent(size, name)

    def form(self, size: float, form: str) -> int:
        """Returns a number near `size` of the given form."""
        if form == "prime":
            return prime_from(int(size))
        if form == "power":
            return max(1, (1 << round(math.log2(max(size, 1)))) + self.sizes.choice([-3, -1, -1, 0, 1, 1, 2]))
        return max(1, int(size) | 1 if form == "odd" else (int(size) + 7) // 8 * 8 if form == "eights" else int(size))

    def large_sizes(self, rank: int, part: float) -> List[int]:
        """Returns sizes whose product is about `part` of the wanted number of elements.

        Weights divide the elements among the axes: an axis has elements ** (weight / sum of weights). An axis of weight
        0 has size 1. The style "tall" makes the last axis short, and "flat" makes all other axes short: the short axes
        have 1 to 64 elements together. The longest axis is computed last, so that it corrects the rounding of the other
        axes.
        """
        pick, elements = self.sizes, self.elements * part
        style = pick.choice(["even", "even", "even", "even", "one row", "tall", "flat", "ones"])
        weights = [pick.uniform(0.3, 1.0) for _ in range(rank)]
        if style == "one row":
            weights[:-1] = [0.0] * (rank - 1)
        elif style == "ones":
            weights = [weight if pick.random() < 0.6 else 0.0 for weight in weights]
        elif style != "even" and rank > 1:
            short = range(rank - 1, rank) if style == "tall" else range(rank - 1)
            total = pick.uniform(0, 6) / math.log2(elements)
            rest = sum(weight for axis, weight in enumerate(weights) if axis not in short)
            for axis in short:
                weights[axis] = total / len(short) * rest / (1 - total)
        longest = max(range(rank), key=lambda axis: weights[axis])
        weights[longest] = weights[longest] or 1.0
        result = [1 if weight == 0 else self.form(elements ** (weight / sum(weights)), pick.choice(
            ["prime", "power", "odd", "odd", "any", "eights"])) for weight in weights]
        others = math.prod(size for axis, size in enumerate(result) if axis != longest)
        result[longest] = self.form(max(1.0, elements / others), pick.choice(["prime", "power", "odd", "any"]))
        return result

    def small_sizes(self, rank: int) -> List[int]:
        pick = self.sizes
        style = pick.choice(["even", "even", "even", "one row", "ones"])
        result = [pick.choice(PRIMES) for _ in range(rank)]
        if style == "one row":
            result[:-1] = [1] * (rank - 1)
        elif style == "ones":
            result = [size if pick.random() < 0.6 else 1 for size in result]
        while math.prod(result) > SMALL:
            largest = result.index(max(result))
            result[largest] = PRIMES[PRIMES.index(result[largest]) // 2]
        return result

    def shape(self, rank: int, named: int = -1, part: float = 1.0) -> Tuple[Extent, ...]:
        """Returns random extents. Axis `named` gets the symbol "classes", so bench_cuda_workloads fills integer inputs
        with numbers below its extent. `part` is the fraction of the largest tensor's elements that it gets."""
        sizes = self.small_sizes(rank) if self.elements is None else self.large_sizes(rank, part)
        return tuple(self.extent(size, "classes" if axis == named else "") for axis, size in enumerate(sizes))

    def length(self, low: int, high: int) -> int:
        """Returns a small random size, such as the number of elements that a pad adds."""
        return self.sizes.randint(low, max(low, high))

    def input(self, shape: Sequence[int], dtype: str = "") -> Value:
        self.inputs.append(Value(f"%x{len(self.inputs)}", dtype or self.ops.choice(FLOATS), tuple(shape)))
        return self.inputs[-1]

    def op(self, call: str, dtype: str, shape: Sequence[int]) -> Value:
        self.body.append(f"%v{len(self.body)} = {call}")
        return Value(f"%v{len(self.body) - 1}", dtype, tuple(shape))

    def unary(self, x: Value, name: str = "") -> Value:
        if x.dtype[0] not in "bf" or x.dtype == "bool":
            x = self.cast(x, "f32")
        return self.op(f"{name or self.ops.choice(UNARY)}({x.name})", x.dtype, x.shape)

    def binary(self, x: Value, y: Value, name: str = "") -> Value:
        name = name or self.ops.choice(BINARY)
        return self.op(f"{name}({x.name}, {y.name})", promoted(x.dtype, y.dtype), x.shape)

    def cast(self, x: Value, dtype: str) -> Value:
        return x if x.dtype == dtype else self.op(f"cast({x.name}, dtype={dtype})", dtype, x.shape)

    def part_of(self, shape: Sequence[int], dtype: str = "") -> Value:
        """Returns an input that has some of the axes of `shape`, broadcast to all of them."""
        rank = len(shape)
        kept = sorted(self.ops.sample(range(rank), self.ops.randint(1, max(1, rank - 1))))
        way = self.ops.choice(["broadcast", "expand"])
        if way == "expand" and rank > 1:
            made = self.input([size if axis in kept else 1 for axis, size in enumerate(shape)], dtype)
            kept_sizes = [-1 if axis in kept else int(size) for axis, size in enumerate(shape)]
            return self.op(f"expand({made.name}, sizes={listed(kept_sizes)})", made.dtype, shape)
        made = self.input([shape[axis] for axis in kept], dtype)
        added = [axis for axis in range(rank) if axis not in kept]
        return self.op(f"broadcast({made.name}, axes={listed(added)})", made.dtype, shape) if added else made

    def finish(self, *values: Value) -> None:
        self.outputs = list(values)

    @property
    def bytes(self) -> int:
        return sum(value.bytes for value in self.inputs + self.outputs)

    def text(self, name: str) -> str:
        inputs = ", ".join(f"{value.name}: {value.dtype}[" + ", ".join(
            getattr(size, "text", str(size)) for size in value.shape) + "]" for value in self.inputs)
        sizes = ", ".join(f"{symbol} = {size}" for symbol, size in self.symbols.items())
        lines = ["heddle 1", f"fusion f{name}({inputs})" + (f" with {sizes}" if sizes else "") + " {"]
        lines += ["  " + line for line in self.body]
        return "\n".join(lines + ["  return " + ", ".join(value.name for value in self.outputs), "}"]) + "\n"
