"""DLPack capsules, read and made with ctypes: the structures of dlpack.h, versions 0 and 1.

A capsule that is read is not consumed: who holds it holds the memory, and its own destructor frees it. A capsule that
is made holds a reference to a Python object. Its deleter is a few instructions of machine code, not a Python function:
consumers call it from any thread, with an exception pending, and while the interpreter ends.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

from spanloop.compiler.runtime import machine

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
INTEGER, UNSIGNED, REAL, BFLOAT, COMPLEX, BOOLEAN = 0, 1, 2, 4, 5, 6  # DLDataTypeCode
KINDS = {INTEGER: "i", UNSIGNED: "u", REAL: "f", COMPLEX: "c", BOOLEAN: "b"}  # as NumPy's dtype.kind
READ_ONLY = 1  # flag of version 1
VERSION = (1, 0)
_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"


class Tensor(ctypes.Structure):
    """DLTensor; strides are in numbers, or null for rows without gaps."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Plain(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", Tensor), ("owner", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("owner", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


def read(capsule: Any) -> tuple[Tensor, int]:
    """The tensor in a capsule and its flags; valid while the capsule lives. ValueError if it is none that we know."""
    api = _api()
    for name, kind in ((_VERSIONED, _Versioned), (_PLAIN, _Plain)):
        if api.PyCapsule_IsValid(id(capsule), name):
            managed = kind.from_address(api.PyCapsule_GetPointer(id(capsule), name))
            if isinstance(managed, _Versioned) and managed.major != VERSION[0]:
                raise ValueError(f"its DLPack capsule has version {managed.major}.{managed.minor}; version 1 is known")
            return managed.tensor, getattr(managed, "flags", 0)
    raise ValueError(f"its __dlpack__ returned {capsule!r:.60}, which is no capsule named 'dltensor'")


def made(tensor: Tensor, owner: Any, *, flags: int = 0, versioned: bool = False) -> Any:
    """A capsule of the tensor; `owner` lives until the consumer, or the capsule that nobody consumed, lets it go."""
    api, kind, name = _api(), _Versioned if versioned else _Plain, _VERSIONED if versioned else _PLAIN
    managed = kind(tensor=tensor)
    deleter, destructor = _deleters()[versioned]
    if isinstance(managed, _Versioned):
        managed.major, managed.minor, managed.flags = *VERSION, flags
    held = [managed, tensor, owner]  # everything that the consumer reads, and what keeps the numbers
    managed.owner, managed.deleter = id(held), deleter
    capsule = api.PyCapsule_New(ctypes.addressof(managed), name, destructor)
    api.Py_IncRef(id(held))  # the deleter gives it back
    return capsule


@functools.cache
def _api() -> ctypes.PyDLL:
    """Python's functions in a library object of our own: argument types of ctypes.pythonapi are shared by everyone."""
    handle = getattr(sys, "dllhandle", None)  # on Windows, where None does not stand for the process
    own = ctypes.PyDLL(None) if handle is None else ctypes.PyDLL("python", handle=handle)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, *arguments in (
        ("PyCapsule_IsValid", ctypes.c_int, pointer, text),
        ("PyCapsule_GetPointer", pointer, pointer, text),
        ("PyCapsule_New", ctypes.py_object, pointer, text, pointer),
        ("Py_IncRef", None, pointer),
    ):
        function = getattr(own, name)
        function.restype, function.argtypes = result, arguments
    return own


@functools.cache
def _deleters() -> dict[bool, tuple[int, int]]:
    """Addresses of the deleter of a managed tensor and of the destructor of its capsule, by whether it is versioned."""
    plain, versioned = _source("plain", _Plain, _PLAIN), _source("versioned", _Versioned, _VERSIONED)
    code = machine.Code(machine.object_code(_declarations() + plain + versioned))
    _api().Py_IncRef(id(code))  # consumers call it for as long as the process lives
    names = {False: "plain", True: "versioned"}
    return {k: (code.address(f"{n}_deleter"), code.address(f"{n}_destructor")) for k, n in names.items()}


_FUNCTIONS = (
    "Py_IsInitialized",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "Py_DecRef",
    "PyCapsule_IsValid",
    "PyCapsule_GetPointer",
)


def _declarations() -> str:
    """Python's functions as constants that hold their addresses."""
    library = _api()
    addresses = {n: ctypes.cast(getattr(library, n), ctypes.c_void_p).value for n in _FUNCTIONS}
    return "".join(f"@{n} = private constant ptr inttoptr (i64 {a} to ptr)\n" for n, a in addresses.items())


def _source(prefix: str, kind: type[_Plain] | type[_Versioned], name: bytes) -> str:
    """LLVM source of deleter(managed) and destructor(capsule); they do nothing once the interpreter has ended."""
    return f"""
@{prefix}_name = private constant [{len(name) + 1} x i8] c"{name.decode()}\\00"
define void @{prefix}_deleter(ptr %managed) {{
  %is_alive_function = load ptr, ptr @Py_IsInitialized
  %is_alive = call i32 %is_alive_function()
  %ended = icmp eq i32 %is_alive, 0
  br i1 %ended, label %done, label %release
release:
  %ensure = load ptr, ptr @PyGILState_Ensure
  %state = call i32 %ensure()
  %place = getelementptr i8, ptr %managed, i64 {kind.owner.offset}
  %owner = load ptr, ptr %place
  %decrease = load ptr, ptr @Py_DecRef
  call void %decrease(ptr %owner)
  %let = load ptr, ptr @PyGILState_Release
  call void %let(i32 %state)
  br label %done
done:
  ret void
}}
define void @{prefix}_destructor(ptr %capsule) {{
  %is_valid_function = load ptr, ptr @PyCapsule_IsValid
  %is_valid = call i32 %is_valid_function(ptr %capsule, ptr @{prefix}_name)
  %consumed = icmp eq i32 %is_valid, 0
  br i1 %consumed, label %done, label %release
release:
  %get = load ptr, ptr @PyCapsule_GetPointer
  %managed = call ptr %get(ptr %capsule, ptr @{prefix}_name)
  call void @{prefix}_deleter(ptr %managed)
  br label %done
done:
  ret void
}}
"""
