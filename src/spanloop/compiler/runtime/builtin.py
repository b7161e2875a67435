"""A builtin function whose code is the compiled `call`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from spanloop.compiler.runtime import layout
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
# stay for good
_definitions: list[_MethodDefinition] = []


def builtin(code: Code, name: str, dtype: np.dtype, fallback: Callable) -> Callable:
    """The callable. `fallback` takes over what it does not know; it is kept alive, and must keep `code` alive."""
    table = layout.table(dtype)
    where = (ctypes.c_void_p * len(table)).from_address(code.variable("api"))
    for k, address in enumerate(table):
        where[k] = address
    definition = _MethodDefinition(name.encode(), code.function("call"), _FASTCALL_WITH_KEYWORDS, None)
    _definitions.append(definition)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), fallback, None)
