"""NumPy on traced scalars: arrays of them, and those of NumPy's functions that have a meaning on a scalar graph.

NumPy hands every function of an argument from here to `ufunc` or `function` below (`__array_ufunc__`,
`__array_function__`). Those that only move elements run on plain arrays of objects; those that compute run element by
element, with the functions of spanloop.math.scalar; all others raise a TraceError. Elements are traced scalars,
conditions or Python's numbers, so that a user's function computes alike on floats.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from spanloop.compiler.trace import Condition, Expression, TraceError
from spanloop.math import scalar


class TracedArray(np.ndarray):
    """An array (dtype object) of traced scalars and numbers that takes NumPy's arithmetic."""

    @staticmethod
    def of(values: Any) -> TracedArray:
        """The values as such an array, of any shape."""
        return np.asarray(values, dtype=object).view(TracedArray)

    def __array_ufunc__(self, called: Any, method: Any, *inputs: Any, **options: Any) -> Any:  # type: ignore[override]
        return ufunc(called, method, inputs, options)

    def __array_function__(self, called: Any, types: Any, args: Any, options: Any) -> Any:
        return function(called, args, options)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, TracedArray | Expression | Condition):
            raise TraceError("a traced value cannot be an index: its number is not known yet. Use np.where")
        return super().__getitem__(which)

    def select(self, yes: Any, no: Any) -> Any:
        """yes where these conditions hold, no elsewhere."""
        return function(np.where, (self, yes, no), {})

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """The same values; conditions as 1.0 and 0.0 where numbers are asked for."""
        if np.dtype(dtype).kind not in "fiu":
            return super().astype(dtype, *args, **options)
        if np.dtype(dtype).kind != "f" and any(isinstance(x, Expression) for x in self.flat):
            raise TraceError("traced values as whole numbers")
        return _result(_elementwise(lambda x: scalar.where(x, 1.0, 0.0) if isinstance(x, Condition) else x, self))

    def __bool__(self) -> bool:
        raise TraceError("traced values have no truth: they are numbers yet to come. Use np.where(condition, yes, no)")


