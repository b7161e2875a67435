"""The start of a run in minimal coordinates: what they are not for, and states completed from the actuated joints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanloop.algorithms.papers.saha.legs import NotLegs
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, StateError, UnsupportedError
from spanloop.kernels import KernelSpec
from spanloop.simulation import traced_kernels
from spanloop.simulation.minimal.completion import METHOD
from spanloop.simulation.system import SINGULAR, System

_MOST = 20  # Newton steps
_CLOSED = 1e-14  # m or rad: no step is taken after this is reached
_ENOUGH = 1e-9  # must be reached
_UNDETERMINED = "where the actuated joints do not determine the motion of the others. Use closures='project'"


def refuse(robot: Dynamics, method: str | None) -> None:
    """A sentence for what cannot be simulated in minimal coordinates."""
    if method not in (None, METHOD):
        raise InputError(
            f"closures='minimal' is computed by method={METHOD!r}; method is {method!r}. "
            "Leave it out, or use closures='project'"
        )
    if robot.on_singular != "raise":
        raise InputError(
            f"on_singular={robot.on_singular!r} has no meaning with closures='minimal': at a singular position the "
            "actuated joints do not determine the motion. Use closures='project'"
        )
    try:
        KernelSpec.of(robot.model, "position_completion").signature()
    except NotLegs as error:
        other = f", or a model in which {_named(robot)} are actuated" if error.counted else ""
        raise UnsupportedError(
            f"closures='minimal' is for legs on one platform: {error.why}. Use closures='project'{other}"
        ) from None
    if not robot.model.actuated:
        raise UnsupportedError("closures='minimal' integrates actuated joints, and the loops leave none to move")


def _named(robot: Dynamics) -> str:
    """Freedoms that would do."""
    return "just " + ", ".join(repr(name) for name in robot.independent_coordinates().names)


def completed(system: System, q: np.ndarray, v: np.ndarray, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows q (n, nq), v (n, nv) with the loops closed, the actuated joints as they are; constants (n or 1, width)."""
    nq, nv = system.model.nq, system.model.nv
    sizes = {"q": nq, "v": nv} | {n: system.sizes[n] for n in system.constants}

    def round_of(x):
        q, v, left = system.completed(x, 1)
        T, pairs = system.actuated_rates(x)
        return [*q, *v, left], [*pairs, (SINGULAR, system.completion.margin(T))]

    kernel = traced_kernels.kernel("completed", sizes, nq + nv + 1, round_of, system.key())
    out = np.concatenate([q, v], axis=1)
    for k, row in enumerate(out):
        given = _split(constants[k if len(constants) > 1 else 0], [system.sizes[n] for n in system.constants])
        found, left = np.empty(nq + nv + 1), np.inf
        for _ in range(_MOST):
            if not kernel.attempt([row[:nq].copy(), row[nq:].copy(), *given], found):
                raise StateError(f"simulate: {_which(k, out)} in a singular position of the legs, {_UNDETERMINED}")
            before, left = left, float(found[-1])
            row[:] = found[:-1]
            if left < _CLOSED or left > 0.5 * before:
                break
        if not left < _ENOUGH:
            raise StateError(
                f"simulate: {_which(k, out)} where the loops do not close with the actuated joints as they are: "
                f"{left:.3g} m or rad is left. Close them first: q = robot.assemble(q)"
            )
    return out[:, :nq], out[:, nq:]


def _split(row: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    ends = np.cumsum(sizes)
    return [np.ascontiguousarray(row[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def _which(k: int, rows: np.ndarray) -> str:
    return f"run {k} starts" if len(rows) > 1 else "the run starts"
