"""Forces and accelerations at the contacts of a state: robot.contact_solution(q, v, tau)."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.arrays import converted
from spanloop.compiler.runtime.nan_rows import OneWarning, refuse_states
from spanloop.contacts.contact_problem import ContactProblem
from spanloop.contacts.uniqueness import directions, unique
from spanloop.dynamics.contact_calls import ContactGeometry
from spanloop.dynamics.kernel_calls import ByName
from spanloop.errors import Reason, Refusal
from spanloop.types import Array

if TYPE_CHECKING:
    from spanloop.dynamics.dynamics import Dynamics

NEAR = 1e-6  # m: a point with a larger gap is open
SLOW = 1e-6  # m/s: one that leaves faster is open, one that slips faster has friction against its slip
UNSOLVED = 1e-9  # of the largest acceleration of a point: what an answer may leave
OPEN, STICKS, SLIPS = "open", "sticks", "slips"


@dataclass(frozen=True, eq=False)
class ContactSolution:
    """What contacts do in a state, or in a batch of states; batch axes come first, n points.

    names: of the points. acceleration (..., nv). force (..., n, 3) on side a in world axes [N]; torque (..., n, 3) of
    torsion and rolling [N m]. gap (..., n) [m]. state (..., n): "open", "sticks" or "slips". unique (..., n): whether
    the force is the only one possible; motion_is_unique (...): the same of the accelerations. jams (..., n): a point
    that slips and whose friction presses it into the surface (Painlevé): no finite force, or several, answer.
    residual (...): what the answer leaves of its conditions [m/s²]. delassus (..., 3 n, 3 n), or 6 n with torsion or
    rolling: accelerations of the points along (n, t1, t2) for unit forces along them.
    """

    names: tuple[str, ...]
    acceleration: Array
    force: Array
    torque: Array
    gap: Array
    state: np.ndarray
    unique: np.ndarray
    motion_is_unique: np.ndarray
    jams: np.ndarray
    residual: Array
    delassus: Array

    def __str__(self) -> str:
        if self.gap.ndim > 1:
            return f"{len(self.names)} contact points of {self.gap.shape[:-1]} states"
        width = max(map(len, self.names))
        rows = [f"{'point':{width}s}  {'state':6s}  {'gap [mm]':>10s}  force [N]"]
        for k, name in enumerate(self.names):
            notes = ("" if self.unique[k] else "  not unique") + ("  jams" if self.jams[k] else "")
            force = ", ".join(f"{x:.4f}" for x in self.force[k] + 0.0)
            rows.append(f"{name:{width}s}  {self.state[k]:6s}  {1e3 * self.gap[k]:10.6f}  ({force}){notes}")
        return "\n".join(rows)


@dataclass(frozen=True)
class _States:
    """Rows of states with all that decides about their points; rates (k, n, 3) along n, t1, t2."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray  # without contacts
    gap: np.ndarray
    axes: np.ndarray
    rates: np.ndarray

    @property
    def closed(self) -> np.ndarray:
        """Points that touch and do not leave."""
        closed: np.ndarray = (self.gap <= NEAR) & (self.rates[..., 0] <= SLOW)
        return closed

    @property
    def slips(self) -> np.ndarray:
        """Closed points that slip."""
        slips: np.ndarray = self.closed & (np.linalg.norm(self.rates[..., 1:], axis=-1) > SLOW)
        return slips

    @property
    def toward(self) -> np.ndarray:
        """Directions (k, n, 2) of their slip, zeros of the others."""
        return np.where(self.slips[..., None], _unit(self.rates[..., 1:]), 0.0)


def contact_solution(
    robot: Dynamics,
    problem: ContactProblem,
    q: ArrayLike,
    v: ArrayLike | None,
    tau: ArrayLike | None,
    forces: ByName | None,
    active_loops: Iterable[str] | None,
) -> ContactSolution:
    """The solution at q, v under tau and external forces."""
    nq, nv = robot.model.nq, robot.model.nv
    v, tau = (np.zeros(nv) if x is None else x for x in (v, tau))
    given = (("q", nq, q), ("v", nv, v), ("tau", nv, tau))
    q, v, tau = (converted("contact_solution", *each, np.dtype(float)) for each in given)
    with OneWarning("contact_solution"):
        free = robot.forward_dynamics(q, v, tau, forces=forces, active_loops=active_loops)
        found = robot.contact_geometry(q, v)
        leading = np.broadcast_shapes(free.shape[:-1], found.gap.shape[:-1])
        states = _states(q, v, free, found, leading)
        answer = problem.solved(
            None if not problem.mechanics.given else robot._row_mask_of(active_loops),
            q=states.q,
            v=states.v,
            a=states.a,
            on=states.closed.astype(float),
            toward=states.toward.reshape(len(states.q), 2 * problem.mechanics.n),
            coefficients=np.reshape(problem.mechanics.points.coefficients, (1, -1)),
        )
        with np.errstate(all="ignore"):  # where no finite force answers
            return _solution(problem, leading, found.names, states, answer)


