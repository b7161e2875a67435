"""Nested values taken apart into their scalars and put together again around others.

A shape is what is left when the scalars are gone: types, names, lengths, texts. Two values of one shape can stand in
for each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from spanloop.compiler.trace import Expression

LEAF = "leaf"


class NotPlain(Exception):
    """A value that is more than a nest of scalars."""


def taken_apart(value: Any) -> tuple[Any, list[Any]]:
    """The shape (hashable) and the scalars of a value."""
    leaves: list[Any] = []
    return _shape(value, leaves), leaves


def put_together(shape: Any, leaves: Sequence[Any]) -> Any:
    """A value of this shape around these scalars."""
    source = iter(leaves)
    value = _value(shape, source)
    assert next(source, None) is None
    return value


def _shape(value: Any, leaves: list[Any]) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return ("same", value)
    if isinstance(value, (float, Expression)):
        leaves.append(value)
        return LEAF
    if isinstance(value, int):
        return ("same", value)
    if isinstance(value, (tuple, list)):
        return (tuple, tuple(_shape(x, leaves) for x in value))
    names = _names(value)
    if names is None:
        raise NotPlain(f"a {type(value).__name__} cannot be taken apart")
    return (type(value), names, tuple(_shape(getattr(value, n), leaves) for n in names))


def _names(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, SimpleNamespace):
        return tuple(sorted(vars(value)))
    if dataclasses.is_dataclass(value):
        return tuple(f.name for f in dataclasses.fields(value))
    slots = tuple(n for kind in type(value).__mro__ for n in getattr(kind, "__slots__", ()))
    return slots or None


def _value(shape: Any, source: Iterator[Any]) -> Any:
    if shape == LEAF:
        return next(source)
    if shape[0] == "same":
        return shape[1]
    if shape[0] is tuple:
        return tuple(_value(s, source) for s in shape[1])
    kind, names, parts = shape
    value = kind.__new__(kind)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(value, name, _value(part, source))
    return value
