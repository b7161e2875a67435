"""A flexible body as parts of a model: a root, the body on its modes, and nodes that ride on it.

For a body "boom": body "boom.root" is its root frame, joint "boom.modes" holds its modal coordinates and carries the
body "boom" itself, and each node is a body without mass on a joint of its own name, as "boom.tip". A body of several
pieces has "boom.1", "boom.2", ... in series; "boom.root" and "boom.tip" are its ends all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spanloop.errors import ModelError
from spanloop.flexible.modes import Node
from spanloop.flexible.recipe import Recipe
from spanloop.joints import Fixed
from spanloop.model.parts import Body, Geometry, Inertia, Joint, Placement

ROOT, MODES, END = "root", "modes", "end"


def flexible_parts(name: str, beam: Recipe, geometry: tuple[Geometry, ...] = ()) -> tuple[list[Body], list[Joint]]:
    """Bodies and joints of a flexible body; nothing carries its root yet."""
    bodies, joints = [Body(f"{name}.{ROOT}")], []
    below = f"{name}.{ROOT}"
    for k, piece in enumerate(beam.bodies):
        own = name if beam.pieces == 1 else f"{name}.{k + 1}"
        if k:
            joints.append(Joint(f"{own}.{ROOT}", Fixed(), below, f"{own}.{ROOT}", actuated=False))
            bodies.append(Body(f"{own}.{ROOT}"))
            below = f"{own}.{ROOT}"
        inertia = Inertia(piece.mass, piece.center, piece.moments)  # type: ignore[arg-type]
        bodies.append(Body(own, inertia, geometry))
        springs: dict[str, Any] = {"stiffness": piece.stiffness, "damping": piece.damping, "actuated": False}
        joints.append(Joint(f"{own}.{MODES}", piece.modal, below, own, **springs))
        for node in piece.nodes:
            seat = f"{own if node.name == END else name}.{node.name}"
            joints.append(Joint(seat, Node(node.shape), own, seat, Placement(position=node.position), actuated=False))
            bodies.append(Body(seat))
        below = f"{own}.{END}"
    return bodies, joints


def root_of(name: str, flexible: Iterable[str]) -> str:
    """The root of a flexible body, for what is attached to the body itself; any other name as it is."""
    return f"{name}.{ROOT}" if name in flexible else name


def refuse_offset(owner: str, body: str, position: tuple[float, ...], nodes: Iterable[str]) -> None:
    """Raise ModelError for a part that is attached to a flexible body beside its root: where it bends is not known."""
    if any(position):
        raise ModelError(
            f"{owner}: body {body!r} is flexible, and {tuple(position)} m is no node of it. Attach it to a node "
            f"({', '.join(nodes)}), and add nodes with sl.flexible.beam(..., nodes={{name: position}}); an offset from "
            f"'{body}.{ROOT}' is a rigid bracket at the root"
        )
