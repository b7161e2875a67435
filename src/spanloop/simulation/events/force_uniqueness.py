"""Events that read constraint forces read forces that are unique: others depend on nothing that a run knows.

Closure forces that balance each other, Jᵀ λ = 0, change no motion: redundant rows carry them, and how they share them
is not determined. An event whose value changes with such a force is refused with the rows in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from spanloop.algorithms.closed.closure_kinematics import loop_wrenches
from spanloop.algorithms.closed.redundancy import scaled_jacobian
from spanloop.errors import InputError
from spanloop.loops.dynamics_solution import REDUNDANT
from spanloop.loops.redundant_directions import direction_names, null_directions
from spanloop.simulation.events.switching import Switching, Watcher
from spanloop.simulation.events.watched_values import condition_value, margin

_SAME = 1e-9  # of the larger value: what rounding changes


def check_unique_forces(switching: Switching, t: float, q: np.ndarray, v: np.ndarray) -> None:
    """InputError if a grasp or a condition reads forces that are not unique at the start of a run, q (nq,), v (nv,).

    The loops that are closed at the start count, and those of grasps.
    """
    watchers = [w for w in switching.watchers if w.takes_forces or w.kind == "grasp"]
    stresses = _self_stresses(switching, {w.name for w in watchers if w.kind == "grasp"}, q) if watchers else {}
    for w in watchers:
        value = _value(switching, w, t, q, v)
        for name, stress in stresses.items():
            if _changes(value, stress):
                raise InputError(
                    f"{_owner(w)} reads forces that are not unique: redundant rows share them ({name}). {_advice(w)}"
                )


def _self_stresses(switching: Switching, held: set[str], q: np.ndarray) -> dict[str, np.ndarray]:
    """Forces (n_rows,) of closed rows that balance each other, by name."""
    m, model = switching.mechanism, switching.model
    closed = {s.name for s, on in zip(switching.switches, switching.begins_on, strict=True) if on} | held
    opened = [r for name, rows in m.switches.items() if name not in closed for r in rows]
    J, lengths = scaled_jacobian(m, q), np.array(m.row_lengths)
    J[:, [k for j in model.joints if j.driven for k in range(model.nv)[model.v_slice(j.name)]]] = 0.0
    size = max(float(np.linalg.norm(J, 2)), 1.0)
    rows = np.concatenate([J, size * np.eye(m.n_rows)[:, opened]], axis=1)  # open rows carry nothing
    found = null_directions(model, rows, REDUNDANT * size)
    return dict(zip(direction_names(model, found, lengths), found / lengths, strict=True))


def _value(switching: Switching, w: Watcher, t: float, q: np.ndarray, v: np.ndarray) -> Callable[[np.ndarray], float]:
    """The value of a watcher as a function of the forces (n_rows,) of rows."""
    x: Mapping[str, Any] = {"t": [t], "q": q.tolist(), "v": v.tolist()}

    def value(forces: np.ndarray) -> float:
        wrenches = loop_wrenches(switching.mechanism, x["q"], forces.tolist())
        if w.kind == "grasp":
            return float(margin(w, switching.model, wrenches))
        return float(condition_value(w, switching.model, x, wrenches))

    return value


def _changes(value: Callable[[np.ndarray], float], stress: np.ndarray) -> bool:
    """Whether a value changes with a force that is added to others."""
    others = np.random.default_rng(0).normal(size=stress.shape) * np.abs(stress).max()
    first, second = value(others), value(others + stress)
    return abs(second - first) > _SAME * max(abs(first), abs(second))


def _owner(w: Watcher) -> str:
    return f"Grasp({w.name!r})" if w.kind == "grasp" else f"the condition of {w.kind} {w.name!r}"


def _advice(w: Watcher) -> str:
    if w.kind == "grasp":
        return "torsion=math.inf leaves moments out; or close loops with fewer rows: a soft finger, a ball"
    return "Read other components, or close loops with fewer rows: robot.diagnose(q) lists the redundant ones"
