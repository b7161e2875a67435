"""A builtin function whose code is the compiled `call`, with documentation and signature like a Python function's."""

from __future__ import annotations

import ctypes
import functools
import inspect
import struct
import sys
import sysconfig
from collections.abc import Callable

import numpy as np

from spanloop.compiler.render import call
from spanloop.compiler.runtime.machine import Code

_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


# Python reads a builtin's definition when it frees the builtin, in whatever order a cycle is taken apart: they
# stay for good, also when the interpreter ends and clears this module before the last cycles
_definitions: list[_MethodDefinition] = []
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_definitions))


def builtin(code: Code, name: str, dtype: np.dtype, fallback: Callable, documentation: str) -> Callable:
    """The callable. `fallback` takes over what it does not know; it is kept alive, and must keep `code` alive."""
    table = abi_table(dtype)
    where = (ctypes.c_void_p * len(table)).from_address(code.address("api"))
    for k, address in enumerate(table):
        where[k] = address
    definition = _MethodDefinition(name.encode(), code.address("call"), _FASTCALL_WITH_KEYWORDS, documentation.encode())
    _definitions.append(definition)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), fallback, None)


def documentation(name: str, signature: str, text: str) -> str:
    """What a builtin carries: inspect.signature reads the first line, help and __doc__ show the rest."""
    return f"{name}{signature}\n--\n\n{text}"


def documentation_of(method: Callable) -> str:
    """The documentation of a Python function or bound method for the builtin that takes its place."""
    function = getattr(method, "__func__", None)
    return _documentation_of(method) if function is None else _documentation_of_method(function)


@functools.cache
def _documentation_of_method(function: Callable) -> str:
    return _documentation_of(function.__get__(object()))


def _documentation_of(function: Callable) -> str:
    signature = inspect.signature(function)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]  # builtins carry no annotations
    text = str(signature.replace(parameters=plain, return_annotation=signature.empty))
    return documentation(function.__name__, text, inspect.getdoc(function) or "")


# Do arrays and tuples of this interpreter have the layout that the compiled call expects? Checked before the first use.


@functools.cache
def abi_fits() -> bool:
    """True where the compiled call may be used; elsewhere every call runs through Python."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8 or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    try:
        return _arrays_fit() and _tuples_fit() and _array_api() is not None
    except Exception:
        return False


def _word(address: int, offset: int, kind=ctypes.c_void_p):
    return kind.from_address(address + offset).value


def _arrays_fit() -> bool:
    for x in (np.zeros(3), np.ones((2, 5)), np.zeros((2, 3, 4), dtype=np.float32)):
        frozen = x.copy()
        frozen.flags.writeable = False
        at = id(x)
        shape = _word(at, call.ARRAY_SHAPE)
        looks = (
            _word(at, call.OBJECT_TYPE) == id(np.ndarray)
            and _word(at, call.ARRAY_DATA) == x.ctypes.data
            and _word(at, call.ARRAY_RANK, ctypes.c_int32) == x.ndim
            and _word(at, call.ARRAY_DTYPE) == id(x.dtype)
            and all(_word(shape, 8 * k, ctypes.c_int64) == d for k, d in enumerate(x.shape))
            and _flags(x) & (call.CONTIGUOUS_ALIGNED | call.WRITEABLE) == call.CONTIGUOUS_ALIGNED | call.WRITEABLE
            and not _flags(frozen) & call.WRITEABLE
            and not _flags(np.zeros((4, 4))[:, 1]) & 1
        )
        if not looks:
            return False
    return id(np.dtype(np.float64)) == id(np.zeros(1).dtype)


def _flags(x: np.ndarray) -> int:
    return ctypes.c_int32.from_address(id(x) + call.ARRAY_FLAGS).value


def _tuples_fit() -> bool:
    name = sys.intern("out")
    at = id((name,))
    t = (name, name)
    at = id(t)
    return _word(at, call.TUPLE_LENGTH, ctypes.c_int64) == 2 and _word(at, call.TUPLE_FIRST) == id(name)


@functools.cache
def _array_api():
    """NumPy's table of C functions, if its version is one whose numbering is known."""
    capsule = np._core._multiarray_umath._ARRAY_API if hasattr(np, "_core") else None
    if capsule is None:
        return None
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    abi_table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(abi_table[0])()
    return abi_table if version >> 24 in (1, 2) else None


def abi_table(dtype: np.dtype) -> list[int]:
    """Addresses for the call's `api` table, in its order."""
    api = ctypes.pythonapi

    def address(f) -> int:
        return ctypes.cast(f, ctypes.c_void_p).value or 0

    entries = {
        "ndarray": id(np.ndarray),
        "dtype": id(np.dtype(dtype)),
        "out_name": id(sys.intern("out")),
        "new_array": _array_api()[93],  # PyArray_New
        "vectorcall": address(api.PyObject_Vectorcall),
        "take": address(api.Py_IncRef),
        "drop": address(api.Py_DecRef),
    }
    return [entries[name] for name in call.API]
