"""Every elementwise op: dtypes and pairs of dtypes, edge values, parameters, scalar operands."""
import torch

from common import DTYPES, INF, NAN, values_of

F = torch.nn.functional
FLOATS = ("f64", "f32", "f16", "bf16")
INTS = ("i64", "i32", "i8", "u8")
TYPES = FLOATS + INTS + ("bool",)

# Values for functions of one real number: small, large, at the ends of domains, and outside of domains.
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.0, 1e-3, -1e-5, -7.25, 20.0, 88.0, -100.0, 0.99,
         -0.999, 1.0078125, 1e-41, 700.0, -746.0, 1e4, 1e30, INF, -INF, NAN, 2.25, -3.7, 9.5, 0.25, 1e-8, -20.5]
REAL_OPS = ("exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh "
            "acosh atanh erf erfc erfinv lgamma sigmoid").split()
# Values for exact functions: integers and halves, both signs, subnormal numbers.
EXACT = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.25, -7.75, 1e-41, -1e-41, 8388607.5, -1e30, INF, -INF, NAN, 1e10,
         4503599627370497.5, -0.75]
EXACT_OPS = ("neg abs sign relu floor ceil round trunc frac isnan isinf isfinite signbit logical_not "
             "bitwise_not").split()

FLOAT_PAIRS = [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (-7.5, -2.0), (6.0, 3.0), (-6.0, 3.0), (1.0, 0.1), (0.0, 3.0),
               (-0.0, 3.0), (3.0, 0.0), (-3.0, 0.0), (0.0, 0.0), (3.0, -0.0), (NAN, 1.0), (1.0, NAN), (NAN, NAN),
               (INF, 2.0), (2.0, INF), (-2.0, INF), (INF, INF), (-INF, INF), (0.0, -0.0), (-0.0, 0.0), (1e-41, 2.0),
               (300.0, 7.0), (-1.0, 0.5), (2.0, 10.0), (0.3, 0.1), (-0.3, 0.1), (1.0, -INF), (0.0, -1.0), (-8.0, 3.0)]
INT_PAIRS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5), (1, 1), (-1, 3), (5, 63), (-5, 63), (3, 64),
             (-3, 7), (2**62, 2), (-(2**63), 3), (2**63 - 1, 2), (2**40, -3), (2, 62), (127, 1), (-128, 2), (255, 9),
             (100, 100), (-100, 31), (2**31 - 1, 2), (-(2**31), 5), (12, 10), (5, 1), (-5, 2), (3, 3), (17, 4)]
PLAIN_PAIRS = ("add sub mul div atan2 maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or "
               "logical_xor bitwise_and bitwise_or bitwise_xor").split()


def truncated(a, b):
    """Returns the truncated quotient. For half types the quotient is computed in f32, because PyTorch would round it to
    the half type before it truncates."""
    wide = torch.promote_types(a.dtype, torch.float32) if a.dtype.is_floating_point else a.dtype
    return torch.div(a.to(wide), b.to(wide), rounding_mode="trunc").to(a.dtype)


FLOATS_OF_POWERS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, -7.25, 20.0, 1e4, INF, -INF, NAN, 1e-7, 2.0]

DIVISIONS = {"div_floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
             "div_trunc": truncated,
             "fmod": torch.fmod, "remainder": torch.remainder}


def filled(values, dtype):
    if dtype == "bool":
        return torch.tensor([v != 0 for v in values])
    if dtype in INTS:
        return torch.tensor(values, dtype=torch.int64).to(DTYPES[dtype])
    return torch.tensor(values, dtype=torch.float64).to(DTYPES[dtype])


def unary(g):
    for dtype in FLOATS:
        x = filled(REALS, dtype)
        for op in REAL_OPS:
            half = dtype in ("f16", "bf16")
            # PyTorch's own erf of a half type would be wrong by several ulps.
            expected = torch.erf(x.float()).to(x.dtype) if half and op == "erf" else getattr(torch, op)(x)
            # Near its zeros, lgamma is the difference of larger terms, so its relative error may be large.
            g.case(f"{op}(%x0)", [x], expected, ulps=1 if half else None, sums=op == "lgamma")
        g.case("silu(%x0)", [x], F.silu(x))
    for dtype in INTS + ("bool",):
        x = filled([0, 1, 2, 3, 5, 100], dtype)
        for op in REAL_OPS:
            g.case(f"{op}(%x0)", [x], getattr(torch, op)(x))
    for dtype in TYPES:
        x = filled(EXACT, dtype) if dtype in FLOATS else values_of(dtype)
        for op in EXACT_OPS:
            g.attempt(f"{op}(%x0)", getattr(torch, op), [x])


