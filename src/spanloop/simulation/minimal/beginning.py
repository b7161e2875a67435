"""The start of a run in minimal coordinates: what they are not for, and states completed from the actuated joints."""

from __future__ import annotations

import numpy as np

from spanloop.algorithms.papers.legs import NotLegs, legs_of
from spanloop.compiling import Question
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, StateError, UnsupportedError
from spanloop.loops.measuring import errors
from spanloop.simulation.minimal.completion import METHOD
from spanloop.topology import mechanism

_MOST = 20  # Newton steps, unless
_CLOSED = 1e-13  # is left before [m or rad]
_ENOUGH = 1e-9  # must not be left after them


def refuse(robot: Dynamics, dynamics: str | None, on_singular: str) -> None:
    """A sentence for what cannot be simulated in minimal coordinates."""
    if dynamics not in (None, METHOD):
        raise InputError(
            f"closures='minimal' is computed by dynamics={METHOD!r}; dynamics is {dynamics!r}. "
            "Leave it out, or use closures='project'"
        )
    if on_singular != "raise":
        raise InputError(
            f"on_singular={on_singular!r} has no meaning with closures='minimal': at a singular position the actuated "
            "joints do not determine the motion. Use closures='project'"
        )
    try:
        Question.of(robot.model, "position_completion", None, "baked", (), None, None, True).signature()
    except NotLegs as error:
        other = f", or a model in which {_named(robot)} are actuated" if error.counted else ""
        raise UnsupportedError(
            f"closures='minimal' is for legs on one platform: {error.why}. Use closures='project'{other}"
        ) from None


def _named(robot: Dynamics) -> str:
    """Freedoms that would do."""
    return "just " + ", ".join(repr(name) for name in robot.independent().names)


def completed(robot: Dynamics, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows q (n, nq), v (n, nv) with the loops closed, the actuated joints as they are."""
    step, rates = robot.kernel("position_completion"), robot.kernel("actuated_rates")
    for _ in range(_MOST):
        error = errors(robot, q)
        if np.abs(error).max(initial=0.0) < _CLOSED:
            break
        q = robot.integrate(q, _answered(step, q, error))
    else:
        left = np.abs(errors(robot, q)).max(axis=1)
        if not left.max() < _ENOUGH:
            raise StateError(
                f"simulate: run {int(np.argmax(left))} starts where the loops do not close with the actuated joints as "
                f"they are: {left.max():.3g} m or rad is left. Close them first: q = robot.assemble(q)"
            )
    T, actuated = _answered(rates, q), list(legs_of(mechanism(robot.model)).actuated)
    out = np.einsum("kij,kj->ki", T, v[:, actuated])
    out[:, actuated] = v[:, actuated]
    return q, out


def _answered(kernel, *rows: np.ndarray) -> np.ndarray:
    """The kernel's answers at rows, or a sentence for the first row that has none."""
    out = np.empty((len(rows[0]), *kernel.shape))
    for k in range(len(out)):
        if not kernel.attempt([np.ascontiguousarray(x[k]) for x in rows], out[k]):
            which = f"run {k} starts" if len(out) > 1 else "the run starts"
            raise StateError(
                f"simulate: {which} in a singular position of the legs, where the actuated joints do not determine the "
                "motion of the others. Use closures='project'"
            )
    return out
