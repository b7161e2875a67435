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


def builtin(code: Code, name: str, dtype: np.dtype, fallback: Callable) -> tuple[Callable, object]:
    """The callable, and what must be kept alive as long as it is.

    `fallback` takes over what the compiled call does not know; it is kept alive by the callable itself.
    """
    table = layout.table(dtype)
    where = (ctypes.c_void_p * len(table)).from_address(code.variable("api"))
    for k, address in enumerate(table):
        where[k] = address
    definition = _MethodDefinition(name.encode(), code.function("call"), _FASTCALL_WITH_KEYWORDS, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), fallback, None), (definition, code)
