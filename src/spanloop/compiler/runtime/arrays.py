"""Arrays that users pass: checked, converted to one dtype and laid out in rows."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from typing import Any

import numpy as np

from spanloop.compiler.runtime.foreign_arrays import as_numpy
from spanloop.errors import InputError


def converted(function: str, name: str, size: int, x, dtype: np.dtype) -> np.ndarray:
    """An array (..., size) of the kernel's dtype; integers and other real dtypes are converted."""
    if type(x) is np.ndarray and x.dtype == dtype and x.ndim and x.shape[-1] == size:
        return x
    a = as_numpy(function, name, x, f"(..., {size})")
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise InputError(f"{function}: {name} has masked entries; fill them first, for example with x.filled(nan)")
    if a.dtype.kind not in "fiub":
        what = f"is a {type(x).__name__}" if a.dtype.kind == "O" and a.ndim == 0 else f"holds {_kind(a)}"
        expected = f"expected real numbers of shape (..., {size}){_advice(name, x, a)}"
        raise InputError(f"{function}: {name} {what}; {expected}")
    if a.ndim == 0 or a.shape[-1] != size:
        raise InputError(f"{function}: {name} has shape {a.shape}; expected (..., {size})")
    with np.errstate(over="ignore"):  # a double too large for float32 becomes inf, which the kernel reports
        return a.astype(dtype, copy=False)


def _kind(a: np.ndarray) -> str:
    if a.dtype.kind == "c":
        return "complex numbers"
    if a.dtype.kind in "US":
        return "text"
    if a.dtype.kind != "O" or not a.size:
        return f"entries of type {a.dtype}"
    kinds = {type(entry).__name__: entry for entry in a.flat}
    rows = any(isinstance(entry, Sized) and not isinstance(entry, str | bytes) for entry in kinds.values())
    return f"Python objects of type {', '.join(sorted(kinds)[:3])}" + (" (ragged rows?)" if rows else "")


def _advice(name: str, x: Any, a: np.ndarray) -> str:
    """How objects become numbers, where they do."""
    if a.dtype.kind != "O" or not a.ndim:
        return ""
    try:
        are_numbers = np.isfinite(a.astype(float)).all()  # None becomes NaN
    except (TypeError, ValueError):
        return ""
    call = f"{name}.astype(float)" if hasattr(x, "astype") else f"numpy.array({name}, float)"
    return f". Try {call}" if are_numbers else ""


def leading_shape(function: str, names: Sequence[str], arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
    """The batch axes that all inputs share by broadcasting."""
    first = arrays[0].shape[:-1]
    if all(a.shape[:-1] == first for a in arrays):
        return first
    try:
        return np.broadcast_shapes(*(a.shape[:-1] for a in arrays))
    except ValueError:
        shapes = ", ".join(f"{n} {a.shape}" for n, a in zip(names, arrays, strict=True))
        raise InputError(
            f"{function}: batch axes do not fit together: {shapes}; the leading axes must be equal or 1"
        ) from None


def accepted(
    function: str, signature: Sequence[tuple[str, int]], inputs: Sequence, dtype: np.dtype
) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """The inputs of a call, converted, and the batch axes that they share."""
    names = [n for n, _ in signature]
    if len(inputs) != len(names):
        raise InputError(f"{function} takes {', '.join(names)}; {len(inputs)} arrays were given")
    given = [converted(function, n, k, x, dtype) for (n, k), x in zip(signature, inputs, strict=True)]
    return given, leading_shape(function, names, given)


def rows(a: np.ndarray, leading: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """The array as contiguous rows, and how many numbers apart they are (0: one row for all states)."""
    size, count = a.shape[-1], math.prod(leading)
    if a.shape[:-1] == leading and a.flags.c_contiguous:
        return (a if a.ndim == 2 else a.reshape(count, size)), size
    if a.size == size:
        return np.ascontiguousarray(a).reshape(size), 0
    return np.ascontiguousarray(np.broadcast_to(a, (*leading, size))).reshape(count, size), size


def address(a: np.ndarray) -> int:
    """Where an array's numbers begin (a third of the time of a.ctypes.data)."""
    return a.__array_interface__["data"][0]


def aligned(size: int) -> np.ndarray:
    """Zeros of this many bytes that begin at a multiple of 64."""
    whole = np.zeros(size + 64, np.uint8)
    start = -address(whole) % 64
    return whole[start : start + size]


def checked_out(function: str, out, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """An `out` must be a writeable array of exactly this shape and dtype."""
    if not isinstance(out, np.ndarray):
        raise InputError(f"{function}: out is a {type(out).__name__}; expected an array of shape {shape}, {dtype}")
    if out.shape != shape:
        raise InputError(f"{function}: out has shape {out.shape}; expected {shape}")
    if out.dtype != dtype:
        raise InputError(f"{function}: out holds {out.dtype}; expected {dtype}")
    if not out.flags.writeable:
        raise InputError(f"{function}: out is read-only; give an array that can be written")


def written(function: str, out: np.ndarray, result: np.ndarray) -> np.ndarray:
    """Return `out` with the result in it; InputError if it does not fit."""
    checked_out(function, out, result.shape, result.dtype)
    out[...] = result
    return out


def usable_in_place(out: np.ndarray, inputs: Sequence[np.ndarray]) -> bool:
    """True if a kernel may write straight into out."""
    return out.flags.c_contiguous and out.flags.aligned and not any(np.may_share_memory(out, a) for a in inputs)
