"""A function of the catalog in plain arithmetic, for what is compiled into a simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from spanloop.errors import InputError
from spanloop.kernels.spec import Question
from spanloop.math.scalar import where
from spanloop.model import Model


def on_scalars(
    model: Model,
    function: str,
    *,
    method: str | None = None,
    forces: Sequence[str] = (),
    frame: str | None = None,
    expressed_in: str | None = None,
) -> Callable[..., list]:
    """A function of the catalog in plain arithmetic: f(q, v, a) -> list, on floats or on traced scalars.

    For controllers and forces that are compiled into a simulation. Inputs are those of the kernel that sl.compile
    gives, a sequence each; the answer is a list, or a list of rows where the kernel gives a matrix. Where it has no
    answer (loops in a singular position) all its numbers are NaN; whether loops are closed is not looked at.
    """
    forces = (forces,) if isinstance(forces, str) else tuple(forces)
    question = Question.of(model, function, method, "baked", forces, frame, expressed_in, True)
    question.watched = False  # the stages of a step may be a little off the closed loops
    inputs, shape = question.signature()

    def compute(*given: Sequence[Any]) -> list:
        if len(given) != len(inputs):
            names = ", ".join(n for n, _ in inputs)
            raise InputError(f"{function} on scalars: {len(given)} arguments are given; expected ({names})")
        for (name, size), x in zip(inputs, given, strict=True):
            if len(x) != size:
                raise InputError(f"{function} on scalars: {name} has {len(x)} numbers; expected {size}")
        answer, demands = question.compute({n: x for (n, _), x in zip(inputs, given, strict=True)})
        for less, more in demands:
            refused = where(less < more, 0.0, math.nan)
            answer = [x + refused for x in answer]
        return _rows(answer, shape)

    return compute


def _rows(answer: list, shape: tuple[int, ...]) -> list:
    """A flat list in C order as a list of rows, where there are rows."""
    if len(shape) < 2:
        return answer
    return [answer[k * shape[1] : (k + 1) * shape[1]] for k in range(shape[0])]
