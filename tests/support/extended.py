"""Plans evaluated in extended precision, and central differences of them: references for derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spanloop.compiler.lower import Plan
from spanloop.compiler.lower.evaluation import FUNCTIONS, evaluated
from spanloop.compiler.trace import COSINE, NOT, ROOT, SELECT, SINE

EXTENDED = {
    **FUNCTIONS,
    SINE: np.sin,
    COSINE: np.cos,
    ROOT: np.sqrt,
    NOT: np.logical_not,
    SELECT: np.where,
}


def evaluate(plan: Plan, *inputs: Sequence) -> np.ndarray:
    """The outputs of a plan in np.longdouble (..., n); inputs (..., size) each, in the plan's order."""
    columns = [x for given in inputs for x in np.moveaxis(np.asarray(given, np.longdouble), -1, 0)]
    with np.errstate(all="ignore"):
        outputs, _ = evaluated(plan, columns, EXTENDED)
    wide = np.broadcast_arrays(*(np.asarray(x, np.longdouble) for x in outputs), *columns)[: len(outputs)]
    return np.stack(wide, axis=-1)


def central(function: Callable[[np.longdouble], np.ndarray], step: float = 1e-5) -> np.ndarray:
    """d function(s)/ds at s = 0, by central differences of sixth order: some 1e-14 of its size in longdouble."""
    h = np.longdouble(step)
    pairs = [(function(k * h) - function(-k * h)) for k in (1, 2, 3)]
    return (45 * pairs[0] - 9 * pairs[1] + pairs[2]) / (60 * h)
