"""Random tensors. The Philox generator here is written from its definition in Salmon et al. 2011."""
import math

import torch

from common import DTYPES

MASK = 2**32 - 1


def philox(key, counter):
    """Philox4x32-10: returns four words of 32 bits."""
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 2**32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


# The known answers published with Random123.
assert philox((0, 0), (0, 0, 0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
assert philox((MASK, MASK), (MASK,) * 4) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)


def block(seed, offset, counter):
    seed, offset = seed % 2**64, offset % 2**64
    return philox((seed & MASK, seed >> 32), (counter & MASK, counter >> 32, offset & MASK, offset >> 32))


def philox32(seed, offset, index):
    """Returns the number of 32 bits that belongs to an index."""
    return block(seed, offset, index % 2**64 // 4)[index % 4]


def philox64(seed, offset, index):
    """Returns the pair of words of 32 bits that belongs to an index."""
    at = index % 2 * 2
    return block(seed, offset, index % 2**64 // 2)[at:at + 2]


def drawn(seed, offset, sizes, function, dtype):
    """Applies a function to the number of 32 bits of each element."""
    values = [function(philox32(seed, offset, index)) for index in range(math.prod(sizes))]
    return torch.tensor(values, dtype=dtype).reshape(sizes)


def drawn64(seed, offset, sizes, function, dtype):
    """Applies a function to the two words of each element."""
    values = [function(*philox64(seed, offset, index)) for index in range(math.prod(sizes))]
    return torch.tensor(values, dtype=dtype).reshape(sizes)


def signed(value):
    return value - 2**64 if value >= 2**63 else value


DIGITS = {"f32": 24, "f64": 53, "bf16": 8, "f16": 11}


def units(seed, offset, sizes, name, function=lambda u: u, dtype=None):
    """Applies a function to the uniform number in [0, 1) of each element. The number has as many random bits as the
    significand of the dtype `name`."""
    dtype = dtype or DTYPES[name]
    if name == "f64":
        return drawn64(seed, offset, sizes, lambda a, b: function(((a | b << 32) >> 11) * 2.0**-53), dtype)
    digits = DIGITS[name]
    return drawn(seed, offset, sizes, lambda w: function((w >> (32 - digits)) * 2.0**-digits), dtype)


def box_muller(a, b):
    return math.sqrt(-2 * math.log((a + 1) * 2.0**-32)) * math.cos(2 * math.pi * (b * 2.0**-32))


# The ends of a range: neighbours, the widest ranges, and ends that the dtype cannot represent.
RANGES = (("f16", 1000.0, 1000.5), ("bf16", 1000.0, 1004.0), ("f32", 16777216.0, 16777218.0), ("f32", -3e38, 3e38),
          ("f64", -1.7e308, 1.7e308), ("f16", -65504.0, 65504.0), ("bf16", -3e38, 3e38), ("f16", 0.1, 0.7),
          ("bf16", -0.3, 0.0), ("f32", 5.0, 5.0), ("f16", 0.0, 1000.0))


def between(u, low, high, name):
    """Returns a uniform number by the formula in docs/ops.md."""
    low, high = (torch.tensor(x, dtype=torch.float64).to(DTYPES[name]) for x in (low, high))
    last = torch.nextafter(high, torch.tensor(-math.inf, dtype=high.dtype)).item()
    low, high = low.item(), high.item()
    value = low + u * (high - low) if math.isfinite(high - low) else u * high + (1 - u) * low
    return min(value, last) if low < high else value


STATES = ((0, 0), (1, 2), (-1, -1), (1234567890123456789, 9876543210))


# Small and very large indices, at every position within a block of random words.
INDICES = (0, 1, 2, 3, 4, 7, 2**32 - 1, 2**32, 2**34 + 2, 2**62 + 5, 2**63 - 1, -1, -2**63, -6)


def fill(g):
    index = torch.tensor(INDICES)
    for seed, offset in STATES:
        g.case(f"philox32({seed}, {offset}, %x0)", [index],
               torch.tensor([philox32(seed, offset, i) for i in INDICES]))
        g.case(f"philox64({seed}, {offset}, %x0)", [index],
               torch.tensor([signed(a | b << 32) for a, b in (philox64(seed, offset, i) for i in INDICES)]))
    shape = [3, 5, 2]
    for seed, offset in STATES:
        at = f"{seed}, {offset}, sizes={shape}"
        g.case(f"random_bits({at})", [],
               drawn64(seed, offset, shape, lambda a, b: signed(a | b << 32), torch.int64))
        for name in DIGITS:
            g.case(f"uniform({at}, dtype={name})", [], units(seed, offset, shape, name), ulps=0)
        g.case(f"normal({at})", [], drawn64(seed, offset, shape, box_muller, torch.float32), ulps=2)
        g.case(f"normal({at}, dtype=f64)", [], drawn64(seed, offset, shape, box_muller, torch.float64), ulps=16)
        g.case(f"normal({at}, mean=-1, std=0.5)", [],
               drawn64(seed, offset, shape, lambda a, b: box_muller(a, b) * 0.5 - 1, torch.float32), ulps=4)
        for p in (0.0, 0.3, 1.0):
            g.case(f"bernoulli({at}, p={p})", [],
                   drawn(seed, offset, shape, lambda w: w * 2.0**-32 < p, torch.bool))
        for low, high in ((0, 10), (-7, 5), (0, 2**32), (-5, 2**40), (-(2**62), 2**62 - 1), (0, 2**63 - 1)):
            size = high - low
            value = (drawn(seed, offset, shape, lambda w: low + w % size, torch.int64) if size <= 2**32 else
                     drawn64(seed, offset, shape, lambda a, b: low + (a | b << 32) % size, torch.int64))
            g.case(f"randint({at}, low={low}, high={high})", [], value)
    g.case("uniform(3, 4, sizes=[])", [], units(3, 4, [], "f32"), ulps=0)
    g.case("uniform(3, 4, sizes=[0, 2])", [], torch.zeros(0, 2))
    x = torch.randn(4, 3)
    g.case("uniform(%x0, 3, 4, low=-2, high=6)", [x], units(3, 4, [4, 3], "f32", lambda u: u * 8 - 2), ulps=0)
    for name, low, high in RANGES:
        g.case(f"uniform(1, 2, sizes=[4, 3], low={low!r}, high={high!r}, dtype={name})", [],
               units(1, 2, [4, 3], name, lambda u: between(u, low, high, name)), ulps=0)
    chances = torch.rand(4, 3)
    u = units(5, 6, [4, 3], "f32")
    for name in ("f32", "bf16", "f64"):
        p = chances.to(DTYPES[name])
        g.case("bernoulli(%x0, 5, 6)", [p], (u < p.float()).to(p.dtype))
    for name in ("f32", "bf16", "f64"):
        y = x.to(DTYPES[name])
        y[0, 0], y[1, 1] = math.inf, math.nan
        for p in (0.0, 0.25, 0.5, 1.0):
            mask = drawn(5, 6, [4, 3], lambda w: w * 2.0**-32 < 1 - p, torch.bool)
            scale = 0.0 if p == 1 else 1 / (1 - p)
            out = (y.double() * mask * scale).to(y.dtype)
            g.case(f"dropout(%x0, 5, 6, p={p})", [y], [out, mask])
            g.case(f"dropout_backward(%x0, %x1, p={p})", [y, mask], out)
