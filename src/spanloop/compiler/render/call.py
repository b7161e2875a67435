"""The function that Python calls, as LLVM source: it checks its arguments, calls the kernel, or falls back to Python.

    PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords)

takes exact ndarrays of the right dtype, rank, length and flags, and only `out` as keyword. Other arguments, and states
that the kernel refuses, are passed on to `self`, a Python callable that converts, explains or raises. The
addresses that this needs stand in the table `api`, filled when the code is loaded, so that the code itself can be
kept on disk.
"""

from __future__ import annotations

from spanloop.compiler.lower import Looped, PairSystem, Plan
from spanloop.compiler.render.instructions import Real

# entries of the table `api`
API = ("ndarray", "dtype", "out_name", "new_array", "vectorcall", "take", "drop")
TYPE_NUMBER = {"double": 12, "float": 11}  # NPY_DOUBLE, NPY_FLOAT

# offsets in bytes, CPython with the GIL, 64 bit: checked when the first kernel is made
OBJECT_TYPE, ARRAY_DATA, ARRAY_RANK, ARRAY_SHAPE, ARRAY_DTYPE, ARRAY_FLAGS = 8, 16, 24, 32, 56, 64
TUPLE_LENGTH, TUPLE_FIRST = 16, 24
CONTIGUOUS_ALIGNED, WRITEABLE = 0x101, 0x400


def call(plan: Plan | Looped | PairSystem, real: str) -> str:
    """Source of `call` and its table; `kernel` must be in the same module."""
    t = Real(real)
    n = len(plan.inputs)
    code = [
        f"@api = global [{len(API)} x ptr] zeroinitializer",
        "define ptr @call(ptr %self, ptr %args, i64 %n, ptr %keywords) {",
        "entry:",
        f"%dims = alloca [{max(len(plan.shape), 1)} x i64]",
        *_from_api("ndarray"),
        *_from_api("dtype"),
        f"%positional = icmp eq i64 %n, {n}",
        "br i1 %positional, label %in0, label %other",
    ]
    for k, (_, size) in enumerate(plan.inputs):
        after = f"in{k + 1}" if k + 1 < n else "choose"
        code += [f"in{k}:", *_argument(k), *_checked(f"x{k}", [size], CONTIGUOUS_ALIGNED, after)]
    code += [
        "choose:",
        "%alone = icmp eq ptr %keywords, null",
        "br i1 %alone, label %fresh, label %named",
        *_named(n),
        *_checked("given", list(plan.shape), CONTIGUOUS_ALIGNED | WRITEABLE, "apart"),
        *_apart(plan, t),
        *_fresh(plan, real),
        "run:",
        "%out = phi ptr [%given, %mine], [%new, %made]",
        f"%out.at = getelementptr i8, ptr %out, i64 {ARRAY_DATA}",
        "%out.data = load ptr, ptr %out.at",
    ]
    for k in range(n):
        code += [f"%at{k} = getelementptr i8, ptr %x{k}, i64 {ARRAY_DATA}", f"%data{k} = load ptr, ptr %at{k}"]
    passed = ", ".join(f"ptr %data{k}" for k in range(n))
    code += [
        f"%status = call i32 @kernel({passed}, ptr %out.data)",
        "%fine = icmp eq i32 %status, 0",
        "br i1 %fine, label %done, label %refused",
        "done:",
        "ret ptr %out",
        "refused:",
        *_from_api("drop"),
        "call void %drop(ptr %out)",
        "br label %other",
        "other:",
        *_from_api("vectorcall"),
        "%answer = call ptr %vectorcall(ptr %self, ptr %args, i64 %n, ptr %keywords)",
        "ret ptr %answer",
        "failed:",
        "ret ptr null",
        "}",
    ]
    return "\n".join(code) + "\n"


def _from_api(name: str) -> list[str]:
    k = API.index(name)
    return [f"%{name}.at = getelementptr ptr, ptr @api, i64 {k}", f"%{name} = load ptr, ptr %{name}.at"]


def _argument(k: int) -> list[str]:
    return [f"%xp{k} = getelementptr ptr, ptr %args, i64 {k}", f"%x{k} = load ptr, ptr %xp{k}"]


def _field(x: str, offset: int, kind: str, name: str) -> list[str]:
    return [f"%{name}.at = getelementptr i8, ptr %{x}, i64 {offset}", f"%{name} = load {kind}, ptr %{name}.at"]


