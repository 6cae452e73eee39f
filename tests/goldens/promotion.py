"""Result types of operands with axes, operands without axes (0-d) and scalars, and the casts of 0-d operands."""
import torch

from common import DTYPES

TYPES = [name for name in DTYPES if not name.startswith("f8")]
SCALARS = {"true": True, "2": 2, "0.5": 0.5}


def line(dtype):
    return torch.tensor([3, 1, 0]).to(DTYPES[dtype])


def point(dtype, value=2):
    return torch.tensor(value).to(DTYPES[dtype])


def result(g, call, function, inputs):
    """Adds a case, except if the result is i16 (from u8 and i8), which heddle does not have."""
    value = function(*inputs)
    if value.dtype != torch.int16:
        g.case(call, inputs, value)


def pairs(g):
    for a in TYPES:
        for b in TYPES:
            for x, y in ((line(a), point(b)), (point(a), line(b)), (line(a), line(b)), (point(a), point(b))):
                result(g, "add(%x0, %x1)", torch.add, [x, y])
            g.case("div(%x0, %x1)", [line(a), point(b)], torch.div(line(a), point(b)))
            g.case("ge(%x0, %x1)", [line(a), point(b, 1)], torch.ge(line(a), point(b, 1)))
        for text, scalar in SCALARS.items():
            for x in (line(a), point(a)):
                g.case(f"add(%x0, {text})", [x], torch.add(x, scalar))


def triples(g):
    """Adds cases with operands of three kinds: a condition, a tensor and a 0-d tensor."""
    for a in TYPES:
        for b in TYPES:
            condition = torch.tensor([True, False, True])
            result(g, "where(%x0, %x1, %x2)", torch.where, [condition, line(a), point(b)])


def casts(g):
    """Adds 0-d values that the type of the tensor cannot represent."""
    for a, b, value in (("u8", "i64", 300), ("i8", "i64", 200), ("i32", "i64", 2**33 + 5), ("f16", "f32", 1e5),
                        ("f32", "f64", 1e300), ("f32", "f64", 0.1), ("u8", "i8", -3)):
        g.case("add(%x0, %x1)", [line(a), point(b, value)], torch.add(line(a), point(b, value)))
        g.case("lt(%x0, %x1)", [line(a), point(b, value)], torch.lt(line(a), point(b, value)))
    g.case("div(%x0, %x1)", [line("i32"), point("i64", 2**33)], torch.div(line("i32"), point("i64", 2**33)))


def beside_halves(g):
    """Before an op with a half type, integers that this type cannot represent are rounded to it."""
    for half in ("f16", "bf16"):
        h = torch.tensor([0.5, 1, 1, -3, 2048], dtype=DTYPES[half])
        for integer in ("i64", "i32"):
            i = torch.tensor([2049, 4097, 65519, -300, 2049], dtype=DTYPES[integer])
            for op in ("add", "mul", "div", "lt", "eq", "remainder", "atan2", "maximum"):
                g.case(f"{op}(%x0, %x1)", [i, h], getattr(torch, op)(i, h))
            point = torch.tensor(2049, dtype=DTYPES[integer])
            g.case("add(%x0, %x1)", [h, point], torch.add(h, point))
        # In a comparison with a half type, a literal is also rounded to this type.
        x = torch.tensor([0.1, 0.3, 2048, 0.25, -0.1], dtype=DTYPES[half])
        for op in ("eq", "lt", "ge", "ne"):
            for literal in (0.1, 0.3, 2049):
                g.case(f"{op}(%x0, {literal})", [x], getattr(torch, op)(x, literal))


def small_integers(g):
    """Adds ops of u8, i8 and i32 tensors with literals. Sums, products and bit operations wrap around. The bounds of
    clamp may be out of range."""
    for name, literals in (("u8", (300, -1, 200, 2**40)), ("i8", (300, -129, 100, 2**31)), ("i32", (2**40, -(2**31) - 1))):
        ends = torch.iinfo(DTYPES[name])
        x = torch.tensor([ends.min, ends.max, 1, 100, 0], dtype=DTYPES[name])
        for literal in literals:
            for op in ("add", "sub", "mul", "bitwise_and", "bitwise_xor"):
                g.case(f"{op}(%x0, {literal})", [x], getattr(torch, op)(x, literal))
            if ends.min <= literal <= ends.max:
                for op in ("lt", "ge", "eq", "remainder"):
                    g.case(f"{op}(%x0, {literal})", [x], getattr(torch, op)(x, literal))
        g.case(f"clamp(%x0, {ends.min - 1}, 7)", [x], torch.clamp(x, ends.min - 1, 7))
        g.case(f"clamp(%x0, 3, {ends.max + 1})", [x], torch.clamp(x, 3, ends.max + 1))


def parameters_of_integers(g):
    """A float parameter does not turn an integer tensor into a float tensor."""
    F = torch.nn.functional
    for name in ("i64", "i32", "i8", "u8"):
        x = torch.tensor([1, 2, 3, 100], dtype=DTYPES[name])
        g.case("threshold(%x0, 1.5, 7)", [x], F.threshold(x, 1.5, 7))
        g.case("threshold(%x0, 2, 7.5)", [x], F.threshold(x, 2, 7.5))
        g.case("addcmul(%x0, %x0, %x0, 2.0)", [x], torch.addcmul(x, x, x, value=2.0))
        g.case("addcmul(%x0, %x0, %x0, 1.5)", [x], torch.addcmul(x, x, x, value=1.5))
        g.case("logsumexp(%x0)", [x], torch.logsumexp(x, 0))
    g.case("logsumexp(%x0)", [torch.tensor([True, False])], torch.logsumexp(torch.tensor([True, False]), 0))


def ranges(g):
    """Adds arange with float arguments and an integer dtype. The number of elements is computed with floats, and the
    elements with integers."""
    for start, stop, step in ((0, 1, 0.3), (0.5, 5, 1), (0, 5.5, 1), (-1.5, 4, 1), (0.9, 4, 0.9), (5, 0, -1.5), (0, 10, 2.0)):
        for name in ("i64", "i32", "f32", "bf16"):
            g.case(f"arange(start={start}, stop={stop}, step={step}, dtype={name})", [],
                   torch.arange(start, stop, step, dtype=torch.float64).to(DTYPES[name]) if name[0] != "i" else
                   torch.arange(start, stop, step, dtype=DTYPES[name]))
    g.case("arange(start=250, stop=260, dtype=u8)", [], torch.arange(250, 260, dtype=torch.uint8))


def fill(g):
    pairs(g)
    triples(g)
    casts(g)
    beside_halves(g)
    small_integers(g)
    parameters_of_integers(g)
    ranges(g)
