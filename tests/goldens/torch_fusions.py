#!/usr/bin/env python3
"""Runs random fusions with PyTorch and compares the outputs with those of heddle's reference evaluator.

    heddle-fuzz --write 500 --out /tmp/fusions
    tests/goldens/torch_fusions.py /tmp/fusions [--device cuda]

heddle-fuzz writes the fusions, their inputs NAME.<input>.npy and the expected outputs NAME.out.<output>.npy. It also
writes NAME.bound.<output>.npy, the error that is allowed for each element (tools/random/bounds.h). This script
multiplies the allowed errors by --slack. It does not compare elements whose allowed error is too large for a useful
test.

Some ops cannot be compared: the script then computes neither the op nor anything that reads its result. PyTorch has no
counterpart for some ops. In other cases heddle differs from PyTorch on purpose:
- casts of NaN, infinities and values out of range to integers
- indices outside of a tensor
- a maximum of no elements
- a scatter that writes several elements to one place

Exit code: 1 if any output differs or there are no fusions, otherwise 0.
"""
import argparse
import collections
import glob
import math
import os
import re
import sys

import numpy as np
import torch

DTYPES = {"bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i32": torch.int32, "i64": torch.int64,
          "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "f16": torch.float16, "bf16": torch.bfloat16,
          "f32": torch.float32, "f64": torch.float64}
# Largest useful relative errors, as conditionLimit() in bounds.h. Other types: 5e-2.
LIMITS = {torch.float64: 1e-9, torch.float32: 1e-3}

class NotMapped(Exception):
    """An op that is not compared, because PyTorch does not have it or defines it in another way."""


# --- text ------------------------------------------------------------------------------------------------------------

TOKEN = re.compile(r'%[A-Za-z_][\w.]*|[A-Za-z_][\w.]*|-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+e[+-]?\d+|-?\d+|-?inf|//|[-+*/%(){}\[\],=:]')


class Parser:
    """Parses the subset of docs/text_format.md that print() writes for fusions without meshes."""

    def __init__(self, text):
        self.tokens = TOKEN.findall(re.sub(r"#.*", "", text))
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        if wanted is not None and token != wanted:
            raise ValueError(f"found {token!r}, expected {wanted!r} at {self.tokens[self.at - 5:self.at + 5]}")
        self.at += 1
        return token

    def accept(self, token):
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def listed(self, end, item):
        items = []
        while not self.accept(end):
            items.append(item())
            self.accept(",")
        return items

    def fusion(self):
        self.take("heddle"), self.take("1"), self.take("fusion"), self.take()
        self.take("(")
        self.inputs = self.listed(")", self.input)
        self.sizes = {}
        if self.accept("with"):
            while self.peek() != "{":
                name = self.take()
                self.take("=")
                self.sizes[name] = int(self.take())
                self.accept(",")
        self.take("{")
        self.statements = []
        while not self.accept("return"):
            self.statements.append(self.statement())
        self.outputs = self.listed("}", lambda: self.take()[1:])
        return self

    def input(self):
        name = self.take()[1:]
        self.take(":")
        dtype = self.take()
        shape = None
        default = None
        if self.accept("["):
            shape = self.listed("]", self.extent)
        if self.accept("="):
            default = self.scalar()
        return name, dtype, shape, default

    def extent(self):
        if self.accept("broadcast"):
            self.take("("), self.take("1"), self.take(")")
            return "1"
        return self.expression()

    def expression(self):
        """Returns a size, up to the next comma or bracket, as Python text."""
        text, depth = [], 0
        while depth > 0 or self.peek() not in (",", "]", ")"):
            token = self.take()
            depth += {"(": 1, ")": -1}.get(token, 0)
            text.append("//" if token == "/" else token)
        return " ".join(text)

    def scalar(self):
        token = self.take()
        if token == "-":
            value = self.scalar()
            return -value
        if token in ("true", "false"):
            return token == "true"
        if token in ("inf", "-inf", "nan"):
            return float(token)
        return float(token) if re.search(r"[.e]", token) else int(token)

    def statement(self):
        name = self.take()[1:]
        self.take("=")
        op = self.take()
        self.take("(")
        operands, attrs = [], {}
        for argument in self.listed(")", self.argument):
            if isinstance(argument, tuple):
                attrs[argument[0]] = argument[1]
            else:
                operands.append(argument)
        return name, op, operands, attrs

    def argument(self):
        token = self.peek()
        if token.startswith("%"):
            return self.take()
        if re.match(r"[A-Za-z_]", token) and self.tokens[self.at + 1] == "=":
            key = self.take()
            self.take("=")
            return key, self.attribute()
        return self.scalar()

    def attribute(self):
        if self.accept("["):
            return self.listed("]", self.expression)
        if re.match(r"[A-Za-z_]", self.peek()) and self.peek() not in ("true", "false", "inf", "nan"):
            return self.take()
        return self.scalar()


