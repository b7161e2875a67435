"""The state of one model carried over to another: by the names of joints, or by the motion of bodies.

A joint with the same name and an equal kind keeps its coordinates and rates. Another joint whose body was there before
takes the coordinates and rates with which the body moves on as it did. Joints of new bodies start at rest at their
default positions. What the user gives comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.errors import InputError, Reason, Refusal, StateError, listed
from spanloop.flexible.modes import Modal
from spanloop.joints import Fixed, JointKind
from spanloop.math import pose, quaternion
from spanloop.math.spatial import Force, Motion, Transform, combined, power
from spanloop.model import Model
from spanloop.model.files.xml_writer import quaternion as quaternion_of
from spanloop.model.parts import WORLD, Joint
from spanloop.model.poses import default_position
from spanloop.model.user_input import by_name

FITS = 1e-6  # rad or m, and of velocities: how exactly a new joint must hold its body
_STEPS = 50  # of Newton's method for the coordinates of a joint

Motions = dict[str, tuple[Transform, Motion]]  # pose in the world, and [angular; linear] velocity in the body's axes


@dataclass(frozen=True)
class Carried:
    """Rows q (n, nq) and v (n, nv) of the new model, and where each joint has them from.

    moved: joints that take the motion of their bodies; fresh: those that start at rest at default positions, or as the
    user says; gone: bodies of the old model that the new one is without.
    """

    q: np.ndarray
    v: np.ndarray
    moved: tuple[str, ...]
    fresh: tuple[str, ...]
    gone: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """From one model to another; given: the user's coordinates and rates of the new one's joints, by name."""

    old: Model
    new: Model
    given_q: Mapping[str, Any] = field(default_factory=dict)
    given_v: Mapping[str, Any] = field(default_factory=dict)

    def carried(self, q: np.ndarray, v: np.ndarray) -> Carried:
        """The state that rows q (n, nq), v (n, nv) of the old model become."""
        n = len(q)
        rows_q, rows_v = np.tile(default_position(self.new), (n, 1)), np.zeros((n, self.new.nv))
        for joint in self.kept:
            rows_q[:, self.new.q_slice(joint)] = q[:, self.old.q_slice(joint)]
            rows_v[:, self.new.v_slice(joint)] = v[:, self.old.v_slice(joint)]
        rows_q, rows_v = self._given(rows_q, self.given_q, "q"), self._given(rows_v, self.given_v, "v")
        for k in range(n if self.moved else 0):
            self._move_bodies(motions(self.old, q[k], v[k]), rows_q[k], rows_v[k])
        return Carried(rows_q, rows_v, self.moved, self.fresh, self.gone)

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """Joints of the new model with the same name and an equal kind in the old one, or the same modes."""
        old = {j.name: j.kind for j in self.old.joints}
        return tuple(j.name for j in self.new.joints if j.name in old and _same_coordinates(old[j.name], j.kind))

    @cached_property
    def moved(self) -> tuple[str, ...]:
        """Other joints, whose bodies were there before, and to which the user gives no coordinates."""
        bodies = {b.name for b in self.old.bodies}
        others = [j for j in self.new.joints if j.name not in self.kept and j.name not in self.given_q]
        return tuple(j.name for j in others if j.child in bodies)

    @cached_property
    def fresh(self) -> tuple[str, ...]:
        """The joints that are neither."""
        known = {*self.kept, *self.moved}
        return tuple(j.name for j in self.new.joints if j.name not in known and j.kind.nv)

    @cached_property
    def gone(self) -> tuple[str, ...]:
        """Bodies of the old model that the new one is without."""
        left = {b.name for b in self.new.bodies}
        return tuple(b.name for b in self.old.bodies if b.name not in left)

    def _given(self, rows: np.ndarray, given: Mapping[str, Any], what: str) -> np.ndarray:
        """Rows (n, size) with what the user gives: (size,) for all runs, or a row for each."""
        if not given:
            return rows
        found = by_name(self.new, given, np.zeros(rows.shape[1]), what, "continued")
        found = found.reshape(-1, rows.shape[1])
        if len(found) not in (1, len(rows)):
            raise InputError(f"continued: {what} has rows for {len(found)} runs; expected 1 or {len(rows)}")
        out = rows.copy()
        for name in given:
            part = self.new.q_slice(name) if what == "q" else self.new.v_slice(name)
            out[:, part] = found[:, part]
        return out

    def _move_bodies(self, before: Motions, q: np.ndarray, v: np.ndarray) -> None:
        """Set the coordinates and rates of the moved joints in q (nq,), v (nv,): their bodies go on as before."""
        now: Motions = {WORLD: (Transform(), Motion())}
        for joint in self.new.joints:  # parents come first
            q_part, v_part = self.new.q_slice(joint.name), self.new.v_slice(joint.name)
            if joint.name in self.moved:
                at, velocity = before[joint.child]
                carrier = now[joint.parent][0] @ joint.placement.transform()
                if joint.kind.rides:
                    self._check_node(joint, _next(self.new, now[joint.parent], joint, q, v), (at, velocity))
                else:
                    q[q_part] = self._coordinates(joint, carrier.inverse() @ at)
                if joint.name not in self.given_v and not joint.kind.rides:
                    v[v_part] = self._rates(joint, q[q_part].tolist(), now[joint.parent][1], velocity)
            now[joint.child] = _next(self.new, now[joint.parent], joint, q, v)

    def _check_node(self, joint: Joint, now: tuple[Transform, Motion], before: tuple[Transform, Motion]) -> None:
        """A node that takes the place of another joint is where its body was, and moves as it did."""
        rest = now[0].inverse() @ before[0]
        away, speed = np.linalg.norm(rest.translation), max(map(abs, before[1] - now[1]))
        turned = np.abs(np.array(rest.rotation.matrix()) - np.eye(3)).max()
        if away > FITS or turned > FITS or speed > FITS * (1.0 + max(map(abs, before[1]))):
            raise InputError(
                f"continued: {joint.name!r} is now a node of a flexible body, and not where body {joint.child!r} was: "
                f"{1e3 * away:.3g} mm and {1e3 * turned:.3g} mrad are left, and {speed:.3g} m/s or rad/s. Give q= and "
                "v= of the modes"
            )

    def _coordinates(self, joint: Joint, x: Transform) -> tuple[float, ...]:
        old = {j.name: j.kind for j in self.old.joints}.get(joint.name)
        if joint.kind.bends and old is not None and old.bends:
            raise InputError(
                f"continued: joint {joint.name!r} has other modes than before, whose coordinates do not follow from "
                f"the old ones. Give q={{{joint.name!r}: ...}} and v={{{joint.name!r}: ...}}"
            )
        found, miss = coordinates(Fixed() if joint.kind.bends else joint.kind, x)
        found = joint.kind.neutral() if joint.kind.bends else found
        if max(map(abs, miss)) <= FITS:
            return found
        angle, distance = np.linalg.norm(miss.angular), np.linalg.norm(miss.linear)
        raise InputError(
            f"continued: joint {joint.name!r} is new, and cannot hold body {joint.child!r} where it is: "
            f"{1e3 * distance:.3g} mm and {1e3 * angle:.3g} mrad are left. Give q={{{joint.name!r}: ...}}, or place "
            "the joint where the body is"
        )

    def _rates(self, joint: Joint, q: list[float], carrier: Motion, velocity: Motion) -> list[float]:
        across = joint.placement.transform() @ joint.kind.transform(q)
        wanted = velocity - across.T @ carrier
        columns = () if joint.kind.bends else joint.kind.motion_space(q)
        found, miss = _along(columns, wanted)
        found = [0.0] * joint.kind.nv if joint.kind.bends else found
        if max(map(abs, miss)) <= FITS * (1.0 + max(map(abs, velocity))):
            return found
        turning, sliding = np.linalg.norm(miss.angular), np.linalg.norm(miss.linear)
        raise InputError(
            f"continued: joint {joint.name!r} is new, and does not allow the velocity of body {joint.child!r}: "
            f"{sliding:.3g} m/s and {turning:.3g} rad/s are left. For an impact, keep its joint and close a loop; or "
            f"give v={{{joint.name!r}: ...}}"
        )


def motions(model: Model, q: np.ndarray, v: np.ndarray) -> Motions:
    """Poses and velocities of all bodies at one state q (nq,), v (nv,)."""
    out: Motions = {WORLD: (Transform(), Motion())}
    for joint in model.joints:
        out[joint.child] = _next(model, out[joint.parent], joint, q, v)
    return out


def _next(
    model: Model, parent: tuple[Transform, Motion], joint: Joint, q: np.ndarray, v: np.ndarray
) -> tuple[Transform, Motion]:
    """Pose and velocity of a joint's body; q (nq,), v (nv,): of the whole model."""
    if joint.kind.rides:
        modes = model.joints[model.body_number[joint.parent] - 1].name
        seat = joint.kind.seat((), q[model.q_slice(modes)].tolist())
        across = joint.placement.transform() @ Transform(seat.rotation, seat.translation)
        own = combined(seat.columns, v[model.v_slice(modes)].tolist())
        return parent[0] @ across, across.T @ parent[1] + own
    here, rates = q[model.q_slice(joint.name)].tolist(), v[model.v_slice(joint.name)].tolist()
    across = joint.placement.transform() @ joint.kind.transform(here)
    moved = across.T @ parent[1]
    if joint.kind.bends:  # its frame does not move with the modes
        return parent[0] @ across, moved
    return parent[0] @ across, moved + combined(joint.kind.motion_space(here), rates)


