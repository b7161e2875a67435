"""Conditions as text, `q.elbow - 0.3`: arithmetic on t, q, v and f that is read, checked and traced, never executed."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from typing import Any, cast

from spanloop.errors import InputError, nearest
from spanloop.math.scalar import absolute, sincos, sqrt, where
from spanloop.model import Model

LONGEST = 2000  # characters of a condition
WRENCH = 6  # numbers of a loop's force: [torque; force]
MOST_POWER = 64  # of a traced number
_SHOWN = 60  # characters of a condition in a message


def _least(*numbers: Any) -> Any:
    out = numbers[0]
    for x in numbers[1:]:
        out = where(x < out, x, out)
    return out


FUNCTIONS: dict[str, tuple[Callable[..., Any], int | None]] = {  # and how many arguments they take; None: two or more
    "sin": (lambda x: sincos(x)[0], 1),
    "cos": (lambda x: sincos(x)[1], 1),
    "sqrt": (sqrt, 1),
    "abs": (absolute, 1),
    "min": (_least, None),
    "max": (lambda *numbers: -_least(*(-x for x in numbers)), None),
}
CONSTANTS = {"pi": math.pi}
QUANTITIES = ("q", "v", "f")
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


def condition(text: str, model: Model, place: str) -> Callable[..., Any]:
    """The function (t, q, v), or (t, q, v, f) if it reads forces, of an expression such as "q.elbow - 0.3".

    It may contain numbers, pi, t, q.JOINT, v.JOINT, f.LOOP[k], + - * / **, parentheses, and the functions sin, cos,
    sqrt, abs, min and max. q["left-knee"] is for names that are no words, q.ball[2] for one of several coordinates.
    place: where the text stands, for messages.

    Raises:
        InputError: the text is no such expression, or the model has no such joint or loop.
    """
    root = _parsed(text, place)
    _check(root, text, model, place)

    def when(t: Any, q: Any, v: Any) -> Any:
        return _value(root, {"t": t, "q": q, "v": v})

    def when_forced(t: Any, q: Any, v: Any, f: Any) -> Any:
        return _value(root, {"t": t, "q": q, "v": v, "f": f})

    reads_forces = any(isinstance(x, ast.Name) and x.id == "f" for x in ast.walk(root))
    return when_forced if reads_forces else when


def _parsed(text: str, place: str) -> ast.expr:
    if len(text) > LONGEST:
        raise InputError(f"{place}: the condition has {len(text)} characters; at most {LONGEST} are read")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        raise InputError(
            f"{place}: {text!r:.{_SHOWN}} is no condition ({reason}); expected arithmetic such as 'q.elbow - 0.3'"
        ) from None


# ---- checks, which raise InputError


def _check(node: ast.expr, text: str, model: Model, place: str) -> None:
    """Check a whole expression; after that, `_value` knows every node of it."""
    try:
        for part in _parts(node, model):
            _check_constant(part)
    except _Refused as error:
        raise InputError(f"{place}: {text.strip()!r:.{_SHOWN}}: {error}") from None
    except RecursionError:
        raise InputError(f"{place}: {text!r:.{_SHOWN}} is nested too deep") from None


class _Refused(Exception):
    """What is wrong with a part of an expression."""


def _parts(node: ast.expr, model: Model) -> Iterator[ast.expr]:
    """Every number of an expression, the inner ones first."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield from _parts(node.left, model)
        yield from _parts(node.right, model)
        if isinstance(node.op, ast.Pow):
            _check_power(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        yield from _parts(node.operand, model)
    elif isinstance(node, ast.Call):
        _check_call(node)
        for x in node.args:
            yield from _parts(x, model)
    elif isinstance(node, ast.Attribute | ast.Subscript):
        _check_quantity(node, model)
    elif isinstance(node, ast.Name):
        _check_name(node.id, model)
    elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
        raise _Refused(_advice(node))
    yield node


def _advice(node: ast.expr) -> str:
    """What to write instead of something that is no arithmetic."""
    written = ast.unparse(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        a, b = ast.unparse(node.left), ast.unparse(node.comparators[0])
        other = f"{a} - ({b})" if isinstance(node.ops[0], ast.Lt | ast.LtE) else f"{b} - ({a})"
        return (
            f"{written!r:.{_SHOWN}} is a comparison; expected a number that is positive until the event. Try {other!r}"
        )
    return (
        f"{written!r:.{_SHOWN}} is not understood; expected numbers, t, q.JOINT, v.JOINT, f.LOOP[k], + - * / ** ( ), "
        f"{', '.join(FUNCTIONS)}"
    )


def _check_call(node: ast.Call) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in FUNCTIONS or node.keywords or any(isinstance(x, ast.Starred) for x in node.args):
        raise _Refused(f"{name!r:.{_SHOWN}} is no function of conditions; {nearest(name, FUNCTIONS)}")
    count, found = FUNCTIONS[name][1], len(node.args)
    if found != count if count is not None else found < 2:
        raise _Refused(f"{name} has {found} arguments; expected {count or 'two or more'}")


def _check_power(node: ast.BinOp) -> None:
    if _is_constant(node):
        return
    n = _value(node.right, {}) if _is_constant(node.right) else math.nan
    if not (abs(n) <= MOST_POWER and 2.0 * n == round(2.0 * n)):
        raise _Refused(
            f"the power is {ast.unparse(node.right)!r:.{_SHOWN}}; expected a number up to {MOST_POWER} that is "
            "whole or ends in .5"
        )


def _check_name(name: str, model: Model) -> None:
    if name in QUANTITIES:
        raise _Refused(f"{name!r} is all of them; expected one, such as {name}.{'LOOP[0]' if name == 'f' else 'JOINT'}")
    if name != "t" and name not in CONSTANTS:
        joints = [j.name for j in model.joints]
        offer = f"expected q.{name} or v.{name}" if name in joints else nearest(name, ("t", *CONSTANTS, *joints))
        raise _Refused(f"{name!r:.{_SHOWN}} is not known; {offer}")


def _check_quantity(node: ast.Attribute | ast.Subscript, model: Model) -> None:
    """A part of q, v or f: the joint or loop is there, and the number is one that it has."""
    quantity, name, number = _reference(node)
    if quantity == "f":
        known = [*(x.name for x in model.loops), *(x.name for x in model.couplings)]
        what = "loop or coupling"
    else:
        known, what = [j.name for j in model.joints], "joint"
    if name not in known:
        raise _Refused(f"there is no {what} {name!r:.{_SHOWN}} in {model.name!r}; {nearest(name, known)}")
    if quantity == "f":
        count = WRENCH if any(x.name == name for x in model.loops) else 1
    else:
        place = model.q_slice(name) if quantity == "q" else model.v_slice(name)
        count = place.stop - place.start
    if number is None and count != 1:
        raise _Refused(f"{quantity}.{name} has {count} numbers; expected one of them, such as {quantity}.{name}[0]")
    if number is not None and not 0 <= number < count:
        raise _Refused(f"{quantity}.{name} has the numbers 0 to {count - 1}; found [{number}]")


def _reference(node: ast.expr) -> tuple[str, str, int | None]:
    """Quantity, name and number of q.elbow, q.boom.modes[0], q["left-knee"], f.grip[5] or f["grip"][5]."""
    number: int | None = None
    inner: Any = node
    owner: Any = None
    name: Any = None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute | ast.Subscript):
        index: Any = node.slice
        number = index.value if isinstance(index, ast.Constant) and type(index.value) is int else None
        inner = node.value if number is not None else None
    if isinstance(inner, ast.Attribute):
        owner, name = inner.value, inner.attr
        while isinstance(owner, ast.Attribute):  # of a name with points: q.boom.modes[0]
            owner, name = owner.value, f"{owner.attr}.{name}"
    elif isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
        owner, name = inner.value, inner.slice.value
    if not (isinstance(owner, ast.Name) and owner.id in QUANTITIES and isinstance(name, str)):
        raise _Refused(_advice(node))
    return owner.id, name, number


def _check_constant(node: ast.expr) -> None:
    """The value of a part that reads no quantity is a finite number."""
    if not _is_constant(node):
        return
    try:
        good = math.isfinite(_value(node, {}))
    except (ArithmeticError, ValueError, TypeError):
        good = False
    if not good:
        raise _Refused(f"{ast.unparse(node)!r:.{_SHOWN}} is no finite number")


def _is_constant(node: ast.expr) -> bool:
    """Whether an expression reads no quantity."""
    return not any(isinstance(x, ast.Name) and x.id in ("t", *QUANTITIES) for x in ast.walk(node))


# ---- values


def _value(node: Any, at: dict[str, Any]) -> Any:
    """The number of a checked expression, on floats or traced scalars."""
    if isinstance(node, ast.Constant):
        return float(cast("float", node.value))
    if isinstance(node, ast.Name):
        return at["t"] if node.id == "t" else CONSTANTS[node.id]
    if isinstance(node, ast.UnaryOp):
        inner = _value(node.operand, at)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](_value(node.left, at), _value(node.right, at))
    if isinstance(node, ast.Call):
        return FUNCTIONS[node.func.id][0](*(_value(x, at) for x in node.args))  # type: ignore[attr-defined]
    quantity, name, number = _reference(node)
    found = at[quantity][name]
    return found[number or 0] if hasattr(found, "__len__") else found  # a single number may be written with [0]
