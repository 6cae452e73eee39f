"""The parts that all families of golden cases share: names of dtypes, edge values, and the writer of JSON files.

A file holds {"torch": version, "tensors": [tensor, ...], "cases": [case, ...]}.

A tensor is {"dtype", "sizes", "values"}. The values are in row-major order: numbers, true/false, or the strings "nan",
"inf", "-inf". A float is written with the fewest digits that round to the same value in its dtype.

A case is {"call", "inputs", "outputs"}:
- call: the text of the op with its operands named %x0, %x1, ...
- inputs, outputs: lists of positions in "tensors"
- setup: statements before the call, which compute %t0, %t1, ...
- ulps: the error that is allowed for floats, in units in the last place; default 4
- sums: elements are sums whose terms may cancel, so the error is relative to the sum of the magnitudes of the inputs
- reference: only the reference evaluator computes the case, because another case covers the kernel of a device
"""
import json
import math
import pathlib

import torch

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "i64": torch.int64,
          "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
NAMES = {value: key for key, value in DTYPES.items()}
INF, NAN = math.inf, math.nan

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, -7.25, 20.0, 88.0, -100.0, 1e30, INF, -INF, NAN]
OTHERS = [2.0, 3.0, -0.0, 0.0, -1.5, 0.5, 2.0, -1.0, 7.25, NAN, 1.0, INF, 1e30, INF, 2.0, 1.0]
INTS = [0, 1, -1, 2, -3, 7, 100, -1000, 2**40, -(2**40), 2**62, -(2**63), 2**63 - 1, 5, -5, 3]
OTHER_INTS = [1, 3, 2, -2, 5, 0, 7, 3, 2, 3, 4, 2, 2, -5, 5, 60]
BOOLS = [True, False] * 8
OTHER_BOOLS = [True, True, False, False] * 4


def values_of(dtype, other=False):
    """Returns 16 edge values of a dtype. With `other`, returns different values, for a second operand."""
    if dtype == "bool":
        return torch.tensor(OTHER_BOOLS if other else BOOLS)
    if dtype in ("i64", "i32", "i8", "u8"):
        return torch.tensor(OTHER_INTS if other else INTS).to(DTYPES[dtype])
    return torch.tensor(OTHERS if other else FLOATS, dtype=torch.float64).to(DTYPES[dtype])


def number(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def shortest(value, dtype):
    """Returns the number with the fewest decimal digits that rounds to `value` in `dtype`."""
    if dtype == torch.float64 or not math.isfinite(value):
        return value
    for digits in range(1, 17):
        short = float(f"{value:.{digits}g}")
        if torch.tensor(short, dtype=torch.float64).to(dtype).item() == value:
            return short
    return value


def tensor(value):
    values = value.reshape(-1).tolist()
    if value.dtype.is_floating_point:
        values = [shortest(v, value.dtype) for v in value.to(torch.float64).reshape(-1).tolist()]
    return {"dtype": NAMES[value.dtype], "sizes": list(value.shape), "values": [number(v) for v in values]}


class Family:
    """Collects the cases of one JSON file."""

    def __init__(self, name):
        self.name = name
        self.tensors = {}  # JSON text of a tensor -> position
        self.cases = []
        self.reference = False  # value of "reference" for cases that are added later

    def place(self, value):
        if value.dtype not in NAMES:
            raise SystemExit(f"{self.name}: {value.dtype} is no dtype of heddle")
        text = json.dumps(tensor(value), separators=(",", ":"))
        return self.tensors.setdefault(text, len(self.tensors))

    def case(self, call, inputs, outputs, ulps=None, sums=False, setup=()):
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        entry = {"call": call, "inputs": [self.place(x) for x in inputs],
                 "outputs": [self.place(x) for x in outputs]}
        if setup:
            entry["setup"] = list(setup)
        if ulps is not None:
            entry["ulps"] = ulps
        if sums:
            entry["sums"] = True
        if self.reference:
            entry["reference"] = True
        self.cases.append(entry)

    def attempt(self, call, function, inputs, **how):
        """Adds a case of function(*inputs), if PyTorch accepts the inputs (it refuses, for example, neg of bool)."""
        try:
            outputs = function(*inputs)
        except (RuntimeError, NotImplementedError, TypeError, IndexError):
            return
        self.case(call, inputs, outputs, **how)

    def write(self):
        path = pathlib.Path(__file__).with_name(self.name + ".json")
        cases = ",\n".join(json.dumps(c, separators=(",", ":")) for c in self.cases)
        path.write_text(f'{{"torch":"{torch.__version__}","tensors":[\n' + ",\n".join(self.tensors) +
                        f'\n],"cases":[\n{cases}\n]}}\n')
        print(f"{self.name}: {len(self.cases)} cases, {path.stat().st_size} bytes")
