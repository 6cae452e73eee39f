"""Writes small_extents.json: ops on tensors with extents 0 to 3, computed by NumPy in float64.

Run: python3 tests/goldens/small_extents.py   (needs NumPy only, unlike the other families)

tests/host/whole/small_extents_cpu_test.cpp shards the operands over more ranks than elements. A rank with
an empty block must then add nothing to a result. The format of the file is that of common.py.
"""
import json
import math
import pathlib

import numpy as np

random = np.random.default_rng(7)
tensors, cases = [], []


def number(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def tensor(value, dtype):
    value = np.asarray(value)
    if dtype == "f32":
        value = value.astype(np.float32)
        values = [number(float(str(v))) for v in value.reshape(-1)]
    else:
        values = value.reshape(-1).tolist()
    entry = {"dtype": dtype, "sizes": list(value.shape), "values": values}
    if entry not in tensors:
        tensors.append(entry)
    return tensors.index(entry)


def type_of(value):
    return {"f": "f32", "i": "i64", "b": "bool"}[np.asarray(value).dtype.kind]


def case(call, inputs, outputs, **more):
    cases.append({"call": call, "inputs": [tensor(x, type_of(x)) for x in inputs],
                  "outputs": [tensor(y, type_of(y)) for y in outputs], "ulps": 32, "sums": True, **more})


def numbers(*sizes):
    # The numbers are negative, so that a wrong 0 shows in a maximum. They are multiples of 1/4,
    # which float32 holds exactly.
    return -np.round(random.uniform(0.5, 4, sizes) * 4) / 4


def indices(n, *sizes):
    return random.integers(0, max(n, 1), sizes)


def softmax(x, axis):
    if x.size == 0:
        return x
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def reductions(x):
    n, m = x.shape
    for axis in (0, 1):
        case(f"sum(%x0, axes=[{axis}])", [x], [x.sum(axis)])
        case(f"prod(%x0, axes=[{axis}], keepdim=true)", [x], [x.prod(axis, keepdims=True)])
        if x.shape[axis] == 0:
            continue
        case(f"max(%x0, axes=[{axis}])", [x], [x.max(axis)])
        case(f"min(%x0, axes=[{axis}])", [x], [x.min(axis)])
        case(f"mean(%x0, axes=[{axis}])", [x], [x.mean(axis)])
        case(f"var(%x0, axes=[{axis}], correction=0)", [x], [x.var(axis)])
        case(f"argmax(%x0, axis={axis})", [x], [x.argmax(axis)])
        case(f"argmin(%x0, axis={axis})", [x], [x.argmin(axis)])
        case(f"any(%x0, axes=[{axis}])", [x], [(x != 0).any(axis)])
        case(f"all(%x0, axes=[{axis}])", [x], [(x != 0).all(axis)])
        case(f"logsumexp(%x0, axes=[{axis}])", [x], [np.log(np.exp(x).sum(axis))])
        case(f"softmax(%x0, axis={axis})", [x], [softmax(x, axis)])
        case(f"log_softmax(%x0, axis={axis})", [x], [x - np.log(np.exp(x).sum(axis, keepdims=True))])
    case("sum(%x0)", [x], [x.sum()])
    if x.size > 0:
        case("max(%x0)", [x], [x.max()])
        case("mean(%x0)", [x], [x.mean()])


def along_an_axis(x):
    for axis in (0, 1):
        case(f"cumsum(%x0, axis={axis})", [x], [x.cumsum(axis)])
        order = np.argsort(x, axis, kind="stable")
        case(f"sort(%x0, axis={axis})", [x], [np.take_along_axis(x, order, axis), order])
        case(f"flip(%x0, axes=[{axis}])", [x], [np.flip(x, axis)])
        case(f"cat(%x0, %x1, axis={axis})", [x, x + 1], [np.concatenate([x, x + 1], axis)])
        if x.shape[axis] == 0:
            continue
        case(f"topk(%x0, k=1, axis={axis})", [x], [x.max(axis, keepdims=True), np.expand_dims(x.argmax(axis), axis)])
        i = indices(x.shape[axis], 2)
        case(f"index_select(%x0, %x1, axis={axis})", [x, i], [np.take(x, i, axis)])
        i = indices(x.shape[axis], *x.shape)
        case(f"gather(%x0, %x1, axis={axis})", [x, i], [np.take_along_axis(x, i, axis)])
        y = numbers(*x.shape)
        added = x.copy()
        for at in np.ndindex(*x.shape):
            to = list(at)
            to[axis] = i[at]
            added[tuple(to)] += y[at]
        case(f"scatter_add(%x0, %x1, %x2, axis={axis})", [x, i, y], [added])
    case("pad(%x0, lows=[1, 0], highs=[0, 2])", [x], [np.pad(x, ((1, 0), (0, 2)))])


def norms(x):
    n, m = x.shape
    if m == 0:
        return
    mean, var = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    w, b = numbers(m), numbers(m)
    case("layer_norm(%x0, %x1, %x2)", [x, w, b], [(x - mean) / np.sqrt(var + 1e-5) * w + b])
    case("rms_norm(%x0, %x1, eps=0.001)", [x, w], [x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-3) * w])
    y, t = numbers(n, m), indices(m, n)
    if n > 0:
        case("mse_loss(%x0, %x1)", [x, y], [((x - y) ** 2).mean()])
        logs = x - np.log(np.exp(x).sum(1, keepdims=True))
        case("cross_entropy(%x0, %x1)", [x, t], [-logs[np.arange(n), t].mean()])
        case("cross_entropy(%x0, %x1, reduction=sum)", [x, t], [-logs[np.arange(n), t].sum()])
    case("mse_loss(%x0, %x1, reduction=sum)", [x, y], [((x - y) ** 2).sum()])


def products(x, k):
    n, m = x.shape
    w, u, b = numbers(m, k), numbers(k, m), numbers(k)
    case("matmul(%x0, %x1)", [x, w], [x @ w])
    case("linear(%x0, %x1)", [x, u], [x @ u.T])
    case("linear(%x0, %x1, %x2)", [x, u, b], [x @ u.T + b])
    batch = numbers(2, n, m)
    case("matmul(%x0, %x1)", [batch, w], [batch @ w])
    if m > 0:
        q, key, v = numbers(n, 2, k), numbers(n, m, k), numbers(n, m, 2)
        if k > 0:
            p = softmax(q @ key.transpose(0, 2, 1) / math.sqrt(k), 2)
            case("scaled_dot_product_attention(%x0, %x1, %x2)", [q, key, v], [p @ v])
        i = indices(m, n)
        table = numbers(m, k)
        case("embedding(%x0, %x1)", [i, table], [table[i]])


def main():
    for n in range(4):
        for m in range(4):
            x = numbers(n, m)
            reductions(x)
            along_an_axis(x)
            norms(x)
            for k in (0, 1, 3):
                products(numbers(n, m), k)

    path = pathlib.Path(__file__).parent / "small_extents.json"
    with open(path, "w") as file:
        file.write('{"numpy": "%s", "tensors": [\n' % np.__version__)
        file.write(",\n".join(json.dumps(t) for t in tensors))
        file.write('\n], "cases": [\n')
        file.write(",\n".join(json.dumps(c) for c in cases))
        file.write("\n]}\n")
    print(len(cases), "cases,", len(tensors), "tensors")


if __name__ == "__main__":
    main()