def pairs(g):
    for dtype in TYPES:
        values = FLOAT_PAIRS if dtype in FLOATS else INT_PAIRS
        a = filled([v[0] for v in values], dtype)
        b = filled([v[1] for v in values], dtype)
        for op in PLAIN_PAIRS:
            g.attempt(f"{op}(%x0, %x1)", getattr(torch, op), [a, b])
        lowest = torch.iinfo(a.dtype).min if dtype in INTS else None
        divisor = b.masked_fill(b == 0, 3) if dtype in INTS else b  # PyTorch refuses division by 0
        if dtype in INTS and lowest < 0:
            # For example, -128 / -1 does not fit i8.
            divisor = divisor.masked_fill((divisor == -1) & (a == lowest), 2)
        for op, function in DIVISIONS.items():
            g.attempt(f"{op}(%x0, %x1)", function, [a, divisor])
        exponent = b.clamp(min=0) if dtype in INTS and dtype != "u8" else b
        g.attempt("pow(%x0, %x1)", torch.pow, [a, exponent])
        for op in ("bitwise_left_shift", "bitwise_right_shift"):
            shifts = b.remainder(70) if dtype in INTS else b
            g.attempt(f"{op}(%x0, %x1)", getattr(torch, op), [a, shifts])


def powers(g):
    """Adds powers whose exponent is a number. For f16 the expected values are computed in f32, because PyTorch's pow on
    the CPU does not compute f16 powers of 0.5 as square roots."""
    for dtype in FLOATS + ("i64", "u8"):
        x = filled(FLOATS_OF_POWERS, dtype) if dtype in FLOATS else filled([0, 1, 2, 3, 7, 200], dtype)
        for exponent in (0.5, -0.5, 2, 3, -1, -2.0, 0.25, 1, 0):
            if dtype not in FLOATS and isinstance(exponent, int) and exponent < 0:
                continue  # PyTorch refuses negative exponents of integers
            result = torch.pow(x.float(), exponent).half() if dtype == "f16" else torch.pow(x, exponent)
            g.case(f"pow(%x0, {exponent})", [x], result)


def promotion(g):
    """Adds cases for the result dtype of each pair of dtypes, and of scalars with tensors."""
    for dtype in TYPES:
        x = filled([0, 1, 2, 3], dtype)
        for other in TYPES:
            y = filled([3, 1, 2, 2], other)
            result = torch.result_type(x, y)
            if result in (torch.int16,):
                continue  # heddle has no i16
            for op in ("mul", "div", "lt"):
                g.case(f"{op}(%x0, %x1)", [x, y], getattr(torch, op)(x, y))
        for scalar, text in ((2, "2"), (1.5, "1.5"), (True, "true")):
            g.case(f"add(%x0, {text})", [x], torch.add(x, scalar))


def parameters(g):
    for dtype in TYPES:
        x = filled(REALS[:16] + [INF, -INF, NAN, 25.0], dtype) if dtype in FLOATS else values_of(dtype)
        y, z = x.flip(0), x.roll(3)
        g.attempt("threshold(%x0, 1, 7)", lambda t: F.threshold(t, 1, 7), [x])
        g.attempt("clamp(%x0, -1, 3)", lambda t: torch.clamp(t, -1, 3), [x])
        g.attempt("clamp(%x0, 2, 1)", lambda t: torch.clamp(t, 2, 1), [x])
        g.attempt("clamp(%x0, %x1, %x2)", torch.clamp, [x, y, z])
        g.attempt("addcmul(%x0, %x1, %x2)", torch.addcmul, [x, y, z], sums=dtype in FLOATS)
        g.attempt("addcmul(%x0, %x1, %x2, 3)", lambda a, b, c: torch.addcmul(a, b, c, value=3), [x, y, z],
                  sums=dtype in FLOATS)
        if dtype not in FLOATS:
            continue
        g.case("leaky_relu(%x0)", [x], F.leaky_relu(x))
        g.case("leaky_relu(%x0, 0.25)", [x], F.leaky_relu(x, 0.25))
        g.case("softplus(%x0)", [x], F.softplus(x))
        g.case("softplus(%x0, 2.0, 10.0)", [x], F.softplus(x, 2.0, 10.0))
        g.case("clamp(%x0, -1.5, inf)", [x], torch.clamp(x, -1.5, INF))
        g.case("lerp(%x0, %x1, 0.25)", [x, y], torch.lerp(x, y, 0.25), sums=True)
        g.case("lerp(%x0, %x1, %x2)", [x, y, z], torch.lerp(x, y, z), sums=True)


def shapes(g):
    """Operands without axes, empty operands and broadcast operands."""
    for a, b in (((), ()), ((0, 3), (3,)), ((2, 1), (3,)), ((1,), ())):
        x = torch.arange(1, 1 + torch.Size(a).numel(), dtype=torch.float32).reshape(a)
        y = torch.arange(2, 2 + torch.Size(b).numel(), dtype=torch.float32).reshape(b)
        g.case("fmod(%x0, %x1)", [x, y], torch.fmod(x, y))


def fill(g):
    unary(g)
    pairs(g)
    promotion(g)
    parameters(g)
    shapes(g)
    powers(g)
