"""Result types of operands with axes, without axes (0-d) and of scalars, and what a 0-d tensor is cast to."""
import torch

from common import DTYPES

TYPES = [name for name in DTYPES if not name.startswith("f8")]
SCALARS = {"true": True, "2": 2, "0.5": 0.5}


def line(dtype):
    return torch.tensor([3, 1, 0]).to(DTYPES[dtype])


def point(dtype, value=2):
    return torch.tensor(value).to(DTYPES[dtype])


def result(g, call, function, inputs):
    """But of u8 and i8 of one kind, whose i16 heddle does not have."""
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
    """Of three kinds at once: a tensor, a 0-d tensor and a scalar."""
    for a in TYPES:
        for b in TYPES:
            condition = torch.tensor([True, False, True])
            result(g, "where(%x0, %x1, %x2)", torch.where, [condition, line(a), point(b)])


def casts(g):
    """Values that the type of the tensor does not hold."""
    for a, b, value in (("u8", "i64", 300), ("i8", "i64", 200), ("i32", "i64", 2**33 + 5), ("f16", "f32", 1e5),
                        ("f32", "f64", 1e300), ("f32", "f64", 0.1), ("u8", "i8", -3)):
        g.case("add(%x0, %x1)", [line(a), point(b, value)], torch.add(line(a), point(b, value)))
        g.case("lt(%x0, %x1)", [line(a), point(b, value)], torch.lt(line(a), point(b, value)))
    g.case("div(%x0, %x1)", [line("i32"), point("i64", 2**33)], torch.div(line("i32"), point("i64", 2**33)))


def fill(g):
    pairs(g)
    triples(g)
    casts(g)