def _same_coordinates(old: JointKind, new: JointKind) -> bool:
    """Whether coordinates mean the same: equal kinds, or modes of a beam of another material."""
    if old == new or not (isinstance(old, Modal) and isinstance(new, Modal)):
        return old == new
    if old.source is None or new.source is None or old.source.number != new.source.number:
        return False
    a, b = old.source.beam, new.source.beam
    material = {name: getattr(a, name) for name in ("E", "G", "density", "damping")}
    same_ratio = abs(a.G * b.E - b.G * a.E) <= 1e-9 * a.G * b.E
    return replace(b, **material) == a and (a.theory == "euler-bernoulli" or same_ratio)


def coordinates(kind: JointKind, x: Transform) -> tuple[tuple[float, ...], Motion]:
    """The coordinates at which a joint places its child nearest to pose x, and the small motion that is left."""
    q: tuple[float, ...] = tuple(kind.neutral())
    still, best = (*quaternion.IDENTITY, 0.0, 0.0, 0.0), (q, Motion(), np.inf)
    for _ in range(_STEPS):
        rest = kind.transform(q).inverse() @ x
        miss = pose.twist_between(still, (*quaternion_of(rest.rotation.matrix()), *rest.translation))
        size = float(np.linalg.norm([*miss]))
        if not size < best[2]:
            break
        best = (q, miss, size)
        q = tuple(kind.plus(q, _along(kind.motion_space(q), miss)[0]))
    return best[0], best[1]


