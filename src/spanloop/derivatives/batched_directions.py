"""Derivatives of a function along several directions at each of many states: one batch of its JVP kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.compiler.runtime.nan_rows import kept_refusals
from spanloop.loops.batching import Refusals, Robot

_ROWS = 1 << 15  # states times directions of one call of the kernel: bounds its memory


def along_directions(
    robot: Robot, function: str, inputs: Sequence[np.ndarray], tangents: Mapping[str, np.ndarray], **options: Any
) -> tuple[np.ndarray, Refusals]:
    """Return the derivatives (n, k, ...) of a function of the catalog along k directions at n states.

    inputs: of the function, (n, size) each. tangents: {"input": (n, k, size)}, of q in joint rates (n, k, nv). options:
    of the kernel. Also returned: the states without an answer, whose rows are NaN; the first of them is explained.
    """
    kernel = robot.kernel(function, derivative="jvp", wrt=tuple(tangents), **options)
    n, k = next(iter(tangents.values())).shape[:2]
    answer = np.zeros((n, k, *kernel.shape))
    step = max(1, _ROWS // max(k, 1))
    refusals: Refusals = {}
    for start in range(0, n if k else 0, step):
        part = slice(start, start + step)
        rows = [x[part, None] for x in inputs] + [x[part] for x in tangents.values()]
        with kept_refusals() as batches:
            answer[part] = kernel.evaluate(*rows)
        for refused in batches:
            states = sorted({start + number // k for number in refused.numbers})
            refusals = dict.fromkeys(states, refused.explain(min(refused.numbers))) | refusals
    return answer, refusals