def ufunc(called: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """NumPy's ufunc `called` of traced values."""
    out = options.pop("out", None)
    if called is np.matmul and method == "__call__":
        found = np.matmul(*map(_plain, inputs))
    elif called.__name__ not in ELEMENTWISE or method not in ("__call__", "reduce"):
        raise TraceError(f"{_name(called)}{'' if method == '__call__' else f'.{method}'} of traced values")
    elif method == "reduce":
        found = _reduced(called, *inputs, **options)
    else:
        _no_options(called.__name__, options)
        found = _elementwise(ELEMENTWISE[called.__name__], *inputs)
    return _result(found) if out is None else _written(out[0], found)


def function(called: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """NumPy's function `called`, which is not a ufunc, of traced values."""
    if called in COMPUTING:
        return _result(COMPUTING[called](*args, **options))
    if called not in MOVING:
        raise TraceError(f"{_name(called)} of traced values")
    return _result(called(*_plain_inside(args), **{k: _plain_inside(x) for k, x in options.items()}))


def _name(called: Any) -> str:
    """The name by which users call a function: np.sin, np.linalg.solve, scipy.special.expit."""
    name = called.__name__
    if getattr(np, name, None) is called:
        return f"np.{name}"
    module = getattr(called, "__module__", None)
    if module:
        return f"{module.replace('numpy', 'np', 1)}.{name}"
    if getattr(sys.modules.get("scipy.special"), name, None) is called:
        return f"scipy.special.{name}"
    return str(name)


def _plain(x: Any) -> np.ndarray:
    """An array of NumPy's own class, of objects."""
    return np.asarray(x, dtype=object)


def _plain_inside(x: Any) -> Any:
    """x with every traced value in it as a plain array, in lists and tuples too."""
    if isinstance(x, TracedArray | Expression | Condition):
        return _plain(x)
    if isinstance(x, list | tuple):
        return type(x)(_plain_inside(y) for y in x)
    return x


def _result(found: Any) -> Any:
    """An array as a TracedArray, one without axes as its element."""
    if isinstance(found, list | tuple):
        return type(found)(_result(x) for x in found)
    if not isinstance(found, np.ndarray):
        return found
    return found.view(TracedArray) if found.shape and found.dtype == object else found[()]


def _written(out: Any, found: Any) -> Any:
    """`found` written into an array, as tau += ... does."""
    if getattr(out, "dtype", None) != np.dtype(object):
        raise TraceError(
            "an array of floats cannot hold traced values; begin with np.zeros_like(v), or write tau = tau + ..."
        )
    np.ndarray.__setitem__(out, ..., _plain(found))
    return out


def _elementwise(f: Callable[..., Any], *inputs: Any) -> np.ndarray:
    """f of every element, broadcast as NumPy does."""
    places = np.broadcast(*map(_plain, inputs))
    out = np.empty(places.size, dtype=object)
    for k, each in enumerate(places):
        out[k] = f(*(x.item() if isinstance(x, np.generic) else x for x in each))  # Python's numbers ask NumPy nothing
    return out.reshape(places.shape)


def _reduced(called: Any, x: Any, axis: Any = 0, keepdims: bool = False, **options: Any) -> Any:
    """called.reduce along an axis, or along all (axis=None)."""
    _no_options(f"{called.__name__}.reduce", {k: v for k, v in options.items() if k not in ("initial", "where")})
    array, f = _plain(x), ELEMENTWISE[called.__name__]
    if options.get("where", True) is not True:
        raise TraceError(f"np.{called.__name__}.reduce of traced values with where=")
    axes = tuple(range(array.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    kept = np.moveaxis(array, axes, tuple(range(len(axes))))
    slices = kept.reshape(-1, *kept.shape[len(axes) :])
    initial = options.get("initial", np._NoValue)
    if initial is np._NoValue or initial is None:
        if not len(slices):
            return called.reduce(np.empty(0))
        found = functools.reduce(functools.partial(_elementwise, f), slices)
    else:
        found = functools.reduce(functools.partial(_elementwise, f), slices, np.full(slices.shape[1:], initial, object))
    return np.expand_dims(found, tuple(a % array.ndim for a in axes)) if keepdims else found


_HARMLESS = ("casting", "subok")  # of arrays of objects, as the methods mean and std of NumPy's arrays give them


def _no_options(name: str, options: dict[str, Any]) -> None:
    for option, value in options.items():
        if option not in _HARMLESS and value not in (None, np._NoValue) and not (option == "where" and value is True):
            raise TraceError(f"np.{name} of traced values with {option}=")


# ---- functions of elements


def _least(x: Any, y: Any) -> Any:
    return scalar.where(y < x, y, x)


def _largest(x: Any, y: Any) -> Any:
    return scalar.where(x < y, y, x)


def _sign(x: Any) -> Any:
    return scalar.where(x > 0.0, 1.0, scalar.where(x < 0.0, -1.0, 0.0))


def _both(x: Any, y: Any) -> Any:
    return (
        (y if x else False) if _is_known(x) else (_truth(x) if y else False) if _is_known(y) else _truth(x) & _truth(y)
    )


def _either(x: Any, y: Any) -> Any:
    return (True if x else y) if _is_known(x) else (True if y else _truth(x)) if _is_known(y) else _truth(x) | _truth(y)


def _not(x: Any) -> Any:
    return not x if _is_known(x) else ~_truth(x)


def _is_known(x: Any) -> bool:
    return isinstance(x, bool | int | float | np.bool_)


def _truth(x: Any) -> Condition:
    if not isinstance(x, Condition):
        raise TraceError("a traced number has no truth; compare it, as in x > 0.0")
    return x


def _tangent(x: Any) -> Any:
    s, c = scalar.sincos(x)
    return s / c


def _power(x: Any, n: Any) -> Any:
    if isinstance(n, Expression):
        raise TraceError("a number to a traced power")
    return x**n


ELEMENTWISE: dict[str, Callable[..., Any]] = {  # by the name of the ufunc
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "remainder": scalar.modulo,
    "floor": lambda x: x - scalar.modulo(x, 1.0),
    "ceil": lambda x: x + scalar.modulo(-x, 1.0),
    "conjugate": operator.pos,
    "power": _power,
    "float_power": _power,
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": scalar.absolute,
    "fabs": scalar.absolute,
    "sign": _sign,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1.0 / x,
    "sqrt": scalar.sqrt,
    "hypot": lambda x, y: scalar.sqrt(x * x + y * y),
    "exp": scalar.exp,
    "tanh": scalar.tanh,
    "sin": lambda x: scalar.sincos(x)[0],
    "cos": lambda x: scalar.sincos(x)[1],
    "tan": _tangent,
    "arctan": lambda x: scalar.arctan2(x, 1.0),
    "arctan2": scalar.arctan2,
    "arcsin": lambda x: scalar.arctan2(x, scalar.sqrt((1.0 - x) * (1.0 + x))),
    "arccos": lambda x: scalar.arctan2(scalar.sqrt((1.0 - x) * (1.0 + x)), x),
    "deg2rad": lambda x: x * (math.pi / 180.0),
    "radians": lambda x: x * (math.pi / 180.0),
    "rad2deg": lambda x: x * (180.0 / math.pi),
    "degrees": lambda x: x * (180.0 / math.pi),
    "minimum": _least,
    "fmin": _least,
    "maximum": _largest,
    "fmax": _largest,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "logical_and": _both,
    "bitwise_and": _both,
    "logical_or": _either,
    "bitwise_or": _either,
    "logical_not": _not,
    "invert": _not,
    "clip": lambda x, low, high: _least(_largest(x, low), high),
}


# ---- functions of arrays that compute


def _where(condition: Any, *choices: Any) -> Any:
    if len(choices) != 2:
        raise TraceError("np.where of a traced condition without the two choices")
    return _elementwise(scalar.where, condition, *choices)


def _select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    found = default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        found = _where(condition, choice, found)
    return found


def _clip(x: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any) -> Any:
    low, high = options.pop("min", a_min), options.pop("max", a_max)
    _no_options("clip", {**options, "out": out})
    x = x if low is None else _elementwise(_largest, x, low)
    return x if high is None else _elementwise(_least, x, high)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord not in (None, 2) or isinstance(axis, tuple) or (ord == 2 and axis is None and np.ndim(x) != 1):
        raise TraceError(f"np.linalg.norm of traced values with ord={ord!r}, axis={axis!r}")
    squares = _elementwise(ELEMENTWISE["square"], x)
    return _elementwise(scalar.sqrt, _reduced(np.add, squares, axis, keepdims))


def _mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    total = _plain(_reduced(np.add, x, axis, keepdims))
    return _elementwise(operator.mul, total, total.size / np.size(x))


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Piecewise linear through constant places xp, which increase."""
    if period is not None:
        raise TraceError("np.interp of traced values with period=")
    if isinstance(xp, TracedArray | Expression):
        raise TraceError("np.interp with traced points; only the place x may be traced")
    at, values = np.asarray(xp, dtype=float).tolist(), list(fp)
    if len(at) != len(values) or not at or any(b <= a for a, b in itertools.pairwise(at)):
        raise TraceError("np.interp of traced values with points that do not increase, or of another number than fp")

    def value(place: Any) -> Any:
        found: Any = values[0] if left is None else left
        for a, b, f, g in zip(at, at[1:], values, values[1:], strict=False):
            found = scalar.where(place >= a, f + (g - f) / (b - a) * (place - a), found)
        found = scalar.where(place >= at[-1], values[-1], found)
        return found if right is None else scalar.where(place > at[-1], right, found)

    return _elementwise(value, x)


def _over(called: Any) -> Callable[..., Any]:
    """called.reduce as np.sum and the like: along all axes unless one is given."""

    def reduced(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, **options: Any) -> Any:
        _no_options(called.__name__, {"dtype": dtype, "out": out})
        return _reduced(called, x, axis, **{k: v for k, v in options.items() if v is not np._NoValue})

    return reduced


COMPUTING: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.select: _select,
    np.clip: _clip,
    np.linalg.norm: _norm,
    np.mean: _mean,
    np.interp: _interp,
    np.sum: _over(np.add),
    np.prod: _over(np.multiply),
    np.max: _over(np.maximum),
    np.min: _over(np.minimum),
    np.amax: _over(np.maximum),
    np.amin: _over(np.minimum),
    np.all: _over(np.logical_and),
    np.any: _over(np.logical_or),
}

# functions that move elements, or that add and multiply what they find: NumPy's own code on arrays of objects
MOVING = frozenset(
    (np.append, np.array_split, np.atleast_1d, np.atleast_2d, np.block, np.broadcast_to, np.column_stack)
    + (np.concatenate, np.copy, np.cross, np.cumsum, np.delete, np.diag, np.diagonal, np.diff, np.dot, np.einsum)
    + (np.expand_dims, np.flip, np.full_like, np.hstack, np.inner, np.insert, np.kron, np.moveaxis, np.ndim, np.outer)
    + (
        np.ones_like,
        np.polyval,
        np.ravel,
        np.repeat,
        np.reshape,
        np.roll,
        np.shape,
        np.size,
        np.split,
        np.squeeze,
        np.stack,
    )
    + (np.swapaxes, np.take, np.tensordot, np.tile, np.trace, np.transpose, np.vdot, np.vstack, np.zeros_like)
)