def _along(columns: tuple[Motion, ...], wanted: Motion) -> tuple[list[float], Motion]:
    """The rates with which columns come nearest to a velocity, and what is left of it."""
    if not columns:
        return [], wanted
    found = np.linalg.lstsq(np.array([[*c] for c in columns]).T, np.array([*wanted]), rcond=None)[0].tolist()
    return found, wanted - combined(columns, found)


def taken_along(model: Model, bodies: tuple[str, ...], q: np.ndarray, v: np.ndarray) -> str:
    """What bodies that the new model is without take along, in words: momentum about the origin, kinetic energy."""
    moving = motions(model, q, v)
    momentum, energy = Force(), 0.0
    for name in bodies:
        x, velocity = moving[name]
        own = model.body(name).inertia.rigid() @ velocity
        momentum, energy = momentum + x @ own, energy + 0.5 * power(velocity, own)
    linear, angular = ("[" + ", ".join(f"{c:.6g}" for c in p) + "]" for p in (momentum.linear, momentum.angular))
    return (
        f"{listed(map(repr, bodies))} left with the momentum {linear} N s, {angular} N m s about the origin, and "
        f"{energy:.6g} J"
    )


def refuse_if_not_finite(q: np.ndarray, v: np.ndarray) -> None:
    """StateError if the end of a run is not finite."""
    bad = np.flatnonzero(~(np.isfinite(q).all(axis=1) & np.isfinite(v).all(axis=1)))
    if len(bad):
        which = f"run {bad[0]}" if len(q) > 1 else "the run"
        words = f"{which} ends in a state that is not finite; there is nothing to go on from"
        raise StateError.of("continued", Refusal(Reason.NOT_FINITE, words))
