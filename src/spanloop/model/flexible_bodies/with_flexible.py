"""with_flexible: a rigid body of a model becomes a flexible one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from spanloop.errors import InputError, ModelError
from spanloop.flexible.beam import Beam
from spanloop.flexible.recipe import EXPECTED, Recipe, places
from spanloop.model import user_input
from spanloop.model.contacts.contact import Contact, ContactSide
from spanloop.model.exact_rotations import snap_rotation
from spanloop.model.flexible_bodies.flexible_parts import MODES, ROOT, flexible_parts
from spanloop.model.parts import Body, Frame, Joint, Loop, Placement

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spanloop.model.model import Model

_Part = TypeVar("_Part", Joint, Frame, Loop)

_NEAR = 1e-6  # of the beam's length: a part so near to a node is attached to it


def with_flexible(
    model: Model,
    body: str,
    beam: Recipe,
    position: ArrayLike = (0.0, 0.0, 0.0),
    rotation: ArrayLike | None = None,
) -> Model:
    """Return the model with a rigid body replaced by a beam, or by finite elements.

    body: its name; the beam or the finite elements of sl.flexible give mass and inertia
    position, rotation: where the beam's root is in the body, and how its axis x is turned there; position (3,) [m],
        rotation None, roll pitch yaw (3,) [rad], or a matrix (3, 3)

    Joints, frames, loops and contacts of the body are attached to the node of the beam where they are, or to its root.
    Raises ModelError, with the node to add, for one that is elsewhere. The shapes of the body are dropped.

    >>> beam = sl.flexible.beam(0.5, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), modes=1)
    >>> arm = sl.Builder("arm").body("upper", 1.0, (0.25, 0, 0), (0.01, 0.1, 0.1)).body("fore", 1.0, (0.2, 0, 0))
    >>> arm = arm.revolute("a", "world", "upper", "y").revolute("b", "upper", "fore", "y", (0.5, 0, 0)).build()
    >>> soft = arm.with_flexible("upper", beam)
    >>> soft.joint("b").parent, soft.nv
    ('upper.tip', 9)
    """
    owner = f"with_flexible: body {body!r}"
    old = model.body(body)
    if not isinstance(beam, Recipe):
        raise InputError(f"{owner}: {beam!r:.60} is no flexible body; {EXPECTED}")
    above = model.joints[model.body_number[body] - 1]
    if above.kind.bends or above.kind.rides:
        raise InputError(f"{owner}: it is part of a flexible body already")
    matrix, _ = snap_rotation(user_input.rotation(rotation, owner))
    at = Placement(matrix, user_input.three(position, f"{owner}: position"))
    bodies, joints = flexible_parts(body, beam)
    taken = set(model.body_number) | {j.name for j in model.joints}
    for name in [b.name for b in bodies if b.name != body] + [j.name for j in joints]:
        if name in taken:
            raise InputError(f"{owner}: the model has a part {name!r} already, which the beam needs; rename it")
    joints = [replace(j, placement=at) if j.name in (f"{body}.{MODES}", f"{body}.1.{MODES}") else j for j in joints]
    seats = _Seats(body, beam, at, f"{body}.{ROOT}")
    dropped = [f"body {body!r}: its shapes are dropped, the beam is drawn instead"] if old.geometry else []
    kind = "a beam" if isinstance(beam, Beam) else "finite elements"
    mass = f"body {body!r}: now {kind} of {beam.mass:g} kg; it was rigid, {old.inertia.mass:g} kg"
    return replace(
        model,
        bodies=_replaced(model.bodies, body, bodies),
        joints=tuple(seats.joint(j) for j in model.joints) + tuple(joints),
        frames=seats.frames(model),
        loops=seats.loops(model),
        sensors=tuple(replace(s, at=seats.root) if s.at == body else s for s in model.sensors),
        contacts=seats.contacts(model),
        notes=(*model.notes, mass, *dropped),
    )


@dataclass(frozen=True)
class _Seats:
    """Where parts of a rigid body are attached to the beam that replaces it."""

    body: str
    beam: Recipe
    at: Placement
    root: str

    def seat(self, placement: Placement, owner: str) -> tuple[str, Placement]:
        """The node at which a placement in the body is, and the placement there."""
        if math.hypot(*placement.position) <= _NEAR * self.beam.length:
            return self.root, placement
        inside = self.at.inverse() @ placement
        x, y, z = inside.position
        for name, node in {"": (0.0, 0.0, 0.0), **places(self.beam)}.items():
            if math.dist(inside.position, node) <= _NEAR * self.beam.length:
                seat = f"{self.body}.{name}" if name else self.root
                return seat, Placement(inside.rotation, (0.0, 0.0, 0.0)) if name else placement
        if not isinstance(self.beam, Beam):
            known = ", ".join(f"{name} at ({a:.6g}, {b:.6g}, {c:.6g})" for name, (a, b, c) in self.beam.nodes)
            raise ModelError(
                f"{owner}: it is at ({x:.6g}, {y:.6g}, {z:.6g}) m from the root of {self.body!r}, where no interface "
                f"is ({known}); name one there in sl.flexible.from_matrices(..., interfaces=...)"
            )
        on_axis = math.hypot(y, z) <= _NEAR * self.beam.length and 0.0 < x < self.beam.length
        advice = (
            f"add a node there: sl.flexible.beam(..., nodes={{'name': {x:.9g}}})"
            if on_axis
            else "that is beside the beam's axis: turn or move the beam (position=, rotation=), or attach the part to "
            "a body that is fixed to a node"
        )
        nodes = ", ".join(f"{name} at {along:g} m" for name, along in (("root", 0.0), *self.beam.nodes))
        place = ", ".join(f"{c:.6g}" for c in (x, y, z))
        raise ModelError(
            f"{owner}: it is at ({place}) m of the beam of {self.body!r}, where no node is ({nodes}); {advice}"
        )

    def joint(self, j: Joint) -> Joint:
        """A joint, with what stood on the body or led to it on its nodes and its root."""
        if j.child == self.body:
            return replace(j, child=self.root)
        return self._moved(j, "parent", "placement", "joint")

    def frames(self, model: Model) -> tuple[Frame, ...]:
        """The model's frames, those of the body on its nodes."""
        return tuple(self._moved(f, "body", "placement", "frame") for f in model.frames)

    def loops(self, model: Model) -> tuple[Loop, ...]:
        """The model's loops, likewise."""
        ends = (self._moved(x, "a", "placement_a", "loop") for x in model.loops)
        return tuple(self._moved(x, "b", "placement_b", "loop") for x in ends)

    def contacts(self, model: Model) -> tuple[Contact, ...]:
        """The model's contacts, likewise."""
        return tuple(replace(c, a=self._side(c, c.a), b=self._side(c, c.b)) for c in model.contacts)

    def _moved(self, part: _Part, body: str, placement: str, what: str) -> _Part:
        """A part whose fields `body` and `placement` say where it is."""
        if getattr(part, body) != self.body:
            return part
        seat, at = self.seat(getattr(part, placement), f"with_flexible: {what} {part.name!r}")
        changed: dict[str, Any] = {body: seat, placement: at}
        return replace(part, **changed)

    def _side(self, contact: Contact, side: ContactSide) -> ContactSide:
        if side.at != self.body:
            return side
        seat, at = self.seat(side.geometry.placement, f"with_flexible: contact {contact.name!r}")
        return ContactSide(seat, replace(side.geometry, placement=at))


def _replaced(bodies: Iterable[Body], name: str, new: list[Body]) -> tuple[Body, ...]:
    """The bodies with one replaced by several."""
    return tuple(x for b in bodies for x in (new if b.name == name else [b]))
