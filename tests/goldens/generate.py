"""Writes the results of PyTorch for each op to tests/goldens/FAMILY.json.

    python3 tests/goldens/generate.py [FAMILY ...]      # needs torch (CPU is enough)

A family is a module of this folder with a function fill(family). Its argument is a Family of common.py. The cases are
small. They test semantics, not speed: NaN, infinities, signed zeros, promotion, wrap-around, empty and 0-d tensors.
"""
import importlib
import pathlib
import sys

from common import Family

HERE = pathlib.Path(__file__).parent


def main():
    names = sys.argv[1:] or sorted(p.stem for p in HERE.glob("*.py"))
    for name in names:
        module = importlib.import_module(name) if name not in ("generate", "common") else None
        if hasattr(module, "fill"):
            family = Family(name)
            module.fill(family)
            family.write()


if __name__ == "__main__":
    main()
