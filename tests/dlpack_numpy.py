#!/usr/bin/env python3
"""Exchanges tensors with NumPy, and with PyTorch if it is installed, through both structs of DLPack.

Usage: dlpack_numpy.py LIBRARY, where LIBRARY is built from tests/dlpack_calls.cpp.
Exit status: 0 if every check holds, 1 otherwise, 77 if NumPy is missing.
"""

import ctypes
import gc
import sys
import unittest
import weakref
from ctypes import c_char_p, c_int, c_void_p

try:
    import numpy
except ImportError:
    print("dlpack_numpy: skipped: NumPy is not installed")
    sys.exit(77)
try:
    import torch
except ImportError:
    torch = None

KINDS = ("legacy", "versioned")
# The name of a capsule before a consumer takes its managed tensor. USED has the names after that.
NAMES = {"legacy": b"dltensor", "versioned": b"dltensor_versioned"}
DTYPES = {"bool": "bool", "uint8": "u8", "int8": "i8", "int32": "i32", "int64": "i64",
          "float16": "f16", "float32": "f32", "float64": "f64"}
try:
    numpy.ones(1, "bool").__dlpack__()
except BufferError:
    del DTYPES["bool"]  # NumPy before 1.25
TORCH_ONLY = {"bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}


def load(path):
    library = ctypes.CDLL(path)
    for name, result, arguments in (
            ("heddle_text", c_char_p, []), ("heddle_import", c_void_p, [c_void_p, c_int, c_int]),
            ("heddle_export", c_void_p, [c_void_p, c_int, c_int]),
            ("heddle_describe", None, [c_void_p]), ("heddle_data", c_void_p, [c_void_p]),
            ("heddle_double", c_void_p, [c_void_p]), ("heddle_delete", None, [c_void_p])):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def python_call(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


new_capsule = python_call("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
is_valid = python_call("PyCapsule_IsValid", c_int, ctypes.py_object, c_char_p)
pointer_of = python_call("PyCapsule_GetPointer", c_void_p, ctypes.py_object, c_char_p)
set_name = python_call("PyCapsule_SetName", c_int, ctypes.py_object, c_char_p)
# A global variable keeps these names, because PyCapsule_SetName does not copy them.
USED = {kind: b"used_" + name for kind, name in NAMES.items()}


class HeddleError(Exception):
    """An error of heddle."""


class HeddleTensor:
    """A tensor of heddle that other libraries read through DLPack."""

    def __init__(self, handle):
        if not handle:
            raise HeddleError(LIBRARY.heddle_text().decode())
        self.handle = handle

    def __del__(self):
        if getattr(self, "handle", None):
            LIBRARY.heddle_delete(self.handle)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        kind = "versioned" if max_version is not None and max_version[0] >= 1 else "legacy"
        return self.capsule(kind)

    def capsule(self, kind, read_only=False):
        """Returns a capsule without a destructor. Pass it to a consumer, because otherwise its tensor leaks."""
        managed = LIBRARY.heddle_export(self.handle, kind == "versioned", read_only)
        if not managed:
            raise HeddleError(LIBRARY.heddle_text().decode())
        return new_capsule(managed, NAMES[kind], None)

    def describe(self):
        LIBRARY.heddle_describe(self.handle)
        return LIBRARY.heddle_text().decode()

    def data(self):
        return LIBRARY.heddle_data(self.handle)

    def double(self):
        return HeddleTensor(LIBRARY.heddle_double(self.handle))


class OneKind:
    """A tensor of heddle that exports one kind of struct, whatever the consumer asks for."""

    def __init__(self, tensor, kind, read_only=False):
        self.tensor, self.kind, self.read_only = tensor, kind, read_only

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return self.tensor.capsule(self.kind, self.read_only)


def capsule_from(source, kind):
    """Returns a capsule of another library, or None if the library has no such struct."""
    if kind == "legacy":
        return source.__dlpack__()
    try:
        capsule = source.__dlpack__(max_version=(1, 0))
    except TypeError:
        return None
    return capsule if is_valid(capsule, NAMES[kind]) else None


def take(capsule, kind, read_only=False):
    """Imports a tensor. After an error the capsule still owns the managed tensor."""
    managed = pointer_of(capsule, NAMES[kind])
    tensor = HeddleTensor(LIBRARY.heddle_import(managed, kind == "versioned", read_only))
    set_name(capsule, USED[kind])
    return tensor


def text_of(name, sizes, strides):
    return f"{name} {list(sizes)} {list(strides)}"


class FromNumpy(unittest.TestCase):
    def each_kind(self, array):
        """Yields the structs that this version of NumPy exports."""
        for kind in KINDS:
            capsule = capsule_from(array, kind)
            if capsule is not None:
                yield kind, capsule

    def check(self, array, name):
        for kind, capsule in self.each_kind(array):
            tensor = take(capsule, kind)
            strides = [stride // array.itemsize for stride in array.strides]
            self.assertEqual(tensor.describe(), text_of(name, array.shape, strides))
            self.assertEqual(tensor.data(), array.ctypes.data)

    def test_every_dtype_is_shared(self):
        for dtype, name in DTYPES.items():
            self.check(numpy.ones((2, 3), dtype), name)

    def test_views_are_shared(self):
        base = numpy.arange(120, dtype="float32").reshape(4, 5, 6)
        for view in (base[1:], base.T, base[:, 1:4, ::2], base.transpose(1, 2, 0), base[2, 3, 1:2],
                     numpy.asfortranarray(base), numpy.ones((), "float32")):
            self.check(view, "f32")

    def test_array_without_elements_is_taken(self):
        for kind, capsule in self.each_kind(numpy.ones((3, 0, 2), "int64")):
            self.assertEqual(take(capsule, kind).describe(), text_of("i64", (3, 0, 2), (2, 2, 1)))

    def test_unsupported_arrays_are_refused(self):
        for array, message in (
                (numpy.ones(2, "complex64"), "elements of type complex64"),
                (numpy.ones(2, "uint16"), "elements of type uint16"),
                (numpy.ones(4, "float32")[::-1], "has the negative stride -1")):
            for kind, capsule in self.each_kind(array):
                with self.assertRaisesRegex(HeddleError, message):
                    take(capsule, kind)
                self.assertTrue(is_valid(capsule, NAMES[kind]))

    def test_read_only_array_needs_a_promise(self):
        array = numpy.ones(4, "float32")
        array.flags.writeable = False
        with self.assertRaises(BufferError):
            array.__dlpack__()
        try:
            capsule = array.__dlpack__(max_version=(1, 0))
        except (TypeError, BufferError):
            self.skipTest(f"NumPy {numpy.__version__} does not export read-only arrays")
        with self.assertRaisesRegex(HeddleError, "read-only"):
            take(capsule, "versioned")
        self.assertEqual(take(capsule, "versioned", True).data(), array.ctypes.data)

    # heddle may call the deleter on a thread that Python did not create.
    def test_array_lives_as_long_as_the_tensor(self):
        for kind in KINDS:
            array = numpy.ones(4, "float32")
            capsule = capsule_from(array, kind)
            if capsule is None:
                continue
            tensor = take(capsule, kind)
            alive = weakref.ref(array)
            del array, capsule
            gc.collect()
            self.assertIsNotNone(alive())
            del tensor
            gc.collect()
            self.assertIsNone(alive())


class ToNumpy(unittest.TestCase):
    def test_every_dtype_is_shared(self):
        for dtype in DTYPES:
            array = numpy.arange(6).reshape(2, 3).astype(dtype)
            back = numpy.from_dlpack(take(array.__dlpack__(), "legacy"))
            self.assertEqual(back.dtype, array.dtype)
            self.assertEqual(back.ctypes.data, array.ctypes.data)
            self.assertEqual(back.tolist(), array.tolist())

    def test_views_keep_their_strides(self):
        base = numpy.arange(120, dtype="float32").reshape(4, 5, 6)
        for view in (base.T, base[:, 1:4, ::2], numpy.ones((), "float32")):
            back = numpy.from_dlpack(take(view.__dlpack__(), "legacy"))
            self.assertEqual(back.strides, view.strides)
            self.assertEqual(back.tolist(), view.tolist())

    def test_array_without_elements_is_given(self):
        empty = take(numpy.ones((3, 0), "float64").__dlpack__(), "legacy")
        self.assertEqual(numpy.from_dlpack(empty).shape, (3, 0))

    def test_result_of_a_run_outlives_the_tensor(self):
        x = numpy.arange(6, dtype="float32").reshape(2, 3)
        result = take(x.__dlpack__(), "legacy").double()
        address = result.data()
        y = numpy.from_dlpack(result)
        del result
        gc.collect()
        self.assertEqual(y.ctypes.data, address)
        self.assertEqual(y.tolist(), (2 * x).tolist())

    def test_flag_read_only_is_passed_on(self):
        tensor = take(numpy.ones(4, "float32").__dlpack__(), "legacy")
        try:
            frozen = numpy.from_dlpack(OneKind(tensor, "versioned", True))
        except ValueError:
            self.skipTest(f"NumPy {numpy.__version__} reads no struct with a version")
        self.assertFalse(frozen.flags.writeable)
        self.assertTrue(numpy.from_dlpack(OneKind(tensor, "versioned")).flags.writeable)


@unittest.skipIf(torch is None, "PyTorch is not installed")
class Torch(unittest.TestCase):
    def test_every_dtype_is_shared_both_ways(self):
        for dtype, name in {**DTYPES, **TORCH_ONLY}.items():
            source = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype)).T
            for kind in KINDS:
                try:
                    capsule = capsule_from(source, kind)
                except (BufferError, ValueError):
                    self.assertTrue(dtype.startswith("float8"))  # an old PyTorch
                    continue
                if capsule is None:
                    continue
                with self.subTest(kind=kind, dtype=dtype):
                    tensor = take(capsule, kind)
                    self.assertEqual(tensor.describe(), text_of(name, (3, 2), (1, 3)))
                    self.assertEqual(tensor.data(), source.data_ptr())
                    back = torch.from_dlpack(tensor.capsule(kind))
                    self.assertEqual(back.dtype, source.dtype)
                    self.assertEqual(back.data_ptr(), source.data_ptr())
                    self.assertEqual(back.stride(), source.stride())

    def test_view_with_an_offset_is_shared(self):
        base = torch.arange(24.0).reshape(4, 6)
        tensor = take(base[1:, 2:5].__dlpack__(), "legacy")
        self.assertEqual(tensor.data(), base.data_ptr() + 4 * 8)
        self.assertEqual(torch.from_dlpack(tensor).tolist(), base[1:, 2:5].tolist())

    def test_result_of_a_run_outlives_the_tensor(self):
        x = torch.arange(6.0).reshape(2, 3)
        for kind in KINDS:
            y = torch.from_dlpack(OneKind(take(x.__dlpack__(), "legacy").double(), kind))
            gc.collect()
            self.assertEqual(y.tolist(), (2 * x).tolist())
            y.add_(1)
            self.assertEqual(y.tolist(), (2 * x + 1).tolist())

    def test_memory_lives_as_long_as_the_tensor(self):
        source = torch.arange(4.0)
        tensor = take(source.__dlpack__(), "legacy")
        back = torch.from_dlpack(tensor)
        del source, tensor
        gc.collect()
        self.assertEqual(back.tolist(), [0, 1, 2, 3])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    LIBRARY = load(sys.argv[1])
    print(f"NumPy {numpy.__version__}, PyTorch {torch.__version__ if torch else 'not installed'}")
    unittest.main(argv=sys.argv[:1])
