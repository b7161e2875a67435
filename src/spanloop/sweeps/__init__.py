"""Algorithms as data: sweeps over a tree, and the walk that carries them out."""

from spanloop.sweeps.program import (
    AT_ONCE,
    INWARD,
    OUTWARD,
    Program,
    Sum,
    Sweep,
    Union,
    Values,
    at_once,
    inward,
    outward,
    walk,
    walked,
)

__all__ = [
    "AT_ONCE",
    "INWARD",
    "OUTWARD",
    "Program",
    "Sum",
    "Sweep",
    "Union",
    "Values",
    "at_once",
    "inward",
    "outward",
    "walk",
    "walked",
]
