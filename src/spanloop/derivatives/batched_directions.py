"""Derivatives of a function along several directions at each of many states: one batch of its JVP kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.arrays import accepted
from spanloop.compiler.runtime.nan_rows import kept_refusals, refuse_states
from spanloop.loops.batching import Refusals, Robot, values

_ROWS = 1 << 15  # states times directions of one call of the kernel: bounds its memory


def answers(robot: Robot, function: str, inputs: Sequence[np.ndarray], **options: Any) -> tuple[np.ndarray, Refusals]:
    """Return the answers (n, ...) of a function of the catalog, and the states without one, of which no warning tells.

    inputs: (n, size) each. The first of these states is explained.
    """
    with kept_refusals() as batches:
        found = values(robot, function, *inputs, **options)
    refusals: Refusals = {}
    for refused in batches:
        refusals = dict.fromkeys(sorted(refused.numbers), refused.explain(min(refused.numbers))) | refusals
    return found, refusals


def along_directions(
    robot: Robot, function: str, inputs: Sequence[np.ndarray], tangents: Mapping[str, np.ndarray], **options: Any
) -> tuple[np.ndarray, Refusals]:
    """Return the derivatives (n, k, ...) of a function of the catalog along k directions at n states.

    inputs: of the function, (n, size) each. tangents: {"input": (n, k, size)}, of q in joint rates (n, k, nv). options:
    of the kernel. Also returned: the states without an answer, whose rows are NaN; the first of them is explained.
    """
    kernel = robot.kernel(function, derivative="jvp", wrt=tuple(tangents), **options)
    return _along(kernel, inputs, list(tangents.values()))


def in_every_direction(function: str, kernel: Any, inputs: Sequence[ArrayLike]) -> np.ndarray:
    """Return the derivatives (..., *shape, width) along the unit directions of all that a JVP kernel moves.

    function: the name in errors. inputs: of the function, with batch axes. A state without an answer is refused as
    kernels refuse it, whatever the number of directions.
    """
    names = kernel.inputs[: len(inputs)]
    given, leading = accepted(function, names, inputs, np.dtype(float))
    rows = [np.broadcast_to(x, (*leading, x.shape[-1])).reshape(math.prod(leading), x.shape[-1]) for x in given]
    places = kernel.definition.places.values()
    unit = np.eye(sum(kernel.definition.widths.values()))
    answer, refusals = _along(
        kernel, rows, [np.broadcast_to(unit[:, p], (len(rows[0]), *unit[:, p].shape)) for p in places]
    )
    found = np.moveaxis(answer, 1, -1).astype(kernel.dtype, copy=False)
    refuse_states(function, list(refusals), refusals.__getitem__, leading, found)
    return found.reshape(leading + found.shape[1:])


def _along(kernel: Any, inputs: Sequence[np.ndarray], tangents: Sequence[np.ndarray]) -> tuple[np.ndarray, Refusals]:
    """Answers (n, k, ...) for inputs (n, size) and tangents (n, k, size), and the states that have none."""
    n, k = tangents[0].shape[:2]
    answer = np.zeros((n, k, *kernel.shape))
    step = max(1, _ROWS // max(k, 1))
    refusals: Refusals = {}
    for start in range(0, n if k else 0, step):
        part = slice(start, start + step)
        with kept_refusals() as batches:
            answer[part] = kernel.evaluate(*(x[part, None] for x in inputs), *(x[part] for x in tangents))
        for refused in batches:
            states = sorted({start + number // k for number in refused.numbers})
            refusals = dict.fromkeys(states, refused.explain(min(refused.numbers))) | refusals
    return answer, refusals
