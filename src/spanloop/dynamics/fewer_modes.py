"""Which modes of flexible bodies a mechanism needs: ranked by the response of its linear models without them.

About an operating point M ÿ + D ẏ + K y = B u, outputs C y. Without some modes the displacements stay in the null space
of their rows E y = 0; the response is that of the projected matrices. Modes leave one by one, the one that changes
the response least first, until as many are left as are wanted.

A change is relative, band by band: for each output the largest |ΔG| by an input, over the largest |G| within a third
of an octave around the frequency (so that a dip between resonances is no response to compare with). Both are at
s = (0.02 + i) ω, which is a damping ratio of 0.02 more than the model's own; ω are spread over the band and lie on the
resonances. The change that is reported is the largest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics.dynamics import Dynamics
from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.flexible.modes import Node
from spanloop.flexible.particles import axial
from spanloop.model import Model
from spanloop.model.flexible_bodies.pieces import FlexibleParts, flexible_bodies
from spanloop.model.parts import Joint

_POINTS = 120  # frequencies, besides those about each resonance
_DAMPED = (
    0.02  # of the frequency: how far from the imaginary axis responses are compared, as if all modes had this damping
)
_ABOUT = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])  # half widths of a resonance at which it is compared
_OCTAVE = 1.0 / 6.0  # to either side, within which the largest response is what changes are compared with
_NOTHING = 1e-9  # of the largest response: a smaller one is none
_OWNER = "fewer"
_ROUNDING = 1e-20  # of the strain energy of a load along another axis: what symmetry leaves


@dataclass(frozen=True, eq=False)
class FewerModes:
    """A model with fewer modes.

    model: the mechanism with the modes that are kept; kept: their names by body; changes: for each mode that left, in
    order, its body, its name, and the largest change of the response since the start, of the largest response of
    the output within a third of an octave; frequencies (k,) [Hz]
    before, after (points, k, outputs, inputs): responses at s = (0.02 + i) ω
    """

    model: Model
    kept: dict[str, tuple[str, ...]]
    changes: tuple[tuple[str, str, float], ...]
    frequencies: np.ndarray
    before: np.ndarray
    after: np.ndarray
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def change(self) -> float:
        """The largest change of a response, of the largest response of its output within a third of an octave."""
        return self.changes[-1][2] if self.changes else 0.0

    def __str__(self) -> str:
        low, high = self.frequencies[0], self.frequencies[-1]
        lines = [
            f"fewer modes: the response changes by up to {self.change:.2g} of its local size, from {low:.3g} to "
            f"{high:.3g} Hz, with a damping ratio of {_DAMPED:g} added"
        ]
        lines.append(f"  from {', '.join(self.inputs)} to {', '.join(self.outputs)}")
        lines += [f"  {body} keeps {', '.join(names) or 'none'}" for body, names in self.kept.items()]
        lines += [f"  without {mode} of {body}: {x:.2g}" for body, mode, x in self.changes]
        return "\n".join(lines)


class _Point:
    """A linear model as M, D, K, B, C, and the rows of all modes in it."""

    def __init__(self, linear: Any, modes: int):
        n = linear.mass.shape[-1]
        self.M = linear.mass
        self.K, self.D = -self.M @ linear.A[n:, :n], -self.M @ linear.A[n:, n:]
        self.B = self.M @ linear.B[n:]
        split = linear.C.shape[0] - modes
        self.C, self.E = linear.C[:split, :n], linear.C[split:, :n]

    def resonances(self) -> np.ndarray:
        """Natural frequencies [rad/s] without damping."""
        squares = np.linalg.eigvals(np.linalg.solve(self.M, self.K)).real
        return np.sqrt(squares[squares > 0.0])

    def response(self, s: np.ndarray, gone: Sequence[int]) -> np.ndarray:
        """C (M s² + D s + K)⁻¹ B (k, outputs, inputs) without some modes."""
        N = np.eye(len(self.M))
        if len(gone):
            rows = self.E[list(gone)]
            _, size, V = np.linalg.svd(rows)
            N = V[int((size > 1e-9 * size[0]).sum()) :].T
        M, D, K = (N.T @ A @ N for A in (self.M, self.D, self.K))
        whole = s[:, None, None] ** 2 * M + s[:, None, None] * D + K
        return np.asarray(
            (self.C @ N) @ np.linalg.solve(whole, np.broadcast_to(N.T @ self.B, (len(s), *self.B[: N.shape[1]].shape)))
        )


def fewer(
    model: Model,
    keep: int | Mapping[str, int],
    *,
    at: Sequence[ArrayLike] | None = None,
    inputs: str | Sequence[str] | None = None,
    outputs: str | Sequence[str] | None = None,
    up_to: float | None = None,
) -> FewerModes:
    """Return the model with the modes of its bodies from finite elements that matter most, and what the others change.

    keep: how many modes each body keeps, or by body; bodies that are not named keep all
    at: operating points q (nq,), at rest; the neutral position, with loops assembled, by default
    inputs, outputs: of the linear models, as of robot.linearize; by default the torques of motors and the positions of
        joints
    up_to: the highest frequency [Hz] at which responses are compared; by default that of the fastest mode of as many
        as are kept

    Modes of beams are not taken out: give sl.flexible.beam fewer modes=.

    >>> boom = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), elements=4)
    >>> part = sl.flexible.from_matrices(sl.flexible.to_matrices(boom), interfaces={"root": 0, "tip": 8}, modes=2)
    >>> b = sl.Builder("arm", gravity=(0, 0, 0)).body("boom", flexible=part).body("load", 0.2, inertia=(1e-3,) * 3)
    >>> model = b.revolute("hinge", "world", "boom").fixed("grip", "boom.tip", "load").build()
    >>> found = sl.flexible.fewer(model, keep=3)
    >>> found.model.nv, found.change < 0.01
    (4, True)
    """
    if not isinstance(model, Model):
        raise InputError(f"{_OWNER}: expected a model; found {type(model).__name__}. from_matrices takes fewer modes=")
    if at is not None and not len(at):
        raise InputError(f"{_OWNER}: at is empty; expected operating points q ({model.nq},), or leave it out")
    bodies = {k: b for k, b in flexible_bodies(model.bodies, model.joints).items() if b.elements is not None}
    if not bodies:
        raise InputError(f"{_OWNER}: model {model.name!r} has no body from finite elements")
    wanted = _wanted(keep, bodies)
    robot = Dynamics(model)
    names = [(body, k) for body, parts in bodies.items() for k in range(parts.pieces[0].modal.nv)]
    dofs = [f"{bodies[body].pieces[0].joint.name}[{bodies[body].pieces[0].modal.mode_names[k]}]" for body, k in names]
    ins, outs = _ports(model, inputs, outputs)
    places = (
        [robot.assemble(model.neutral())]
        if at is None and model.loops
        else [model.neutral()]
        if at is None
        else list(at)
    )
    linear = [robot.linearize(q, inputs=ins, outputs=[*outs, *dofs]) for q in places]
    points = [_Point(x, len(dofs)) for x in linear]
    hertz = _frequencies(bodies, wanted, up_to, points)
    s = 2.0 * np.pi * hertz * (_DAMPED + 1j)
    before = np.array([p.response(s, ()) for p in points])
    gone, changes = _eliminated(points, s, before, names, wanted)
    kept = {body: [k for b, k in names if b == body and (b, k) not in gone] for body in wanted}
    listed = [(body, bodies[body].pieces[0].modal.mode_names[k], x) for (body, k), x in zip(gone, changes, strict=True)]
    after = np.array([p.response(s, [names.index(g) for g in gone]) for p in points])
    modes = {body: tuple(bodies[body].pieces[0].modal.mode_names[k] for k in own) for body, own in kept.items()}
    new = _with_modes(model, {body: (bodies[body], own) for body, own in kept.items()})
    return FewerModes(
        new, modes, tuple(listed), hertz, before, after, linear[0].inputs, linear[0].outputs[: before.shape[2]]
    )


def _wanted(keep: Any, bodies: Mapping[str, FlexibleParts]) -> dict[str, int]:
    given = dict.fromkeys(bodies, keep) if not isinstance(keep, Mapping) else dict(keep)
    if not given:
        raise InputError(f"{_OWNER}: keep is empty; expected a number of modes, or {{body: number}}")
    for body, n in given.items():
        if body not in bodies:
            raise InputError(
                f"{_OWNER}: keep names {body!r}, no body from finite elements; {nearest(str(body), bodies)}"
            )
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InputError(f"{_OWNER}: keep is {n!r} for {body!r}; expected a whole number of 1 or more")
        if len(bodies[body].pieces[0].joint.stiffness) < n:
            raise InputError(
                f"{_OWNER}: {body!r} has {len(bodies[body].pieces[0].joint.stiffness)} modes; {n} are to be kept"
            )
    return given


def _ports(model: Model, inputs: Any, outputs: Any) -> tuple[Any, list[str]]:
    """Inputs and outputs; of a mechanism without motors or joints, forces at nodes and their places."""
    nodes = [j.child for j in model.joints if j.kind.rides]
    own = [j.name for j in model.joints if j.kind.nv and not j.kind.bends]
    if inputs is None and not any(j.actuated and j.kind.nv for j in model.joints):
        inputs = [f"{node}.force" for node in nodes]
    if outputs is None:
        outputs = own or [f"{node}.{c}" for node in nodes for c in "xyz"]
    return inputs, [outputs] if isinstance(outputs, str) else list(outputs)


def _frequencies(
    bodies: Mapping[str, FlexibleParts], wanted: Mapping[str, int], up_to: Any, points: Sequence[_Point]
) -> np.ndarray:
    sorted_by = {body: np.sort(bodies[body].pieces[0].frequencies) / (2.0 * np.pi) for body in wanted}
    high = max(sorted_by[body][n - 1] for body, n in wanted.items()) if up_to is None else float(up_to)
    if not 0.0 < high < np.inf:
        raise InputError(f"{_OWNER}: up_to is {up_to!r}; expected a frequency [Hz]")
    low = min(0.1 * min(x[0] for x in sorted_by.values()), 0.1 * high)
    own = np.concatenate([p.resonances() for p in points]) / (2.0 * np.pi)
    own = np.outer(own[(own > low) & (own < high)], 1.0 + _DAMPED * _ABOUT).ravel()
    return np.unique(np.concatenate([np.geomspace(low, high, _POINTS), own[(own > low) & (own < high)]]))


def _eliminated(points, s, before, names, wanted) -> tuple[list[tuple[str, int]], list[float]]:
    """The modes that leave, in order, and the change of the response after each."""
    near = np.abs(np.log2(s.imag[:, None] / s.imag)) <= _OCTAVE
    at_each = np.abs(before).max(axis=3)
    size = np.array([at_each[:, row].max(axis=1) for row in near]).swapaxes(0, 1)[..., None]
    size = np.maximum(size, _NOTHING * size.max(axis=1, keepdims=True))
    size = np.where(size > 0.0, size, 1.0)
    left = {body: sum(b == body for b, _ in names) for body in wanted}
    gone: list[int] = []
    changes: list[float] = []
    while True:
        candidates = [
            k for k, (body, _) in enumerate(names) if body in wanted and left[body] > wanted[body] and k not in gone
        ]
        if not candidates:
            return [names[k] for k in gone], changes
        found = {}
        for k in candidates:
            after = np.array([p.response(s, [*gone, k]) for p in points])
            found[k] = float((np.abs(after - before) / size).max())
        best = min(found, key=lambda k: found[k])
        gone.append(best)
        changes.append(found[best])
        left[names[best][0]] -= 1


def _with_modes(model: Model, chosen: Mapping[str, tuple[FlexibleParts, list[int]]]) -> Model:
    """The model whose bodies have some of their modes only."""
    joints: dict[str, Joint] = {}
    for parts, own in chosen.values():
        piece, old = parts.pieces[0], parts.elements
        if old is None or len(parts.pieces) > 1:
            raise UnsupportedError(f"{_OWNER}: body {parts.name!r} is not made of finite elements")
        new = some_modes(old, own)
        j = piece.joint
        changed: dict[str, Any] = {key: tuple(getattr(j, key)[k] for k in own) for key in ("stiffness", "damping")}
        changed |= {
            key: tuple(x[k] for k in own) for key in ("friction", "armature", "rest") if len(x := getattr(j, key)) > 1
        }
        joints[j.name] = replace(j, kind=new.body.modal, **changed)
        shapes = [node.shape for node in old.body.nodes]
        for node in piece.nodes:
            k = shapes.index(node.kind.shape)  # type: ignore[attr-defined]
            joints[node.name] = replace(node, kind=Node(new.body.nodes[k].shape))
    return replace(model, joints=tuple(joints.get(j.name, j) for j in model.joints))


def some_modes(body: FiniteElementBody, own: Sequence[int]) -> FiniteElementBody:
    """The body with some of its modes."""
    k = list(own)
    pairs = np.ix_(k, k)
    momentum = _momentum(body)
    moved = momentum**2 / np.array(body.particles.modal_masses)[:, None]
    loads = np.hstack([momentum, *body.shifts, *body.turns])  # accelerations of the root, forces and moments
    energy = loads**2 / body.stiffness[:, None]
    whole = energy.sum(axis=0)
    counts = whole > _ROUNDING * np.repeat(whole.reshape(-1, 3).max(axis=1), 3)
    kept = np.divide(energy[k].sum(axis=0), whole, out=np.ones(len(whole)), where=counts)
    share = np.divide(moved[k].sum(axis=0), moved.sum(axis=0), out=np.zeros(6), where=moved.any(axis=0))
    return replace(
        body,
        stiffness=body.stiffness[k],
        damping=body.damping[k],
        mode_names=tuple(body.mode_names[i] for i in k),
        mode_units=tuple(body.mode_units[i] for i in k),
        translations=body.translations[:, k],
        bent=body.bent[:, k][:, :, k],
        mixed=body.mixed[k],
        swirls=body.swirls[pairs],
        masses=body.masses[pairs],
        shifts=body.shifts[:, k],
        turns=body.turns[:, k],
        bent_shifts=body.bent_shifts[:, k][:, :, k],
        bent_turns=body.bent_turns[:, k][:, :, k],
        movement=body.movement[:, k],
        energies=body.energies[:, k][:, :, k],
        turning=body.turning[:, k],
        effective=body.effective * share,
        left_out=float(1.0 - (1.0 - body.left_out) * kept.min()),  # at most
    )


def _momentum(body: FiniteElementBody) -> np.ndarray:
    """Momentum (n, 6) of unit rates of the modes, linear and angular about the root."""
    linear = np.einsum("p,pkc->kc", body.weights, body.translations)
    angular = np.cross(body.positions[:, None], body.translations).sum(axis=0) + axial(body.mixed)
    return np.hstack([linear, angular])
