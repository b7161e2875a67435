"""`Modes`: natural frequencies, damping and shapes of a mechanism about an equilibrium, loops included.

With independent DoF x and v = T ẋ the mechanism moves near its equilibrium as M ẍ + C ẋ + K x = 0, where M = Tᵀ M T,
C = −M ∂a/∂v and K = −M ∂a/∂q along closed motions under constant torques: K contains what the constraint forces of
closed loops add as these turn with the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.arrays import converted
from spanloop.derivatives.closed_dynamics import along_closed_motions
from spanloop.derivatives.closed_motion import closed_directions
from spanloop.errors import InputError, Reason, Refusal, StateError, in_one_line, listed
from spanloop.linear.eigenmodes import eigenmodes
from spanloop.linear.operating_point import checked_tolerance, equilibrium_distances, least_stiffness
from spanloop.loops.arguments import dof_names
from spanloop.loops.batching import one_state, values
from spanloop.loops.closure_errors import mechanism_of
from spanloop.loops.independent_dofs import (
    Dofs,
    IndependentCoordinates,
    independent_coordinates,
    resolved,
    structure_of,
)
from spanloop.model import Model
from spanloop.model.flexible_bodies.stiffening_limits import judge_loads
from spanloop.types import Array

_NAMED = 4  # DoF that the table names for each shape
_UNDAMPED = 1e-9  # of a pole: a real part that counts as rounding
_REGULAR = 1e-9  # least eigenvalue of a mass matrix with a unit diagonal: frequencies have an error of 1e-7
_LARGE = 0.1  # of the largest part of a shape: what the table names

RIGID, UNSTABLE, OSCILLATION, DECAY = "rigid", "unstable", "oscillation", "decay"


@dataclass(frozen=True, eq=False, repr=False)
class Modes:
    """Free motions of a mechanism near an equilibrium, the slowest first; print it.

    >>> found = sl.Dynamics(sl.zoo.pendulum(1)).modes([0.0])
    >>> len(found), found.kinds
    (1, ('oscillation',))

    poles (k,) complex [1/s]: the motion is the real part of shape · exp(pole · t); of a pair of poles the one with
    positive imaginary part. frequencies (k,) [Hz] and angular_frequencies (k,) [rad/s]: natural ones, |pole|.
    damping_ratios (k,): −Re(pole) / |pole|; 0 for rigid modes. shapes (nv, k): rates of all joints in proportion,
    those that loops make dependent included; shapeᴴ M shape = 1; real without damping, complex with it.
    kinds (k,): "oscillation", "decay" (a real pole < 0), "unstable" (a positive real part), "rigid" (pole 0: nothing
    brings the mechanism back). Without damping an unstable mode stands for its two poles ± s; with damping, or if not
    is_conservative, real poles are modes of their own, and there may be more than dofs.

    q (nq,), tau (nv,): the equilibrium and the torques that hold it. dofs: names of the independent DoF; mass, damping
    and stiffness (n, n): M, C and K in them. residual [m/s²]: acceleration of the mass that is left, root mean square.
    resolution [rad/s]: slower modes are 0 to rounding beside the fastest one, and count as rigid.
    is_conservative: K is symmetric, as it is unless constant torques turn with bodies. notes: what is left out.
    """

    robot: Any
    q: Array
    tau: Array
    dofs: tuple[str, ...]
    mass: Array
    damping: Array
    stiffness: Array
    poles: Array
    shapes: Array
    residual: float
    resolution: float
    is_conservative: bool
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Number of modes."""
        return len(self.poles)

    @property
    def angular_frequencies(self) -> Array:
        """Natural frequencies (k,) [rad/s]."""
        return np.abs(self.poles)

    @property
    def frequencies(self) -> Array:
        """Natural frequencies (k,) [Hz]."""
        return np.abs(self.poles) / (2.0 * np.pi)

    @property
    def damping_ratios(self) -> Array:
        """Damping ratios (k,): 1 and −1 for motions that decay and grow without oscillation."""
        size = np.abs(self.poles)
        return np.where(size > 0.0, -self.poles.real / np.where(size > 0.0, size, 1.0), 0.0) + 0.0

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each mode is (k,): "oscillation", "decay", "unstable" or "rigid"."""
        return tuple(_kind(s) for s in self.poles)

    @property
    def is_stable(self) -> bool:
        """Whether no mode is unstable."""
        return UNSTABLE not in self.kinds

    # ---- text

    def __repr__(self) -> str:
        return f"Modes({self.robot.model.name!r}, {len(self)} modes)"

    def __str__(self) -> str:
        name, n = self.robot.model.name, len(self.dofs)
        head = f"{name}: {len(self)} mode{'' if len(self) == 1 else 's'} of {n} DoF ({listed(self.dofs, 6)})"
        rows: list[tuple[str, ...]] = [("mode", "[Hz]", "[rad/s]", "damping", "kind", "shape")]
        for k, kind in enumerate(self.kinds):
            numbers = [f"{x[k]:.6g}" for x in (self.frequencies, self.angular_frequencies, self.damping_ratios)]
            rows.append((str(k), *numbers, kind, self._parts(k)))
        widths = [max(len(row[c]) for row in rows) for c in range(5)]
        lines = [
            "  ".join([*(x.rjust(w) for x, w in zip(row[:4], widths, strict=False)), row[4].ljust(widths[4]), row[5]])
            for row in rows
        ]
        left = f"acceleration left at the equilibrium: {self.residual:.1e} m/s²"
        if RIGID in self.kinds:
            left += f"\nrigid: slower than {self.resolution:.1e} rad/s, 0 to rounding beside the fastest mode"
        return "\n".join([in_one_line(head), *(x.rstrip() for x in lines), left, *map(in_one_line, self.notes)])

    def _parts(self, number: int) -> str:
        """The largest parts of a shape, the largest of them as 1."""
        shape, names = self.shapes[:, number], dof_names(self.robot.model)
        sizes = np.abs(shape) / np.array(mechanism_of(self.robot.model).dof_lengths)
        order = [int(k) for k in np.argsort(-sizes.round(12), kind="stable") if sizes[k] > _LARGE * sizes.max()]
        units = [unit for j in self.robot.model.joints for unit in j.kind.units]
        mixed = len({units[k] for k in order}) > 1
        parts = shape[order[:_NAMED]] / shape[order[0]] if order else []
        words = [f"{names[k]} {_part(x)}{' ' + units[k] if mixed else ''}" for k, x in zip(order, parts, strict=False)]
        return ", ".join(words) + (", ..." if len(order) > _NAMED else "")

    # ---- pictures

    def motion(self, number: int = 0, *, amplitude: float | None = None, samples: int = 120) -> tuple[Array, Array]:
        """Return phases (samples,) [rad] of one period of a mode and q (samples, nq), with the loops closed exactly.

        amplitude [rad, or of the mechanism's length]: of the DoF that moves most; by default 0.3, less where the loops
        do not reach so far, or where sections of a flexible body would turn by more than 0.3 rad. A mode that does not
        oscillate is shown as it would swing.
        """
        from spanloop.linear.mode_motion import mode_motion

        return mode_motion(self, number, amplitude, samples)

    def page(self, path: str | Path, **options: Any) -> Path:
        """Write the animated shapes as one HTML file: amplitude=, numbers= (of modes), title=, folder=."""
        from spanloop.view.page.modes_page import write

        return write(self, path, **options)

    def show(self, *, height: int = 640, **options: Any) -> Any:
        """The page of the modes inside a notebook, `height` pixels high: the last line of a cell."""
        from spanloop.view.page.modes_page import inline

        return inline(self, height, **options)


def modes(robot: Any, q: ArrayLike, tau: ArrayLike | None = None, dofs: Dofs = None, tolerance: float = 1e-6) -> Modes:
    """The modes of a mechanism about one state q (nq,) at rest; robot.modes documents the arguments."""
    model, still = robot.model, np.zeros(robot.model.nv)
    q = one_state("modes", robot, q)
    chosen = _independent(robot, q) if dofs is None else resolved(robot, q, dofs, "modes")
    free = _free(model, chosen)
    T = closed_directions(robot, q, still, chosen, "modes").dq[:, free]
    load = values(robot, "bias", q[None], still[None])[0]
    is_held, allowed = tau is None, checked_tolerance("modes", tolerance)
    tau = _holding(model, T, load) if tau is None else _given(model, tau)
    inertia = values(robot, "mass_matrix", q[None])[0] @ T
    M, left = T.T @ inertia, T.T @ (tau - load)
    if len(M) and not np.linalg.eigvalsh(M)[0] > 0.0:
        sentence = "a motion moves no inertia. Give bodies mass and inertia, give a joint armature, or lock it"
        raise StateError.of("modes", Refusal(Reason.SINGULAR_MASS, sentence))
    given = robot._loop_inputs(None, None) if robot._has_loop_inputs else ()
    rest = np.where(_driven(model), 0.0, inertia @ np.linalg.solve(M, left))  # counts as a constant load: a = 0
    known = _is_regular(M)
    found = along_closed_motions(
        robot, q, still, tau - rest, None, given, chosen, "modes", is_balanced=known
    ).independent
    own = np.ix_(free, free)
    K, C = -M @ found.da_dq[own], -M @ found.da_dv[own]
    residual = _balanced(model, T, M, K, left, allowed, is_held)
    judge_loads("modes", robot, q, still, tau)
    poles, shapes, is_conservative, resolution = eigenmodes(M, C, K, least_stiffness(model))
    names = tuple(chosen.names[k] for k in free)
    shapes = _with_sign(T @ shapes, mechanism_of(model).dof_lengths)
    return Modes(robot, q, tau, names, M, C, K, poles, shapes, residual, resolution, is_conservative, _notes(model))


def _is_regular(M: np.ndarray) -> bool:
    """Whether the mass matrix (n, n) has digits enough: if not, forward dynamics names the joint that lacks inertia."""
    scale = np.sqrt(M.diagonal())
    return bool(np.linalg.eigvalsh(M / np.outer(scale, scale))[:1] > _REGULAR) if len(M) else True


def _independent(robot: Any, q: np.ndarray) -> IndependentCoordinates:
    """The DoF that are best at q, or the usual ones where the loops lose rank; then the state is refused."""
    best = independent_coordinates(robot, q)
    left = robot.model.nv - structure_of(robot, q[None]).rank
    return best if len(best) == left else independent_coordinates(robot)


def _driven(model: Model) -> np.ndarray:
    """Which DoF (nv,) are driven: they stand still."""
    return np.array([j.driven for j in model.joints for _ in range(j.kind.nv)], dtype=bool)


def _free(model: Model, chosen: IndependentCoordinates) -> list[int]:
    """Places among the chosen DoF of those that are not driven."""
    driven = _driven(model)
    lost = [name for k, name in enumerate(dof_names(model)) if driven[k] and k not in chosen.dofs]
    if lost:
        raise InputError(f"modes: dofs leaves out {lost[0]!r}, which is driven and stands still; name it among them")
    return [i for i, k in enumerate(chosen.dofs) if not driven[k]]


def _holding(model: Model, T: np.ndarray, load: np.ndarray) -> np.ndarray:
    """The least torques (nv,) at actuated joints that hold the load (nv,), or come nearest to it."""
    tau = np.zeros(model.nv)
    motors = [k for j in model.joints if j.actuated and not j.driven for k in range(model.nv)[model.v_slice(j.name)]]
    tau[motors] = np.linalg.lstsq(T[motors].T, T.T @ load, rcond=1e-12)[0] if motors and T.shape[1] else 0.0
    return tau


def _given(model: Model, tau: ArrayLike) -> np.ndarray:
    out = converted("modes", "tau", model.nv, tau, np.dtype(float))
    if out.shape != (model.nv,):
        raise InputError(f"modes: tau has shape {out.shape}; expected the torques of one state ({model.nv},)")
    if not np.isfinite(out).all():
        k = int(np.argmax(~np.isfinite(out)))
        raise StateError.of("modes", Refusal(Reason.NOT_FINITE, f"tau[{k}] is {out[k]}; every number must be finite"))
    if out[_driven(model)].any():
        raise InputError("modes: tau has an acceleration of a driven joint; at an equilibrium it is 0")
    return out


def _balanced(
    model: Model, T: np.ndarray, M: np.ndarray, K: np.ndarray, left: np.ndarray, tolerance: float, is_held: bool
) -> float:
    """The acceleration of the mass that forces (n,) left over cause [m/s²]; StateError where it is no equilibrium.

    is_held: tau is the torques of the actuated joints that hold the state, or come nearest to it.
    """
    (away,), (residual,) = equilibrium_distances(model, T[None], M[None], K[None], left[None])
    if away.max(initial=0.0) <= tolerance:
        return float(residual)
    held = "even with the best torques of the actuated joints its" if is_held else "its"
    advice = "Give" if is_held else "Leave tau out, so that the actuated joints hold it; give"
    flexible = any(j.kind.bends for j in model.joints)
    bent = ": robot.static_deflection(q) has that of flexible bodies" if flexible else ""
    raise StateError.of(
        "modes",
        Refusal(
            Reason.NO_EQUILIBRIUM,
            f"this state is no equilibrium: {held} mass would accelerate by {residual:.3g} m/s² (root mean square), "
            f"most at {dof_names(model)[int(np.argmax(away))]!r}, and modes are those about a state at rest. {advice} "
            f"tau that holds it, or pass the position at which springs and gravity balance{bent}. tolerance= [rad, or "
            "of the mechanism's length] allows a distance from it",
        ),
    )


def _with_sign(shapes: np.ndarray, lengths: Sequence[float]) -> np.ndarray:
    """Shapes (nv, k) turned so that the largest part of each is real and positive."""
    if not shapes.size:
        return shapes
    sizes = np.abs(shapes) / np.array(lengths)[:, None]
    largest = np.argmax(sizes > (1.0 - 1e-9) * sizes.max(axis=0), axis=0)
    x = shapes[largest, np.arange(shapes.shape[1])]
    return shapes * (np.abs(x) / x)


def _notes(model: Model) -> tuple[str, ...]:
    out = []
    motors = [dict(a.settings) for a in model.actuators]
    rubs = any(x.get("friction", 0.0) or x.get("efficiency", 1.0) != 1.0 for x in motors)
    if rubs or any(any(j.friction) for j in model.joints):
        out.append("Coulomb friction has no part in modes")
    if model.contacts:
        out.append("contacts have no part in modes")
    return tuple(out)


def _kind(pole: complex) -> str:
    if pole == 0.0:
        return RIGID
    if pole.real > _UNDAMPED * abs(pole):
        return UNSTABLE
    return OSCILLATION if pole.imag > 0.0 else DECAY


def _part(x: complex) -> str:
    """A part of a shape: a number, with its phase where it has one."""
    if abs(x.imag) <= 5e-3 * abs(x):
        return f"{x.real:.3g}"
    return f"{abs(x):.3g}∠{np.degrees(np.angle(x)):.0f}°"
