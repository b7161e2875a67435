"""The links of section 4 from a model: beams as their finite elements, rigid bodies as links of one node.

A link begins at every joint with degrees of freedom, and at every beam that is welded to something else than a joint.
Bodies that are welded to a node add to its six rows of m_k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.algorithms.papers.rodriguez_jain_kreutz.flexible_chain import FlexibleChain, FlexibleLink, phi_matrix
from spanloop.errors import InputError, UnsupportedError
from spanloop.flexible.beam import BeamPiece
from spanloop.flexible.nodal_model import nodal_model
from spanloop.model import Model
from spanloop.model.parts import WORLD, Body, Joint
from spanloop.topology.mechanism import mechanism

_ROOT = -1  # the last node
_SAME = 1e-9  # m: how far a node may be from where the finite elements have it


@dataclass(frozen=True, eq=False)
class _Seat:
    """Where a body's frame is: its pose at a node of a link, in the link's axes; link −1 is the world."""

    link: int
    node: int
    rotation: np.ndarray
    position: np.ndarray

    def then(self, rotation: Any, position: Any) -> _Seat:
        """A frame placed in this one."""
        at = self.position + self.rotation @ np.asarray(position, dtype=float)
        return _Seat(self.link, self.node, self.rotation @ np.asarray(rotation, dtype=float), at)

    @property
    def is_at_root(self) -> bool:
        """Is it the frame of the link itself?"""
        return self.link >= 0 and self.node == _ROOT and not self.position.any() and (self.rotation == np.eye(3)).all()


class _Links:
    """The links found so far, parents first."""

    def __init__(self, model: Model, q: np.ndarray):
        self.model, self.q = model, q
        self.seats = {WORLD: _Seat(-1, _ROOT, np.eye(3), np.zeros(3))}
        self.links: list[dict[str, Any]] = []
        self.shapes: list[list[tuple[int, np.ndarray]]] = []  # of each link: columns of v, and β or u for them
        self.armature = {link.name: link.armature for link in mechanism(model).links}

    def add(self, joint: Joint, body: Body) -> None:
        """A joint and the body that it carries."""
        seat = self.seats[joint.parent].then(joint.placement.rotation, joint.placement.position)
        if joint.kind.rides:
            seat = self._at_node(seat, joint)
        elif joint.kind.bends:
            seat = self._bent(seat, joint, body)
        elif joint.kind.nv:
            seat = self._jointed(seat, joint)
        self.seats[joint.child] = seat
        if body.inertia.mass and seat.link >= 0 and not joint.kind.bends:
            carried = phi_matrix(seat.rotation, seat.position)
            at = self._rows(seat.link, seat.node)
            self.links[seat.link]["m"][at, at] += carried @ _inertia(body) @ carried.T

    def _jointed(self, seat: _Seat, joint: Joint) -> _Seat:
        """The frame of a new link behind a joint."""
        own = self.q[self.model.q_slice(joint.name)].tolist()
        x = joint.kind.transform(own)
        seat = seat.then(x.rotation.matrix(), x.translation)
        H = np.array([tuple(s) for s in joint.kind.motion_space(own)], dtype=float)
        found = self._new(joint.name, seat, H, self.armature[joint.name])
        self.shapes[-1].append((self.model.v_slice(joint.name).start, np.eye(len(H))))
        return found

    def _bent(self, seat: _Seat, joint: Joint, body: Body) -> _Seat:
        """The frame of a beam: of the link on whose joint it stands, or of a new one that is welded."""
        piece = getattr(joint.kind, "source", None)
        if not isinstance(piece, BeamPiece) or body.inertia.mass != joint.kind.mass:  # type: ignore[attr-defined]
            why = "has another mass than its beam" if isinstance(piece, BeamPiece) else "is not made of a beam"
            raise UnsupportedError(
                f"flexible_chain: body {body.name!r} {why}, so that its finite elements are not known"
            )
        if not seat.is_at_root or len(self.links[seat.link]["Q"]) > 1:
            seat = self._new(joint.name, seat, np.zeros((0, 6)), ())
        nodes, link = nodal_model(piece), self.links[seat.link]
        m = nodes.mass + 0.0
        m[-6:, -6:] += link["m"]
        freedoms = tuple(nodes.freedoms)
        link.update(name=body.name, Q=nodes.positions, m=m, K=nodes.stiffness, freedoms=freedoms)
        self.shapes[seat.link].append((self.model.v_slice(joint.name).start, nodes.modes))
        return seat

    def _at_node(self, seat: _Seat, joint: Joint) -> _Seat:
        """The frame of a node of a beam."""
        distances = np.linalg.norm(self.links[seat.link]["Q"] - seat.position, axis=1)
        node = int(np.argmin(distances))
        assert distances[node] < _SAME, f"{joint.name!r} is no node of its beam"
        return _Seat(seat.link, node, seat.rotation, np.zeros(3))

    def _new(self, name: str, seat: _Seat, H: np.ndarray, armature: Any) -> _Seat:
        """The frame of a new link of one node."""
        placed = {"parent": seat.link, "node": seat.node, "rotation": seat.rotation, "position": seat.position}
        empty = {"Q": np.zeros((1, 3)), "m": np.zeros((6, 6)), "K": np.zeros((6, 6)), "freedoms": ()}
        own = {"name": name, "H": H.reshape(-1, 6), "armature": tuple(map(float, armature))}
        self.links.append({**own, **placed, **empty})
        self.shapes.append([])
        return _Seat(len(self.links) - 1, _ROOT, np.eye(3), np.zeros(3))

    def _rows(self, link: int, node: int) -> slice:
        count = len(self.links[link]["Q"])
        return slice(6 * (node % count), 6 * (node % count) + 6)

    def chain(self) -> FlexibleChain:
        """All links, and X for unit rates of the model."""
        made = []
        for x in self.links:
            node = x["node"] % len(self.links[x["parent"]]["Q"]) if x["parent"] >= 0 else 0
            made.append(FlexibleLink(**{**x, "node": node}))
        bare = FlexibleChain(tuple(made))
        shapes = np.zeros((sum(map(len, bare.places)), self.model.nv))
        for places, parts in zip(bare.places, self.shapes, strict=True):
            row = 0
            for column, block in parts:
                shapes[places[row : row + len(block)], column : column + block.shape[1]] = block
                row += len(block)
        return FlexibleChain(tuple(made), shapes)


def chain_of(model: Model, q: np.ndarray) -> FlexibleChain:
    """The model at q (nq,), with modal coordinates of zero, as the paper has it; InputError for others."""
    if model.loops or model.couplings:
        raise UnsupportedError(f"flexible_chain is for trees; model {model.name!r} has loops or couplings")
    for joint in model.joints:
        bent = q[model.q_slice(joint.name)]
        if joint.kind.bends and bent.any():
            raise InputError(
                f"flexible_chain: q of {joint.name!r} is {bent.tolist()}; the paper's equations are those of "
                "undeformed links. Use zeros there; robot.mass_matrix(q) is for deformed ones"
            )
    found = _Links(model, q)
    for joint, body in zip(model.joints, model.bodies, strict=True):
        found.add(joint, body)
    return found.chain()


def _inertia(body: Body) -> np.ndarray:
    """(6, 6) of a rigid body, at its origin in its axes."""
    mass, (x, y, z) = float(body.inertia.mass), body.inertia.center
    lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    about = np.array(body.inertia.matrix(), dtype=float) - mass * lever @ lever
    return np.block([[about, mass * lever], [-mass * lever, mass * np.eye(3)]])
