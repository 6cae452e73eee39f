"""Generates the text of one large fusion or host program per pattern and size.

Sizes of tensors are small: the time to compile must depend on the number of ops, not on their sizes.
"""
from dataclasses import dataclass
from typing import Callable, List, Sequence, Tuple


@dataclass
class Pattern:
    name: str
    axis: str  # what grows: ops, instructions, ...
    suffix: str  # of the file with the text
    text: Callable[[int], str]
    sizes: Sequence[int]
    arguments: Tuple[str, ...] = ("run", "--device", "null")
    limit: float = 3.0  # seconds that the largest size may take on one core

    def command(self, path: str, size: int) -> List[str]:
        more = [argument.format(size=size) for argument in self.arguments[1:]]
        return [self.arguments[0], path] + more


OPS = (1250, 2500, 5000, 10000)


def fusion(inputs: List[str], body: List[str], outputs: List[str], mesh: str = "", sizes: str = "") -> str:
    lines = ["heddle 1"] + ([mesh] if mesh else [])
    lines += ["fusion f(" + ",\n    ".join(inputs) + ")" + sizes + " {"]
    lines += ["  " + line for line in body]
    return "\n".join(lines + ["  return " + ", ".join(outputs), "}"]) + "\n"


def mixed(ops: int) -> str:
    """Pointwise ops and reductions: blocks of four ops, one of which reduces rows."""
    body, last = [], "%x"
    for block in range(ops // 4):
        a, b, s, d = (f"%{letter}{block}" for letter in "absd")
        body += [f"{a} = exp({last})", f"{b} = add({a}, {last})", f"{s} = sum({b}, axes=[1], keepdim=true)",
                 f"{d} = sub({b}, {s})"]
        last = d
    return fusion(["%x: f32[n, m]"], body, [last], sizes=" with n = 4, m = 8")


def pointwise(ops: int) -> str:
    names = ["exp", "neg", "relu", "sqrt"]
    values = ["%x"] + [f"%a{i}" for i in range(ops)]
    body = [f"{values[i + 1]} = {names[i % 4]}({values[i]})" for i in range(ops)]
    return fusion(["%x: f32[n, m]"], body, [values[-1]], sizes=" with n = 4, m = 8")


def reductions(ops: int) -> str:
    """A chain in which each op reduces the result of the one before."""
    values = ["%x"] + [f"%a{i}" for i in range(ops)]
    body = [f"{values[i + 1]} = sum({values[i]}, axes=[1], keepdim=true)" for i in range(ops)]
    return fusion(["%x: f32[n, m]"], body, [values[-1]], sizes=" with n = 4, m = 8")


def mlp(ops: int) -> str:
    """Layers of a tensor-parallel MLP: five ops and two weights per layer."""
    inputs, body, last = ["%x: f32[t, h] shard(@m)"], [], "%x"
    for layer in range(ops // 5):
        inputs += [f"%w{layer}: f32[h, f] shard(@m, 1: x)", f"%v{layer}: f32[f, h] shard(@m, 0: x)"]
        a, r, y, t, z = (f"%{letter}{layer}" for letter in "arytz")
        body += [f"{a} = matmul({last}, %w{layer})", f"{r} = relu({a})", f"{y} = matmul({r}, %v{layer})",
                 f"{t} = tanh({y})", f"{z} = add({t}, {last})"]
        last = z
    return fusion(inputs, body, [last + " shard(@m)"], "mesh @m = [x=ranks]", " with t = 4, h = 8, f = 16")


def outputs(count: int) -> str:
    values = [f"%a{i}" for i in range(count)]
    body = [f"{value} = add(%x, {i}.0)" for i, value in enumerate(values)]
    return fusion(["%x: f32[n, m]"], body, values, sizes=" with n = 4, m = 8")


def reductions_of_one(count: int) -> str:
    values = [f"%a{i}" for i in range(count)]
    ops = ["sum", "max", "min", "prod"]
    body = [f"{value} = {ops[i % 4]}(%x, axes=[{i // 4 % 2}])" for i, value in enumerate(values)]
    return fusion(["%x: f32[n, m]"], body, values, sizes=" with n = 4, m = 8")


def inputs(count: int) -> str:
    """The sum of many inputs."""
    body = ["%a1 = add(%x0, %x1)"] + [f"%a{i} = add(%a{i - 1}, %x{i})" for i in range(2, count)]
    return fusion([f"%x{i}: f32[n, m]" for i in range(count)], body, [f"%a{count - 1}"],
                  sizes=" with n = 4, m = 8")


def stored(count: int) -> str:
    """Results that are stored in inputs. Later matrix products read the old values of the inputs."""
    body = [f"%a{i} = mul(%x{i}, 2.0)" for i in range(count)]
    body += [f"%p{i} = matmul(%x{i}, %x{i})" for i in range(count)]
    outputs_of = [f"%a{i} in %x{i}, %p{i}" for i in range(count)]
    return fusion([f"%x{i}: f32[n, n]" for i in range(count)], body, outputs_of, sizes=" with n = 4")


def stored_and_read(count: int) -> str:
    """Results that are stored in inputs. Many later matrix products read the old value of the first input."""
    body = [f"%a{i} = mul(%x{i}, 2.0)" for i in range(count)]
    body += [f"%p{i} = matmul(%x0, %x{i})" for i in range(count)]
    outputs_of = [f"%a{i} in %x{i}, %p{i}" for i in range(count)]
    return fusion([f"%x{i}: f32[n, n]" for i in range(count)], body, outputs_of, sizes=" with n = 4")


def wide(ops: int) -> str:
    """Many ops read one value, and a tree of ops joins their results."""
    body = [f"%a{i} = mul(%x, {i}.5)" for i in range(ops // 2)]
    level = [f"%a{i}" for i in range(ops // 2)]
    while len(level) > 1:
        joined = []
        for left, right in zip(level[::2], level[1::2]):
            joined.append(f"%j{len(body)}")
            body.append(f"{joined[-1]} = add({left}, {right})")
        level = joined + level[len(level) - len(level) % 2:]
    return fusion(["%x: f32[n, m]"], body, level, sizes=" with n = 4, m = 8")


def views(ops: int) -> str:
    """Views of views: permute, unsqueeze, select."""
    values = ["%x"] + [f"%a{i}" for i in range(ops)]
    forms = ["permute({}, axes=[1, 0])", "unsqueeze({}, axis=0)", "select({}, axis=0, index=0)"]
    body = [f"{values[i + 1]} = {forms[i % 3].format(values[i])}" for i in range(ops)]
    return fusion(["%x: f32[n, m]"], body, [values[-1]], sizes=" with n = 4, m = 8")


def chain(*forms: str, more_inputs: Sequence[str] = ()) -> Callable[[int], str]:
    """Returns a function that writes a chain of ops. The ops have the given forms in turn."""
    def text(ops: int) -> str:
        values = ["%x"] + [f"%a{i}" for i in range(ops)]
        body = [f"{values[i + 1]} = {forms[i % len(forms)].format(values[i])}" for i in range(ops)]
        return fusion(["%x: f32[n, m]", *more_inputs], body, [values[-1]], sizes=" with n = 4, m = 8")
    return text


def selects(count: int) -> str:
    """Rows of one input, each of which is an output."""
    values = [f"%a{i}" for i in range(count)]
    body = [f"{value} = select(%x, axis=0, index={i % 4})" for i, value in enumerate(values)]
    return fusion(["%x: f32[n, m]"], body, values, sizes=" with n = 4, m = 8")


def slices(count: int) -> str:
    """Slices of one input, joined by one cat."""
    body = [f"%a{i} = slice(%x, starts=[{i}], stops=[{i + 1}])" for i in range(count)]
    body += ["%y = cat(" + ", ".join(f"%a{i}" for i in range(count)) + ", axis=0)"]
    return fusion(["%x: f32[n]"], body, ["%y"], sizes=f" with n = {count}")


def pieces(count: int) -> str:
    """Computed tensors, joined by one cat."""
    body = [f"%a{i} = exp(%x{i})" for i in range(count)]
    body += ["%y = cat(" + ", ".join(f"%a{i}" for i in range(count)) + ", axis=0)"]
    return fusion([f"%x{i}: f32[n]" for i in range(count)], body, ["%y"], sizes=" with n = 4")


def cats(ops: int) -> str:
    """Each op doubles the tensor. The size of the input is a symbol."""
    values = ["%x"] + [f"%a{i}" for i in range(ops)]
    body = [f"{values[i + 1]} = cat({values[i]}, {values[i]}, axis=0)" for i in range(ops)]
    return fusion(["%x: f32[n]"], body, [values[-1]], sizes=" with n = 1")


def cats_of_inputs(ops: int) -> str:
    values = ["%x"] + [f"%a{i}" for i in range(ops)]
    body = [f"{values[i + 1]} = cat({values[i]}, %y, axis=0)" for i in range(ops)]
    return fusion(["%x: f32[n]", "%y: f32[m]"], body, [values[-1]], sizes=" with n = 2, m = 1")


KERNEL = """kernel @k {
  fusion k(%x: f32[n, m]) {
    %y = exp(%x)
    return %y
  }
}
"""
SIGNATURE = "program main(%x: f32[n, m]) -> (%y) with n = 4, m = 8 {\n  slot %y: f32[n, m]\n"


def instructions(count: int) -> str:
    """Blocks of five instructions, alternately on two streams. Each block has a slot of its own."""
    blocks = count // 5
    lines = [f"  slot %a{i}: f32[n, m]" for i in range(blocks)]
    last = "%x"
    for i in range(blocks):
        lines += [f"  %a{i} = allocate stream={i % 2}", f"  launch @k({last}) -> (%a{i}) stream={i % 2}",
                  f"  !e = record_event stream={i % 2}", f"  wait_event !e stream={1 - i % 2}",
                  f"  free {last} stream={1 - i % 2}" if i else f"  check %a{i} stream={i % 2}"]
        last = f"%a{i}"
    end = (blocks - 1) % 2
    lines += [f"  wait_event !e stream=0"] if end else []
    lines += ["  %y = allocate stream=0", f"  copy {last} -> %y stream=0", f"  free {last} stream=0", "}"]
    return "heddle 1\n" + KERNEL + SIGNATURE + "\n".join(lines) + "\n"


def evaluates(count: int) -> str:
    lines = [f"  slot %n{i}: i64" for i in range(count)]
    lines += ["  %n0 = evaluate n"] + [f"  %n{i} = evaluate add(%n{i - 1}, %n{i - 1})" for i in range(1, count)]
    return ("heddle 1\n" + SIGNATURE + "\n".join(lines) +
            "\n  %y = allocate stream=0\n  copy %x -> %y stream=0\n}\n")


STEP = """program step(%a: f32[n, m]) -> (%b) {
  slot %t: f32[n, m]
  slot %b: f32[n, m]
  %t = allocate stream=0
  launch @k(%a) -> (%t) stream=0
  %b = allocate stream=0
  copy %t -> %b stream=0
  free %t stream=0
}
"""


def calls(count: int) -> str:
    values = ["%x"] + [f"%v{i}" for i in range(count - 1)] + ["%y"]
    lines = [f"  slot %v{i}: f32[n, m]" for i in range(count - 1)]
    for i in range(count):
        lines += [f"  call @step({values[i]}) -> ({values[i + 1]})"]
        lines += [f"  free {values[i]} stream=0"] if i else []
    return "heddle 1\n" + KERNEL + STEP + SIGNATURE + "\n".join(lines) + "\n}\n"


def loop(trips: int) -> str:
    return ("heddle 1\n" + KERNEL + SIGNATURE + f"  slot %t: f32[n, m]\n  %y = allocate stream=0\n"
            f"  for i in 0 .. {trips} {{\n    %t = allocate stream=0\n    launch @k(%x) -> (%t) stream=0\n"
            "    copy %t -> %y stream=0\n    free %t stream=0\n  }\n}\n")


def nested_loops(depth: int) -> str:
    lines = ["  " * (i + 1) + f"for i{i} in 0 .. 1 {{" for i in range(depth)]
    lines += ["  launch @k(%x) -> (%y) stream=0"] + ["}"] * depth
    return "heddle 1\n" + KERNEL + SIGNATURE + "  %y = allocate stream=0\n" + "\n".join(lines) + "\n}\n"


def branches(count: int) -> str:
    """Branches on a value that the run reads from a tensor."""
    lines = ["  slot %n: i64"] + [f"  slot %t{i}: f32[n, m]" for i in range(count)]
    lines += ["  %n = read_back %c", "  %y = allocate stream=0", "  copy %x -> %y stream=0"]
    for i in range(count):
        lines += [f"  if %n > {i} {{", f"    %t{i} = allocate stream=0", f"    launch @k(%x) -> (%t{i}) stream=0",
                  f"    copy %t{i} -> %y stream=0", f"    free %t{i} stream=0", "  }"]
    signature = SIGNATURE.replace("(%x: f32[n, m])", "(%x: f32[n, m], %c: i64[])")
    return "heddle 1\n" + KERNEL + signature + "\n".join(lines) + "\n}\n"


def ranks(_: int) -> str:
    return mlp(50)


def ring(_: int) -> str:
    """One allgather and one exchange along a ring."""
    return ("heddle 1\nmesh @m = [x=ranks]\n"
            "program main(%x: f32[@m.x, c] shard(@m, 0: x)) -> (%y) with c = 4 {\n"
            "  slot %y: f32[@m.x, c]\n  slot %row: f32[1, c]\n  slot %next: f32[1, c]\n  %y = allocate stream=0\n"
            "  %row = alias %x reshape\n"
            "  $g = communicate allgather %x -> %y team=@m[x] stream=0\n  wait $g stream=0\n"
            "  %next = allocate stream=0\n  group_begin\n"
            "  send %row to=(rank + 1) % ranks team=@m[x] stream=0\n"
            "  recv %next from=(rank + ranks - 1) % ranks team=@m[x] stream=0\n  $hop = group_end\n"
            "  wait $hop stream=0\n  free %next stream=0\n}\n")


def empty(_: int) -> str:
    return pointwise(1)


def small_allreduces(count: int) -> str:
    """Independent sums over a sharded axis, each of which is an output."""
    values = [f"%a{i}" for i in range(count)]
    body = [f"{value} = sum(%x{i}, axes=[0])" for i, value in enumerate(values)]
    return fusion([f"%x{i}: f32[n, m] shard(@m, 0: x)" for i in range(count)], body,
                  [value + " shard(@m)" for value in values], "mesh @m = [x=ranks]", " with n = 4, m = 8")


def symbols(count: int) -> str:
    """Inputs whose sizes are different symbols."""
    sizes = " with " + ", ".join(f"n{i} = {i % 7 + 1}" for i in range(count))
    body = [f"%a{i} = sum(%x{i}, axes=[0])" for i in range(count)]
    body += ["%s1 = add(%a0, %a1)"] + [f"%s{i} = add(%s{i - 1}, %a{i})" for i in range(2, count)]
    return fusion([f"%x{i}: f32[n{i}]" for i in range(count)], body, [f"%s{count - 1}"], sizes=sizes)


def symbolic_sizes(count: int) -> str:
    """Pairs of inputs whose sizes are different symbols. In each pair, one of the two sizes is 1 and broadcasts."""
    body = [f"%a{i} = add(%x{i}, %y{i})" for i in range(count)]
    pairs = [text for i in range(count) for text in (f"%x{i}: f32[n{i}?]", f"%y{i}: f32[m{i}?]")]
    sizes = ", ".join(f"n{i} = {i % 2 * 3 + 1}, m{i} = {(i + 1) % 2 * 3 + 1}" for i in range(count))
    return fusion(pairs, body, [f"%a{i}" for i in range(count)], sizes=f" with {sizes}")


def reshapes_by_scalars(count: int) -> str:
    body = [f"%a{i} = reshape(%x, sizes=[%k{i}, -1])" for i in range(count)]
    scalars = [f"%k{i}: i64 = {2 ** (i % 5)}" for i in range(count)]
    return fusion(["%x: f32[n, m]"] + scalars, body, [f"%a{i}" for i in range(count)], sizes=" with n = 4, m = 8")


def skips(ops: int) -> str:
    """A chain of matrix products. One early value is added to each of their results."""
    body, last = ["%b = exp(%x)"], "%x"
    for i in range(ops // 2):
        body += [f"%p{i} = matmul({last}, %w)", f"%s{i} = add(%p{i}, %b)"]
        last = f"%s{i}"
    return fusion(["%x: f32[n, m]", "%w: f32[m, m]"], body, [last], sizes=" with n = 4, m = 8")


VERIFY = ("verify", "--ranks", "{size}")
DUMP = ("dump", "--stage", "host")

EMPTY = Pattern("one op", "ops", "fusion", empty, (1,))
PATTERNS = [
    Pattern("mixed ops", "ops", "fusion", mixed, OPS),
    Pattern("pointwise ops", "ops", "fusion", pointwise, OPS),
    Pattern("chain of reductions", "ops", "fusion", reductions, OPS),
    Pattern("MLP on 4 ranks", "ops", "fusion", mlp, OPS, DUMP + ("--ranks", "4")),
    Pattern("many readers of one value", "ops", "fusion", wide, OPS),
    Pattern("one value added in a chain", "ops", "fusion", skips, OPS),
    Pattern("views", "shape ops", "fusion", views, OPS),
    Pattern("permutes", "shape ops", "fusion", chain("permute({}, axes=[1, 0])"), OPS),
    Pattern("axes that come and go", "shape ops", "fusion",
            chain("unsqueeze({}, axis=0)", "squeeze({}, axes=[0])"), OPS),
    Pattern("reshapes", "shape ops", "fusion", chain("reshape({}, sizes=[n * m])", "reshape({}, sizes=[n, m])"), OPS),
    Pattern("pads", "shape ops", "fusion", chain("pad({}, 0.0, lows=[1, 0], highs=[0, 0])"), OPS),
    Pattern("flips", "shape ops", "fusion", chain("flip({}, axes=[1])"), OPS),
    Pattern("scans", "ops", "fusion", chain("cumsum({}, axis=1)"), OPS),
    Pattern("gathers", "ops", "fusion",
            chain("take_along_axis({}, %i, axis=1)", more_inputs=("%i: i64[n, m]",)), OPS),
    Pattern("selects of one input", "outputs", "fusion", selects, OPS),
    Pattern("slices into one cat", "shape ops", "fusion", slices, (1000, 2000, 4000, 8000)),
    Pattern("results into one cat", "shape ops", "fusion", pieces, (625, 1250, 2500, 5000)),
    Pattern("doubling by cat", "shape ops", "fusion", cats, (4, 8, 15, 30)),
    Pattern("cat with an input", "shape ops", "fusion", cats_of_inputs, OPS),
    Pattern("many outputs", "outputs", "fusion", outputs, OPS),
    Pattern("reductions of one input", "outputs", "fusion", reductions_of_one, OPS),
    Pattern("many inputs", "inputs", "fusion", inputs, OPS),
    Pattern("results stored in inputs", "inputs", "fusion", stored, (625, 1250, 2500, 5000)),
    Pattern("stored in an input with many readers", "inputs", "fusion", stored_and_read, (625, 1250, 2500, 5000)),
    Pattern("inputs with own sizes", "inputs", "fusion", symbols, (625, 1250, 2500, 5000)),
    Pattern("sizes that may be 1", "outputs", "fusion", symbolic_sizes, (625, 1250, 2500, 5000)),
    Pattern("reshapes by scalars", "outputs", "fusion", reshapes_by_scalars, (625, 1250, 2500, 5000)),
    Pattern("allreduces on 4 ranks", "outputs", "fusion", small_allreduces, (625, 1250, 2500, 5000),
            DUMP + ("--ranks", "4")),
    Pattern("host instructions", "instructions", "hostir", instructions, OPS, limit=1.0),
    Pattern("host scalars", "instructions", "hostir", evaluates, OPS, limit=1.0),
    Pattern("branches of a run", "instructions", "hostir", branches, OPS, limit=1.0),
    Pattern("calls of one program", "calls", "hostir", calls, OPS, limit=1.0),
    Pattern("trips of a loop", "loop trips", "hostir", loop, OPS, limit=1.0),
    Pattern("nested loops", "loop trips", "hostir", nested_loops, (25, 50, 100, 195), limit=1.0),
    Pattern("MLP, 50 ops", "ranks", "fusion", ranks, (8, 32, 128, 512), VERIFY),
    Pattern("exchange in a ring", "ranks", "hostir", ring, (128, 256, 512, 1024), VERIFY),
]
