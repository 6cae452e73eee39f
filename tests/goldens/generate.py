"""What PyTorch computes for each op, as tests/goldens/ops.json.

    python3 tests/goldens/generate.py        # needs torch (CPU is enough); writes beside itself

One case is {"op", "attrs", "inputs": [tensor, ...], "output": tensor}; a tensor is {"dtype", "sizes",
"values"} with row-major values: numbers, true/false, or the strings "nan", "inf", "-inf". Floats of f32
and bf16 are printed as the doubles they are, so nothing is lost. Sizes are small: the cases are about
semantics (NaN, infinities, signed zeros, promotion, wrap-around, empty and 0-d tensors), not speed.
"""
import json
import math
import pathlib

import torch

DTYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16,
          "i64": torch.int64, "bool": torch.bool}
NAMES = {value: key for key, value in DTYPES.items()}
INF, NAN = math.inf, math.nan

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, -7.25, 20.0, 88.0, -100.0, 1e30, INF, -INF, NAN]
OTHERS = [2.0, 3.0, -0.0, 0.0, -1.5, 0.5, 2.0, -1.0, 7.25, NAN, 1.0, INF, 1e30, INF, 2.0, 1.0]
INTS = [0, 1, -1, 2, -3, 7, 100, -1000, 2**40, -(2**40), 2**62, -(2**63), 2**63 - 1, 5, -5, 3]
OTHER_INTS = [1, 3, 2, -2, 5, 0, 7, 3, 2, 3, 4, 2, 2, -5, 5, 60]
BOOLS = [True, False] * 8
OTHER_BOOLS = [True, True, False, False] * 4


def values_of(dtype, other=False):
    if dtype == "bool":
        return torch.tensor(OTHER_BOOLS if other else BOOLS)
    if dtype == "i64":
        return torch.tensor(OTHER_INTS if other else INTS)
    return torch.tensor(OTHERS if other else FLOATS, dtype=torch.float64).to(DTYPES[dtype])


def number(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def tensor(value):
    flat = value.to(torch.float64) if value.dtype.is_floating_point else value
    return {"dtype": NAMES[value.dtype], "sizes": list(value.shape),
            "values": [number(v) for v in flat.reshape(-1).tolist()]}


cases = []


def case(op, inputs, output, **attrs):
    if output.dtype not in NAMES:
        raise SystemExit(f"{op}: {output.dtype} is no dtype of heddle")
    cases.append({"op": op, "attrs": attrs, "inputs": [tensor(x) for x in inputs],
                  "output": tensor(output)})


UNARY = {"neg": torch.neg, "abs": torch.abs, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
         "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "tanh": torch.tanh, "erf": torch.erf,
         "sin": torch.sin, "cos": torch.cos, "sigmoid": torch.sigmoid,
         "silu": torch.nn.functional.silu, "relu": torch.relu, "isnan": torch.isnan,
         "logical_not": torch.logical_not}
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
          "maximum": torch.maximum, "minimum": torch.minimum, "eq": torch.eq, "ne": torch.ne,
          "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
          "logical_and": torch.logical_and, "logical_or": torch.logical_or}


def attempt(op, function, inputs, **attrs):
    """Combinations that PyTorch refuses (neg of bool) are no cases."""
    try:
        output = function(*inputs)
    except (RuntimeError, NotImplementedError, TypeError):
        return
    case(op, inputs, output, **attrs)


def elementwise():
    for dtype in DTYPES:
        x = values_of(dtype)
        for op, function in UNARY.items():
            attempt(op, function, [x])
        for target in DTYPES:
            if target in ("i64",) and dtype in ("f64", "f32", "bf16"):
                continue  # out of range is undefined in PyTorch
            case("cast", [x], x.to(DTYPES[target]), dtype=target)
        for other in DTYPES:
            y = values_of(other, other=True)
            for op, function in BINARY.items():
                if op == "pow" and (dtype == "i64" and other in ("i64", "bool")):
                    y = y.abs() if other == "i64" else y  # PyTorch refuses negative exponents
                attempt(op, function, [x, y])
            condition = torch.tensor(OTHER_BOOLS)
            attempt("where", torch.where, [condition, x, y])
    # Infinite arguments of the trigonometric functions and exact halves for rounding.
    halves = torch.tensor([1.00390625, 1.01171875, 3.3895314e38, -1.00390625], dtype=torch.float64)
    case("cast", [halves], halves.to(torch.bfloat16), dtype="bf16")


def reductions():
    for dtype in DTYPES:
        base = values_of(dtype)[:12].reshape(2, 3, 2)
        clean = torch.tensor([[[1, 2], [3, -4], [0, 5]], [[-2, 1], [2, 2], [7, -1]]]).to(DTYPES[dtype])
        for x in (base, clean):
            for axes in ([0], [1], [2], [0, 2], [0, 1, 2]):
                for keepdim in (False, True):
                    attributes = {"axes": axes, "keepdim": keepdim}
                    attempt("sum", lambda t: torch.sum(t, dim=axes, keepdim=keepdim), [x], **attributes)
                    attempt("max", lambda t: torch.amax(t, dim=axes, keepdim=keepdim), [x], **attributes)
                    attempt("min", lambda t: torch.amin(t, dim=axes, keepdim=keepdim), [x], **attributes)
                    if len(axes) == 1:
                        attempt("prod", lambda t: torch.prod(t, dim=axes[0], keepdim=keepdim), [x],
                                **attributes)
        empty = torch.zeros((0, 3), dtype=DTYPES[dtype])
        attempt("sum", lambda t: torch.sum(t, dim=[0]), [empty], axes=[0], keepdim=False)
        attempt("prod", lambda t: torch.prod(t, dim=0), [empty], axes=[0], keepdim=False)
        nan = torch.tensor([[1.0, NAN], [-INF, -INF], [-3.0, -2.0]])
        attempt("max", lambda t: torch.amax(t, dim=[1]), [nan], axes=[1], keepdim=False)
        attempt("min", lambda t: torch.amin(t, dim=[1]), [nan], axes=[1], keepdim=False)


def composites():
    torch.manual_seed(0)
    x = torch.randn(3, 5)
    case("softmax", [x], torch.softmax(x, -1), axis=-1)
    case("softmax", [x], torch.softmax(x, 0), axis=0)
    w, b = torch.randn(5), torch.randn(5)
    case("layer_norm", [x, w, b], torch.nn.functional.layer_norm(x, (5,), w, b, 1e-5), eps=1e-5)
    g = values_of("f32")[:12]
    for kind in ("none", "tanh"):
        case("gelu", [g], torch.nn.functional.gelu(g, approximate=kind), approximate=kind)
    up = torch.randn(12)
    case("swiglu", [g[:12], up], torch.nn.functional.silu(g[:12]) * up)


def matmuls():
    torch.manual_seed(1)
    for dtype in ("f64", "f32", "bf16"):
        for a, b in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 0), (0, 2)),
                     ((0, 4), (4, 2)), ((1, 1), (1, 1))):
            x, y = torch.randn(a).to(DTYPES[dtype]), torch.randn(b).to(DTYPES[dtype])
            case("matmul", [x, y], torch.matmul(x, y))


def main():
    elementwise()
    reductions()
    composites()
    matmuls()
    path = pathlib.Path(__file__).with_name("ops.json")
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    path.write_text(f'{{"torch":"{torch.__version__}","cases":[\n{lines}\n]}}\n')
    print(len(cases), "cases,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