def _checked(x: str, shape: list[int], flags: int, after: str) -> list[str]:
    """Go on to `after` if %x is an array as wanted, else to `other`."""
    code = [
        *_field(x, OBJECT_TYPE, "ptr", f"{x}.type"),
        f"%{x}.exact = icmp eq ptr %{x}.type, %ndarray",
        f"br i1 %{x}.exact, label %{x}.array, label %other",
        f"{x}.array:",
        *_field(x, ARRAY_DTYPE, "ptr", f"{x}.dtype"),
        *_field(x, ARRAY_RANK, "i32", f"{x}.rank"),
        *_field(x, ARRAY_FLAGS, "i32", f"{x}.flags"),
        f"%{x}.a = icmp eq ptr %{x}.dtype, %dtype",
        f"%{x}.b = icmp eq i32 %{x}.rank, {len(shape)}",
        f"%{x}.c_ = and i32 %{x}.flags, {flags}",
        f"%{x}.c = icmp eq i32 %{x}.c_, {flags}",
        f"%{x}.ab = and i1 %{x}.a, %{x}.b",
        f"%{x}.abc = and i1 %{x}.ab, %{x}.c",
        f"br i1 %{x}.abc, label %{x}.shaped, label %other",
        f"{x}.shaped:",
        *_field(x, ARRAY_SHAPE, "ptr", f"{x}.shape"),
    ]
    fits = "true"
    for j, size in enumerate(shape):
        code += [
            f"%{x}.d{j}.at = getelementptr i64, ptr %{x}.shape, i64 {j}",
            f"%{x}.d{j} = load i64, ptr %{x}.d{j}.at",
            f"%{x}.e{j} = icmp eq i64 %{x}.d{j}, {size}",
            f"%{x}.f{j} = and i1 {fits}, %{x}.e{j}",
        ]
        fits = f"%{x}.f{j}"
    return [*code, f"br i1 {fits}, label %{after}, label %other"]


def _named(n: int) -> list[str]:
    """The one keyword must be the interned string `out`."""
    return [
        "named:",
        *_from_api("out_name"),
        f"%names.at = getelementptr i8, ptr %keywords, i64 {TUPLE_LENGTH}",
        "%names = load i64, ptr %names.at",
        f"%name.at = getelementptr i8, ptr %keywords, i64 {TUPLE_FIRST}",
        "%name = load ptr, ptr %name.at",
        "%name.one = icmp eq i64 %names, 1",
        "%name.out = icmp eq ptr %name, %out_name",
        "%name.fits = and i1 %name.one, %name.out",
        f"%given.at = getelementptr ptr, ptr %args, i64 {n}",
        "br i1 %name.fits, label %lent, label %other",
        "lent:",
        "%given = load ptr, ptr %given.at",
    ]


def _apart(plan: Plan | Looped | PairSystem, t: Real) -> list[str]:
    """An out that overlaps an input is left to Python; any other gets one more reference."""
    size = 1
    for d in plan.shape:
        size *= d
    code = [
        "apart:",
        *_field("given", ARRAY_DATA, "i64", "given.data"),
        f"%given.end = add i64 %given.data, {size * t.size}",
    ]
    clear = "true"
    for k, (_, length) in enumerate(plan.inputs):
        code += [
            *_field(f"x{k}", ARRAY_DATA, "i64", f"x{k}.start"),
            f"%x{k}.end = add i64 %x{k}.start, {length * t.size}",
            f"%x{k}.before = icmp ule i64 %x{k}.end, %given.data",
            f"%x{k}.behind = icmp uge i64 %x{k}.start, %given.end",
            f"%x{k}.off = or i1 %x{k}.before, %x{k}.behind",
            f"%x{k}.clear = and i1 {clear}, %x{k}.off",
        ]
        clear = f"%x{k}.clear"
    return [
        *code,
        f"br i1 {clear}, label %mine, label %other",
        "mine:",
        *_from_api("take"),
        "call void %take(ptr %given)",
        "br label %run",
    ]


def _fresh(plan: Plan | Looped | PairSystem, real: str) -> list[str]:
    code = ["fresh:", *_from_api("new_array")]
    for j, d in enumerate(plan.shape):
        code += [f"%dim{j} = getelementptr i64, ptr %dims, i64 {j}", f"store i64 {d}, ptr %dim{j}"]
    return [
        *code,
        f"%new = call ptr %new_array(ptr %ndarray, i32 {len(plan.shape)}, ptr %dims, i32 {TYPE_NUMBER[real]}, "
        "ptr null, ptr null, i32 0, i32 0, ptr null)",
        "%none = icmp eq ptr %new, null",
        "br i1 %none, label %failed, label %made",
        "made:",
        "br label %run",
    ]
