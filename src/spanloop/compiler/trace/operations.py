"""The operations a graph is made of: the whole vocabulary that a target must speak."""

from __future__ import annotations

INPUT, CONSTANT, NEGATE, ADD, SUBTRACT, MULTIPLY, DIVIDE, SINE, COSINE, ROOT, LESS, BOTH, EITHER, NOT, SELECT = range(
    15
)

NAMES = (
    "input",
    "constant",
    "negate",
    "add",
    "subtract",
    "multiply",
    "divide",
    "sine",
    "cosine",
    "root",
    "less",
    "both",
    "either",
    "not",
    "select",
)

CONDITIONS = frozenset((LESS, BOTH, EITHER, NOT))