def _states(q: ArrayLike, v: ArrayLike, a: Array, found: ContactGeometry, leading: tuple[int, ...]) -> _States:
    """Rows of states."""
    assert found.slip is not None
    assert found.gap_rate is not None
    across = np.einsum("...kx,...x->...k", found.axes[..., 1:, :], found.slip)
    rates = np.concatenate([found.gap_rate[..., None], across], axis=-1)

    def rows(x: ArrayLike, own: int) -> np.ndarray:
        x = np.asarray(x, float)
        wide = np.broadcast_to(x, (*leading, *x.shape[x.ndim - own :]))
        return np.ascontiguousarray(wide.reshape(math.prod(leading), *x.shape[x.ndim - own :]))

    return _States(rows(q, 1), rows(v, 1), rows(a, 1), rows(found.gap, 1), rows(found.axes, 3), rows(rates, 2))


def _solution(
    problem: ContactProblem,
    leading: tuple[int, ...],
    names: tuple[str, ...],
    states: _States,
    answer: Mapping[str, np.ndarray],
) -> ContactSolution:
    points, W = problem.mechanics.points, answer["W"]
    three = np.reshape(points.coefficients, (points.n, 3))
    friction, f = three[:, 0], answer["f"].reshape(len(W), points.n, points.B)
    after = (np.einsum("kij,kj->ki", W, answer["f"]) + answer["b"]).reshape(f.shape)
    bound = UNSOLVED * (1.0 + np.abs(answer["b"]).max(axis=1, initial=0.0))
    pressed = states.closed & (f[..., 0] > 0.0)
    starts = np.linalg.norm(after[..., 1:3], axis=-1) > bound[:, None]
    slipping = pressed & (states.slips | starts)
    along = np.where(states.slips[..., None], states.toward, _unit(after[..., 1:3]))
    jams = states.slips & _presses(W, friction, along)
    pull = np.where(
        slipping[..., None], friction[:, None] * np.einsum("kic,kicx->kix", along, states.axes[:, :, 1:]), 0.0
    )
    forces, motion = unique(W, directions(three, points.B, pressed, slipping, along), slipping, pull)
    torque = np.einsum("kpd,kpdx->kpx", f[..., 3:], states.axes) if points.B == 6 else np.zeros((*f.shape[:2], 3))
    parts = {
        "acceleration": states.a + answer["dv"],
        "force": np.einsum("kpd,kpdx->kpx", f[..., :3], states.axes),
        "torque": torque,
        "gap": states.gap,
        "state": np.where(pressed, np.where(slipping, SLIPS, STICKS), OPEN),
        "unique": forces,
        "motion_is_unique": motion,
        "jams": jams,
        "residual": answer["residual"][:, 0],
        "delassus": W,
    }
    strikes = states.closed & (states.rates[..., 0] < -np.array(points.resting))
    explain = functools.partial(_explain, names, states, strikes, jams, parts["residual"].copy())
    refused = np.flatnonzero(~(parts["residual"] < bound) | strikes.any(axis=1))
    unknown = [parts[n] for n in ("acceleration", "force", "torque", "residual")]
    refuse_states("contact_solution", refused, explain, leading, *unknown)
    return ContactSolution(names, **{n: x.reshape((*leading, *x.shape[1:])) for n, x in parts.items()})


def _explain(names, states: _States, strikes: np.ndarray, jams: np.ndarray, residual: np.ndarray, k: int) -> Refusal:
    """Why state k has no answer."""
    if strikes[k].any():
        i = int(np.argmin(np.where(strikes[k], states.rates[k, :, 0], 0.0)))
        words = (
            f"contact point {names[i]!r} closes at {-states.rates[k, i, 0]:.4g} m/s: an impact has no finite force. "
            "Simulate it, or give a velocity that does not close the gap"
        )
        return Refusal(Reason.IMPACT, words)
    jammed = ", ".join(repr(names[i]) for i in np.flatnonzero(jams[k]))
    if jammed:
        words = (
            f"contact point {jammed} jams: its friction presses it into the surface, no finite force answers (Painlevé)"
        )
        return Refusal(Reason.JAM, words)
    return Refusal(Reason.UNSOLVED, f"the contact forces leave {residual[k]:.2g} m/s² of their conditions")


def _presses(W: np.ndarray, friction: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Whether n · W (n − µ d) is not positive (k, n): a normal force, with its friction, closes the point."""
    n, size = len(friction), W.shape[-1] // len(friction)
    own = np.einsum("kiaib->kiab", W.reshape(len(W), n, size, n, size))
    opens = own[..., 0, 0] - friction * np.einsum("kic,kic->ki", own[..., 0, 1:3], along)
    presses: np.ndarray = opens <= 1e-12 * own[..., 0, 0]
    return presses


def _unit(x: np.ndarray) -> np.ndarray:
    """Vectors of length 1, or 0."""
    unit: np.ndarray = x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-300)
    return unit
