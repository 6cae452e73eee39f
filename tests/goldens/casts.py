"""Casts between all types: ties, the ends of the types and values outside of them, NaN, infinities, both zeros."""
import math

import torch

from common import DTYPES, INF, NAN

FLOATS = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2")
INTS = ("i64", "i32", "i8", "u8")

# Values next to the ends of f8e4m3 (448), f8e5m2 (57344) and the integers, and half way between two f8 numbers.
OF_FLOATS = [0.0, -0.0, 0.5, -0.5, 1.5, -2.5, 2.0**-10, 2.0**-17, 104.0, 108.0, 127.5, -128.5, 255.5, 256.0, 448.0, 464.0,
             480.0, -500.0, 57344.0, 61440.0, -65536.0, 2147483648.0, -1e30, INF, -INF, NAN, 9.3e18, 3e-3]
OF_INTS = [0, 1, -1, 2, 7, 100, -100, 127, 128, -128, -129, 200, 255, 256, 300, 449, 464, 480, -500, 2049, 61440, 65520,
           -70000, 2**24 + 1, 2**31 - 1, -(2**31), 2**53 + 1, -(2**63)]


def to_integer(x, name):
    """Rounds toward zero, saturates, and turns NaN into 0. In PyTorch, casts of values out of range depend on the
    machine."""
    if name == "bool":
        return x.double() != 0
    ends = torch.iinfo(DTYPES[name])
    whole = [0 if math.isnan(v) else ends.max if v >= ends.max else ends.min if v <= ends.min else math.trunc(v)
             for v in x.double().tolist()]
    return torch.tensor(whole, dtype=DTYPES[name])


def fill(g):
    for source in FLOATS:
        x = torch.tensor(OF_FLOATS, dtype=torch.float64).to(DTYPES[source])
        for target in FLOATS:
            g.case(f"cast(%x0, dtype={target})", [x], x.to(DTYPES[target]))
            if target != "f64":
                sign = torch.signbit(x.to(DTYPES[target]).double())
                g.case("signbit(%t1)", [x], sign & ~x.double().isnan(),
                       setup=[f"%t0 = cast(%x0, dtype={target})", "%t2 = cast(%t0, dtype=f64)",
                              "%t3 = isnan(%t2)", "%t1 = where(%t3, 0.0, %t2)"])
        for target in INTS + ("bool",):
            g.case(f"cast(%x0, dtype={target})", [x], to_integer(x, target))
    for source in INTS + ("bool",):
        x = torch.tensor(OF_INTS, dtype=torch.int64).to(DTYPES[source])
        for target in DTYPES:
            g.case(f"cast(%x0, dtype={target})", [x], x.to(DTYPES[target]))
