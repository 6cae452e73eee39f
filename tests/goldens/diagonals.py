"""Writes the diagonals that NumPy selects to tests/goldens/diagonals.json, in the format of common.py.

    python3 tests/goldens/diagonals.py      # needs numpy, and not torch
"""
import json
import pathlib

SHAPES = [((4, 6), 0, 1), ((6, 4), 0, 1), ((5, 5), 1, 0), ((1, 3), 0, 1), ((3, 1), 0, 1), ((0, 3), 0, 1),
          ((2, 3, 4), 0, 1), ((2, 3, 4), 2, 0), ((2, 3, 4), -1, -2), ((3, 4, 2, 5), 1, 3), ((3, 4, 2, 5), -1, 0)]
OFFSETS = (0, 1, -1, 2, -3, 5, -6, 40, -40)
TYPES = {"float32": "f32", "float64": "f64", "int64": "i64", "int8": "i8", "bool": "bool"}


def main():
    import numpy

    tensors, cases = {}, []

    def place(value):
        text = json.dumps({"dtype": TYPES[str(value.dtype)], "sizes": list(value.shape),
                           "values": value.reshape(-1).tolist()}, separators=(",", ":"))
        return tensors.setdefault(text, len(tensors))

    for shape, axis1, axis2 in SHAPES:
        for dtype in TYPES:
            x = (numpy.arange(numpy.prod(shape, dtype=int)) % 7 - 2).astype(dtype).reshape(shape)
            for offset in OFFSETS if dtype == "float32" else (0, 1, -2):
                y = numpy.diagonal(x, offset, axis1, axis2)
                cases.append({"call": f"diagonal(%x0, offset={offset}, axis1={axis1}, axis2={axis2})",
                              "inputs": [place(x)], "outputs": [place(y)]})
    path = pathlib.Path(__file__).with_suffix(".json")
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    path.write_text(f'{{"numpy":"{numpy.__version__}","tensors":[\n' + ",\n".join(tensors) +
                    f'\n],"cases":[\n{lines}\n]}}\n')
    print(f"diagonals: {len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
