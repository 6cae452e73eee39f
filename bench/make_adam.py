"""Writes bench/workloads/adam_200.fusion: one step of Adam on 200 parameters of odd sizes.

    python3 bench/make_adam.py
"""
import os

PARAMETERS = 200
SHAPES = ([1023, 1025], [1001], [257, 515], [61])
UPDATE = """  %m9_{p} = mul(%m{p}, 0.9) %g1_{p} = mul(%g{p}, 0.1) %m1_{p} = add(%m9_{p}, %g1_{p})
  %v9_{p} = mul(%v{p}, 0.999) %gg_{p} = mul(%g{p}, %g{p}) %g2_{p} = mul(%gg_{p}, 0.001) %v1_{p} = add(%v9_{p}, %g2_{p})
  %r_{p} = sqrt(%v1_{p}) %q_{p} = div(%r_{p}, 0.03) %e_{p} = add(%q_{p}, 1e-08)
  %n_{p} = mul(%m1_{p}, 0.01) %u_{p} = div(%n_{p}, %e_{p}) %w1_{p} = sub(%w{p}, %u_{p})
"""


def main():
    inputs, outputs, body = [], [], ""
    for p in range(PARAMETERS):
        shape = str(SHAPES[p % len(SHAPES)])
        inputs.append("    " + ", ".join(f"%{name}{p}: f32{shape}" for name in "wmvg"))
        body += UPDATE.format(p=p)
        outputs.append(", ".join(f"%{name}1_{p} in! %{name}{p}" for name in "wmv"))
    path = os.path.join(os.path.dirname(__file__), "workloads", "adam_200.fusion")
    with open(path, "w") as file:
        file.write("heddle 1\n# Written by bench/make_adam.py.\nfusion adam_200(\n" + ",\n".join(inputs) + ") {\n" +
                   body + "  return " + ",\n    ".join(outputs) + "\n}\n")


if __name__ == "__main__":
    main()
