"""The flexible bodies of a model, found by their joints: names may be any.

A piece is a body on a joint with modes, with the nodes that ride on it. A flexible body is one piece, or several of one
beam in series: each stands on a node of the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.flexible.beam import Beam
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.flexible.modes import Modal
from spanloop.model.parts import WORLD, Body, Inertia, Joint

if TYPE_CHECKING:
    from spanloop.model.model import Model


@dataclass(frozen=True)
class Piece:
    """A body on modes: the joint that holds them, the body that it carries, and the joints of its nodes."""

    joint: Joint
    body: Body
    nodes: tuple[Joint, ...]

    @property
    def modal(self) -> Modal:
        """The modes."""
        return modal(self.joint)

    @property
    def frequencies(self) -> np.ndarray:
        """Frequency of each mode with the root held [rad/s], for stiffness and mass as they are in the model."""
        masses = self.body.inertia.mass / self.modal.mass * modal_masses(self.modal)
        with np.errstate(divide="ignore"):  # of a body that is absent
            return np.asarray(np.sqrt(np.array(self.joint.stiffness) / masses))


@dataclass(frozen=True)
class FlexibleParts:
    """A flexible body: its name, and its pieces from root to tip."""

    name: str
    pieces: tuple[Piece, ...]

    @property
    def root(self) -> str:
        """The body that carries it: its root, or what the root has become part of."""
        return self.pieces[0].joint.parent

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the bodies that are its nodes; without those that only carry the next piece."""
        ends = {f"{piece.body.name}.end" for piece in self.pieces[:-1]}
        return tuple(j.child for piece in self.pieces for j in piece.nodes if j.child not in ends)

    @property
    def beam(self) -> Beam | None:
        """The beam it was made from, if there is one."""
        return getattr(self.pieces[0].modal.source, "beam", None)

    @property
    def elements(self) -> FiniteElementBody | None:
        """The finite elements it was reduced from, if it was."""
        source = self.pieces[0].modal.source
        return source if isinstance(source, FiniteElementBody) else None

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return sum(piece.body.inertia.mass for piece in self.pieces)

    def places(self) -> str:
        """Root and nodes, for messages: 'boom.root', 'boom.tip'."""
        return ", ".join(repr(name) for name in dict.fromkeys((self.root, *self.nodes)))


def flexible_bodies(bodies: Iterable[Body], joints: Iterable[Joint]) -> dict[str, FlexibleParts]:
    """The flexible bodies by name; joints: parents first."""
    joints = tuple(joints)
    if not any(j.kind.bends for j in joints):
        return {}
    by_name, above = {b.name: b for b in bodies}, {j.child: j for j in joints}
    groups: dict[str, list[Piece]] = {}
    group_of: dict[str, str] = {}  # body -> name of the flexible body
    for j in joints:
        if not j.kind.bends:
            continue
        nodes = tuple(x for x in joints if x.kind.rides and x.parent == j.child)
        piece, before = Piece(j, by_name[j.child], nodes), body_before(j, above)
        name = group_of.get(before, "") if before else ""
        if not name:
            several = getattr(getattr(j.kind, "source", None), "beam", None)
            name = j.child.removesuffix(".1") if several is not None and several.pieces > 1 else j.child
        group_of[j.child] = name
        groups.setdefault(name, []).append(piece)
    return {name: FlexibleParts(name, tuple(pieces)) for name, pieces in groups.items()}


def body_before(joint: Joint, above: dict[str, Joint]) -> str | None:
    """The body that holds the piece before that of a joint with modes; None for the first piece of a body.

    above: the joint that leads to each body.
    """
    source = getattr(joint.kind, "source", None)
    if getattr(source, "number", 0) == 0:
        return None
    at = joint.parent
    while at != WORLD and at in above and above[at].kind.name == "fixed":
        at = above[at].parent
    node = above.get(at)
    if node is None or not node.kind.rides or node.parent not in above:
        return None
    before = getattr(above[node.parent].kind, "source", None)
    same = before is not None and getattr(before, "beam", None) == source.beam and before.number == source.number - 1  # type: ignore[union-attr]
    return node.parent if same else None


def modal(joint: Joint) -> Modal:
    """The kind of a joint whose coordinates are those of modes."""
    assert isinstance(joint.kind, Modal)
    return joint.kind


def mode_joints(model: Model) -> dict[str, tuple[Joint, ...]]:
    """The joints of the modes of each flexible body by the body's name, one for each piece from root to tip."""
    found = flexible_bodies(model.bodies, model.joints)
    return {name: tuple(piece.joint for piece in body.pieces) for name, body in found.items()}


def modal_masses(modal: Modal) -> np.ndarray:
    """The modal mass of each mode (n,) at the mass that the modes were computed for [kg or kg m²]."""
    return np.array(modal.particles.modal_masses)


def recipe_inertia(piece: Piece) -> Inertia | None:
    """The inertia that its recipe gives a piece, if it is made from one."""
    source = piece.modal.source
    if source is None:
        return None
    made = source.body
    return Inertia(made.mass, made.center, made.moments)