# --- values ----------------------------------------------------------------------------------------------------------

def load(path, dtype, device):
    array = np.load(path)
    if array.dtype.kind == "V" or dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        bits = {1: np.uint8, 2: np.int16}[array.dtype.itemsize]
        tensor = torch.from_numpy(np.ascontiguousarray(array).view(bits).copy()).view(dtype).reshape(array.shape)
    else:
        tensor = torch.from_numpy(np.ascontiguousarray(array).copy()).reshape(array.shape)
    return tensor.to(device)


def scalar_of(value, dtype):
    if dtype == "bool":
        return bool(value)
    if dtype.startswith("f") or dtype == "bf16":
        return torch.tensor(float(value), dtype=DTYPES[dtype]).double().item()
    return int(value)


# --- ops -------------------------------------------------------------------------------------------------------------

HALVES = (torch.float16, torch.bfloat16)
INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64)


def is_tensor(value):
    return isinstance(value, torch.Tensor)


class Evaluator:
    def __init__(self, parser, sizes, device):
        self.device = device
        self.sizes = sizes
        self.values = {}
        self.parser = parser

    def size(self, text):
        functions = {"ceildiv": lambda a, b: -(-a // b), "floordiv": lambda a, b: a // b, "min": min, "max": max}
        return eval(str(text), {"__builtins__": {}}, {**functions, **self.sizes})  # from heddle-fuzz, so safe

    def ints(self, texts):
        return [self.size(text) for text in texts]

    def operand(self, text):
        if not isinstance(text, str):
            return text
        value = self.values.get(text[1:])
        if value is None:
            raise NotMapped("an operand that was not computed")
        return value

    def run(self, op, operands, attrs):
        args = [self.operand(text) for text in operands]
        if not any(is_tensor(a) for a in args) and op not in ("constant", "full", "iota"):
            raise NotMapped("arithmetic of host scalars")
        method = getattr(self, "op_" + op, None)
        try:
            return method(args, attrs) if method is not None else self.by_name(op, args, attrs)
        except (RuntimeError, TypeError, NotImplementedError) as error:
            raise NotMapped(f"{op}: {str(error).splitlines()[0][:90]}")

    def by_name(self, op, args, attrs):
        function = getattr(torch, op, None)
        if function is None or attrs:
            raise NotMapped(op)
        return self.call(function, args)

    def call(self, function, args):
        """Calls `function` so that PyTorch promotes types like heddle. Scalars become tensors without axes, because
        PyTorch lets these change the result type only by their category. Tensors without axes get one axis, so that
        they outrank scalars. Printed fusions have no op that reads both tensors with axes and tensors without axes."""
        bare = all(a.dim() == 0 for a in args if is_tensor(a))
        floats = any(a.dtype.is_floating_point for a in args if is_tensor(a))
        real = torch.float64 if floats else torch.float32
        tensors = []
        for a in args:
            if is_tensor(a):
                tensors.append(a.reshape(1) if a.dim() == 0 else a)
            else:
                dtype = torch.bool if isinstance(a, bool) else torch.int64 if isinstance(a, int) else real
                tensors.append(torch.tensor(a, dtype=dtype, device=self.device))
        result = function(*tensors)
        return result.reshape(()) if bare else result

    def op_neg(self, args, attrs):
        if args[0].dtype == torch.bool:
            raise NotMapped("neg of bool")
        return -args[0]

    def op_constant(self, args, attrs):
        return args[0]

    def op_size(self, args, attrs):
        return args[0].shape[attrs["axis"]]

    def op_set(self, args, attrs):
        return args[0]

    def op_cast(self, args, attrs):
        x, dtype = args[0], DTYPES[attrs["dtype"]]
        if x.dtype.is_floating_point and dtype in INTEGERS and dtype != torch.bool:
            info = torch.iinfo(dtype)
            if not bool(((x >= info.min) & (x < float(info.max))).all()):
                raise NotMapped("cast of NaN, infinities or values out of range to an integer")
        return x.to(dtype)

    def op_where(self, args, attrs):
        return self.call(torch.where, args)

    # On a CPU, PyTorch rounds intermediate values of some ops of half types, so these ops run in f32. For the same
    # reason op_sqrt() runs in f64: PyTorch's f32 square root is off by one unit for one element in five.
    @staticmethod
    def wider(function, x):
        if x.dtype in HALVES:
            return function(x.float()).to(x.dtype)
        return function(x.float() if x.dtype in INTEGERS else x)

    def op_silu(self, args, attrs):
        return self.wider(torch.nn.functional.silu, args[0])

    def op_rsqrt(self, args, attrs):
        return self.wider(torch.rsqrt, args[0])

    def op_sqrt(self, args, attrs):
        dtype = torch.float32 if args[0].dtype in INTEGERS else args[0].dtype
        return torch.sqrt(args[0].to(dtype).double()).to(dtype)

    def with_scalar(self, function, args):
        """Computes in f32 with one operand of a half type and a scalar. On a CPU, and only for add and sub, PyTorch
        rounds the scalar to the half type first."""
        halves = [a.dtype for a in args if is_tensor(a) and a.dtype in HALVES]
        others = [a for a in args if is_tensor(a) and a.dtype not in HALVES]
        if len(halves) == 1 and not others and not all(is_tensor(a) for a in args):
            return self.call(function, [a.float() if is_tensor(a) else a for a in args]).to(halves[0])
        return self.call(function, args)

    def op_add(self, args, attrs):
        return self.with_scalar(torch.add, args)

    def op_sub(self, args, attrs):
        return self.with_scalar(torch.sub, args)

    def reduce(self, op, args, attrs):
        x = args[0]
        axes = self.ints(attrs["axes"])
        keepdim = bool(attrs.get("keepdim", False))
        if op in ("amax", "amin") and any(x.shape[a] == 0 for a in axes):
            raise NotMapped("max or min of nothing")
        if op == "prod" and x.dtype in HALVES:
            return self.reduce(op, [x.float()], attrs).to(x.dtype)
        if op == "prod":
            for axis in sorted((a % x.dim() for a in axes), reverse=True):
                x = torch.prod(x, axis, keepdim=keepdim)
            return x
        return getattr(torch, op)(x, axes, keepdim=keepdim)

    def op_sum(self, args, attrs):
        return self.reduce("sum", args, attrs)

    def op_prod(self, args, attrs):
        return self.reduce("prod", args, attrs)

    def op_max(self, args, attrs):
        return self.reduce("amax", args, attrs)

    def op_min(self, args, attrs):
        return self.reduce("amin", args, attrs)

    def op_broadcast(self, args, attrs):
        x = args[0]
        for axis in sorted(self.ints(attrs["axes"])):
            x = x.unsqueeze(axis)
        return x

    def op_expand(self, args, attrs):
        return args[0].expand(self.ints(attrs["sizes"]))

    def op_reshape(self, args, attrs):
        return args[0].reshape(self.ints(attrs["sizes"]))

    def op_permute(self, args, attrs):
        return args[0].permute(self.ints(attrs["axes"]))

    def op_slice(self, args, attrs):
        starts, stops = self.ints(attrs["starts"]), self.ints(attrs["stops"])
        steps = self.ints(attrs.get("steps", ["1"] * len(starts)))
        return args[0][tuple(slice(*cut) for cut in zip(starts, stops, steps))]

    # Calls a function whose parameters after the first one must be numbers in PyTorch.
    def with_numbers(self, function, args):
        if any(is_tensor(a) for a in args[1:]) or not is_tensor(args[0]):
            raise NotMapped("a parameter that is a tensor")
        return function(args[0], *args[1:])

    def op_leaky_relu(self, args, attrs):
        return self.with_numbers(torch.nn.functional.leaky_relu, args)

    def op_threshold(self, args, attrs):
        return self.with_numbers(torch.nn.functional.threshold, args)

    def op_softplus(self, args, attrs):
        return self.with_numbers(torch.nn.functional.softplus, args)

    def divide(self, args, rounding):
        if not any(a.dtype.is_floating_point if is_tensor(a) else isinstance(a, float) for a in args):
            divisor = args[1] if is_tensor(args[1]) else torch.tensor(args[1])
            if bool((divisor == 0).any()):
                raise NotMapped("division of integers by zero")
        halves = {a.dtype for a in args if is_tensor(a) and a.dtype.is_floating_point}
        if rounding == "trunc" and halves and halves <= set(HALVES):  # in f32: PyTorch would round first
            if len(halves) > 1:
                raise NotMapped("div_trunc of two half types")
            args = [a.float() if is_tensor(a) else a for a in args]
            return self.call(lambda a, b: torch.div(a, b, rounding_mode=rounding), args).to(halves.pop())
        return self.call(lambda a, b: torch.div(a, b, rounding_mode=rounding), args)

    def op_div_floor(self, args, attrs):
        return self.divide(args, "floor")

    def op_div_trunc(self, args, attrs):
        return self.divide(args, "trunc")

    def op_linear(self, args, attrs):
        x, w = args[0], args[1]
        bias = args[2] if len(args) > 2 else None
        activation = attrs.get("activation", "none")
        if x.dtype in HALVES:  # one rounding, after bias and activation
            x, w, bias = x.float(), w.float(), None if bias is None else bias.float()
        y = torch.nn.functional.linear(x, w, bias)
        if activation == "relu":
            y = torch.relu(y)
        elif activation == "gelu_tanh":
            y = torch.nn.functional.gelu(y, approximate="tanh")
        return y.to(args[0].dtype)

    def op_addcmul(self, args, attrs):
        x, a, b, value = args
        if not all(is_tensor(t) for t in (x, a, b)) or is_tensor(value):
            raise NotMapped("addcmul of scalars")
        whole = x.dtype in INTEGERS and not isinstance(value, int)
        if len({x.dtype, a.dtype, b.dtype}) > 1 or isinstance(value, bool) or whole:
            raise NotMapped("addcmul of several types")
        return torch.addcmul(x, a, b, value=value)

    def op_matmul(self, args, attrs):
        if args[0].dtype in INTEGERS and self.device != "cpu":
            raise NotMapped("matmul of integers on a GPU")
        return torch.matmul(args[0], args[1])

    def op_full(self, args, attrs):
        value = args[0]
        dtype = DTYPES[attrs["dtype"]]
        if dtype in INTEGERS and dtype != torch.bool and not float(value).is_integer():
            raise NotMapped("cast of NaN, infinities or values out of range to an integer")
        return torch.full(self.ints(attrs["sizes"]), value, dtype=dtype, device=self.device)

    def op_iota(self, args, attrs):
        sizes, axis = self.ints(attrs["sizes"]), attrs["axis"]
        shape = [-1 if i == axis else 1 for i in range(len(sizes))]
        return torch.arange(sizes[axis], device=self.device).reshape(shape).expand(sizes)

    def op_flip(self, args, attrs):
        return torch.flip(args[0], self.ints(attrs["axes"]))

    def op_pad(self, args, attrs):
        x, fill = args
        pads = [n for pair in reversed(list(zip(self.ints(attrs["lows"]), self.ints(attrs["highs"])))) for n in pair]
        if not x.dtype.is_floating_point and not float(fill).is_integer():
            raise NotMapped("pad of integers with a fraction")
        return torch.nn.functional.pad(x, pads, value=fill)

    def inside(self, index, extent):
        if not bool(((index >= 0) & (index < extent)).all()):
            raise NotMapped("an index outside")

    def op_take(self, args, attrs):
        x, index, axis = args[0], args[1], attrs["axis"]
        self.inside(index, x.shape[axis])
        out = x.index_select(axis, index.reshape(-1))
        return out.reshape(x.shape[:axis] + index.shape + x.shape[axis + 1:])

    def op_take_along_axis(self, args, attrs):
        self.inside(args[1], args[0].shape[attrs["axis"]])
        return torch.gather(args[0], attrs["axis"], args[1])

    def op_cumsum(self, args, attrs):
        return torch.cumsum(args[0], attrs["axis"])

    def op_argsort(self, args, attrs):
        return torch.argsort(args[0], dim=attrs["axis"], descending=bool(attrs.get("descending", False)), stable=True)

    def op_scatter(self, args, attrs):
        x, index, source = args
        self.inside(index, x.shape[attrs["axis"]])
        index = index.expand(source.shape)
        line = index.sort(attrs["axis"])[0]
        n = line.shape[attrs["axis"]]
        if n > 1 and bool((line.narrow(attrs["axis"], 1, n - 1) == line.narrow(attrs["axis"], 0, n - 1)).any()):
            raise NotMapped("several elements put at one place")
        return torch.scatter(x, attrs["axis"], index, source)

    def op_scatter_add(self, args, attrs):
        x, index, source = args
        self.inside(index, x.shape[attrs["axis"]])
        return torch.scatter_add(x, attrs["axis"], index.expand(source.shape), source)


# --- comparison ------------------------------------------------------------------------------------------------------

def differences(got, want, bound, slack):
    """Returns the number of elements compared, and a text about the elements that differ."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return 0, f"is {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    if not got.dtype.is_floating_point:
        known = np.isfinite(bound)
        wrong = known & (got != want).numpy()
    else:
        g, w = got.double().numpy(), want.double().numpy()
        with np.errstate(invalid="ignore"):
            error = np.maximum(bound, 0)
            known = error <= LIMITS.get(got.dtype, 5e-2) * np.maximum(1, np.abs(w))
            known |= ~np.isfinite(w) & (error == 0)
            right = np.where(np.isfinite(w), np.abs(g - w) <= slack * error, (g == w) | (np.isnan(g) & np.isnan(w)))
        wrong = known & ~right
    if not wrong.any():
        return int(known.sum()), ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
    return int(known.sum()), (f"{int(wrong.sum())} of {int(known.sum())} elements differ, first {list(at)}: PyTorch "
                              f"{got[at].item()!r}, heddle {want[at].item()!r} within {bound[at]:.2g}")


def run_file(path, device, slack, totals):
    stem = path[:-len(".fusion")]
    parser = Parser(open(path).read()).fusion()
    evaluator = Evaluator(parser, parser.sizes, device)
    for name, dtype, shape, default in parser.inputs:
        if shape is None:
            evaluator.values[name] = scalar_of(default, dtype)
        else:
            evaluator.values[name] = load(f"{stem}.{name}.npy", DTYPES[dtype], device)
    for name, op, operands, attrs in parser.statements:
        try:
            evaluator.values[name] = evaluator.run(op, operands, attrs)
            totals["ops"] += 1
        except NotMapped as why:
            if "operand that was not computed" not in str(why):
                totals["reasons"][str(why)] += 1
            totals["not mapped"] += 1
    bad = []
    for name in parser.outputs:
        value = evaluator.values.get(name)
        if not is_tensor(value):
            totals["outputs left out"] += 1
            continue
        got = value.cpu().contiguous()
        bound = np.load(f"{stem}.bound.{name}.npy")
        want_path = f"{stem}.out.{name}.npy"
        want = load(want_path, got.dtype, "cpu")
        count, why = differences(got, want, bound, slack)
        totals["outputs"] += 1
        totals["elements"] += count
        if why:
            bad.append(f"{path}: %{name} {why}")
    totals["whole"] += not any(not is_tensor(evaluator.values.get(name)) for name in parser.outputs)
    return bad


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--slack", type=float, default=1.0, help="times the bounds")
    options = arguments.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    totals = collections.Counter()
    totals["reasons"] = collections.Counter()
    bad = []
    files = sorted(glob.glob(os.path.join(options.folder, "*.fusion")))
    for path in files:
        bad += run_file(path, options.device, options.slack, totals)
    for line in bad:
        print(line)
    print(f"{len(files)} fusions: {totals['outputs']} outputs with {totals['elements']} elements compared "
          f"({totals['whole']} fusions whole), {totals['outputs left out']} outputs left out, {len(bad)} differ; "
          f"{totals['ops']} ops run, {totals['not mapped']} not mapped")
    for why, count in totals["reasons"].most_common():
        print(f"  {count:5} {why}")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
